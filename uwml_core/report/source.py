"""What the sections are made from: tables of one run, each read once and only when asked for."""

from __future__ import annotations

from functools import cached_property

import pandas as pd
import pyarrow as pa

from uwml_core.analysis.controller_log import balance_columns
from uwml_core.analysis.finished import is_finished_model
from uwml_core.analysis.gap_measures import gap_measures, merge_gaps
from uwml_core.analysis.hard_negatives.catalogue import catalogue
from uwml_core.analysis.hard_negatives.confusions import PAIR_COLUMNS
from uwml_core.analysis.hard_negatives.persistent import with_margin
from uwml_core.analysis.hard_negatives.probe_pairs import probe_pairs
from uwml_core.analysis.hard_negatives.rows import rows_of_epoch
from uwml_core.analysis.loss_settings import loss_config
from uwml_core.analysis.margins import margin_histogram
from uwml_core.analysis.selection import PREVIEW_COLUMNS, StepSelection
from uwml_core.analysis.training import step_columns
from uwml_core.runlog.reader import Run
from uwml_core.weighting import UWMLConfig


class Source:
    """A run and what was read of it; not for several threads.

    Args:
        run: the run.
        pictures: whether thumbnails go into the report.
    """

    def __init__(self, run: Run, *, pictures: bool) -> None:
        self.run = run
        self.pictures = pictures
        self.directions = run.directions
        self.modalities = run.modalities

    @cached_property
    def loss(self) -> UWMLConfig | None:
        """Loss configuration, None where the log has none of ours."""
        return loss_config(self.run.config)

    @cached_property
    def steps(self) -> pd.DataFrame:
        """Table ``steps``, the columns that charts use."""
        columns = [*step_columns(self.directions), *balance_columns(self.directions)]
        return self.run.frame("steps", columns=list(dict.fromkeys(columns)))

    @cached_property
    def evals(self) -> pd.DataFrame:
        """Table ``evals``."""
        return self.run.frame("evals")

    @cached_property
    def margins(self) -> pa.Table:
        """Rollup of the margins."""
        return self.run.rollup("margins")

    @cached_property
    def histogram(self) -> pd.DataFrame:
        """Margin histogram per epoch and direction."""
        return margin_histogram(self.margins)

    def pairs(self, selection: StepSelection) -> pa.Table:
        """Rows of ``pairs`` of the selected steps."""
        return self.run.table("pairs", columns=list(PREVIEW_COLUMNS), filter=selection.filter)

    @cached_property
    def items(self) -> pd.DataFrame | None:
        """Items of the data set; None where they were not logged."""
        return self.run.items()

    @cached_property
    def catalogue(self) -> pd.DataFrame:
        """Items by number; without rows where they were not logged."""
        return catalogue(self.items)

    @cached_property
    def neighbors(self) -> pd.DataFrame:
        """Nearest wrong candidates of every snapshot, with margins."""
        return with_margin(self.run.frame("neighbors"))

    @cached_property
    def gaps(self) -> pd.DataFrame:
        """Measures of the gap of every snapshot."""
        return merge_gaps(self.run.map_parts("snapshots", gap_measures))

    def encounters(self, epoch: int | None, *, until: bool) -> tuple[pa.Table, str]:
        """Pairs with their hardest negatives, of a finished model its probes, and a note on them."""
        if is_finished_model(self.run.config) and not self.run.has("pairs"):
            return probe_pairs(self.neighbors, epoch, until=until)
        rows = rows_of_epoch(self.steps, epoch, until=until)
        return self.run.table("pairs", columns=list(PAIR_COLUMNS), filter=rows.filter), rows.note

    def lacks(self, *tables: str) -> str:
        """The first of these tables that was not logged; empty where all were."""
        return next((table for table in tables if not self.run.has(table)), "")
