"""A weighting as text to copy: YAML, Python, command line."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st
import yaml

from uwml_core.analysis.text import is_number
from uwml_core.i18n import _
from uwml_core.ui.controls import CONTROLS
from uwml_core.ui.text import section
from uwml_core.weighting import UWMLConfig


def as_yaml(config: UWMLConfig, names: Sequence[str] = CONTROLS) -> str:
    """Parameters as the ``loss`` section of a configuration file.

    Args:
        config: their values.
        names: which ones.

    Example:
        >>> print(as_yaml(UWMLConfig()).splitlines()[1])
          curve: bell
    """
    # The dumper quotes what YAML would read as something else, such as the mode off.
    section = {"loss": {name: getattr(config, name) for name in names}}
    return yaml.safe_dump(section, sort_keys=False).strip()


def as_python(config: UWMLConfig, names: Sequence[str] = CONTROLS) -> str:
    """Parameters as a constructor call; arguments as for ``as_yaml``."""
    lines = [f"    {name}={getattr(config, name)!r}," for name in names]
    return "\n".join(["from uwml_core import UWMLLoss", "", "loss = UWMLLoss(", *lines, ")"])


def as_command(config: UWMLConfig, names: Sequence[str] = CONTROLS) -> str:
    """Parameters as a training command; arguments as for ``as_yaml``."""
    words = setting_words({"loss": {name: getattr(config, name) for name in names}})
    return " \\\n  ".join(["uwml train --preset uwml", *(f"--set {shlex.quote(word)}" for word in words)])


def setting_words(sections: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Settings as ``uwml train --set`` takes them.

    Args:
        sections: plain values by section.

    Example:
        >>> setting_words({"loss": {"direction_mode": "off"}, "train": {"epochs": 2, "resume": None}})
        ["loss.direction_mode='off'", 'train.epochs=2', 'train.resume=null']
    """
    return [
        f"{section}.{name}={_value(value)}"
        for section, values in sections.items()
        for name, value in values.items()
    ]


def _value(value: Any) -> str:
    # a text such as 1e3 is a number to the trainer, which reads YAML 1.2
    style = '"' if isinstance(value, str) and is_number(value) else None
    text = yaml.safe_dump(value, default_flow_style=True, default_style=style, width=math.inf)
    return text.removesuffix("...\n").strip()


def recipe_card(config: UWMLConfig, names: Sequence[str] = CONTROLS) -> None:
    """Draw the three texts, each with a button that copies it; arguments as for ``as_yaml``."""
    with st.container(border=True, key="card-recipes", gap="xsmall"):
        section(_("Copy these settings"))
        for tab, text, language in zip(
            st.tabs(["YAML", "Python", _("Command line")]),
            (as_yaml(config, names), as_python(config, names), as_command(config, names)),
            ("yaml", "python", "bash"),
            strict=True,
        ):
            tab.code(text, language=language)
