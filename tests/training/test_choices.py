"""What may be chosen about data and log: clips, language, part of the rows, snapshots, folder name."""

from __future__ import annotations

import io
import signal
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from uwml_core.runlog.reader import open_run
from uwml_core.training import TrainingStopped, build_config, run_training
from uwml_core.training.batches import BatchSource
from uwml_core.training.checkpoint import load_checkpoint


def query(path, table, sql, rest=""):
    return duckdb.sql(f"SELECT {sql} FROM '{path}/{table}/part-*.parquet' {rest}").fetchall()


def test_modalities_that_contradict_the_data_are_refused(settings, tmp_path):
    wrong = [*settings, "loss.modalities=[video, text]"]
    with pytest.raises(
        ValueError, match=r"contradicts data\.path=.*whose rows pair image and text; leave it"
    ):
        run_training(build_config(settings=wrong), progress=False)
    assert not (tmp_path / "logs").exists()


@pytest.mark.slow
def test_shipped_clips_train_end_to_end(tmp_path):
    settings = ["data.path=animated_emoji_pairs", "data.only=group=animals-nature", "data.batch_size=16"]
    settings += ["model.dim=16", "train.epochs=2", "train.snapshot_items=20", f"run.root={tmp_path}"]
    path = run_training(build_config(settings=settings), progress=False)
    run = open_run(path)
    assert (run.status, run.directions, run.modalities) == ("finished", ("v2t", "t2v"), ("video", "text"))
    assert run.config["loss"]["modalities"] == ["video", "text"]
    assert not run.health()
    for table in ("pairs", "ranks", "neighbors"):
        assert set(run.frame(table, columns=["direction"])["direction"]) == {"v2t", "t2v"}, table
    modalities = run.table("snapshots", columns=["modality"])["modality"].to_pylist()
    assert set(modalities) == {"video", "text"}
    first = run.items().iloc[0]
    with Image.open(io.BytesIO(first["thumbnail"])) as strip:
        assert strip.size == (160, 40)


def with_chinese(pairs: Path, folder: Path) -> Path:
    table = pq.read_table(pairs)
    texts = [None if row % 4 == 0 else [f"第{row}号", "表情"] for row in range(table.num_rows)]
    path = folder / "chinese.parquet"
    pq.write_table(table.append_column("captions_zh", pa.array(texts)), path)
    return path


def test_training_on_chinese_captions_logs_them_under_the_rows_of_the_file(settings, tmp_path, small_pairs):
    pairs = with_chinese(small_pairs, tmp_path)
    chosen = [*settings, f"data.path={pairs}", "data.captions=zh", "train.epochs=1"]
    said = "chinese.parquet: 75 of 300 rows have no captions in 'captions_zh' and are left out"
    with pytest.warns(UserWarning, match=said):
        path = run_training(build_config(settings=chosen), progress=False)
    assert (said, "warning") in query(path, "events", "message, level")
    run = open_run(path)
    items = run.items()
    assert (items["item_id"] % 4 != 0).all()
    assert len(items) == 225
    assert all(
        list(texts) == [f"第{row}号", "表情"]
        for row, texts in zip(items["item_id"], items["captions"], strict=True)
    )
    for table, column in [
        ("pairs", "item_id"),
        ("pairs", "negative_item_id"),
        ("ranks", "item_id"),
        ("snapshots", "item_id"),
        ("neighbors", "item_id"),
        ("neighbors", "negative_item_id"),
    ]:
        ids = set(run.table(table, columns=[column])[column].drop_null().to_pylist())
        assert ids, table
        assert ids <= set(items["item_id"]), (table, column)


def test_a_batch_larger_than_the_split_is_told(settings):
    chosen = [*settings, "data.batch_size=100000", "train.epochs=1"]
    with pytest.warns(UserWarning, match="data.batch_size=100000 is more than") as caught:
        path = run_training(build_config(settings=chosen), progress=False)
    (size,) = query(path, "steps", "DISTINCT batch_size")[0]
    said = f"data.batch_size=100000 is more than the {size} training pairs: each step takes all of them"
    assert [str(one.message) for one in caught] == [said]
    assert (said, "warning") in query(path, "events", "message, level")


def test_a_snapshot_holds_the_items_asked_for(settings):
    chosen = [*settings, "train.epochs=1", "train.snapshot_items=9"]
    path = run_training(build_config(settings=chosen), progress=False)
    counts = query(
        path,
        "snapshots",
        "split, count(*) // count(DISTINCT step) // count(DISTINCT modality)",
        "GROUP BY split",
    )
    assert set(counts) == {("train", 9), ("val", 9)}
    assert query(path, "neighbors", "count(DISTINCT item_id)") == [(18,)]


def test_a_run_older_than_a_setting_can_be_continued(settings, monkeypatch):
    batch_at = BatchSource.at
    sent = []

    def at(self, step):
        if step == 4 and not sent:
            sent.append(step)
            signal.raise_signal(signal.SIGINT)
        return batch_at(self, step)

    monkeypatch.setattr(BatchSource, "at", at)
    with pytest.raises(TrainingStopped) as stopped:
        run_training(build_config(settings=settings), progress=False)
    path = stopped.value.path
    saved = load_checkpoint(path)
    del saved.config["data"]["captions"], saved.config["train"]["snapshot_items"]
    saved.save(path)
    assert run_training(build_config(settings=[*settings, f"train.resume={path}"]), progress=False) == path
    assert open_run(path).status == "finished"


def test_a_run_can_be_given_its_folder_name(settings):
    config = build_config(settings=[*settings, "train.epochs=1"])
    path = run_training(config, run_id="mine", progress=False)
    assert path.name == open_run(path).run_id == "mine"
    with pytest.raises(ValueError, match="mine"):
        run_training(config, run_id="mine", progress=False)


def test_the_pairs_of_each_third_step_are_kept_and_every_step_is_counted(settings):
    path = run_training(build_config(settings=[*settings, "train.pairs_every=3"]), progress=False)
    steps = query(path, "pairs", "step, count(*)", "GROUP BY step ORDER BY step")
    assert steps == [(step, 64) for step in range(0, 21, 3)]
    assert query(path, "steps", "count(*)") == [(21,)]
    assert open_run(path).info["segments"][0]["pairs_every"] == 3
