"""Train a run anew with the settings that the sliders show."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from uwml_core.analysis.child_run import changed_parameters, child_config, child_name, child_obstacle
from uwml_core.i18n import _
from uwml_core.runlog.reader import Run
from uwml_core.ui.launch import is_training, show_started, try_launch
from uwml_core.ui.settings import may_train, shown_root
from uwml_core.ui.text import note
from uwml_core.weighting import UWMLConfig


def train_with_these(run: Run, before: UWMLConfig, after: UWMLConfig) -> None:
    """Draw the button that starts a child run; nothing where launching is not allowed.

    Args:
        run: whose configuration is taken, but for the loss.
        before: its loss.
        after: the loss to train with.
    """
    if not may_train():
        return
    show_started()
    why_not, changed = _why_not(run), changed_parameters(before, after)
    about = _("A new run with this one's data, encoders and seed, on the computer of the app")
    if not changed:
        about = _("Move a slider first: with the same settings and seed the same run would come out.")
    st.button(
        _("Train with these"), key="train-with-these", icon=":material/model_training:", width="stretch",
        on_click=start_child, args=(run, before, after), disabled=bool(why_not) or not changed, help=about,
    )  # fmt: skip
    note(why_not)


def _why_not(run: Run) -> str:
    obstacle = child_obstacle(run.config, Path.cwd())
    if not obstacle and is_training():
        return _("One training at a time: the sidebar shows how far it is.")
    return obstacle


def start_child(run: Run, before: UWMLConfig, after: UWMLConfig) -> None:
    """Start a child run; arguments as for ``train_with_these``.

    Raises:
        PermissionError: where nothing may be started.
        ValueError: if the run cannot be trained anew, or the loss is not allowed.
    """
    if obstacle := child_obstacle(run.config, Path.cwd()):
        raise ValueError(f"run={run.run_id!r} cannot be trained anew: {obstacle}")
    name = child_name(run.name, before, after)
    config = child_config(run.config, after, root=shown_root(), name=name, parent_id=run.run_id)
    try_launch(name, config, parent=run.run_id)
