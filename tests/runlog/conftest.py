"""What several tests of the run log stand on: an object store, and a finished run to put there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.object_store import ObjectStore, object_store
from tests.support.synthetic import make_run


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectStore]:
    with (
        pytest.MonkeyPatch.context() as patch,
        object_store(tmp_path_factory.mktemp("cache"), patch) as store,
    ):
        yield store


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("logs"), name="猫 <b>", nan_steps=(5,), resume_at=30)
