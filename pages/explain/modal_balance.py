import streamlit as st

from uwml_core import ui
from uwml_core.analysis.loss_settings import loss_unit
from uwml_core.analysis.modal_balance import Balance, balance_headline, lag_mark, updates_note
from uwml_core.analysis.training import phase_bands
from uwml_core.figures import modal_balance as figures
from uwml_core.i18n import _
from uwml_core.runlog.reader import Run
from uwml_core.weighting import UWMLConfig

run = ui.begin_page(
    _("Modal balance"), _("Which direction lags, and is the controller calm?"), needs=("steps",)
)


def details(run: Run, balance: Balance, after: UWMLConfig, zoom: ui.StepZoom) -> None:
    lines, unit = balance.contributions, loss_unit(ui.loss_in_use(run))
    left, right = st.columns([5, 3], gap="small")
    with left:
        ui.balance_table(balance.summary)
        figure = figures.contributions_figure(
            lines.frame,
            ui.current_theme(),
            directions=run.directions,
            unit=unit,
            within=zoom.within,
            height=320,
        )
        title, note = _("Contributions to the loss"), lines.note
        ui.card(title, figure, lines.frame, note, key="contributions", height=320, zoom=zoom)
    with right:
        ui.recipe_card(after, ui.BALANCE_CONTROLS.names)


def body(run: Run) -> None:
    directions, theme, lag = run.directions, ui.current_theme(), ui.lag(run)
    if lag.first_step is None:
        ui.missing_gaps(run)
        return
    top, zoom = st.container(), ui.step_zoom(run, ui.balance_steps(run))
    left, right = st.columns([5, 3], gap="small")
    with right, st.container(border=True, key="card-controls"):
        before, after = ui.balance_controls(ui.loss_in_use(run), run.run_id, directions)
        ui.train_with_these(run, before, after)

    balance = ui.balance(run, before, after, zoom)
    with top:
        ui.headline(balance_headline(lag, balance, after, directions))
    with left:
        lines = balance.lines
        figure = figures.balance_figure(
            lines.frame, balance.updates, theme, directions=directions, height=460,
            bands=ui.kept(run, "bands", phase_bands, ui.balance_steps(run)), since=lag_mark(lag),
            pinned=ui.step_notes(run), within=zoom.within,
        )  # fmt: skip
        notes = (
            _("Open-loop replay: other weights would have led to other gaps, which no replay can know"),
            lines.note,
            updates_note(balance.updates),
            ui.controller_validity(run).reason,
        )
        title = _("Gaps and direction weights")
        ui.card(title, figure, lines.frame, *notes, key="balance", height=460, zoom=zoom)

    details(run, balance, after, zoom)


ui.follow(run, body)
ui.guide(
    _("A step's gap is the mean margin of its anchors in one direction; the smaller gap is the lagging one."),
    _("The controller averages the gaps over the window and gives the lagging direction more weight."),
    _("Solid is the replay with the controls' values, dashed what the run used, a tick an update."),
    _("Jitter is how far a weight travels within 100 steps: high jitter means that it chases noise."),
)
