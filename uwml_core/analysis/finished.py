"""A run that was made from a finished model: there is no training in it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from uwml_core.analysis.text import fixed, listed
from uwml_core.analysis.training_summary import best_retrieval
from uwml_core.i18n import _

_SECTION = "finished_model"


def is_finished_model(config: Mapping[str, Any]) -> bool:
    """Whether a run's configuration says that ``uwml diagnose-embeddings`` made it.

    Example:
        >>> is_finished_model({"finished_model": {"images": "img.npy"}}), is_finished_model({})
        (True, False)
    """
    return _SECTION in config


def has_embeddings(config: Mapping[str, Any]) -> bool:
    """Whether the finished model was given as embeddings; False for similarities alone."""
    section = config.get(_SECTION)
    return isinstance(section, Mapping) and "similarities" not in section


def finished_headline(evals: pd.DataFrame, directions: tuple[str, str]) -> str:
    """Recall of a finished model as one sentence, for each split that was evaluated."""
    parts = []
    for split in dict.fromkeys(evals["split"].dropna()):
        best = best_retrieval(evals, directions, str(split)).set_index(["direction", "metric"])
        for direction in directions:
            values = [best["value"].get((direction, f"R@{k}"), np.nan) for k in (1, 5, 10)]
            n = int(best["n"].get((direction, "R@1"), 0))
            parts.append(
                _("{values} % {direction} on {split} (n = {n})").format(
                    values=" / ".join(fixed(value) for value in values),
                    direction=direction,
                    split=split,
                    n=f"{n:,}",
                )
            )
    if not parts:
        return _("A finished model without an evaluation.")
    return _("R@1 / R@5 / R@10 of a finished model: {parts}.").format(parts=listed(parts))
