import streamlit as st

from uwml_core import ui
from uwml_core.analysis import bands, curves, margins, what_if
from uwml_core.analysis.selection import select_steps
from uwml_core.figures import curve_by_epoch, shares, weight_curve
from uwml_core.i18n import _
from uwml_core.runlog.reader import Run
from uwml_core.weighting import UWMLConfig

run = ui.begin_page(
    _("Weight curve"),
    _("Which pairs count, and how does that change with the epoch?"),
    needs=("steps", "pairs"),
)


def details(run: Run, result: what_if.WhatIf, after: UWMLConfig, scale: float) -> None:
    directions, theme = run.directions, ui.current_theme()
    epochs = ui.kept(run, "epochs", margins.epoch_progress, ui.steps(run))
    left, right = st.columns([5, 3], gap="small")
    with left:
        ui.what_if_table(result.summary)
    with right:
        figure = shares.bands_figure(result.bands, theme, directions=directions, height=230)
        ui.card(_("Gradient by band"), figure, result.bands, key="bands", unit="%", height=230)

    one, two, three = st.columns(3, gap="small")
    with one:
        weights, clamp = result.weights, after.max_weight
        figure = shares.weights_figure(weights, theme, directions=directions, max_weight=clamp)
        unit = _("anchors per 0.05")
        ui.card(_("Relative weight of the pairs"), figure, weights, key="weights", unit=unit, height=260)
    with two:
        by_epoch = curves.curves_by_epoch(after, epochs, scale=scale)
        figure = curve_by_epoch.curve_by_epoch_figure(by_epoch, theme)
        unit = _("pair weight")
        ui.card(_("The curve from epoch to epoch"), figure, by_epoch, key="epochs", unit=unit, height=260)
    with three:
        ui.recipe_card(after, ui.weighting_names(scale))


def body(run: Run) -> None:
    directions, theme, steps = run.directions, ui.current_theme(), ui.steps(run)
    histogram, logged, top = ui.histogram(run), ui.loss_in_use(run), st.container()
    scale = curves.mean_margin_scale(steps, directions)
    left, right = st.columns([5, 3], gap="small")
    with right, st.container(border=True, key="card-controls"):
        epoch = ui.epoch_choice(margins.epochs_in(histogram))
        before, after = ui.weighting_controls(logged, run.run_id, scale)
        ui.train_with_these(run, before, after)

    selection = ui.kept(run, ("selection", epoch), select_steps, steps, epoch)
    result = ui.what_if(run, selection, before, after)
    with top:
        ui.headline(what_if.weight_curve_headline(result))
    with left:
        shown = ui.kept(run, ("shown", epoch), margins.select_epoch, histogram, epoch)
        progress = [ui.progress_of(ui.kept(run, "epochs", margins.epoch_progress, steps), epoch)]
        now, new = (curves.curve_frame(config, progress, scale=scale) for config in (before, after))
        figure = weight_curve.weight_curve_figure(
            shown, now, new, bands.bands_frame(), theme, directions=directions, height=460,
            center=curves.center_margin(after, scale), known=logged is not None,
        )  # fmt: skip
        notes = (_("Open-loop preview: other weights would have led to other margins."), selection.note)
        notes += (ui.kept(run, ("validity", epoch), ui.weights_validity, run, selection).reason,)
        ui.card(_("Weight of a pair over its margin"), figure, shown, *notes, key="curve", height=460)

    details(run, result, after, scale)


ui.follow(run, body)
ui.guide(
    _("A pair's margin is its similarity minus that to its hardest wrong candidate; below 0, misaligned."),
    _("The curve says how much a pair of that margin counts. The ghost is the curve that the run uses."),
    _("Open-loop preview: the logged margins are weighed anew."),
    _("Trained with other weights, the run would have had other margins; no replay can know them."),
)
