"""Fixtures that every test may use."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from tests.support.object_store import ObjectStore

# property tests draw the same examples everywhere, and a busy machine does not fail them
settings.register_profile("steady", deadline=None, derandomize=True, database=None)
settings.load_profile("steady")


@pytest.fixture
def python() -> str:
    """Interpreter that runs the tests, for subprocesses."""
    return sys.executable


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectStore]:
    """An object store on this machine."""
    # what it is made of takes seconds to import
    from tests.support.object_store import object_store

    with (
        pytest.MonkeyPatch.context() as patch,
        object_store(tmp_path_factory.mktemp("cache"), patch) as store,
    ):
        yield store
