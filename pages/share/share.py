import streamlit as st

from uwml_core import ui
from uwml_core.analysis.run_words import share_headline
from uwml_core.i18n import _
from uwml_core.runlog.reader import Run

run = ui.begin_page(_("Share"), _("How do I show a teammate?"))


def body(run: Run) -> None:
    ui.headline(share_headline(run.name, run.status))
    left, right = st.columns([5, 4], gap="small")
    with left:
        ui.report_card(run)
        ui.bundle_card(run)
        ui.import_card()
    with right:
        ui.permalink_card(run)
        ui.notes_card(run)


ui.follow(run, body)
ui.guide(
    _("A permalink shows the live page; a report is how the run was when it was built; a bundle is the run."),
    _("A report holds numbers, captions and configuration. Leave pictures out where they may not be shown."),
    _("A bundle is imported on this page of another app, or by uwml import; its notes come along."),
    _("A note is pinned at a step, an item or a chart. It is stored with the run and shown on that page."),
)
