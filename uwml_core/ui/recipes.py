"""A weighting as text to copy: YAML, Python, command line."""

from __future__ import annotations

import streamlit as st

from uwml_core.i18n import _
from uwml_core.ui.controls import CONTROLS
from uwml_core.ui.text import section
from uwml_core.weighting import UWMLConfig


def as_yaml(config: UWMLConfig) -> str:
    """The weighting as the ``loss`` section of a configuration file.

    Example:
        >>> print(as_yaml(UWMLConfig()).splitlines()[1])
          curve: bell
    """
    return "\n".join(["loss:", *(f"  {name}: {getattr(config, name)}" for name in CONTROLS)])


def as_python(config: UWMLConfig) -> str:
    """The weighting as a constructor call."""
    lines = [f"    {name}={getattr(config, name)!r}," for name in CONTROLS]
    return "\n".join(["from uwml_core import UWMLLoss", "", "loss = UWMLLoss(", *lines, ")"])


def as_command(config: UWMLConfig) -> str:
    """The weighting as a training command."""
    settings = [f"--set loss.{name}={getattr(config, name)}" for name in CONTROLS]
    return " \\\n  ".join(["uwml train --preset uwml", *settings])


def recipe_card(config: UWMLConfig) -> None:
    """Draw the three texts, each with a button that copies it."""
    with st.container(border=True, key="card-recipes", gap="xsmall"):
        section(_("Copy these settings"))
        for tab, text, language in zip(
            st.tabs(["YAML", "Python", _("Command line")]),
            (as_yaml(config), as_python(config), as_command(config)),
            ("yaml", "python", "bash"),
            strict=True,
        ):
            tab.code(text, language=language)
