"""Start the demo training from the page, and say how the start went."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from dataclasses import dataclass
from typing import IO

import streamlit as st

from uwml_core.i18n import _
from uwml_core.runlog.reader import Run
from uwml_core.ui.assets import APP_ROOT
from uwml_core.ui.frame import apply_language, choose_run
from uwml_core.ui.read import runs
from uwml_core.ui.settings import may_train, shown_root
from uwml_core.ui.text import note

REFRESH_S = 1.0
_LAUNCH = "_launch"


@dataclass(frozen=True)
class Launch:
    """A training process that this visitor started.

    Attributes:
        process: the running program.
        errors: file that receives its error output.
        known: ids of the runs that were there before.
    """

    process: subprocess.Popen[bytes]
    errors: IO[bytes]
    known: frozenset[str]

    def problem(self) -> str | None:
        """Last line of the error output once the process has failed, else None."""
        if self.process.poll() in (None, 0):
            return None
        self.errors.seek(0)
        lines = self.errors.read().decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else _("exit code {code}").format(code=self.process.returncode)


def demo_command() -> list[str]:
    """Command line that trains on the shipped emoji pairs into the folder that the app shows."""
    settings = ["data.path=emoji_pairs", f"run.root={shown_root()}", "run.name=demo"]
    command = [sys.executable, "-m", "uwml_core", "train", "--preset", "uwml"]
    return command + [part for setting in settings for part in ("--set", setting)]


def demo_button() -> None:
    """Draw the button that starts the demo; nothing where launching is not allowed."""
    if not may_train():
        return
    busy = _launch() is not None
    st.button(
        _("Start the demo"),
        icon=":material/play_arrow:",
        key="start-demo",
        on_click=_start,
        disabled=busy,
        help=_("Trains on the emoji pairs for about two minutes, on this computer"),
    )
    if busy:
        _watch()


def _launch() -> Launch | None:
    launch: Launch | None = st.session_state.get(_LAUNCH)
    return launch


def _start() -> None:
    errors = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process that writes into it
    process = subprocess.Popen(
        demo_command(), cwd=APP_ROOT, stdout=subprocess.DEVNULL, stderr=errors, start_new_session=True
    )
    known = frozenset(run.run_id for run in runs())
    st.session_state[_LAUNCH] = Launch(process=process, errors=errors, known=known)


@st.fragment(run_every=REFRESH_S)
def _watch() -> None:
    apply_language()
    launch = _launch()
    if launch is None:
        return
    problem = launch.problem()
    if problem is not None:
        st.error(_("The demo did not start."), icon=":material/error:")
        note(problem)
        if st.button(_("Dismiss"), key="dismiss-launch"):
            _forget()
        return
    new = _new_run(launch)
    if new is None:
        note(_("Starting: the data are read and the encoders built; the run appears here in a few seconds."))
        return
    choose_run(new.run_id)
    _forget()


def _new_run(launch: Launch) -> Run | None:
    return next((run for run in runs() if run.run_id not in launch.known), None)


def _forget() -> None:
    del st.session_state[_LAUNCH]
    st.rerun(scope="app")
