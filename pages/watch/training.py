import streamlit as st

from uwml_core import ui
from uwml_core.analysis import training as analysis
from uwml_core.analysis.loss_settings import loss_unit
from uwml_core.analysis.splits import main_split
from uwml_core.analysis.training_summary import best_retrieval, training_headline, training_summary
from uwml_core.figures import training as figures
from uwml_core.figures.drawing import encoded
from uwml_core.i18n import _
from uwml_core.runlog.reader import Run

SMALL = ("learning_rate", "temperature", "gradient_norm", "ess_share", "throughput", "accuracy")

run = ui.begin_page(_("Training"), _("Is it learning?"), needs=("steps",))


def body(run: Run) -> None:
    directions, theme = run.directions, ui.current_theme()
    steps, evals, loss = ui.steps(run), ui.evals(run), ui.loss_in_use(run)
    unit_of_loss = loss_unit(loss)
    best = ui.kept_of(run, "evals", "best", best_retrieval, evals, directions)
    summary = ui.kept(run, "summary", training_summary, steps, evals, directions, best=best)
    ui.headline(ui.kept(run, "headline", training_headline, steps, evals, directions, summary=summary))
    ui.training_numbers(summary, directions, unit_of_loss)

    zoom, bands = ui.step_zoom(run, steps), ui.kept(run, "bands", analysis.phase_bands, steps)
    marks = ui.kept_of(run, "events", "marks", analysis.event_marks, ui.events(run))
    left, right = st.columns([3, 2], gap="small")
    with left:
        view = ui.step_series(run, steps, "loss", zoom)
        smooth = ui.step_series(run, steps, "loss", zoom, smooth=True)
        lines, pinned = ui.kept(run, "lines", analysis.reference_lines, loss, steps), ui.step_notes(run)
        figure = ui.kept(
            run, ("loss figure", zoom.text, pinned.to_json()), encoded, figures.loss_figure, view.frame,
            bands, marks, lines, theme, directions=directions, smooth=smooth.frame, pinned=pinned,
            within=zoom.within, height=340,
        )  # fmt: skip
        title = _("Loss and its parts")
        ui.card(title, figure, view.frame, view.note, key="loss", unit=unit_of_loss, height=340, zoom=zoom)
    with right:
        curves = ui.kept_of(run, "evals", "recall", analysis.retrieval_curves, evals)
        figure = ui.kept_of(
            run, "evals", "recall figure", encoded, figures.retrieval_figure, curves, theme,
            directions=directions, height=340,
        )  # fmt: skip
        title = _("Recall on {split}").format(split=main_split(evals))
        ui.card(title, figure, curves, ui.queries_note(curves), key="recall", unit="%", height=340)

    small_charts(run, zoom)


def small_charts(run: Run, zoom: ui.StepZoom) -> None:
    directions, theme, steps = run.directions, ui.current_theme(), ui.steps(run)
    bands = ui.kept(run, "bands", analysis.phase_bands, steps)
    marks = ui.kept_of(run, "events", "marks", analysis.event_marks, ui.events(run))
    for column, quantity in zip(st.columns(3, gap="small") + st.columns(3, gap="small"), SMALL, strict=True):
        with column:
            title, unit = analysis.quantity_label(quantity)
            view = ui.step_series(run, steps, quantity, zoom)
            figure = ui.kept(
                run, (f"{quantity} figure", zoom.text), encoded, figures.line_figure, view.frame, title="",
                unit="", theme=theme, directions=directions, bands=bands, marks=marks, within=zoom.within,
                height=190,
            )  # fmt: skip
            ui.card(title, figure, view.frame, view.note, key=quantity, unit=unit, height=190, zoom=zoom)


ui.follow(run, body)
ui.guide(
    _("Loss should fall while recall on val rises; loss that falls while recall falls means memorizing."),
    _("Recall at K: the share of queries with a right answer among the first K, n queries per direction."),
    _("ESS, the effective sample size, says how many pairs carry the weight; near 0, few steer the batch."),
    _("Dashed lines are what the loss would be without learning; marks on the axis are logged events."),
)
