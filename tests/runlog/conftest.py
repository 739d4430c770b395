"""What several tests of the run log stand on: a finished run to put into the object store."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.synthetic import make_run


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("logs"), name="猫 <b>", nan_steps=(5,), resume_at=30)
