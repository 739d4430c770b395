"""Hard negatives of a run with too many pairs to be read: from item statistics, and from the newest rows."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.synthetic import make_run
from uwml_core.analysis.hard_negatives.confusions import confusions
from uwml_core.analysis.hard_negatives.facts import main_fact
from uwml_core.analysis.hard_negatives.rows import (
    epochs_until,
    newest_rows_of_items,
    newest_steps,
    rows_of_epoch,
)
from uwml_core.analysis.hard_negatives.wrong_pairs import (
    item_statistics,
    statistics_headline,
    suspected_wrong_pairs,
    with_statistics,
)
from uwml_core.runlog.reader import open_run
from uwml_core.runlog.schema import ITEM_ROLLUPS

DIRECTIONS = ("i2t", "t2i")


def test_items_below_in_every_window_are_those_of_the_raw_pairs(tmp_path) -> None:
    run = open_run(make_run(tmp_path, epochs=60, steps_per_epoch=3, batch=16, items=40))
    # the first two windows, before all margins are above 0
    found = item_statistics(run.rollup("items", filter=epochs_until(19)), run.directions)
    pairs = run.frame("pairs").dropna(subset=["margin"]).astype({"margin": np.float64, "direction": str})
    pairs = pairs[pairs["epoch"] < 20]
    windows = pairs.groupby(["item_id", "direction", pairs["epoch"] // 10])["margin"].mean()
    always = windows.groupby("item_id").max() < 0
    assert found.below.tolist() == always.index[always].tolist()
    assert 0 < len(found.below) < found.items == pairs["item_id"].nunique()
    totals = pairs.groupby(["item_id", "direction"])["margin"].agg(["size", "mean"])
    mine = found.totals.set_index(["item_id", "direction"]).sort_index()
    wanted = totals.loc[mine.index]
    assert mine["met"].tolist() == wanted["size"].tolist()
    np.testing.assert_allclose(mine["mean_margin"], wanted["mean"], rtol=1e-9)
    assert found.typical == pytest.approx(totals["mean"].median(), rel=1e-9)
    rows = with_statistics(confusions(run.table("pairs", filter=epochs_until(19)), run.directions), found)
    first = rows.iloc[0]
    assert (
        main_fact(first.to_dict()) == f"mean margin −{-first['mean_margin']:.2f} in {first['met']} encounters"
    )
    # what was below at every encounter is below on average
    raw = run.table("pairs", filter=epochs_until(19))
    exact = suspected_wrong_pairs(confusions(raw, run.directions))
    assert set(exact["item_id"]) <= set(found.below.tolist())
    assert statistics_headline(found).startswith(f"{len(found.below)} of {found.items} items lay below")


def test_statistics_of_nothing_say_so() -> None:
    rollup = ITEM_ROLLUPS.schema(DIRECTIONS).empty_table()
    found = item_statistics(rollup, DIRECTIONS)
    assert (len(found.below), found.items, len(found.totals)) == (0, 0, 0)
    assert statistics_headline(found).startswith("Too little data yet")


def test_of_very_many_rows_the_newest_steps_are_looked_at(run) -> None:
    steps = run.frame("steps")
    wanted = rows_of_epoch(steps, None, until=True, most=100, most_read=1000)
    chosen = run.table("pairs", columns=["step"], filter=wanted.filter, steps=wanted.span)
    few = newest_steps(steps, 100)
    assert sorted(set(chosen["step"].to_pylist())) == steps["step"].tolist()[-few:]
    assert wanted.note == f"The newest {few} of {len(steps)} steps"
    one = newest_rows_of_items(steps, 1, np.array([3, 5]))
    rows = run.frame("pairs", filter=one.filter)
    assert set(rows["epoch"]) == {1}
    assert set(rows["item_id"]) <= {3, 5}
