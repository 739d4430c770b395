"""What the rules look at: the tables of one run as frames, each read once and only when asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from uwml_core.analysis.diagnosis.drift import drift_frame
from uwml_core.analysis.diagnosis.suspects import shared_captions
from uwml_core.analysis.diagnosis.thresholds import RECENT_PAIR_ROWS
from uwml_core.analysis.loss_settings import loss_config
from uwml_core.runlog.reader import Run
from uwml_core.runlog.schema import STEPS
from uwml_core.weighting import UWMLConfig

# Beyond the schema's columns of ``steps``, what a loop may log of its own.
OWN_COLUMNS = ("effective_batch_size",)
# Whether a step's loss or gradient norm was logged and is no finite number.
NOT_FINITE, FINITE = "not_finite", ("loss", "gradient_norm")
ITEM_COLUMNS = ("epoch", "direction", "item_id", "n", "margin_mean")
PAIR_COLUMNS = ("step", "positive_similarity", "negative_similarity", "margin", "pair_loss", "weight")


class Frames:
    """The tables of one run.

    A rule is a pure function of this: the same frames give the same findings.

    Args:
        directions, modalities: names of both.
        config: the run's configuration; empty where unknown.
        load: gives a frame by its name, one of the properties below.
    """

    def __init__(
        self,
        *,
        directions: tuple[str, str],
        modalities: tuple[str, str],
        config: Mapping[str, Any],
        load: Callable[[str], pd.DataFrame],
    ) -> None:
        self.directions, self.modalities, self.config, self._load = directions, modalities, config, load

    @cached_property
    def loss(self) -> UWMLConfig | None:
        """Parameters of the loss; None of another program's run."""
        return loss_config(self.config)

    @cached_property
    def steps(self) -> pd.DataFrame:
        """Table ``steps`` in step order, without columns that no row has a value of, with ``NOT_FINITE``."""
        return self._load("steps")

    @cached_property
    def evals(self) -> pd.DataFrame:
        """Table ``evals``."""
        return self._load("evals")

    @cached_property
    def events(self) -> pd.DataFrame:
        """Table ``events``."""
        return self._load("events")

    @cached_property
    def item_statistics(self) -> pd.DataFrame:
        """``ITEM_COLUMNS`` of the statistics of items by window of epochs, ``Run.rollup("items")``."""
        return self._load("item_statistics")

    @cached_property
    def neighbors(self) -> pd.DataFrame:
        """Nearest wrong candidate of each probe at each snapshot."""
        return self._load("neighbors")

    @cached_property
    def drift(self) -> pd.DataFrame:
        """How far embeddings moved from one snapshot to the next, see ``drift.drift_frame``."""
        return self._load("drift")

    @cached_property
    def pairs(self) -> pd.DataFrame:
        """``PAIR_COLUMNS`` of the newest rows of ``pairs``, about ``RECENT_PAIR_ROWS``, in step order."""
        return self._load("pairs")

    @cached_property
    def shared_captions(self) -> pd.DataFrame:
        """Captions of training items that occur under several labels, see ``suspects.shared_captions``.

        With the share of items that have one, ``share``, of how many items, ``of``; without any column where
        items were not logged.
        """
        return self._load("shared_captions")

    def column(self, name: str) -> np.ndarray:
        """A column of ``steps`` as float64, NaN throughout where it was not logged."""
        if name not in self.steps:
            return np.full(len(self.steps), np.nan)
        return self.steps[name].to_numpy(dtype=np.float64, na_value=np.nan)

    def logged(self, need: str) -> bool:
        """Whether ``table.column`` holds any value; ``_d`` at its end stands for either direction."""
        table, _, column = need.partition(".")
        frame: pd.DataFrame = getattr(self, table)
        names = [f"{column[:-2]}_{d}" for d in self.directions] if column.endswith("_d") else [column]
        return any(name in frame and bool(frame[name].notna().any()) for name in names)


def read_frames(run: Run) -> Frames:
    """The tables of a run that is there, read lazily.

    Raises:
        SchemaTooNew: on reading, if a newer version wrote the run.
    """
    return frames_of(run, lambda name: READERS[name][1](run))


def frames_of(run: Run, load: Callable[[str], pd.DataFrame]) -> Frames:
    """Frames of a run that are read by ``load``."""
    return Frames(directions=run.directions, modalities=run.modalities, config=run.config, load=load)


def _steps(run: Run) -> pd.DataFrame:
    names = [*STEPS.schema(run.directions).names, *OWN_COLUMNS]
    # following a run reads its new parts only
    return _joined(run.map_parts("steps", _known_columns, columns=names))


def _known_columns(rows: pa.Table) -> pd.DataFrame:
    known = [name for name in rows.column_names if rows[name].null_count < rows.num_rows]
    frame: pd.DataFrame = rows.select(known).to_pandas(split_blocks=True)
    # pandas does not tell NaN from what was not logged
    told = [pc.invert(pc.is_finite(rows[name])).fill_null(False) for name in FINITE if name in known]
    return frame.assign(**{NOT_FINITE: np.any(told, axis=0)}) if told else frame


def _last_step(run: Run, table: str) -> int:
    parts = run.parts(table)
    return max((part.last for part in parts), default=-1)


@dataclass(frozen=True)
class _Since:
    """Rows of a part from a step on."""

    first: int

    def __call__(self, rows: pa.Table) -> pd.DataFrame:
        chosen = rows.filter(pc.field("step") >= self.first)
        frame: pd.DataFrame = chosen.to_pandas(split_blocks=True)
        return frame


def _pairs(run: Run) -> pd.DataFrame:
    last = _last_step(run, "pairs")
    batches = run.table("steps", columns=["batch_size"], steps=(last - 9, last))["batch_size"]
    recent = max(1, RECENT_PAIR_ROWS // (2 * (pc.max(batches).as_py() or 128)))
    # by leaps, so that what was read of a part serves for many looks
    leap = max(1, recent // 4)
    since = _Since(max(0, (last + 1 - recent) // leap * leap))
    rows = run.map_each("pairs", lambda p: since if p.last >= since.first else None, columns=PAIR_COLUMNS)
    # the parts of several processes lie beside each other
    return _joined(rows).sort_values("step", kind="stable", ignore_index=True) if rows else pd.DataFrame()


def _joined(parts: Sequence[pd.DataFrame]) -> pd.DataFrame:
    filled = [part for part in parts if len(part)]
    return pd.concat(filled or parts[:1], ignore_index=True) if parts else pd.DataFrame()


def _item_statistics(run: Run) -> pd.DataFrame:
    frame: pd.DataFrame = run.rollup("items", columns=ITEM_COLUMNS).to_pandas()
    return frame


def _shared_captions(run: Run) -> pd.DataFrame:
    known = run.item_rows(columns=("item_id", "label", "split", "captions"))
    if known is None:
        return pd.DataFrame()
    split = known.rows["split"]
    training = known.rows.filter(pc.equal(split, "train").fill_null(True))
    shared, has_one = shared_captions(training)
    share = float(has_one.mean()) if len(shared) else 0.0
    return shared.assign(share=share, of=training.num_rows)


# Each frame: the tables that it is read from, and how.
READERS: Mapping[str, tuple[tuple[str, ...], Callable[[Run], pd.DataFrame]]] = {
    "steps": (("steps",), _steps),
    "evals": (("evals",), lambda run: run.frame("evals")),
    "events": (("events",), lambda run: run.frame("events")),
    "item_statistics": (("rollups/items",), _item_statistics),
    "neighbors": (("neighbors",), lambda run: run.frame("neighbors", filter=pc.field("rank") == 1)),
    "drift": (("snapshots",), drift_frame),
    "pairs": (("pairs", "steps"), _pairs),
    "shared_captions": (("items",), _shared_captions),
}
