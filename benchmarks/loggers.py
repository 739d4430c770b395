"""What is logged in ``benchmarks/logging.py``, our log as one of its contestants, and the comparison.

Needs no torch, as every contestant runs in a process of its own, some in another environment.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

DIRECTIONS = ("i2t", "t2i")
BATCH = 128
SCALARS = ("loss", "learning_rate", "gradient_norm", "steepness", "stage_factor", "temperature")
# what everyone is asked to keep: a value per pair and direction, 256 of each
ARRAYS = ("margin", "weight")
# what our trainer logs besides
FURTHER = ("positive_similarity", "negative_similarity", "pair_loss", "pair_weight", "gradient_share")
IDS = ("item_id", "negative_item_id")
VERDICTS = ("exact", "rounded", "not kept")

Columns = dict[str, np.ndarray]


class Step(NamedTuple):
    """One step: six Python floats, and float32 arrays [2, BATCH]."""

    scalars: dict[str, float]
    arrays: dict[str, np.ndarray]
    item_ids: np.ndarray
    negative_index: np.ndarray


class Steps:
    """The same made-up steps in every process; ``scalars`` [steps, 6] and ``arrays`` [steps, 2, BATCH]."""

    def __init__(self, count: int) -> None:
        random, shape = np.random.default_rng(0), (count, 2, BATCH)
        positive, negative = (mean + 0.1 * random.standard_normal(shape) for mean in (0.5, 0.3))
        margin = positive - negative
        raw = np.exp(-2.0 * margin)
        values = {
            "margin": margin,
            "weight": raw / raw.mean(axis=-1, keepdims=True),
            "positive_similarity": positive,
            "negative_similarity": negative,
            "pair_loss": np.log1p(20.0 * np.exp(-margin / 0.07)),
            "pair_weight": raw,
            "gradient_share": raw / raw.sum(axis=-1, keepdims=True),
        }
        self.arrays: Columns = {name: value.astype(np.float32) for name, value in values.items()}
        self.scalars = random.standard_normal((count, len(SCALARS)))
        self.item_ids = random.integers(0, 4000, (count, BATCH))
        self.negative_index = random.integers(0, BATCH, shape)

    def __getitem__(self, step: int) -> Step:
        scalars = dict(zip(SCALARS, self.scalars[step].tolist(), strict=True))
        arrays = {name: value[step] for name, value in self.arrays.items()}
        return Step(scalars, arrays, self.item_ids[step], self.negative_index[step])

    def __len__(self) -> int:
        return len(self.scalars)

    def columns(self) -> Columns:
        """Everything by name: scalars [steps], arrays and ids [steps, 2 * BATCH]."""
        ids = np.repeat(self.item_ids[:, None], 2, axis=1)
        wide = {
            **self.arrays,
            "item_id": ids,
            "negative_item_id": np.take_along_axis(ids, self.negative_index, 2),
        }
        flat = {name: value.reshape(len(self), 2 * BATCH) for name, value in wide.items()}
        return {**dict(zip(SCALARS, self.scalars.T, strict=True)), **flat}


class Logger:
    """Keeps nothing; every contestant is one of these.

    Args:
        folder: an empty folder, also the working directory.
    """

    title = "no log"
    package: str | None = None
    arrays: tuple[str, ...] = ()

    def __init__(self, folder: Path) -> None:
        """Pay for the imports; what follows is measured."""
        self.folder = folder

    def open(self) -> None:
        """Begin a run."""

    def log(self, step: int, values: Step) -> None:
        """Log a step."""

    def close(self) -> None:
        """Return when everything is on disk."""

    def read(self) -> Columns:
        """What was kept, by name, in the order of the steps."""
        return {}


class Ours(Logger):
    """The run log as our trainer writes it: seven float columns, ids, and a table of steps with rollups."""

    title = "run log, as trained with"
    package = "uwml-lens"
    arrays = (*ARRAYS, *FURTHER, *IDS)
    per_step = ("direction_loss", "gap", "gap_window", "direction_weight", "ess", "clamped_share")

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        from uwml_core.runlog.reader import Run
        from uwml_core.runlog.writer import RunLogger

        self._run, self._logger = Run, RunLogger

    def open(self) -> None:
        self._log = self._logger(self.folder, "run")

    def log(self, step: int, values: Step) -> None:
        self._log.log_step(
            self._diagnostics(values),
            item_ids=values.item_ids,
            epoch=0,
            learning_rate=values.scalars["learning_rate"],
            gradient_norm=values.scalars["gradient_norm"],
        )

    def _diagnostics(self, values: Step) -> Any:
        further = dict.fromkeys(self.per_step, (0.5, 0.25))
        return SimpleNamespace(
            directions=DIRECTIONS,
            batch_size=BATCH,
            negative_index=values.negative_index,
            **values.arrays,
            **values.scalars,
            **further,
        )

    def close(self) -> None:
        self._log.close()

    def read(self) -> Columns:
        run = self._run(self.folder / "run")
        steps, pairs = (
            run.table("steps", columns=list(SCALARS)),
            run.table("pairs", columns=list(self.arrays)),
        )
        scalars = {name: steps[name].to_numpy() for name in SCALARS}
        return scalars | {name: pairs[name].to_numpy().reshape(-1, 2 * BATCH) for name in self.arrays}

    def pair_bytes(self) -> float:
        """Bytes on disk of a row of ``pairs``."""
        run = self._run(self.folder / "run")
        parts, rows = run.parts("pairs"), run.table("pairs", columns=["step"]).num_rows
        return float(sum(part.size for part in parts) / rows)


class OursTwo(Ours):
    """The run log with what the others are given and no more: six scalars and two arrays of 256.

    Item ids and the place of the negative cannot be left out, and are on top.
    """

    title = "run log, two arrays"
    arrays = (*ARRAYS, *IDS)

    def log(self, step: int, values: Step) -> None:
        told = SimpleNamespace(
            directions=DIRECTIONS,
            negative_index=values.negative_index,
            margin=values.arrays["margin"],
            weight=values.arrays["weight"],
        )
        self._log.log_step(told, item_ids=values.item_ids, epoch=0, **values.scalars)


def verdict(kept: Mapping[str, np.ndarray], logged: Mapping[str, np.ndarray], names: tuple[str, ...]) -> str:
    """How these columns came back from the disk, the worst of them: one of ``VERDICTS``."""
    return max((_one(kept.get(name), logged[name]) for name in names), key=VERDICTS.index)


def _one(kept: np.ndarray | None, logged: np.ndarray) -> str:
    if kept is None or kept.shape != logged.shape:
        return "not kept"
    # float64 holds every float32 and these ids, so equal here is equal
    kept, logged = np.asarray(kept, np.float64), np.asarray(logged, np.float64)
    if np.array_equal(kept, logged):
        return "exact"
    return "rounded" if np.allclose(kept, logged, rtol=1e-5, atol=1e-6) else "not kept"
