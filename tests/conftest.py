"""Fixtures that every test may use."""

from __future__ import annotations

import sys

import pytest


@pytest.fixture
def python() -> str:
    """Interpreter that runs the tests, for subprocesses."""
    return sys.executable
