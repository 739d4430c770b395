"""Choose how the map is laid out; start UMAP, watch it, cancel it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd
import streamlit as st

from uwml_core.analysis.map_facts import layout_sentences
from uwml_core.i18n import _
from uwml_core.projection.parameters import METHODS, METRICS, NEIGHBORS, ProjectionParameters
from uwml_core.runlog.projections import any_projection, to_frame
from uwml_core.runlog.reader import Run
from uwml_core.ui.choice import adopt, publish
from uwml_core.ui.frame import apply_language
from uwml_core.ui.map_read import Places, layout_facts, pca_layout, umap_layout
from uwml_core.ui.projection import Job, queue
from uwml_core.ui.selection_card import area_step
from uwml_core.ui.settings import read_only
from uwml_core.ui.text import note

REFRESH_S = 0.5
_DEFAULTS = ProjectionParameters()
_WATCHED = "_watched_projection"


@dataclass(frozen=True, kw_only=True, eq=False)
class MapLayout:
    """The layout that is drawn.

    Attributes:
        places: where the points of each of its snapshots lie.
        method: how it was made, ``umap`` or ``pca``.
        name: identifies it.
        note: what there is to say about it; may be empty.
        caution: what must not be read from it.
        details: how much of its motion is noise, and what else it says of the snapshot.
    """

    places: Places
    method: str
    name: str
    note: str
    caution: str
    details: Sequence[str] = ()

    def at(self, step: int) -> pd.DataFrame:
        """Places of one snapshot; without rows where the layout does not have it."""
        found = self.places.get(step)
        return to_frame([]) if found is None else found

    def until(self, step: int) -> pd.DataFrame:
        """Places of all snapshots up to a step."""
        found = [rows for known, rows in self.places.items() if known <= step]
        return pd.concat(found, ignore_index=True) if found else to_frame([])


def layout_choice(run: Run, step: int) -> MapLayout:
    """Draw the choice of method and, for UMAP, its parameters and its progress; the address carries them.

    Until UMAP is there, the map shows principal components and says so.

    Args:
        run: the run.
        step: snapshot that is shown.
    """
    # what is there already is shown first: the layouts of the sample runs, or of a run looked at before
    ready = any_projection(run.path) and umap_layout(run, _DEFAULTS)[0] is not None
    adopt("method", METHODS, "umap" if ready else "pca")
    row = st.container(horizontal=True, vertical_alignment="bottom")
    row.segmented_control(
        _("Layout"),
        METHODS,
        format_func={"umap": "UMAP", "pca": "PCA"}.__getitem__,
        key="method",
        required=True,
    )
    if publish("method") == "pca":
        return _by_pca(run, step)
    with row:
        parameters = _parameters()
    places, key, whole = umap_layout(run, parameters)
    if not whole:
        _compute(run, key, parameters)
    if places is None:
        return _by_pca(run, step, _("Shown by PCA until UMAP is there."))
    text = "" if whole else _("The run has grown since: UMAP shows the snapshots up to then.")
    return MapLayout(
        places=places,
        method="umap",
        name=f"umap-{key}-{len(places)}",
        note=text,
        caution=_umap_caution(),
        details=layout_sentences(layout_facts(run, parameters), step),
    )


def _umap_caution() -> str:
    return _("On a UMAP neither the distances between clusters nor the size of the gap mean anything.")


def _pca_caution() -> str:
    return _(
        "Two axes of many: points that lie together here may be far apart; what stays in the data stays here."
    )


def _by_pca(run: Run, step: int, text: str = "") -> MapLayout:
    at = area_step()
    places, few, total = pca_layout(run, [step] if at is None else [step, at])
    if few == total:
        told = _("Principal components of all snapshots together.")
    else:
        told = _("Principal components of {few} of {total} snapshots together.").format(few=few, total=total)
    return MapLayout(places=places, method="pca", name="pca", note=text or told, caution=_pca_caution())


def _parameters() -> ProjectionParameters:
    with st.popover(_("UMAP parameters"), icon=":material/tune:", key="umap-parameters"):
        low, high = NEIGHBORS
        neighbors = st.slider(
            _("Neighbors kept together"), low, 100, _DEFAULTS.neighbors, key="neighbors", bind="query-params",
            help=_("Few show small clusters, many the whole shape"),
        )  # fmt: skip
        min_dist = st.slider(
            _("Least distance of points"),
            0.0,
            1.0,
            _DEFAULTS.min_dist,
            0.05,
            key="min_dist",
            bind="query-params",
        )
        metric = st.segmented_control(
            _("Metric"), METRICS, default=_DEFAULTS.metric, key="metric", required=True, bind="query-params"
        )
        seed = st.number_input(_("Seed"), 0, 2**32 - 1, _DEFAULTS.seed, key="umap_seed", bind="query-params")
    return ProjectionParameters(
        neighbors=min(neighbors, high),
        min_dist=round(min_dist, 2),
        metric=metric or _DEFAULTS.metric,
        seed=int(seed),
    )


def _compute(run: Run, key: str, parameters: ProjectionParameters) -> None:
    job = queue.job(key)
    if job is not None and job.waits:
        _watch(key)
        return
    if job is not None and job.state == "failed":
        st.error(_("UMAP could not be computed."), icon=":material/error:")
        note(job.problem)
    if read_only():
        note(_("UMAP was not computed for this run, and this app may not start it."))
        return
    st.button(
        _("Compute UMAP"),
        icon=":material/scatter_plot:",
        type="primary",
        key="compute-umap",
        on_click=_start,
        args=(run, key, parameters),
        help=_("In the background; 2 × 2,000 points and 8 snapshots take about half a minute"),
    )


def _start(run: Run, key: str, parameters: ProjectionParameters) -> None:
    queue.start(run.path, key, parameters)


@st.fragment(run_every=REFRESH_S)
def _watch(key: str) -> None:
    apply_language()
    job = queue.job(key)
    if job is None or not job.waits:
        # once only: a fragment may tick again before the page has drawn itself anew
        if st.session_state.get(_WATCHED) != (key, job and job.state):
            st.session_state[_WATCHED] = (key, job and job.state)
            st.rerun(scope="app")
        return
    st.session_state.pop(_WATCHED, None)
    st.progress(*_progress(job))
    if st.button(_("Cancel"), icon=":material/close:", key="cancel-umap", type="tertiary"):
        queue.cancel(key)
        st.rerun(scope="app")


def _progress(job: Job) -> tuple[float, str]:
    before = queue.waiting_before(job.key)
    if job.state == "queued" and before:
        return 0.0, _("Waiting: {n} before this one").format(n=before)
    progress = job.progress()
    if progress is None:
        return 0.02, _("UMAP is loading and finds the neighbors")
    share = progress.done / max(progress.total, 1)
    return share, _("{done} of {total} snapshots laid out").format(done=progress.done, total=progress.total)
