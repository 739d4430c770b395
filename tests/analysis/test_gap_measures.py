"""Each measure of the gap against nested loops in float64, and where it is not defined."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.linear_model import RidgeClassifier

from tests.support.snapshots import log_run, pair_vectors, table
from uwml_core.analysis import gap_intervals as intervals
from uwml_core.analysis import gap_measures as module
from uwml_core.analysis.gap_measures import (
    alignment,
    centroid_distance,
    gap_measures,
    mean_cosine,
    merge_gaps,
    relative_modality_gap,
    uniformity,
    uniformity_across,
)
from uwml_core.analysis.hubness import occurrences, skewness
from uwml_core.analysis.separability import linear_separability
from uwml_core.runlog.reader import open_run


@pytest.fixture(params=[0, 1])
def pair(request: pytest.FixtureRequest) -> tuple[np.ndarray, np.ndarray]:
    return pair_vectors(14, dim=5, seed=request.param)  # type: ignore[no-any-return]


def test_centroid_distance_is_that_of_the_means(pair: tuple[np.ndarray, np.ndarray]) -> None:
    x, y = pair
    means = [[sum(row[k] for row in side) / len(side) for k in range(5)] for side in (x, y)]
    expected = math.sqrt(sum((a - b) ** 2 for a, b in zip(*means, strict=True)))
    assert centroid_distance(x, y) == pytest.approx(expected, rel=1e-12)


def test_relative_gap_is_the_formula_over_explicit_pairs(pair: tuple[np.ndarray, np.ndarray]) -> None:
    x, y = pair
    n = len(x)

    def d(a: np.ndarray, b: np.ndarray) -> float:
        return (1 - float(a @ b)) / 2

    matched = sum(d(x[i], y[i]) for i in range(n)) / n
    within = sum(d(s[i], s[j]) for s in (x, y) for i in range(n) for j in range(n) if i != j)
    # unit vectors are rounded to half floats, so d(a, a) is not exactly 0; it is in neither
    expected = matched / (matched + within / (2 * n * (n - 1)))
    assert relative_modality_gap(x, y) == pytest.approx(expected, rel=1e-12)


def test_alignment_is_the_mean_squared_distance(pair: tuple[np.ndarray, np.ndarray]) -> None:
    x, y = pair
    expected = sum(float(np.linalg.norm(a - b)) ** 2 for a, b in zip(x, y, strict=True)) / len(x)
    assert alignment(x, y) == pytest.approx(expected, rel=1e-12)


def test_uniformity_is_the_log_of_the_mean_over_different_items(pair: tuple[np.ndarray, np.ndarray]) -> None:
    x, y = pair
    n = len(x)
    for left, right, value in ((x, x, uniformity(x)), (x, y, uniformity_across(x, y))):
        kernel = [
            math.exp(-2 * float(np.linalg.norm(left[i] - right[j])) ** 2)
            for i in range(n) for j in range(n) if i != j
        ]  # fmt: skip
        assert value == pytest.approx(math.log(sum(kernel) / len(kernel)), rel=1e-12)


def test_separability_is_the_held_out_accuracy_of_a_ridge_classifier(
    pair: tuple[np.ndarray, np.ndarray],
) -> None:
    x, y = pair
    points = np.concatenate([x, y])
    target = np.repeat([1, 0], len(x))
    even = np.tile(np.arange(len(x)) % 2 == 0, 2)
    right = 0
    for fit in (even, ~even):
        classifier = RidgeClassifier(alpha=1.0, solver="cholesky").fit(points[fit], target[fit])
        right += int((classifier.predict(points[~fit]) == target[~fit]).sum())
    assert linear_separability(x, y) == pytest.approx(right / len(points))


def test_measures_at_their_ends() -> None:
    x = np.eye(4)
    assert alignment(x, x) == relative_modality_gap(x, x) == centroid_distance(x, x) == 0.0
    assert alignment(x, -x) == 4.0
    apart = np.tile([[1.0, 0.0]], (8, 1)), np.tile([[-1.0, 0.0]], (8, 1))
    assert relative_modality_gap(*apart) == 1.0
    assert linear_separability(*apart) == 1.0
    assert uniformity(apart[0]) == 0.0
    assert linear_separability(apart[0], apart[0]) == 0.5


def test_measures_that_are_not_defined_are_nan() -> None:
    none, one = np.zeros((0, 3)), np.array([[1.0, 0.0, 0.0]])
    assert all(math.isnan(f(none, none)) for f in (centroid_distance, alignment, relative_modality_gap))
    assert math.isnan(relative_modality_gap(one, one))
    assert math.isnan(relative_modality_gap(np.tile(one, (5, 1)), np.tile(one, (5, 1))))
    assert math.isnan(uniformity(one))
    assert math.isnan(uniformity_across(one, one))
    assert math.isnan(linear_separability(np.eye(3), np.eye(3)))


def logged(n: int, **changes: object) -> pa.Table:
    x, y = pair_vectors(n)
    rows = [(5, 2, k, "image", x[k], k, "val") for k in range(n)]
    return table(rows + [(5, 2, k, "text", y[k], k, "val") for k in range(n)])


def values(gaps: pd.DataFrame) -> dict[tuple[str, str | None], float]:
    keys = zip(
        gaps["measure"], gaps["modality"].astype(object).where(gaps["modality"].notna(), None), strict=True
    )
    return dict(zip(keys, gaps["value"], strict=True))


def test_frame_holds_each_measure_once_with_its_items() -> None:
    x, y = pair_vectors(9)
    gaps = gap_measures(logged(9))
    found = values(gaps)
    assert len(found) == len(gaps) == 12
    assert found["centroid_distance", None] == pytest.approx(centroid_distance(x, y), rel=1e-3)
    assert found["uniformity", "text"] == pytest.approx(uniformity(y), rel=1e-3)
    assert found["uniformity", "across"] == pytest.approx(uniformity_across(x, y), rel=1e-3)
    assert set(gaps["n"]) == {9}
    assert set(zip(gaps["step"], gaps["epoch"], strict=True)) == {(5, 2)}


def test_only_items_with_both_modalities_are_compared() -> None:
    gaps = gap_measures(logged(9).slice(3))
    by_measure = gaps.set_index(["measure", gaps["modality"].fillna("")])["n"]
    assert by_measure["alignment", ""] == 6
    assert by_measure["uniformity", "text"] == 9


def test_one_modality_alone_has_its_uniformity_alone() -> None:
    gaps = gap_measures(logged(9).slice(0, 9))
    assert gaps[["measure", "modality"]].to_numpy().tolist() == [["uniformity", "image"], ["cosine", "image"]]


def test_one_item_and_nan_rows_give_nan_and_not_an_error() -> None:
    assert values(gap_measures(logged(1)))["alignment", None] > 0
    broken = table([(5, 2, 0, name, [float("nan"), 1.0], 0, "val") for name in ("image", "text")])
    assert gap_measures(broken)["value"].isna().all()
    assert len(gap_measures(logged(1).slice(0, 0))) == 0


def test_many_items_are_sampled_the_same_way_at_every_call(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = values(gap_measures(logged(60)))
    monkeypatch.setattr(module, "PAIRWISE_ITEMS", 40)
    gaps = gap_measures(logged(60))
    assert set(gaps.loc[gaps["measure"] == "uniformity", "n"]) == {40}
    assert values(gaps) == values(gap_measures(logged(60)))
    assert values(gaps)["uniformity", "image"] == pytest.approx(whole["uniformity", "image"], abs=0.3)
    assert values(gaps)["rmg", None] == whole["rmg", None]


def test_parts_of_a_run_merge_by_step(tmp_path: object) -> None:
    run = open_run(log_run(tmp_path, "a", [pair_vectors(6, seed=s) for s in range(3)], first_step=-1))  # type: ignore[arg-type]
    gaps = merge_gaps(run.map_parts("snapshots", gap_measures))
    assert gaps["step"].drop_duplicates().tolist() == [-1, 9, 19]
    assert list(merge_gaps([]).columns) == list(gaps.columns)


def test_mean_cosine_is_that_over_different_items(pair: tuple[np.ndarray, np.ndarray]) -> None:
    for x, y in (pair, (pair[0], pair[0])):
        others = [float(x[i] @ y[j]) for i in range(14) for j in range(14) if i != j]
        assert mean_cosine(x, y) == pytest.approx(sum(others) / len(others), rel=1e-12)
    assert math.isnan(mean_cosine(pair[0][:1], pair[1][:1]))


@pytest.mark.parametrize("k", [1, 3, 10])
def test_hubness_is_the_skewness_of_how_often_each_is_found(k: int) -> None:
    x, y = pair_vectors(31, dim=5)
    found = [0] * 31
    for query in x:
        nearest = sorted(range(31), key=lambda j: -float(query @ y[j]))[:k]
        for j in nearest:
            found[j] += 1
    assert occurrences(x, y, k).tolist() == found
    mean = sum(found) / 31
    second, third = (sum((n - mean) ** power for n in found) / 31 for power in (2, 3))
    assert skewness(occurrences(x, y, k)) == pytest.approx(third / second**1.5, rel=1e-12)


def test_hubness_without_items_or_hubs_is_nan_and_few_items_look_at_fewer() -> None:
    x, y = pair_vectors(5)
    assert occurrences(x, y).sum() == 5 * 2
    assert occurrences(x[:2], y[:2]).tolist() == [0, 0]
    assert math.isnan(skewness(np.array([], int)))
    assert math.isnan(skewness(np.array([3, 3])))


def weighted_mean(weights: np.ndarray, value: Callable[[int, int], float]) -> float:
    """Mean over pairs of different items, each counted as often as both were drawn."""
    n = len(weights)
    pairs = [(i, j) for i in range(n) for j in range(n) if i != j]
    total = sum(float(weights[i] * weights[j]) for i, j in pairs)
    return sum(float(weights[i] * weights[j]) * value(i, j) for i, j in pairs) / total


def test_drawn_values_equal_loops_over_what_was_drawn(pair: tuple[np.ndarray, np.ndarray]) -> None:
    x, y = pair
    weights = intervals.draws(14)[:5].astype(np.float64)
    assert weights.sum(axis=1).tolist() == [14] * 5
    kernel = np.exp(x @ y.T)
    cosine, mean_kernel = intervals.drawn_cosine(weights, x, y), intervals.drawn_kernel(weights, kernel)
    values = np.arange(14.0) ** 2
    means, skewed = intervals.drawn_mean(weights, values), intervals.drawn_skewness(weights, values)
    for b, row in enumerate(weights):
        assert cosine[b] == pytest.approx(weighted_mean(row, lambda i, j: float(x[i] @ y[j])), rel=1e-9)
        assert mean_kernel[b] == pytest.approx(weighted_mean(row, lambda i, j: float(kernel[i, j])), rel=1e-9)
        repeated = np.repeat(values, row.astype(int))
        assert means[b] == pytest.approx(repeated.mean(), rel=1e-12)
        expected = np.mean((repeated - repeated.mean()) ** 3) / repeated.std() ** 3
        assert skewed[b] == pytest.approx(expected, rel=1e-9)


def test_intervals_hold_the_value_and_shrink_with_more_items() -> None:
    widths = []
    for n in (40, 640):
        gaps = gap_measures(logged(n))
        assert (gaps["low"] <= gaps["high"]).all()
        near = gaps[~gaps["measure"].isin(["hubness"])]
        assert (near["low"] - 0.05 <= near["value"]).all()
        assert (near["value"] <= near["high"] + 0.05).all()
        shown = gaps.set_index("measure").loc["alignment"]
        widths.append(float(shown["high"] - shown["low"]))
    assert widths[1] < 0.5 * widths[0]


def test_interval_covers_the_truth_about_as_often_as_it_says() -> None:
    # pairs of a known mean squared distance: 2 - 2 · 0.6
    inside = 0
    for seed in range(60):
        angle = np.random.default_rng(seed).choice([0.5, 0.7], size=80)
        x = np.tile([[1.0, 0.0]], (80, 1))
        y = np.stack([angle, np.sqrt(1.0 - angle**2)], axis=1)
        _value, low, high = module._alignment(x, y)
        inside += low <= 0.8 <= high
    assert 50 <= inside <= 60


def test_separability_of_the_frame_is_that_of_the_function() -> None:
    x, y = pair_vectors(21)
    assert module._separability(x, y)[0] == linear_separability(x, y)
    assert math.isnan(module._separability(x[:3], y[:3])[1])
    assert intervals.interval(np.array([np.nan])) != intervals.interval(np.array([1.0, 1.0]))
