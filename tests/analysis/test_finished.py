"""Runs of finished models: recall in a sentence, probes in the place of pairs."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from uwml_core.analysis.finished import finished_headline, has_embeddings, is_finished_model
from uwml_core.analysis.hard_negatives.confusions import confusions
from uwml_core.analysis.hard_negatives.persistent import with_margin
from uwml_core.analysis.hard_negatives.probe_pairs import probe_pairs

DIRECTIONS = ("i2t", "t2i")


def evals(*rows: tuple[str, str, str, float, int]) -> pd.DataFrame:
    frame = pd.DataFrame(rows, columns=["split", "direction", "metric", "value", "n"])
    return frame.assign(step=0, epoch=0, segment=0, tied_share=0.0)


def test_recall_is_one_sentence_per_split() -> None:
    rows = [
        (split, direction, f"R@{k}", 10.0 * k + place, 1000 + place)
        for split in ("val", "test")
        for place, direction in enumerate(DIRECTIONS)
        for k in (1, 5, 10)
    ]
    assert finished_headline(evals(*rows), DIRECTIONS) == (
        "R@1 / R@5 / R@10 of a finished model: 10.0 / 50.0 / 100.0 % i2t on val (n = 1,000), "
        "11.0 / 51.0 / 101.0 % t2i on val (n = 1,001), 10.0 / 50.0 / 100.0 % i2t on test (n = 1,000), "
        "11.0 / 51.0 / 101.0 % t2i on test (n = 1,001)."
    )


def test_without_an_evaluation_the_sentence_says_so() -> None:
    assert finished_headline(evals(), DIRECTIONS) == "A finished model without an evaluation."
    one_way = finished_headline(evals(("val", "i2t", "R@1", 50.0, 2)), DIRECTIONS)
    assert "50.0 / – / – % i2t on val (n = 2)" in one_way


@pytest.mark.parametrize(
    ("config", "finished", "embedded"),
    [
        ({}, False, False),
        ({"loss": {"center": 0.1}}, False, False),
        ({"finished_model": {"images": "i.npy"}}, True, True),
        ({"finished_model": {"similarities": "s.npy"}}, True, False),
        ({"finished_model": "odd"}, True, False),
    ],
)
def test_the_configuration_tells_what_was_given(config, finished, embedded) -> None:
    assert (is_finished_model(config), has_embeddings(config)) == (finished, embedded)


def neighbors() -> pd.DataFrame:
    rows = [
        # step, epoch, direction, item, negative, similarity, rank, positive
        (0, 0, "i2t", 1, 2, 0.50, 1, 0.75),
        (0, 0, "i2t", 1, 3, 0.25, 2, 0.75),
        (0, 0, "t2i", 1, 3, 0.75, 1, 0.50),
        (9, 1, "i2t", 1, 2, 0.25, 1, 0.50),
        (9, 1, "i2t", 2, 1, np.nan, 1, 0.50),
    ]
    names = ["step", "epoch", "direction", "item_id", "negative_item_id", "similarity", "rank"]
    frame = pd.DataFrame(rows, columns=[*names, "positive_similarity"])
    return with_margin(frame.assign(caption=0, negative_caption=0, split="val", segment=0))


def test_the_nearest_wrong_candidate_of_each_probe_is_an_encounter() -> None:
    table, note = probe_pairs(neighbors(), None, until=False)
    found = confusions(table, DIRECTIONS)
    columns = ["direction", "item_id", "negative_item_id", "n", "below", "above", "margin", "last_epoch"]
    assert found[columns].values.tolist() == [
        ["i2t", 1, 2, 2, 0, 0, 0.25, 1],
        ["t2i", 1, 3, 1, 1, 1, -0.25, 0],
    ]
    assert found["weight"].isna().all()
    assert note == "From the probes of 2 snapshots, with the first caption of each, as no pairs were logged"


@pytest.mark.parametrize(
    ("epoch", "until", "rows"), [(0, False, 2), (1, False, 1), (1, True, 3), (7, False, 0)]
)
def test_an_epoch_is_looked_at_alone_or_with_those_before(epoch, until, rows) -> None:
    table, _ = probe_pairs(neighbors(), epoch, until=until)
    assert table.num_rows == rows
    assert len(confusions(table, DIRECTIONS)) == rows - until
