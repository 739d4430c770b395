"""A run as large as the log is built for, made in a minute or two: ``python -m benchmarks.large_run DIR``.

Small tables go through the logger; ``steps``, ``pairs`` and the rollups are computed for an epoch at a time
with the functions that the logger calls, and written as a compaction leaves them.
"""

from __future__ import annotations

import argparse
import json
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tests.support.synthetic import metrics_of, thumbnail
from uwml_core.runlog import columns
from uwml_core.runlog.compactor import MOST_ROWS
from uwml_core.runlog.joining import ROWS_PER_GROUP
from uwml_core.runlog.parts import encoding, part_name, write_parquet
from uwml_core.runlog.reader import Run, open_run
from uwml_core.runlog.rollups import ROLLUPS, Values, count, joined_values, to_table
from uwml_core.runlog.schema import PAIRS, STEPS, TABLES
from uwml_core.runlog.settling import settled
from uwml_core.runlog.writer import Nearest, RunLogger
from uwml_core.weighting import (
    UWMLConfig,
    difficulty_weight,
    effective_sample_size,
    loss_denominator,
    relative_weight,
    replay_controller,
    stage_steepness,
)

DIRECTIONS = ("i2t", "t2i")
CAPTIONS = 5
NEAREST = 5
BEGAN_US = 1_750_000_000_000_000
STEP_US = 120_000


@dataclass(frozen=True, kw_only=True)
class Size:
    """How large a run is: ``epochs * steps_per_epoch`` steps of ``batch`` pairs, two rows for each."""

    epochs: int = 50
    steps_per_epoch: int = 2_000
    batch: int = 128
    probes: int = 2_000
    dim: int = 256

    @property
    def items(self) -> int:
        """Each with ``CAPTIONS`` captions, each of which an epoch visits once."""
        return self.steps_per_epoch * self.batch // CAPTIONS

    @property
    def steps(self) -> int:
        return self.epochs * self.steps_per_epoch


def make_large_run(root: Path, run_id: str = "large", size: Size | None = None) -> Path:
    """Write the run, unless it is there as a whole already; returns its folder."""
    size = size or Size()
    folder = root / run_id
    if (folder / ".complete").exists():
        return folder
    config = UWMLConfig(total_steps=size.steps)
    with RunLogger(root, run_id, config=config, total_steps=size.steps, seed=0) as log:
        world = World(size, config)
        log.log_items(**world.items())
        for epoch in range(-1, size.epochs):
            _log_epoch_end(log, world, epoch)
            log.flush()
    _write_steps(folder, world)
    (folder / ".complete").touch()
    return folder


def _log_epoch_end(log: RunLogger, world: World, epoch: int) -> None:
    where = {"step": (epoch + 1) * world.size.steps_per_epoch - 1, "epoch": epoch}
    ids, ranks = world.val_ids, {}
    for direction in DIRECTIONS:
        ranks[direction] = world.ranks(epoch)
        captions = None if direction == DIRECTIONS[0] else np.zeros(len(ids), np.int16)
        log.log_ranks(
            split="val", direction=direction, item_ids=ids, captions=captions, ranks=ranks[direction], **where
        )
    log.log_eval(split="val", metrics=metrics_of(ranks), **where)
    log.log_snapshot(**world.snapshot(epoch), **where)
    log.log_neighbors(**world.neighbors(epoch), **where)
    log.log_event("checkpoint", f"checkpoint after epoch {epoch}", **where)


def _write_steps(folder: Path, world: World) -> None:
    """Tables by step, and the rollups, in files as long as a compaction makes them."""
    pairs, counted = Parts(folder / "pairs"), {name: [] for name in ROLLUPS}
    steps = []
    for table, rows in world.epochs():
        steps.append(table)
        first, last = table["step"][0].as_py(), table["step"][-1].as_py()
        pairs.add(rows, first, last)
        for name, rollup in ROLLUPS.items():
            values = count(rollup, rows, DIRECTIONS)
            origin = {"first_step": first, "step": last, "segment": 0, "process": 0}
            constant = {key: np.full(len(values["epoch"]), value) for key, value in origin.items()}
            counted[name].append({**constant, **values})
    pairs.close()
    target = folder / "steps" / part_name(0, 0, world.size.steps - 1)
    target.parent.mkdir(exist_ok=True)
    write_parquet(pa.concat_tables(steps), target, STEPS)
    for name, stretches in counted.items():
        _write_rollup(folder, name, stretches, world.size.steps - 1)


def _write_rollup(folder: Path, name: str, stretches: list[Values], last: int) -> None:
    rollup = ROLLUPS[name]
    target = folder / rollup.spec.name / part_name(0, 0, last)
    target.parent.mkdir(parents=True, exist_ok=True)
    table = to_table(rollup, joined_values(stretches), DIRECTIONS)
    write_parquet(settled(rollup, table, DIRECTIONS, ended=True), target, rollup.spec)


class Parts:
    """Part files of ``pairs``, a row group at a time."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self._folder, self._waiting = folder, []
        self._first, self._last = 0, -1

    def add(self, rows: pa.Table, first: int, last: int) -> None:
        if self._waiting and sum(map(len, self._waiting)) + len(rows) > MOST_ROWS:
            self.close()
        self._first = self._first if self._waiting else first
        self._last = last
        self._waiting.append(rows)

    def close(self) -> None:
        path = self._folder / part_name(0, self._first, self._last)
        schema = self._waiting[0].schema
        with pq.ParquetWriter(path, schema, **encoding(PAIRS, schema)) as writer:
            for start in range(0, sum(map(len, self._waiting)), ROWS_PER_GROUP):
                rows = pa.concat_tables(self._waiting).slice(start, ROWS_PER_GROUP)
                writer.write_table(rows.unify_dictionaries())
        self._waiting = []


class World:
    """The data set and the course of training: margins grow, the second direction lags."""

    def __init__(self, size: Size, config: UWMLConfig) -> None:
        self.size, self._config = size, config
        self._stage = (config.steepness_start, config.steepness_end)
        self._random = np.random.default_rng(0)
        self._ability = self._random.normal(0.0, 0.08, size.items)
        self._probes = np.sort(self._random.choice(size.items, size.probes, replace=False))
        self._is_val = np.arange(size.probes) % 2 == 1
        self.val_ids = self._random.choice(size.items, size.probes, replace=False)
        self._concept = self._random.normal(size=(size.probes, size.dim))

    def items(self) -> dict[str, object]:
        n, pictures = self.size.items, [thumbnail(k) for k in range(256)]
        return {
            "item_keys": [f"item-{k:06d}" for k in range(n)],
            "labels": list(range(n)),
            "captions": [
                [f"thing {k} of kind {k % 97}, told for the {c}th time" for c in range(CAPTIONS)]
                for k in range(n)
            ],
            "groups": [f"group {k % 40}" for k in range(n)],
            "splits": ["train"] * n,
            # as long as a photograph's thumbnail, which does not compress
            "thumbnails": [pictures[k % 256] + self._random.bytes(1500) for k in range(n)],
            "paths": [f"pictures/{k:06d}.jpg" for k in range(n)],
        }

    def _trained(self, epoch: float) -> float:
        return (epoch + 1) / self.size.epochs

    def ranks(self, epoch: int) -> np.ndarray:
        spread = 60.0 * (1.1 - self._trained(epoch))
        rank = 1.0 + np.floor(np.abs(self._random.normal(0.0, spread, len(self.val_ids))))
        return (rank + 0.5 * (self._random.random(len(rank)) < 0.1)).astype(np.float32)

    def _splits(self) -> list[str]:
        return np.where(self._is_val, "val", "train").tolist()

    def snapshot(self, epoch: int) -> dict[str, object]:
        embeddings = {}
        for side, modality in enumerate(("image", "text")):
            noise = self._random.normal(size=self._concept.shape) * (1.6 - self._trained(epoch))
            vectors = self._concept + noise + 0.4 * (2 * side - 1)
            embeddings[modality] = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        return {
            "embeddings": embeddings,
            "item_ids": self._probes,
            "labels": self._probes,
            "splits": self._splits(),
        }

    def neighbors(self, epoch: int) -> dict[str, object]:
        n, nearest = self.size.probes, {}
        for direction in DIRECTIONS:
            negative = self._random.integers(1, n, (n, NEAREST))
            # a third keep theirs
            negative[::3] = np.arange(1, NEAREST + 1)
            negative = self._probes[(np.arange(n)[:, None] + negative) % n]
            positive = 0.2 + 0.5 * self._trained(epoch) + self._random.normal(0.0, 0.02, n)
            growth = np.where(self._is_val, 0.05, 0.3)
            margin = -0.1 + growth * self._trained(epoch) + self._ability[self._probes]
            margin += self._random.normal(0.0, 0.02, n)
            similarity = (positive - margin)[:, None] - 0.02 * np.arange(NEAREST)
            nearest[direction] = Nearest(negative, similarity, positive)
        return {"nearest": nearest, "item_ids": self._probes, "splits": self._splits()}

    def epochs(self) -> Iterator[tuple[pa.Table, pa.Table]]:
        """Rows of ``steps`` and of ``pairs``, epoch by epoch."""
        gaps = np.empty((0, 2))
        for epoch in range(self.size.epochs):
            numbers = np.arange(epoch * self.size.steps_per_epoch, (epoch + 1) * self.size.steps_per_epoch)
            anchors = self._anchors(epoch, numbers)
            gap = anchors["margin"].mean(axis=2, dtype=np.float64)
            gaps = np.concatenate([gaps, gap])
            weight = replay_controller(gaps, self._config)[-len(gap) :]
            yield self._steps(epoch, numbers, anchors, gap, weight), self._pairs(epoch, numbers, anchors)

    def _anchors(self, epoch: int, numbers: np.ndarray) -> dict[str, np.ndarray]:
        """Fields of anchors ``[steps, 2, batch]``; the batches of an epoch visit each caption once."""
        size, random = self.size, self._random
        shape = (len(numbers), 2, size.batch)
        drawn = random.permutation(len(numbers) * size.batch) % (size.items * CAPTIONS)
        item, caption = np.divmod(drawn.reshape(len(numbers), size.batch), CAPTIONS)
        other = (np.arange(size.batch) + random.integers(1, size.batch, shape)) % size.batch
        trained = (numbers / size.steps)[:, None, None]
        centre = (
            np.array([-0.05, -0.09])[:, None] + 0.35 * trained + 0.01 * np.sin(numbers / 40)[:, None, None]
        )
        margin = centre + self._ability[item][:, None] + random.normal(0.0, 0.1, shape)
        positive = np.clip(0.2 + 0.5 * trained + random.normal(0.0, 0.05, shape), -1, 1).astype(np.float32)
        negative = np.clip(positive - margin, -1, 1).astype(np.float32)
        margin = positive - negative
        steepness = stage_steepness(numbers / size.steps, *self._stage).astype(np.float32)
        curve = {"curve": "bell", "center": self._config.center, "hard_floor": self._config.hard_floor}
        pair_weight = difficulty_weight(margin, steepness=steepness[:, None, None], **curve)
        loss = np.log1p(0.2 * size.batch * np.exp(-2.0 - margin / np.float32(0.07)))
        weight = relative_weight(pair_weight, self._config.max_weight)
        pull = weight * -np.expm1(-loss)
        at = np.arange(len(numbers))[:, None, None]
        return {
            "item_id": np.broadcast_to(item[:, None], shape),
            "caption": np.broadcast_to(caption[:, None], shape),
            "negative_item_id": item[at, other],
            "negative_caption": caption[at, other],
            "positive_similarity": positive,
            "negative_similarity": negative,
            "margin": margin,
            "pair_loss": loss.astype(np.float32),
            "pair_weight": pair_weight,
            "weight": weight,
            "gradient_share": pull / pull.sum(axis=-1, keepdims=True),
        }

    def _pairs(self, epoch: int, numbers: np.ndarray, anchors: dict[str, np.ndarray]) -> pa.Table:
        rows, schema = anchors["margin"].size, PAIRS.schema(DIRECTIONS)
        built = {
            "step": columns.numbers(np.repeat(numbers, 2 * self.size.batch), pa.int64()),
            "epoch": columns.numbers(np.full(rows, epoch), pa.int32()),
            "direction": columns.labels(
                np.tile(np.repeat([0, 1], self.size.batch), len(numbers)), DIRECTIONS
            ),
            **{
                name: columns.numbers(values.ravel(), schema.field(name).type)
                for name, values in anchors.items()
            },
        }
        far = anchors["negative_similarity"] > anchors["positive_similarity"].astype(np.float64) + 0.1
        return columns.table({**built, "suspected_false_negative": columns.booleans(far.ravel())}, schema)

    def _steps(
        self,
        epoch: int,
        numbers: np.ndarray,
        anchors: dict[str, np.ndarray],
        gap: np.ndarray,
        own: np.ndarray,
    ) -> pa.Table:
        config, n, random = self._config, len(numbers), self._random
        weight, margin = anchors["weight"], anchors["margin"]
        loss = np.sum(weight * anchors["pair_loss"], axis=-1, dtype=np.float64)
        loss = loss / loss_denominator(weight, config.normalization)
        both = {
            "loss": loss,
            "gap": gap,
            "gap_window": gap,
            "direction_weight": own,
            "ess": effective_sample_size(weight),
            "clamped_share": (weight >= config.max_weight).mean(axis=-1),
            "no_negative_count": np.zeros((n, 2)),
            "accuracy": (margin > 0).mean(axis=-1),
        }
        time_us = BEGAN_US + STEP_US * numbers
        alone = {
            "step": numbers,
            "epoch": np.full(n, epoch),
            "progress": numbers / self.size.steps,
            "time": time_us,
            "elapsed_s": (time_us - BEGAN_US) / 1e6,
            "step_time_ms": STEP_US / 1e3 + random.gamma(2.0, 3.0, n),
            "telemetry_time_ms": random.gamma(2.0, 0.02, n),
            "batch_size": np.full(n, self.size.batch),
            "loss": (own * loss).sum(axis=1),
            "steepness": stage_steepness(numbers / self.size.steps, *self._stage),
            "stage_factor": stage_steepness(numbers / self.size.steps, *self._stage) / self._stage[1],
            "temperature": np.full(n, 0.07),
            "learning_rate": 1e-3 * (1 - numbers / self.size.steps),
            "gradient_norm": random.gamma(20.0, 0.05, n),
            "negatives_per_anchor": np.full(n, self.size.batch - 1.0),
            "masked_false_negatives": np.zeros(n),
            "rank_count": np.ones(n),
        }
        schema = STEPS.schema(DIRECTIONS)
        for name, values in both.items():
            alone |= {f"{name}_{direction}": values[:, d] for d, direction in enumerate(DIRECTIONS)}
        built = {name: columns.numbers(values, schema.field(name).type) for name, values in alone.items()}
        phase = columns.texts(["warmup" if epoch < 2 else "train"] * n)
        return columns.table({**built, "phase": phase}, schema)


def live_parts(whole: Path, target: Path) -> Iterator[None]:
    """Write the run again as if it was still being written: first half of it, then 100 steps at a time.

    Rollups stay behind, as those of a running run do, by the parts that were written last.
    """
    shutil.copytree(whole, target, ignore=shutil.ignore_patterns("pairs", "steps", "rollups", "*.lock"))
    content = json.loads((target / "run.json").read_text(encoding="utf-8"))
    run, half = open_run(whole), 0
    for table in ("pairs", "rollups/margins", "rollups/items"):
        (target / table).mkdir(parents=True)
    for part in run.parts("pairs")[: len(run.parts("pairs")) // 2]:
        (target / "pairs" / part.path.name).symlink_to(part.path)
        half = part.last + 1
    step = pc.field("step")
    for name in ROLLUPS:
        rows = run.table(f"rollups/{name}", filter=step < half)
        write_parquet(rows, target / "rollups" / name / part_name(0, 0, half - 1), ROLLUPS[name].spec)
    _copy(run, "steps", target, 0, half)
    for first in range(half, half + 100_000, 100):
        content |= {"status": "running", "heartbeat_at": datetime.now(UTC).isoformat()}
        (target / "run.json").write_text(json.dumps(content), encoding="utf-8")
        yield
        for table in ("pairs", "steps"):
            _copy(run, table, target, first, first + 100)


def _copy(run: Run, table: str, target: Path, first: int, after: int) -> None:
    step = pc.field("step")
    rows = run.table(table, filter=(step >= first) & (step < after), steps=(first, after - 1))
    (target / table).mkdir(exist_ok=True)
    write_parquet(rows, target / table / part_name(0, first, after - 1), TABLES[table])


def main() -> None:
    """Make the run and say how long that took."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    options = parser.parse_args()
    start = time.process_time()
    folder = make_large_run(options.folder)
    print(f"{folder}: {time.process_time() - start:.0f} s of processor time")


if __name__ == "__main__":
    main()
