"""``uwml losses``: the losses that are ready to use, with formula and reference."""

from __future__ import annotations

import argparse
import textwrap

from uwml_core.weighting import LOSS_PRESETS, LossPreset, UWMLConfig

HELP = "list the losses that are ready to use, with formula and reference"

_WIDTH = 100


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options: none."""


def run(args: argparse.Namespace) -> int:
    """Print every preset of ``uwml train``; returns the exit code."""
    for name, preset in LOSS_PRESETS.items():
        print(_entry(name, preset))
    print("s+ is the similarity to the positive, s_j that to a negative, t the temperature.")
    print("Train with one: uwml train --preset NAME")
    return 0


def _entry(name: str, preset: LossPreset) -> str:
    defaults = UWMLConfig().to_dict()
    own = {key: value for key, value in preset.config.to_dict().items() if value != defaults[key]}
    lines = {
        "formula": preset.formula,
        "source": preset.reference,
        "settings": " ".join(f"loss.{key}={value}" for key, value in own.items()) or "the defaults",
    }
    texts = [
        textwrap.fill(f"{label:9} {text}", _WIDTH, initial_indent="  ", subsequent_indent=" " * 12)
        for label, text in lines.items()
    ]
    return "\n".join([f"{name} ({preset.title})", *texts, ""])
