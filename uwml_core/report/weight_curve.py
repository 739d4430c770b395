"""Section: which pairs count; its sliders work in the file."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

import pandas as pd

from uwml_core.analysis import bands, curves, margins, what_if
from uwml_core.analysis.pooled import PooledMargins, compare_pooled, pooled_margins
from uwml_core.analysis.replay import logged_pairs
from uwml_core.analysis.selection import select_steps
from uwml_core.analysis.validity import replay_obstacle, validity_of
from uwml_core.figures import weight_curve as figures
from uwml_core.figures.curve_by_epoch import curve_by_epoch_figure
from uwml_core.figures.shares import bands_figure
from uwml_core.figures.theme import Theme
from uwml_core.i18n import _
from uwml_core.report.content import Block, Chart, Section
from uwml_core.report.markup import notes, table, tag
from uwml_core.report.numbers import row_counts, what_if_rows
from uwml_core.report.preview import preview_controls, preview_data
from uwml_core.report.source import Source
from uwml_core.weighting import UWMLConfig


@dataclass(frozen=True, kw_only=True, eq=False)
class Moment:
    """The epoch that the section is about.

    Attributes:
        epoch: its number, None where none was logged.
        progress: at its middle, NaN where unknown.
        scale: what margins are divided by, NaN where none was logged.
        bins: its histogram, frame of ``margins.select_epoch``.
        pooled: the same, as a preview takes it.
        in_use: parameters of the run.
    """

    epoch: int | None
    progress: float
    scale: float
    bins: pd.DataFrame
    pooled: PooledMargins
    in_use: UWMLConfig


def weight_curve_section(source: Source) -> Section:
    """The newest epoch of the page Weight curve, with controls where the run's weights can be replayed."""
    moment = _moment(source)
    selection = select_steps(source.steps, moment.epoch)
    logged = logged_pairs(source.pairs(selection), source.steps, source.directions)
    baseline = what_if.baseline(logged, moment.in_use, source.directions, known=source.loss is not None)
    result = what_if.compare(baseline, moment.in_use)
    check = validity_of(logged, source.loss)
    rows = table(what_if_rows(result.summary, tried=False))
    obstacle = _obstacle(moment)
    preview: list[Block] = [notes(obstacle)] if obstacle else [preview_controls(moment.in_use)]
    preview += [] if obstacle else [_bands(source, moment)]
    return Section(
        key="weight_curve",
        title=_("Weight curve"),
        question=_("Which pairs count, and how does that change with the epoch?"),
        headline=what_if.weight_curve_headline(result),
        blocks=[
            _curve(source, moment, selection.note, check.reason),
            *preview,
            _by_epoch(source, moment),
            tag("div", rows, notes(*row_counts(result.summary)), class_="block two"),
        ],
        extra={} if obstacle else {"preview": _preview(moment)},
    )


def _moment(source: Source) -> Moment:
    logged = margins.epochs_in(source.histogram)
    epoch = max(logged) if logged else None
    progress = margins.epoch_progress(source.steps)
    rows = progress if epoch is None else progress[progress["epoch"] == epoch]
    in_use = source.loss or UWMLConfig(curve="uniform")
    return Moment(
        epoch=epoch,
        progress=float(rows["progress"].iloc[-1]) if len(rows) else math.nan,
        scale=curves.mean_margin_scale(source.steps, source.directions),
        bins=margins.select_epoch(source.histogram, epoch),
        pooled=pooled_margins(source.margins, source.steps, epoch, in_use, source.directions),
        in_use=in_use,
    )


def _obstacle(moment: Moment) -> str:
    if obstacle := replay_obstacle(moment.in_use):
        return obstacle
    unknown = moment.in_use.margin_scale != "none" and not math.isfinite(moment.scale)
    # where weights are added up, the curve alone does not give them
    if unknown or moment.in_use.combination == "add":
        return _(
            "Not available: the histogram alone does not give this run's weights; the app replays the pairs."
        )
    return ""


def _curve(source: Source, moment: Moment, *small: str) -> Chart:
    in_use, scale = moment.in_use, moment.scale
    # the file's own script moves the second curve and its mark; both must be there to be moved
    movable = not _obstacle(moment)
    tried = dataclasses.replace(in_use, curve="bell", center=0.0, steepness_end=1.0) if movable else in_use
    now, new = (curves.curve_frame(config, [moment.progress], scale=scale) for config in (in_use, tried))

    def draw(theme: Theme) -> object:
        return figures.weight_curve_figure(
            moment.bins, now, new, bands.bands_frame(), theme, directions=source.directions, height=430,
            center=curves.center_margin(tried, scale),
        )  # fmt: skip

    epoch = "" if moment.epoch is None else _("epoch {epoch}").format(epoch=moment.epoch)
    return Chart(
        key="curve", title=_("Weight of a pair over its margin"), draw=draw, frame=moment.bins, height=430,
        notes=(epoch, *small), wide=True,
    )  # fmt: skip


def _bands(source: Source, moment: Moment) -> Chart:
    frame = compare_pooled(moment.pooled, moment.in_use).bands

    def draw(theme: Theme) -> object:
        return bands_figure(frame, theme, directions=source.directions, height=230)

    return Chart(key="bands", title=_("Gradient by band"), draw=draw, frame=frame, unit="%", height=230)


def _by_epoch(source: Source, moment: Moment) -> Chart:
    frame = curves.curves_by_epoch(moment.in_use, margins.epoch_progress(source.steps), scale=moment.scale)

    def draw(theme: Theme) -> object:
        return curve_by_epoch_figure(frame, theme)

    title, unit = _("The curve from epoch to epoch"), _("pair weight")
    return Chart(key="epochs", title=title, draw=draw, frame=frame, unit=unit, height=260)


def _preview(moment: Moment) -> dict[str, Any]:
    return preview_data(moment.pooled, progress=moment.progress, scale=moment.scale)
