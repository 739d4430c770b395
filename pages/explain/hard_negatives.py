import streamlit as st

from uwml_core import ui
from uwml_core.analysis.hard_negatives import history
from uwml_core.analysis.hard_negatives.catalogue import caption_text
from uwml_core.figures import hard_negatives as figures
from uwml_core.i18n import _
from uwml_core.runlog.reader import Run

run = ui.begin_page(_("Hard negatives"), _("What does the model confuse, and is it right to?"))


def sheet(run: Run) -> None:
    top = st.container()
    question = ui.question_choice()
    wanted, epoch, order = ui.sheet_controls(run, question)
    found = ui.findings(run, question, epoch)
    if found.missing:
        ui.missing_table(run, found.missing)
        return
    with top:
        ui.headline(found.headline)
    ui.sheet(run, found, wanted, order, ui.current_theme())
    ui.notes(found.note)


def item_page(run: Run, item: int) -> None:
    items, neighbors = ui.catalogue(run), ui.item_neighbors(run, item)
    pairs, note = ui.item_pairs(run, item)
    frame = history.named(history.item_history(pairs, neighbors, item), items)
    found = history.candidates(pairs, neighbors, item)
    ui.headline(history.history_headline(frame, run.directions, caption_text(items, item)))
    shown = ui.pictured(run, [item, *found["negative_item_id"]])
    left, right = st.columns([3, 4], gap="small")
    with left:
        ui.item_card(run, item, shown if item in shown.index else items)
    with right:
        figure = figures.history_figure(frame, ui.current_theme(), directions=run.directions, height=270)
        ui.card(_("Margin over the epochs, cosine"), figure, frame, note, key="history", height=270)
    for column, direction in zip(st.columns(2, gap="small"), run.directions, strict=True):
        with column:
            ui.candidates_card(run, found, shown, direction)


def body(run: Run) -> None:
    item = ui.chosen_item()
    if item is None:
        sheet(run)
    else:
        item_page(run, item)
    ui.follow_clicks()


ui.follow(run, body)
ui.guide(
    _("Each box is a query with its right answer and the wrong candidates that lie nearest to it."),
    _("The number is the margin: similarity to the right answer minus that to the wrong one."),
    _("Hardest now comes from the batches. Persistent and memorized come from probes in a pool that stays."),
    _("A suspected false negative may be a right answer: give both items one label, or one caption less."),
    _("A suspected wrong pair has never risen above its negatives: look whether picture and caption fit."),
)
