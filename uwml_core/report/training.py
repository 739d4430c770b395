"""Section: whether it is learning."""

from __future__ import annotations

from functools import partial

from uwml_core.analysis import training as analysis
from uwml_core.analysis.loss_settings import loss_unit
from uwml_core.analysis.splits import main_split
from uwml_core.analysis.training_summary import training_headline, training_summary
from uwml_core.figures import training as figures
from uwml_core.figures.theme import Theme
from uwml_core.i18n import _
from uwml_core.report.content import Block, Chart, Section
from uwml_core.report.markup import Html, tag
from uwml_core.report.numbers import Cell, queries_note, training_cells
from uwml_core.report.source import Source

SMALL = ("learning_rate", "temperature", "gradient_norm", "ess_share", "throughput", "accuracy")


def training_section(source: Source) -> Section:
    """Loss, recall and the small charts of the page Training."""
    directions, steps, evals = source.directions, source.steps, source.evals
    summary = training_summary(steps, evals, directions)
    return Section(
        key="training",
        title=_("Training"),
        question=_("Is it learning?"),
        headline=training_headline(steps, evals, directions),
        blocks=[
            number_cells(training_cells(summary, directions, loss_unit(source.loss))),
            _loss(source),
            _recall(source),
            *(_small(source, quantity) for quantity in SMALL),
        ],
    )


def number_cells(cells: list[Cell]) -> Html:
    """Key numbers side by side."""
    shown = [
        tag("div", tag("dt", label), tag("dd", value, " ", tag("small", small)))
        for label, value, small in cells
    ]
    return tag("dl", *shown, class_="numbers")


def _loss(source: Source) -> Chart:
    steps, directions, loss = source.steps, source.directions, source.loss
    view = analysis.series_view(steps, directions, "loss")
    smooth = analysis.series_view(steps, directions, "loss", smooth=True)
    bands, marks = analysis.phase_bands(steps), analysis.event_marks(source.run.frame("events"))
    lines = analysis.reference_lines(loss, steps)

    def draw(theme: Theme) -> object:
        return figures.loss_figure(
            view.frame, bands, marks, lines, theme, directions=directions, smooth=smooth.frame, height=340
        )

    return Chart(
        key="loss", title=_("Loss and its parts"), draw=draw, frame=view.frame, unit=loss_unit(loss),
        height=340, notes=(view.note,), wide=True,
    )  # fmt: skip


def _recall(source: Source) -> Chart:
    curves = analysis.retrieval_curves(source.evals)
    draw = partial(figures.retrieval_figure, curves, directions=source.directions, height=340)
    title = _("Recall on {split}").format(split=main_split(source.evals))
    return Chart(
        key="recall", title=title, draw=draw, frame=curves, unit="%", height=340,
        notes=(queries_note(curves),), wide=True,
    )  # fmt: skip


def _small(source: Source, quantity: str) -> Block:
    title, unit = analysis.quantity_label(quantity)
    view = analysis.series_view(source.steps, source.directions, quantity)
    bands = analysis.phase_bands(source.steps)
    marks = analysis.event_marks(source.run.frame("events"))

    def draw(theme: Theme) -> object:
        return figures.line_figure(
            view.frame, title="", unit="", theme=theme, directions=source.directions, bands=bands,
            marks=marks, height=200,
        )  # fmt: skip

    return Chart(
        key=quantity, title=title, draw=draw, frame=view.frame, unit=unit, height=200, notes=(view.note,)
    )
