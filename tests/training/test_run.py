"""Whole runs on a few hundred pairs: what is logged, that it repeats, that it resumes exactly."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import duckdb
import numpy as np
import pytest
import torch
from torch.nn import functional as F

from uwml_core.data import load_pairs
from uwml_core.runlog.reader import open_run
from uwml_core.training import PRESETS, NonFiniteLossError, TrainingStopped, build_config, run_training
from uwml_core.training.batches import BatchSource, Corpus
from uwml_core.training.checkpoint import Checkpoint, load_checkpoint
from uwml_core.training.encoders import build_model
from uwml_core.training.loop import Trainer
from uwml_core.training.schedule import learning_rate_at

EPOCHS, STEPS = 3, 21
COMPUTED = [
    "loss",
    "loss_i2t",
    "loss_t2i",
    "gap_i2t",
    "gap_window_t2i",
    "direction_weight_i2t",
    "steepness",
    "gradient_norm",
    "learning_rate",
    "ess_i2t",
]


def computed(path) -> dict[str, list[float]]:
    table = open_run(path).table("steps", columns=["step", *COMPUTED])
    return table.sort_by("step").to_pydict()


def query(path, table, sql):
    return duckdb.sql(
        f"SELECT {sql} FROM read_parquet('{path}/{table}/part-*.parquet', union_by_name=true)"
    ).fetchall()


def stop_at(monkeypatch, step, number=signal.SIGINT):
    """Send ourselves a signal while the step is under way, once."""
    batch_at, sent = BatchSource.at, []

    def at(self, wanted):
        if wanted == step and not sent:
            sent.append(wanted)
            signal.raise_signal(number)
        return batch_at(self, wanted)

    monkeypatch.setattr(BatchSource, "at", at)


def test_a_run_logs_every_step_pair_evaluation_and_snapshot(config, small_pairs):
    path = run_training(config, progress=False)
    run = open_run(path)
    assert run.status == "finished"
    assert run.total_steps == STEPS
    assert run.config["train"]["epochs"] == EPOCHS
    assert query(path, "steps", "count(*), count(DISTINCT step), min(step), max(step)") == [
        (STEPS, STEPS, 0, STEPS - 1)
    ]
    assert query(path, "steps", "max(epoch), min(learning_rate) > 0, min(gradient_norm) > 0") == [
        (2, True, True)
    ]
    assert query(path, "steps", "bool_and(step_time_ms > 0 AND isfinite(step_time_ms))") == [(True,)]
    assert query(path, "pairs", "count(*), count(DISTINCT direction)") == [(STEPS * 32 * 2, 2)]
    evaluations = duckdb.sql(
        f"SELECT DISTINCT step, epoch FROM '{path}/evals/*.parquet' ORDER BY step"
    ).fetchall()
    assert evaluations == [(-1, -1), (6, 0), (13, 1), (20, 2)]
    snapshots = duckdb.sql(
        f"SELECT step, modality::VARCHAR, split, count(*) FROM '{path}/snapshots/*.parquet' GROUP BY ALL"
    ).fetchall()
    assert sorted(snapshots) == sorted(
        (step, modality, split, n)
        for step in (-1, 6, 13, 20)
        for modality in ("image", "text")
        for split, n in (("train", 240), ("val", 60))
    )
    file = path.parent / "_items" / f"{run.info['data_fingerprint']}.parquet"
    told = duckdb.sql(
        f"SELECT step, data FROM '{path}/events/*.parquet' WHERE kind = 'throughput' ORDER BY step"
    ).fetchall()
    assert [step for step, _ in told] == [6, 13, 20]
    usage = json.loads(told[0][1])
    assert usage["pairs"] == 7 * 32
    assert usage["pairs_per_second"] == pytest.approx(usage["pairs"] / usage["seconds"])
    assert usage["peak_memory_bytes"] > 2**26
    assert usage["peak_gpu_memory_bytes"] is None
    items = duckdb.sql(f"SELECT count(*), count(thumbnail) FROM '{file}'").fetchall()
    assert items == [(300, 300)]
    assert run.info["data_fingerprint"] == load_pairs(small_pairs).fingerprint


def test_evaluations_follow_from_the_ranks(config):
    path = run_training(config, progress=False)
    from_ranks = duckdb.sql(
        f"""
        SELECT step, direction::VARCHAR AS direction, count(*) AS n,
            100 * avg((rank <= 1)::INT) AS r1, 100 * avg((rank <= 5)::INT) AS r5,
            100 * avg((rank <= 10)::INT) AS r10, median(rank) AS middle, avg(rank) AS mean
        FROM '{path}/ranks/*.parquet' GROUP BY ALL
        """
    ).fetchall()
    logged = {
        (step, direction, metric): (value, n)
        for step, direction, metric, value, n in duckdb.sql(
            f"SELECT step, direction::VARCHAR, metric, value, n FROM '{path}/evals/*.parquet'"
        ).fetchall()
    }
    assert len(from_ranks) == 8
    for step, direction, n, *values in from_ranks:
        names = ("R@1", "R@5", "R@10", "median_rank", "mean_rank")
        for metric, value in zip(names, values, strict=True):
            assert logged[step, direction, metric] == (pytest.approx(value, rel=1e-6), n)
    for step in (-1, 6, 13, 20):
        total = sum(logged[step, d, f"R@{k}"][0] for d in ("i2t", "t2i") for k in (1, 5, 10))
        assert logged[step, None, "rsum"][0] == pytest.approx(total)


def test_captions_logged_are_those_of_the_item_and_negatives_have_another_label(config, small_pairs):
    path = run_training(config, progress=False)
    data = load_pairs(small_pairs)
    rows = query(path, "pairs", "item_id, caption, negative_item_id, negative_caption")
    items, captions, negatives, negative_captions = (np.array(column) for column in zip(*rows, strict=True))
    assert (captions < data.caption_counts[items]).all()
    assert (negative_captions < data.caption_counts[negatives]).all()
    assert (data.labels[items] != data.labels[negatives]).all()
    assert {data.splits[row] for row in items} == {"train"}


def test_the_same_configuration_gives_the_same_losses_and_another_seed_others(settings):
    first = computed(run_training(build_config(settings=settings), progress=False))
    again = computed(run_training(build_config(settings=settings), progress=False))
    other = computed(run_training(build_config(settings=[*settings, "train.seed=1"]), progress=False))
    assert first == again
    assert first["loss"] != other["loss"]


@pytest.mark.parametrize(("step", "number"), [(9, signal.SIGINT), (6, signal.SIGTERM), (0, signal.SIGINT)])
def test_a_stopped_run_resumes_bit_for_bit(settings, monkeypatch, step, number):
    unbroken = run_training(build_config(settings=settings), progress=False)
    stop_at(monkeypatch, step, number)
    with pytest.raises(TrainingStopped) as stopped:
        run_training(build_config(settings=settings), progress=False)
    path = stopped.value.path
    assert (stopped.value.step, stopped.value.saved, stopped.value.signal) == (step + 1, step + 1, number)
    assert open_run(path).status == "stopped"
    assert len(computed(path)["step"]) == step + 1
    assert run_training(build_config(settings=[*settings, f"train.resume={path}"]), progress=False) == path
    assert computed(path) == computed(unbroken)
    assert open_run(path).status == "finished"
    for table in ("evals", "ranks"):
        same = [open_run(p).table(table).to_pandas().drop(columns="segment") for p in (path, unbroken)]
        assert len(same[0]) == len(same[1])
        assert np.array_equal(same[0].iloc[:, -1].to_numpy(), same[1].iloc[:, -1].to_numpy(), equal_nan=True)
    assert [entry["first_step"] for entry in open_run(path).info["segments"]] == [0, step + 1]


def test_a_stopped_run_knows_the_last_checkpoint_that_was_written(settings, monkeypatch):
    def refuse(self, run):
        if self.step == 10:
            raise OSError("no space")
        return save(self, run)

    save = Checkpoint.save
    monkeypatch.setattr(Checkpoint, "save", refuse)
    stop_at(monkeypatch, 9)
    with pytest.warns(UserWarning, match="no space"), pytest.raises(TrainingStopped) as stopped:
        run_training(build_config(settings=settings), progress=False)
    assert (stopped.value.step, stopped.value.saved) == (10, 7)


def test_a_logs_folder_that_cannot_be_written_is_named_with_what_to_do(settings, tmp_path):
    (tmp_path / "file").touch()
    config = build_config(settings=[*settings, f"run.root={tmp_path / 'file'}"])
    message = r"run\.root='.*file' cannot be written \(Not a directory\); choose a folder"
    with pytest.raises(OSError, match=message):
        run_training(config, progress=False)


def test_a_resume_by_run_id_refuses_other_settings_data_and_a_finished_run(settings, monkeypatch, tmp_path):
    stop_at(monkeypatch, 4)
    with pytest.raises(TrainingStopped) as stopped:
        run_training(build_config(settings=settings), progress=False)
    resume = [*settings, f"train.resume={stopped.value.path.name}"]
    with pytest.raises(ValueError, match=r"train\.learning_rate=0\.5 differs from the run's 0\.003"):
        run_training(build_config(settings=[*resume, "train.learning_rate=0.5"]), progress=False)
    with pytest.raises(ValueError, match="is no folder"):
        run_training(build_config(settings=[*settings, "train.resume=nothing"]), progress=False)
    path = run_training(build_config(settings=resume), progress=False)
    with pytest.raises(ValueError, match="has done all its 21 steps already"):
        run_training(build_config(settings=resume), progress=False)
    assert open_run(path).status == "finished"


def test_infonce_preset_is_a_hand_written_infonce_loop(settings, small_pairs):
    config = build_config(preset="infonce", settings=settings)
    logged = computed(run_training(config, progress=False))
    data = load_pairs(small_pairs)
    batches = BatchSource(Corpus(data), data.rows("train"), batch_size=32, seed=0)
    model = build_model("small", 32, 0)
    decayed = [p for p in model.parameters() if p.ndim > 1]
    rest = [p for p in model.parameters() if p.ndim <= 1]
    optimizer = torch.optim.AdamW(
        [{"params": decayed, "weight_decay": 0.05}, {"params": rest, "weight_decay": 0.0}], lr=1.0
    )
    losses, norms = [], []
    for step in range(STEPS):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate_at(step, STEPS, config.train.learning_rate)
        batch = batches.at(step)
        images, texts = (F.normalize(x, dim=1) for x in model(batch.pictures, *batch.texts))
        logits = images @ texts.T / 0.07
        same = batch.labels[:, None] == batch.labels[None, :]
        logits = logits.masked_fill(same & ~torch.eye(32, dtype=torch.bool), -torch.inf)
        target = torch.arange(32)
        loss = (F.cross_entropy(logits, target) + F.cross_entropy(logits.T, target)) / 2
        optimizer.zero_grad()
        loss.backward()
        norms.append(float(torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)))
        optimizer.step()
        losses.append(loss.item())
    assert logged["loss"][:3] == pytest.approx(losses[:3], rel=1e-5)
    # rounding differs between the fused and the plain path, and training amplifies it
    assert logged["loss"] == pytest.approx(losses, rel=1e-2)
    assert logged["gradient_norm"][:3] == pytest.approx(norms[:3], rel=1e-4)


@pytest.mark.parametrize("preset", [name for name in PRESETS if name not in ("uwml", "infonce")])
def test_the_other_baselines_run(settings, preset):
    path = run_training(build_config(preset=preset, settings=[*settings, "train.epochs=1"]), progress=False)
    assert np.isfinite(computed(path)["loss"]).all()
    scaled = preset not in ("vse0", "vsepp", "wei2020_max", "wei2020_calibrated")
    assert query(path, "steps", "count(temperature) > 0") == [(scaled,)]
    zones = query(path, "steps", "count(dead_share_i2t), count(wrong_sign_share_t2i)")
    assert (zones != [(0, 0)]) == preset.startswith("wei2020")


def test_clips_train_under_their_own_direction_names(settings, tmp_path, small_pairs):
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pq.read_table(small_pairs)
    frames = [[image.as_py()] * 2 for image in table["image"]]
    clips = tmp_path / "clips.parquet"
    pq.write_table(table.drop_columns("image").append_column("frames", pa.array(frames)), clips)
    path = run_training(
        build_config(settings=[*settings, f"data.path={clips}", "train.epochs=1"]), progress=False
    )
    assert open_run(path).directions == ("v2t", "t2v")
    assert query(path, "steps", "count(loss_v2t)") == [(7,)]


def test_a_learnable_temperature_learns_and_is_saved(settings):
    path = run_training(build_config(settings=[*settings, "loss.learnable_temperature=true"]), progress=False)
    low, high = query(path, "steps", "min(temperature), max(temperature)")[0]
    assert low < high
    assert "logit_scale" in load_checkpoint(path).loss


def test_a_loss_that_is_not_finite_fails_the_run_and_says_why(settings):
    wild = [*settings, "train.learning_rate=1e30", "train.gradient_clip=null"]
    with pytest.raises(
        NonFiniteLossError, match=r"not finite at step \d+; lower train\.learning_rate"
    ) as caught:
        run_training(build_config(settings=wild), progress=False)
    assert "\n" not in str(caught.value)
    [run] = [path.parent for path in Path(build_config(settings=wild).run.root).glob("*/run.json")]
    assert open_run(run).status == "failed"
    kinds = {kind for (kind,) in query(run, "events", "kind")}
    assert "non_finite" in kinds


def test_a_checkpoint_that_cannot_be_written_does_not_end_the_training(config, monkeypatch):
    def full(self, run):
        raise OSError("checkpoint x cannot be written: no space left")

    monkeypatch.setattr(Checkpoint, "save", full)
    with pytest.warns(UserWarning, match="no space left"):
        path = run_training(config, progress=False)
    assert open_run(path).status == "finished"
    levels = query(path, "events", "level, message")
    assert ("error", "checkpoint x cannot be written: no space left") in levels


def test_a_contradicting_number_of_steps_is_refused(settings):
    with pytest.raises(ValueError, match=r"loss\.total_steps=5 contradicts train\.epochs=3 of 7 steps"):
        run_training(build_config(settings=[*settings, "loss.total_steps=5"]), progress=False)


def test_nothing_is_written_when_the_data_cannot_be_used(settings, tmp_path):
    with pytest.raises(ValueError, match="neither a file nor"):
        run_training(build_config(settings=[*settings, "data.path=none"]), progress=False)
    assert not (tmp_path / "logs").exists()


def test_the_log_is_flushed_before_the_checkpoint(config, monkeypatch):
    order = []
    save = Trainer.save

    def spied(self):
        flush = self.logger.flush
        monkeypatch.setattr(self.logger, "flush", lambda *a: (order.append("flush"), flush(*a))[1])
        save(self)
        steps = [] if self.step == 0 else open_run(self.logger.path).table("steps")["step"].to_pylist()
        order.append((load_checkpoint(self.logger.path).step, len(steps)))

    monkeypatch.setattr(Trainer, "save", spied)
    run_training(config, progress=False)
    assert [entry for entry in order if entry != "flush"] == [(0, 0), (7, 7), (14, 14), (21, 21)]


def test_the_configuration_is_in_run_json(config):
    path = run_training(config, progress=False)
    stored = json.loads((path / "run.json").read_text())
    assert stored["config"]["loss"]["total_steps"] == STEPS
    assert stored["seed"] == 0
    assert {**stored["config"]["data"]} == {**config.to_dict()["data"]}
