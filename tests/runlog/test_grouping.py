"""Rows with equal keys, found with a place for every key or by sorting: the same as a loop finds."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest

from uwml_core.runlog.grouping import Groups


@pytest.mark.parametrize(
    ("widths", "rows"),
    [((1, 2, 5), 200), ((3, 2, 400), 200), ((2**20, 2, 2**30), 50), ((1, 1, 1), 3), ((2**40, 2**31), 20)],
    ids=["dense", "with gaps", "sparse", "one", "more than an integer holds"],
)
def test_groups_are_those_of_a_loop(widths: tuple[int, ...], rows: int) -> None:
    random = np.random.default_rng(0)
    keys = [random.integers(-(width // 2), width - width // 2, rows) for width in widths]
    # some twice
    keys = [np.concatenate([key, key[: rows // 2]]) for key in keys]
    values, chosen = random.standard_normal(len(keys[0])), random.random(len(keys[0])) < 0.5
    expected: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for row, key in enumerate(zip(*(key.tolist() for key in keys), strict=True)):
        expected[key].append(row)
    groups, order = Groups(keys), sorted(expected)
    assert list(zip(*(key.tolist() for key in groups.key_columns()), strict=True)) == order
    assert groups.number == len(order)
    assert groups.rows().tolist() == [len(expected[key]) for key in order]
    assert groups.rows(chosen).tolist() == [int(chosen[expected[key]].sum()) for key in order]
    np.testing.assert_allclose(groups.total(values), [values[expected[key]].sum() for key in order])
    assert groups.least(values).tolist() == [values[expected[key]].min() for key in order]
    assert all(row in expected[key] for row, key in zip(groups.shown, order, strict=True))
    places = groups.spread(np.arange(len(order)))
    assert all((places[expected[key]] == place).all() for place, key in enumerate(order))


def test_no_rows_are_no_groups() -> None:
    groups = Groups([np.empty(0, np.int64)] * 2)
    assert (groups.number, [len(key) for key in groups.key_columns()], len(groups.shown)) == (0, [0, 0], 0)
    assert len(groups.total(np.empty(0))) == len(groups.spread(np.empty(0))) == 0
