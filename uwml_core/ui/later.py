"""Values that take longer than a page may wait: computed once, in a thread, shown when they are there."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from typing import TypeVar

import streamlit as st

from uwml_core.ui.background import Task
from uwml_core.ui.frame import apply_language
from uwml_core.ui.text import note

T = TypeVar("T")

REFRESH_S = 1.0
_PENDING = "_awaited"
_lock = threading.Lock()


def later(key: Hashable, work: Callable[[], T], *, wanted: bool = True) -> T | None:
    """A value that somebody's thread computes; None until it is there.

    The page calls ``await_later`` at its end, which draws it anew when the value has come.

    Args:
        key: identifies the value; a second visitor who asks for it gets the same.
        work: computes it, without any call to Streamlit.
        wanted: whether to begin where nobody has; without, the value is only looked for.
    """
    task: Task[T] = _task(key)
    with _lock:
        if wanted and not task.began:
            task.start(lambda _tell: work())
    if wanted and task.runs:
        st.session_state.setdefault(_PENDING, []).append(task)
    note(task.problem)
    return task.result


def await_later() -> None:
    """Draw the page again as soon as a value that it lacks has come."""
    pending: list[Task[object]] = st.session_state.pop(_PENDING, [])
    if not pending:
        return

    @st.fragment(run_every=REFRESH_S)
    def wait() -> None:
        apply_language()
        if not all(task.runs for task in pending):
            st.rerun(scope="app")

    wait()


@st.cache_resource(max_entries=256, show_spinner=False)
def _task(key: Hashable) -> Task[T]:
    return Task()
