"""Choose what goes into a report, build it off the page's thread, and hand it out."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from uwml_core.i18n import LANGUAGES, _, language
from uwml_core.report.build import PAGES, ReportChoice, build_report, estimate_size, page_titles
from uwml_core.runlog.reader import Run
from uwml_core.ui.background import Task, show_progress
from uwml_core.ui.choice import choice
from uwml_core.ui.frame import apply_language
from uwml_core.ui.kept import version_of
from uwml_core.ui.text import note, section

REFRESH_S = 0.5
_TASK = "_report_task"
_PAGES = "report_pages"


@dataclass(frozen=True)
class Asked:
    """A report that was asked for: of which run, with what."""

    run_id: str
    version: object
    choice: ReportChoice


def report_card(run: Run) -> None:
    """Draw the report builder; the address carries its choices."""
    with st.container(border=True, key="card-report", gap="small"):
        section(_("Report"))
        note(
            _(
                "One HTML file that opens without a network: charts, sliders of the weight curve, tables. "
                "It holds the run's configuration, captions and notes."
            )
        )
        wanted = _choice()
        if wanted is None:
            note(_("Choose at least one page."))
            return
        _build(run, wanted)


def _choice() -> ReportChoice | None:
    pages = _page_choice()
    row = st.container(horizontal=True, vertical_alignment="bottom")
    with row:
        spoken = choice(
            _("Language of the report"), "report_lang", list(LANGUAGES), language(), LANGUAGES.__getitem__
        )
        pictures = st.toggle(
            _("Pictures"), True, key="report_pictures", bind="query-params",
            help=_("Thumbnails of the hardest negatives; without them captions and names of items stay"),
        )  # fmt: skip
    return ReportChoice(pages=pages, pictures=pictures, language=spoken) if pages else None


def _page_choice() -> tuple[str, ...]:
    """Pages in the address are names with commas between them; all of them where it says nothing."""
    asked = st.query_params.get(_PAGES)
    if _PAGES not in st.session_state:
        names = list(PAGES) if asked is None else asked.split(",")
        st.session_state[_PAGES] = [page for page in PAGES if page in names]
    titles = page_titles()
    st.pills(_("Pages"), list(PAGES), selection_mode="multi", format_func=titles.__getitem__, key=_PAGES)
    chosen = tuple(page for page in PAGES if page in st.session_state[_PAGES])
    if len(chosen) == len(PAGES):
        st.query_params.pop(_PAGES, None)
    elif st.query_params.get(_PAGES) != ",".join(chosen):
        st.query_params[_PAGES] = ",".join(chosen)
    return chosen


def _build(run: Run, wanted: ReportChoice) -> None:
    asked, current = Asked(run.run_id, version_of(run), wanted), st.session_state.get(_TASK)
    row = st.container(horizontal=True, vertical_alignment="center")
    row.button(
        _("Build the report"), key="build-report", type="primary", icon=":material/article:",
        on_click=_start, args=(run, asked), disabled=current is not None and current[1].runs,
    )  # fmt: skip
    with row:
        note(_("about {size}").format(size=size_text(estimate_size(run, wanted))))
    if current is None:
        return
    if current[1].runs:
        _watch()
        return
    _outcome(run, current[1], current[0] == asked)


def _start(run: Run, asked: Asked) -> None:
    task: Task[bytes] = Task()
    task.start(lambda tell: build_report(run, asked.choice, tell).encode("utf-8", "replace"))
    # a small run is ready before anybody would read a progress bar
    task.wait(1.0)
    st.session_state[_TASK] = (asked, task)


@st.fragment(run_every=REFRESH_S)
def _watch() -> None:
    apply_language()
    current = st.session_state.get(_TASK)
    if current is None or not current[1].runs:
        st.rerun(scope="app")
    show_progress(current[1])


def _outcome(run: Run, task: Task[bytes], current: bool) -> None:
    if task.problem:
        st.error(_("The report could not be built."), icon=":material/error:")
        note(task.problem)
        return
    if not current or task.result is None:
        note(_("Something else is chosen now, or the run has grown; build the report again."))
        return
    st.download_button(
        _("Download the report, {size}").format(size=size_text(len(task.result))),
        task.result, file_name=f"{run.run_id}.html", mime="text/html", key="download-report",
        icon=":material/download:", on_click="ignore",
    )  # fmt: skip


def size_text(size: int) -> str:
    """Bytes in the largest fitting unit.

    Example:
        >>> size_text(2_400_000), size_text(900), size_text(12_000)
        ('2.4 MB', '1 kB', '12 kB')
    """
    for limit, unit in ((1e9, "GB"), (1e6, "MB")):
        if size >= limit:
            return f"{size / limit:,.1f} {unit}"
    return f"{max(1, round(size / 1e3))} kB"
