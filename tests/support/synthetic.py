"""Plausible runs for tests, written by the real logger with weights from the real weighting functions.

``make_run`` needs neither torch nor a trained model: margins grow with training, the second direction
lags, and everything that follows from margins (weights, losses, shares, ranks) is computed from them.
"""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from PIL import Image

from uwml_core.runlog.writer import Nearest, RunLogger
from uwml_core.weighting import (
    DirectionController,
    UWMLConfig,
    combined_weight,
    difficulty_weight,
    effective_sample_size,
    loss_denominator,
    relative_weight,
    stage_factor,
    stage_steepness,
)

TABLES = ("steps", "pairs", "evals", "ranks", "events", "items", "snapshots", "neighbors")
MODALITIES = {("i2t", "t2i"): ("image", "text"), ("v2t", "t2v"): ("video", "text")}
CAPTIONS = 3
NEAREST = 5
GROUPS = ("animals", "food", "flags & signs")
FINISHED = frozenset({"finished", "stopped", "failed"})


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a synthetic run looks like; see ``make_run``."""

    run_id: str = "demo"
    name: str | None = None
    epochs: int = 3
    steps_per_epoch: int = 20
    batch: int = 16
    items: int = 64
    dim: int = 8
    status: str = "finished"
    directions: tuple[str, str] = ("i2t", "t2i")
    seed: int = 0
    config: UWMLConfig | None = None
    phases: tuple[str, ...] = ("train",)
    nan_steps: tuple[int, ...] = ()
    spikes: tuple[int, ...] = ()
    lonely_steps: tuple[int, ...] = ()
    without: tuple[str, ...] = ()
    resume_at: int | None = None
    twins: int = 0

    @property
    def steps(self) -> int:
        return self.epochs * self.steps_per_epoch

    @property
    def loss_config(self) -> UWMLConfig:
        return self.config or UWMLConfig(
            modalities=MODALITIES[self.directions], total_steps=max(self.steps, 1)
        )


def make_run(root: Any, *, steps: int | None = None, **options: Any) -> Path:
    """Write a run into ``root/run_id`` and return its folder.

    Args:
        root: logs folder.
        steps: total number of steps, in place of ``steps_per_epoch`` (spread over the epochs).
        **options: fields of ``Plan``. ``status`` is finished, stopped, failed, running (heartbeat of
            now) or stale (heartbeat of an hour ago); ``phases`` are spread over the epochs, in order;
            ``nan_steps`` have a NaN loss and gradient, ``spikes`` a tenfold loss, ``lonely_steps`` one
            anchor without negatives; ``without`` names tables that are not written; ``resume_at`` ends
            a first segment some steps later and continues from there with a second one; the first
            ``twins`` items have the same captions.
    """
    if steps is not None:
        epochs = min(options.get("epochs", 3), max(steps, 1))
        options |= {"epochs": epochs, "steps_per_epoch": -(-steps // epochs)}
    plan = Plan(**options)
    if unknown := set(plan.without) - set(TABLES):
        raise ValueError(f"without={sorted(unknown)} are no tables; choose from {TABLES}")
    total = plan.steps if steps is None else steps
    if plan.resume_at is None:
        folder = _write(root, plan, 0, total, total)
    else:
        _write(root, plan, 0, min(plan.resume_at + 7, total), total)
        folder = _write(root, plan, plan.resume_at, total, total)
    _strip(folder, plan)
    return folder


def _write(root: Any, plan: Plan, first: int, last: int, total: int) -> Path:
    config = plan.loss_config
    log = RunLogger(
        root,
        plan.run_id,
        name=plan.name,
        modalities=config.modalities,
        config={
            "loss": config.to_dict(),
            "data": {"path": "synthetic", "batch_size": plan.batch},
            "train": {"epochs": plan.epochs, "seed": plan.seed, "learning_rate": 1e-3},
        },
        seed=plan.seed,
        total_steps=total,
        resume_from_step=first or None,
        flush_seconds=60.0,
        flush_steps=50,
    )
    world = World(plan, total)
    if "items" not in plan.without and not first:
        log.log_items(**world.items())
    for step in range(last):
        # steps that are not logged move the direction controller
        values = world.step(step)
        if step < first:
            continue
        log.log_step(**values)
        if (step + 1) % plan.steps_per_epoch == 0 or step + 1 == total:
            end_epoch(log, world, plan, step)
    log.close(plan.status if plan.status in FINISHED else "stopped")
    return log.path


def end_epoch(log: RunLogger, world: World, plan: Plan, step: int) -> None:
    """Log what is measured at the end of an epoch: recall, ranks, snapshot, neighbors, a checkpoint."""
    epoch = step // plan.steps_per_epoch
    ranks = {direction: world.ranks(d, step) for d, direction in enumerate(plan.directions)}
    log.log_eval(step=step, epoch=epoch, split="val", metrics=metrics_of(ranks))
    for d, (direction, rank) in enumerate(ranks.items()):
        captions = None if d == 0 else np.zeros(len(rank), np.int16)
        ids = world.val_ids
        log.log_ranks(
            step=step,
            epoch=epoch,
            split="val",
            direction=direction,
            item_ids=ids,
            captions=captions,
            ranks=rank,
        )
    log.log_snapshot(step=step, epoch=epoch, **world.snapshot(step))
    log.log_neighbors(step=step, epoch=epoch, **world.neighbors(step))
    log.log_event("checkpoint", f"checkpoint after epoch {epoch}", step=step, epoch=epoch)


def metrics_of(ranks: dict[str, np.ndarray]) -> list[tuple[str | None, str, float, int, float | None]]:
    """R@K in percent, median and mean rank per direction, and rsum over both."""
    rows: list[tuple[str | None, str, float, int, float | None]] = []
    for direction, rank in ranks.items():
        n, tied = len(rank), float(np.mean(rank % 1 != 0))
        rows += [(direction, f"R@{k}", 100.0 * float(np.mean(rank <= k)), n, tied) for k in (1, 5, 10)]
        rows.append((direction, "median_rank", float(np.median(rank)), n, tied))
        rows.append((direction, "mean_rank", float(np.mean(rank)), n, tied))
    total = sum(value for _, metric, value, _, _ in rows if metric.startswith("R@"))
    return [*rows, (None, "rsum", total, sum(len(rank) for rank in ranks.values()), None)]


class World:
    """The data set and the course of training that a plan describes."""

    def __init__(self, plan: Plan, total: int) -> None:
        self._plan, self._total = plan, total
        self._config = plan.loss_config
        self._random = np.random.default_rng(plan.seed)
        fields = ("window", "update_every", "smoothing", "sensitivity", "min_weight")
        self._controller = DirectionController(
            mode=self._config.direction_mode,
            fixed=self._config.direction_fixed,
            **{name: getattr(self._config, name) for name in fields},
        )
        self.labels = np.arange(plan.items, dtype=np.int32)
        # the last two items show the same thing
        self.labels[-1] = self.labels[-2]
        self.splits = np.where(np.arange(plan.items) % 4 == 3, "val", "train")
        self.val_ids = np.flatnonzero(self.splits == "val")
        self._ability = self._random.normal(0.0, 0.08, plan.items)

    def step(self, step: int) -> dict[str, Any]:
        """Keyword arguments of ``log_step``; each step draws for itself, so a resume changes nothing."""
        plan = self._plan
        self._random = np.random.default_rng([plan.seed, step])
        epoch = step // plan.steps_per_epoch
        train = np.flatnonzero(self.splits == "train")
        ids = self._random.choice(train, size=plan.batch, replace=plan.batch > len(train)).astype(np.int32)
        last = self._diagnostics(step, ids)
        broken = step in plan.nan_steps
        phase = plan.phases[min(epoch * len(plan.phases) // max(plan.epochs, 1), len(plan.phases) - 1)]
        return {
            "last": last,
            "item_ids": ids,
            "captions": self._random.integers(0, CAPTIONS, plan.batch).astype(np.int16),
            "step": step,
            "epoch": epoch,
            "phase": phase,
            "learning_rate": 1e-3 * (0.1 + 0.9 * (1 - step / max(self._total, 1))),
            "gradient_norm": np.nan if broken else float(abs(self._random.normal(1.0, 0.2))),
            "step_time_ms": float(7.0 + self._random.gamma(2.0, 0.3)),
        }

    def _anchors(self, step: int, ids: np.ndarray) -> dict[str, np.ndarray]:
        """Per-anchor fields that do not depend on weights, float32 ``[2, batch]`` as a loss gives them."""
        plan, random = self._plan, self._random
        trained = step / max(self._total, 1)
        centre = np.array([[-0.05], [-0.09]]) + 0.35 * trained
        margin = centre + self._ability[ids] + random.normal(0.0, 0.1, (2, plan.batch))
        positive = np.clip(0.2 + 0.5 * trained + random.normal(0.0, 0.05, (2, plan.batch)), -1, 1)
        hardest = np.clip(positive - margin, -1, 1).astype(np.float32)
        positive = positive.astype(np.float32)
        margin = positive - hardest
        index = (np.arange(plan.batch) + random.integers(1, max(plan.batch, 2), (2, plan.batch))) % plan.batch
        if step in plan.lonely_steps:
            margin[:, 0] = hardest[:, 0] = np.nan
            index[:, 0] = -1
        rest = 0.2 * (plan.batch - 1)
        loss = np.log1p((1.0 + rest * np.exp(-2.0)) * np.exp(-margin / self._config.temperature))
        return {
            "positive_similarity": positive,
            "negative_similarity": hardest,
            "margin": margin,
            "pair_loss": loss.astype(np.float32),
            "negative_index": index,
            "label": np.broadcast_to(self.labels[ids].astype(np.int64), index.shape),
            "negative_label": np.where(index >= 0, self.labels[ids[index]], -1),
        }

    def _diagnostics(self, step: int, ids: np.ndarray) -> SimpleNamespace:
        config, anchors = self._config, self._anchors(step, ids)
        progress = step / max(self._total, 1)
        steepness = stage_steepness(progress, config.steepness_start, config.steepness_end)
        margin, loss = anchors["margin"], anchors["pair_loss"]
        shape = {"curve": config.curve, "center": config.center, "hard_floor": config.hard_floor}
        factor = stage_factor(steepness, config.steepness_start, config.steepness_end)
        scale = np.array([0.11, 0.07]) if config.margin_scale == "negative_std" else None
        scaled = margin if scale is None else margin / scale.astype(np.float32)[:, None]
        pair_weight = difficulty_weight(scaled, steepness=np.float32(steepness), **shape)
        gap = np.nanmean(margin.astype(np.float64), axis=1)
        moved = self._controller.update(dict(zip(self._plan.directions, gap.tolist(), strict=True)))
        direction_weight = np.array(list(moved.values()))
        combined = pair_weight
        if config.combination == "add":
            combined = combined_weight(pair_weight, direction_weight.astype(np.float32)[:, None], factor)
        weight = relative_weight(combined, config.max_weight)
        pull = np.nan_to_num(weight * -np.expm1(-loss))
        direction_loss = np.nansum(weight * loss, axis=1, dtype=np.float64)
        direction_loss /= loss_denominator(weight, config.normalization)
        return SimpleNamespace(
            directions=self._plan.directions,
            **anchors,
            pair_weight=pair_weight,
            weight=weight,
            gradient_share=pull / pull.sum(axis=1, keepdims=True),
            direction_loss=direction_loss,
            gap=gap,
            gap_window=np.array(self._controller.window_means()),
            direction_weight=direction_weight,
            ess=effective_sample_size(weight).astype(np.float64),
            clamped_share=np.mean(weight >= config.max_weight, axis=1, dtype=np.float64),
            no_negative_count=np.isnan(margin).sum(axis=1).astype(np.float64),
            accuracy=np.mean(margin > 0, axis=1, dtype=np.float64),
            loss=self._faulty(step, float(direction_weight @ direction_loss)),
            batch_size=self._plan.batch,
            progress=progress,
            steepness=steepness,
            stage_factor=factor,
            temperature=config.temperature,
            negatives_per_anchor=float(self._plan.batch - 1),
            masked_false_negatives=0,
            margin_scale=scale,
            dead_share=None,
            wrong_sign_share=None,
        )

    def _faulty(self, step: int, loss: float) -> float:
        if step in self._plan.nan_steps:
            return float("nan")
        return 10.0 * loss if step in self._plan.spikes else loss

    def ranks(self, d: int, step: int) -> np.ndarray:
        """Rank of each val item, better with training; one in ten is tied."""
        n = len(self.val_ids)
        spread = n * (0.9 - 0.7 * (step + 1) / max(self._total, 1)) * (1.0 + 0.2 * d)
        rank = 1.0 + np.floor(np.abs(self._random.normal(0.0, 0.3 * spread, n)))
        tied = self._random.random(n) < 0.1
        return np.minimum(rank + 0.5 * tied, n).astype(np.float32)

    def snapshot(self, step: int) -> dict[str, Any]:
        """Keyword arguments of ``log_snapshot``: modalities that approach each other."""
        plan = self._plan
        concept = np.random.default_rng(plan.seed).normal(size=(plan.items, plan.dim))
        embeddings = {}
        for k, modality in enumerate(self._config.modalities):
            noise = self._random.normal(size=concept.shape) * (1.5 - (step + 1) / max(self._total, 1))
            vectors = concept + noise + 0.5 * (2 * k - 1)
            embeddings[modality] = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        return {
            "embeddings": embeddings,
            "item_ids": np.arange(plan.items),
            "labels": self.labels,
            "splits": self.splits.tolist(),
        }

    def neighbors(self, step: int) -> dict[str, Any]:
        """Keyword arguments of ``log_neighbors``.

        Every third item keeps its nearest wrong candidate, the item two further on; the others change
        theirs. Train margins grow with training, most for every fifth item.
        """
        plan = self._plan
        ids = np.arange(plan.items)
        trained = (step + 1) / max(self._total, 1)
        nearest = {}
        for d, direction in enumerate(plan.directions):
            # draws of its own, so that a run's other tables do not depend on this one
            random = np.random.default_rng((plan.seed, step, d))
            negative = np.stack([np.resize(random.permutation(self._wrong(k)), NEAREST) for k in ids])
            negative[::3, 0] = (ids[::3] + 2) % plan.items
            positive = 0.2 + 0.5 * trained + random.normal(0.0, 0.02, plan.items)
            growth = np.where(self.splits == "train", 0.2 + 0.2 * (ids % 5 == 0), 0.05)
            margin = -0.1 + growth * trained + self._ability + random.normal(0.0, 0.02, plan.items)
            fall = np.arange(NEAREST) * 0.02
            nearest[direction] = Nearest(negative, (positive - margin)[:, None] - fall, positive)
        return {"nearest": nearest, "item_ids": ids, "splits": self.splits.tolist()}

    def _wrong(self, item: int) -> np.ndarray:
        """Items of another label, the one two further on left out."""
        others = np.flatnonzero(self.labels != self.labels[item])
        return others[others != (item + 2) % self._plan.items]

    def items(self) -> dict[str, Any]:
        """Keyword arguments of ``log_items``; the last item has no picture."""
        n = self._plan.items
        things = [max(k, self._plan.twins - 1) for k in range(n)]
        return {
            "item_keys": [f"item-{k:04d}" for k in range(n)],
            "labels": self.labels.tolist(),
            "captions": [[f"thing {k}, caption {c} ✓ <b>" for c in range(CAPTIONS)] for k in things],
            "groups": [GROUPS[k % len(GROUPS)] for k in range(n)],
            "splits": self.splits.tolist(),
            "thumbnails": [*(thumbnail(k) for k in range(n - 1)), None],
            "paths": [f"pictures/{k:04d}.png" for k in range(n)],
        }


def thumbnail(k: int) -> bytes:
    """A 24 by 24 WebP picture of one colour."""
    colour = (37 * k % 256, 91 * k % 256, 151 * k % 256)
    sink = io.BytesIO()
    Image.new("RGB", (24, 24), colour).save(sink, format="WEBP", quality=50)
    return sink.getvalue()


def _strip(folder: Path, plan: Plan) -> None:
    for table in plan.without:
        for path in (folder / table).glob("*"):
            path.unlink()
        if (folder / table).is_dir():
            (folder / table).rmdir()
    if plan.status not in FINISHED:
        age = timedelta(hours=1) if plan.status == "stale" else timedelta()
        rewrite_run_json(folder, status="running", heartbeat_at=(datetime.now(UTC) - age).isoformat())


def rewrite_run_json(folder: Path, **changes: Any) -> None:
    """Change entries of a run's run.json, as a dead or another writer would have left them."""
    path = folder / "run.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
