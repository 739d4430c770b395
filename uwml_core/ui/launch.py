"""Start a training from a page: the demo, or a run with the settings that its sliders show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from uwml_core.i18n import _
from uwml_core.runlog.opening import new_run_id
from uwml_core.ui.recipes import setting_words
from uwml_core.ui.settings import may_train, shown_root
from uwml_core.ui.trainings import Training, trainings

_WANTED, _STARTED = "_run_of_demo", "_started_a_training"


def launch(
    name: str, sections: Mapping[str, Mapping[str, Any]], *, preset: str = "", parent: str | None = None
) -> Training:
    """Start a training.

    Args:
        name: what the run is called.
        sections: its settings; the trainer checks each of them once more.
        preset: loss to start from; none where ``sections`` holds the whole loss.
        parent: id of the run whose settings it changes.

    Returns:
        The training; that it failed at once is said by its state.

    Raises:
        PermissionError: where nothing may be started.
        RuntimeError: if a training is running already.
    """
    if not may_train():
        raise PermissionError("this app starts no training: it is read-only, public, or its logs are remote")
    return trainings.start(Training(new_run_id(), name, parent), train_options(sections, preset))


def train_options(sections: Mapping[str, Mapping[str, Any]], preset: str = "") -> list[str]:
    """Options of ``uwml train``; arguments as for ``launch``."""
    settings = [word for setting in setting_words(sections) for word in ("--set", setting)]
    return [*(["--preset", preset] if preset else []), *settings]


def try_launch(name: str, sections: Mapping[str, Mapping[str, Any]], **options: Any) -> Training | None:
    """Start a training unless another visitor was faster, which the page then shows; as ``launch``."""
    st.session_state[_STARTED] = True
    try:
        return launch(name, sections, **options)
    except RuntimeError:
        return None


def show_started() -> None:
    """Draw the whole app anew where a click has just started a training: the sidebar shows it."""
    # a click inside a fragment runs the fragment alone
    if st.session_state.pop(_STARTED, False):
        st.rerun(scope="app")


def demo_sections() -> dict[str, dict[str, Any]]:
    """Settings of the demo: it trains on the shipped emoji pairs into the folder that the app shows."""
    return {"data": {"path": "emoji_pairs"}, "run": {"root": shown_root(), "name": "demo"}}


def demo_button() -> None:
    """Draw the button that starts the demo; nothing where launching is not allowed."""
    if not may_train():
        return
    show_started()
    st.button(
        _("Start the demo"),
        icon=":material/play_arrow:",
        key="start-demo",
        on_click=_start_demo,
        disabled=is_training(),
        help=_("Trains on the emoji pairs for about two minutes, on this computer"),
    )


def is_training() -> bool:
    """Whether a training of this server is running, which no second one may join."""
    newest = trainings.newest
    return newest is not None and newest.runs


def _start_demo() -> None:
    started = try_launch("demo", demo_sections(), preset="uwml")
    if started is not None:
        st.session_state[_WANTED] = started.run_id


def choose_started(listed: Sequence[str]) -> str | None:
    """Id of the demo that this visitor started, once, as soon as the folder lists it; None otherwise."""
    wanted = st.session_state.get(_WANTED)
    if wanted not in listed:
        return None
    del st.session_state[_WANTED]
    return str(wanted)
