"""A run that has no split ``val`` is told about by the split that was evaluated in its place."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from uwml_core.analysis.hard_negatives.memorised import recall_fall
from uwml_core.analysis.splits import main_split
from uwml_core.analysis.training import retrieval_curves
from uwml_core.analysis.training_summary import best_retrieval, training_headline


def evals(*splits: str) -> pd.DataFrame:
    rows = [
        (step, step, split, direction, "R@1", 10.0 * step + len(split), 100, 0.0)
        for split in splits
        for step in range(3)
        for direction in ("i2t", "t2i")
    ]
    names = ["step", "epoch", "split", "direction", "metric", "value", "n", "tied_share"]
    return pd.DataFrame(rows, columns=names)


@pytest.mark.parametrize(
    ("splits", "main"),
    [
        (("val", "test"), "val"),
        (("test", "val"), "val"),
        (("train", "test"), "test"),
        (("train", "testall"), "testall"),
        (("train",), "train"),
        ((), "val"),
    ],
)
def test_val_goes_before_test_and_what_is_trained_on_comes_last(splits, main):
    assert main_split(evals(*splits)) == main


def test_a_split_without_a_name_is_none():
    frame = evals("testall")
    assert main_split(pd.concat([frame.assign(split=None), frame])) == "testall"


def test_figures_and_words_are_those_of_the_main_split():
    frame = evals("train", "testall")
    assert set(retrieval_curves(frame)["value"]) == {7.0, 17.0, 27.0}
    assert best_retrieval(frame, ("i2t", "t2i"))["value"].tolist() == [27.0, 27.0]
    assert recall_fall(frame, "i2t").last == 27.0
    steps = pd.DataFrame(
        {"step": [0, 1], "epoch": [0, 0], "loss": [2.0, np.nan], "batch_size": 8, "step_time_ms": 1.0}
    )
    assert "Best testall R@1: 27.0 % i2t" in training_headline(steps, frame, ("i2t", "t2i"))
