import streamlit as st

from uwml_core import ui
from uwml_core.analysis.runs import runs_headline, search_runs
from uwml_core.i18n import _, ngettext

ui.begin_folder_page(_("Runs"), _("What is there, what is running?"))


def body() -> None:
    table = ui.overview()
    if table.empty:
        ui.empty_folder()
        return
    ui.headline(runs_headline(table))
    controls = st.container(horizontal=True, vertical_alignment="bottom")
    with controls:
        text = st.text_input(
            _("Search"), key="search", bind="query-params", icon=":material/search:", width=360,
            placeholder=_("Name, loss, status"), label_visibility="collapsed",
        )  # fmt: skip
        ui.demo_button()
    found = search_runs(table, text or "")
    ui.runs_list(found)
    count = ngettext("{shown} of {total} run", "{shown} of {total} runs", len(table))
    ui.notes(count.format(shown=len(found), total=len(table)))
    ui.compare_link(found, text or "")
    ui.run_links(
        {
            "pages/watch/training.py": _("Training"),
            "pages/explain/weight_curve.py": _("Weight curve"),
            "pages/explain/modal_balance.py": _("Modal balance"),
            "pages/explain/hard_negatives.py": _("Hard negatives"),
            "pages/explain/embedding_map.py": _("Embedding map"),
            "pages/decide/compare.py": _("Compare"),
            "pages/decide/diagnosis.py": _("Diagnosis"),
        }
    )


ui.follow_folder(body)
ui.import_card()
ui.guide(
    _("One row per run folder, newest first. The row ticked last is the run of every page."),
    _("Tick several to compare them; the address then holds all of them."),
    _("Best R@1 is the highest value on val per direction: the share of queries answered right at once."),
    _("Stopped writing means: the run calls itself running, but its heartbeat is older than 30 s."),
)
