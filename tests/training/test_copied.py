"""A training whose run is copied while it grows; a place out of reach is told of before it begins."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from tests.support.object_store import BUCKET, ObjectStore
from uwml_core.runlog.reader import open_run
from uwml_core.training import build_config, run_training


def test_a_training_is_copied_to_an_object_store(settings: list[str], server: ObjectStore) -> None:
    config = build_config(settings=[*settings, "train.epochs=1", f"run.copy_to={server.url()}"])
    path = run_training(config, run_id="run", progress=False)
    copy, run = open_run(server.url("/run")), open_run(path)
    assert (copy.status, len(run.table("steps"))) == ("finished", 7)
    for table in ("steps", "pairs", "evals", "ranks", "snapshots", "events"):
        pd.testing.assert_frame_equal(copy.frame(table), run.frame(table), check_exact=True)


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("logs", "'logs' is no URL of a place to copy to"),
        ("nowhere://bucket/logs", "cannot be opened"),
        ("nobody", "there is no bucket 'nobody'"),
        ("down", "cannot be reached"),
    ],
)
def test_a_place_that_cannot_be_written_is_refused_before_training(
    settings: list[str], server: ObjectStore, tmp_path: Path, url: str, reason: str
) -> None:
    if url == "nobody":
        url = server.url().replace(BUCKET, "nobody", 1)
    elif url == "down":
        url, server.down = server.url(), True
    config = build_config(settings=[*settings, f"run.copy_to={url}"])
    try:
        with pytest.raises(ValueError, match=rf"run.copy_to='.*' is not usable: .*{reason}"):
            run_training(config, progress=False)
    finally:
        server.down = False
    assert not (tmp_path / "logs").exists()
