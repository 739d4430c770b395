"""What each step of the lesson draws: its one control, and the picture that follows it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from uwml_core.analysis.curves import curve_frame
from uwml_core.analysis.jitter import jitter
from uwml_core.analysis.learn import lessons
from uwml_core.analysis.margins import epochs_in, select_epoch
from uwml_core.analysis.text import fixed, percent
from uwml_core.figures import lessons as figures
from uwml_core.figures.theme import Theme
from uwml_core.i18n import _
from uwml_core.installation import sample_logs
from uwml_core.runlog.reader import Run, open_run
from uwml_core.ui.read import balance_steps, histogram
from uwml_core.weighting import UWMLConfig

SAMPLE = "sample-uwml"
# where the step on the floor begins, so that there is something to lower
_FLOOR = 0.3
_EMPTY = pd.DataFrame({"left": [], "right": [], "count": []})


@dataclass(frozen=True, kw_only=True)
class Shown:
    """The picture of a step: figure, its table, small print and where the numbers come from."""

    figure: Any
    frame: pd.DataFrame
    captions: tuple[str, ...] = ()
    source: str = ""


def _sample() -> Run | None:
    path = sample_logs() / SAMPLE
    return open_run(path) if (path / "run.json").is_file() else None


def _margins(epoch: int | None = None) -> tuple[pd.DataFrame, list[int]]:
    run = _sample()
    if run is None:
        return _EMPTY, []
    counted = histogram(run)
    return select_epoch(counted, epoch), epochs_in(counted)


def _curve(config: UWMLConfig, progress: float) -> pd.DataFrame:
    return curve_frame(config, [progress], lessons.MARGINS)


def _logged() -> str:
    run = _sample()
    told = _("Margins and gaps: logged by the run {name}.").format(name=SAMPLE)
    swapped = 0.0 if run is None else float(run.config.get("data", {}).get("swapped", 0.0))
    if not swapped:
        return told
    more = _("In it {share} of the training captions belong to other pictures, on purpose.")
    return f"{told} {more.format(share=percent(swapped))}"


def _number(label: str, key: str, span: tuple[float, float], start: float, step: float) -> float:
    return float(st.slider(label, *span, start, step, key=key, bind="query-params"))


def drowning(theme: Theme) -> Shown:
    """Who holds the gradient, by temperature."""
    temperature = _number(_("Temperature"), "learn_temperature", (0.02, 0.3), 0.1, 0.01)
    frame = lessons.gradient_holders(temperature)
    lines = [
        (_("hard negative"), "hard", theme.accent),
        (_("easy negatives"), "easy", theme.ghost),
    ]
    figure = figures.lines_figure(
        frame,
        "negatives",
        lines,
        theme,
        x_title=_("negatives per anchor"),
        y_title=_("share of the gradient"),
        mark=127,
        log=True,
    )
    at = frame[frame["negatives"] == 127].iloc[0]
    told = _("Of 127 negatives the hard one holds {share} of the gradient.").format(share=percent(at["hard"]))
    return Shown(
        figure=figure, frame=frame, captions=(told,), source=_("Similarities: constructed, fixed seed.")
    )


def margins(theme: Theme) -> Shown:
    """Logged margins, by epoch."""
    _all, epochs = _margins()
    epoch = int(
        st.slider(_("Epoch"), 0, max(epochs, default=1), 0, 1, key="learn_epoch", bind="query-params")
    )
    chosen, _epochs = _margins(epoch)
    inside = chosen[np.isfinite(chosen["left"]) & np.isfinite(chosen["right"])]
    total = int(chosen["count"].sum())
    wrong = float(inside.loc[inside["right"] <= 0, "count"].sum() / total) if total else float("nan")
    flat = _curve(replace(UWMLConfig(), curve="uniform"), 0.0)
    figure = figures.lesson_curve_figure(chosen, flat, flat, theme)
    told = _("{share} of the margins of epoch {epoch} lie below 0 (n = {n}).").format(
        share=percent(wrong), epoch=epoch, n=f"{total:,}"
    )
    return Shown(figure=figure, frame=chosen, captions=(told,), source=_logged())


def _curve_step(theme: Theme, config: UWMLConfig, progress: float, *, start: float) -> Shown:
    _all, epochs = _margins()
    shown, _epochs = _margins(max(epochs, default=None))
    now, before = _curve(config, progress), _curve(UWMLConfig(), start)
    pairs, weight = lessons.weighted_share(shown, now)
    told = _("{pairs} of the pairs lie above half of the peak; they carry {weight} of the weight.").format(
        pairs=percent(pairs), weight=percent(weight)
    )
    figure = figures.lesson_curve_figure(shown, before, now, theme)
    return Shown(figure=figure, frame=now, captions=(told,), source=_logged())


def bell(theme: Theme) -> Shown:
    """The bell over the margins, by its center."""
    center = _number(_("Center"), "learn_center", (0.0, 0.5), UWMLConfig().center, 0.01)
    return _curve_step(theme, replace(UWMLConfig(), center=center), 0.5, start=0.5)


def floor(theme: Theme) -> Shown:
    """The bell over the margins, by its floor."""
    low = _number(_("Hard floor"), "learn_floor", (0.0, 0.95), _FLOOR, 0.05)
    return _curve_step(theme, replace(UWMLConfig(), hard_floor=low), 1.0, start=1.0)


def sharpening(theme: Theme) -> Shown:
    """The bell over the margins, by the progress of training."""
    done = _number(_("Progress of training (%)"), "learn_progress", (0.0, 100.0), 0.0, 5.0)
    return _curve_step(theme, UWMLConfig(), done / 100, start=0.0)


def directions(theme: Theme) -> Shown:
    """Weights of both directions by how far one lags, by sensitivity."""
    sensitivity = _number(_("Sensitivity"), "learn_sensitivity", (0.01, 0.2), UWMLConfig().sensitivity, 0.01)
    frame = lessons.direction_weights(sensitivity)
    lines = [(_("lagging"), "lagging", theme.second), (_("leading"), "leading", theme.first)]
    figure = figures.lines_figure(
        frame,
        "behind",
        lines,
        theme,
        x_title=_("lag (cosine)"),
        y_title=_("direction weight"),
        mark=sensitivity,
    )
    low = UWMLConfig().min_weight
    return Shown(
        figure=figure,
        frame=frame,
        captions=(_("No direction falls below {low}.").format(low=fixed(low, 2)),),
        source=_("Weights after the controller has come to rest."),
    )


def window(theme: Theme) -> Shown:
    """The controller on logged gaps, by its window."""
    steps = int(st.slider(_("Window (steps)"), 1, 200, 200, 1, key="learn_window", bind="query-params"))
    run = _sample()
    names = ("i2t", "t2i") if run is None else run.directions
    frame = lessons.controller_run(_gaps(run), steps)
    lines = [(names[0], "first", theme.first), (names[1], "second", theme.second)]
    figure = figures.lines_figure(
        frame, "step", lines, theme, x_title=_("step"), y_title=_("direction weight")
    )
    travelled = jitter(frame[["first", "second"]].to_numpy()).per_100_steps
    told = _("The weights travel {travel} per 100 steps (n = {n}).").format(
        travel=fixed(travelled, 3), n=len(frame)
    )
    captions = (told, _("Open-loop replay: the gaps stay as logged."))
    return Shown(figure=figure, frame=frame, captions=captions, source=_logged())


def _gaps(run: Run | None) -> np.ndarray:
    if run is None:
        return np.zeros((0, 2))
    table = balance_steps(run)
    return np.column_stack([table[f"gap_{name}"].to_numpy(np.float64) for name in run.directions])


def combining(theme: Theme) -> Shown:
    """Four pairs, multiplied and added, by the lagging direction's weight."""
    lagging = _number(_("Weight of the lagging direction"), "learn_lagging", (0.5, 0.9), 0.7, 0.05)
    frame = lessons.combinations(lagging)
    easy = frame[(frame["pair"] == "easy") & (frame["direction"] == "lagging")].iloc[0]
    told = _("The easy pair of the lagging direction gets {multiply} multiplied, {add} added.").format(
        multiply=percent(easy["multiply"], 1), add=percent(easy["add"], 1)
    )
    return Shown(
        figure=figures.combinations_figure(frame, "multiply", theme),
        frame=frame,
        captions=(told,),
        source=_("Margins {informative} and {easy}, the defaults of the loss.").format(
            informative=fixed(UWMLConfig().center, 2), easy="0.60"
        ),
    )


def detaching(theme: Theme) -> Shown:
    """The pull on a margin, with and without a gradient through the weight."""
    temperature = _number(_("Temperature"), "learn_force", (0.02, 0.3), 0.07, 0.01)
    frame = lessons.forces(temperature)
    lines = [
        (_("detached"), "detached", theme.accent),
        (_("not detached"), "attached", theme.warning),
    ]
    figure = figures.lines_figure(
        frame, "margin", lines, theme, x_title=_("margin (cosine)"), y_title=_("pull on the margin"), mark=0.0
    )
    source = _("One negative, end of training, defaults of the loss.")
    return Shown(figure=figure, frame=frame, captions=(_wrong_way(frame),), source=source)


def _wrong_way(frame: pd.DataFrame) -> str:
    pushed = frame[frame["attached"] < 0]["margin"]
    if pushed.empty:
        return _("At this temperature no margin is pushed the wrong way, but hard ones are pulled less.")
    return _("Not detached, pairs with a margin from {low} to {high} are pushed the wrong way.").format(
        low=fixed(float(pushed.min()), 2), high=fixed(float(pushed.max()), 2)
    )
