import streamlit as st

from uwml_core import ui
from uwml_core.analysis.compare.headline import compare_headline
from uwml_core.figures.compare import method_colors
from uwml_core.i18n import _

ui.begin_folder_page(_("Compare"), _("Did it help, is that more than noise?"))


def body() -> None:
    if ui.empty_comparison():
        return
    theme, top = ui.current_theme(), st.container()
    left, right = st.columns([5, 3], gap="small")
    controls = right.container(border=True, key="card-controls")
    with controls:
        chosen = ui.compare_choice()
    if not chosen.runs:
        with top:
            ui.choose_runs(chosen)
        return
    found, methods = ui.comparison(chosen), ui.chosen_methods(chosen)
    colors = method_colors([method.name for method in methods], theme)
    with top:
        ui.headline(compare_headline(found, len(chosen.runs)))
        ui.methods_line(chosen, methods, colors)
        ui.unknown_runs(chosen)
    is_answered = len(found.differences) > 0
    with left:
        if is_answered:
            ui.difference_card(chosen, found, colors, theme)
        else:
            ui.nothing_to_compare(chosen, found)
        ui.configuration_card(methods)
    with right:
        ui.progress_card(chosen, methods, colors, theme)
    if is_answered:
        with controls:
            place = ui.against_choice(found)
        ui.difference_table(chosen, found, place)
        ui.wins_card(chosen, found, place, theme)
    if found.methods:
        ui.ablation_card(chosen, found)


ui.follow_runs(body)
ui.guide(
    _("Runs whose configuration differs in the seed alone are one method, held against the baseline."),
    _("A difference is paired: both runs answer the same queries, so what makes a query hard cancels out."),
    _("The interval over queries draws items again and again: captions of one item are not independent."),
    _("It knows one seed. Train three or more of each: the interval over seeds says whether it lasts."),
    _("Where an interval holds 0, the runs cannot be told apart; that is not proof that they are equal."),
)
