"""Which of the evaluated splits speaks for a run."""

from __future__ import annotations

import pandas as pd

PREFERRED = ("val", "test")
_TRAIN = "train"


def main_split(evals: pd.DataFrame) -> str:
    """The split that a run's headline is about: ``val``, else ``test``, else the first one evaluated.

    Args:
        evals: frame of the table ``evals``; without rows it is ``val`` that is missing.

    Example:
        >>> main_split(pd.DataFrame({"split": ["train", "testall"]}))
        'testall'
    """
    found = [str(split) for split in evals["split"].dropna().unique()]
    # how well what is trained on is known says least
    others = sorted(found, key=lambda split: split == _TRAIN)
    return next((split for split in (*PREFERRED, *others) if split in found), PREFERRED[0])
