"""Fixtures that every test may use."""

from __future__ import annotations

import sys

import pytest
from hypothesis import settings

# property tests draw the same examples everywhere, and a busy machine does not fail them
settings.register_profile("steady", deadline=None, derandomize=True, database=None)
settings.load_profile("steady")


@pytest.fixture
def python() -> str:
    """Interpreter that runs the tests, for subprocesses."""
    return sys.executable
