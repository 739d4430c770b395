"""How the training of this server is doing: in the sidebar, on every page, for every visitor."""

from __future__ import annotations

import math
import time
from collections.abc import Hashable

import streamlit as st

from uwml_core.analysis.child_run import TrainingProgress, training_progress
from uwml_core.i18n import _
from uwml_core.runlog.reader import Run
from uwml_core.ui.compare_choice import BASELINE, RUNS
from uwml_core.ui.frame import RUN, apply_language, choose_run
from uwml_core.ui.launch import choose_started
from uwml_core.ui.read import last_row, runs
from uwml_core.ui.settings import may_train
from uwml_core.ui.status import age_text, badge_html
from uwml_core.ui.text import element, note
from uwml_core.ui.trainings import Training, trainings

REFRESH_S = 2.0
# the outcome stays that long for whoever comes later
_SHOWN_S = 900.0
_DISMISSED, _SEEN = "_dismissed_training", "_seen_training"


def draw_training() -> None:
    """Draw the newest training: progress and what stops it, then how it ended; nothing without one."""
    training = _shown()
    if training is None:
        return
    st.session_state[_SEEN] = _moment(training)
    with st.sidebar:
        _strip()


@st.fragment(run_every=REFRESH_S)
def _strip() -> None:
    apply_language()
    training = _shown()
    if training is None or st.session_state.get(_SEEN) != _moment(training):
        # the run picker lists it now, or a button may be pressed again
        _choose()
        st.rerun(scope="app")
    with st.container(key="training", gap="xsmall"):
        st.html(element("p", _("Training"), "uw-title") + element("p", training.name, "uw-note"))
        if training.runs:
            _running(training)
        else:
            _ended(training)


def _choose() -> None:
    wanted = choose_started([run.run_id for run in runs()])
    if wanted is not None:
        choose_run(wanted)


def _shown() -> Training | None:
    training = trainings.newest
    if not may_train() or training is None or st.session_state.get(_DISMISSED) == training.run_id:
        return None
    ended = training.ended_at
    return training if ended is None or time.monotonic() - ended < _SHOWN_S else None


def _moment(training: Training) -> Hashable:
    return training.run_id, training.state, _run(training) is not None


def _run(training: Training) -> Run | None:
    return next((run for run in runs() if run.run_id == training.run_id), None)


def _running(training: Training) -> None:
    run = _run(training)
    progress = TrainingProgress() if run is None else training_progress(last_row(run), run.total_steps)
    st.progress(progress.share, _progress_text(progress, is_there=run is not None))
    stopping = training.state == "stopping"
    st.button(
        _("Stopping") if stopping else _("Stop"), key="stop-training", icon=":material/stop:",
        on_click=trainings.stop, args=(training,), disabled=stopping, width="stretch",
        help=_("It ends with everything saved: uwml train --resume continues it"),
    )  # fmt: skip


def _progress_text(progress: TrainingProgress, *, is_there: bool) -> str:
    if not is_there:
        return _("The data are read and the encoders built.")
    if progress.epoch is None:
        return _("Evaluated before the first step.")
    parts = [
        _("Step {done} of {total}").format(done=f"{progress.done:,}", total=f"{progress.total:,}"),
        _("epoch {epoch}").format(epoch=progress.epoch),
    ]
    if math.isfinite(progress.left_s):
        parts.append(_("about {time} left").format(time=age_text(progress.left_s)))
    return " · ".join(parts)


def _ended(training: Training) -> None:
    st.html(badge_html(training.state))
    note(_problem(training))
    if _run(training) is not None:
        if training.parent is not None and any(run.run_id == training.parent for run in runs()):
            st.page_link(
                "pages/decide/compare.py", label=_("Compare with its parent"), icon=":material/difference:",
                query_params=[
                    (RUN, training.run_id), (RUNS, training.parent), (RUNS, training.run_id),
                    (BASELINE, training.parent),
                ],
            )  # fmt: skip
        st.page_link(
            "pages/watch/training.py", label=_("Show the run"), icon=":material/arrow_forward:",
            query_params={RUN: training.run_id},
        )  # fmt: skip
    st.button(_("Dismiss"), key="dismiss-training", type="tertiary", on_click=_dismiss, args=(training,))


def _problem(training: Training) -> str:
    if training.state != "failed":
        return ""
    if training.problem:
        return training.problem
    if training.code is not None and training.code < 0:
        return _("Ended by signal {number}; the computer may be out of memory.").format(number=-training.code)
    return _("exit code {code}").format(code=training.code)


def _dismiss(training: Training) -> None:
    st.session_state[_DISMISSED] = training.run_id
