"""Quality of a map equals scikit-learn's and a count by nested loops."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.manifold import trustworthiness
from sklearn.neighbors import NearestNeighbors

from tests.support.snapshots import pair_vectors
from uwml_core.analysis.projection_quality import point_quality, projection_quality


@pytest.fixture
def space() -> np.ndarray:
    return np.concatenate(pair_vectors(45, dim=6))


@pytest.mark.parametrize("neighbors", [1, 5, 15])
@pytest.mark.parametrize("kind", ["random", "first axes"])
def test_trustworthiness_equals_scikit_learn(space: np.ndarray, neighbors: int, kind: str) -> None:
    places = np.random.default_rng(0).normal(size=(90, 2)) if kind == "random" else space[:, :2]
    quality = projection_quality(space, places, neighbors=neighbors)
    assert quality.trustworthiness == pytest.approx(
        trustworthiness(space, places, n_neighbors=neighbors), abs=1e-12
    )
    # continuity is trustworthiness with the spaces swapped
    assert quality.continuity == pytest.approx(
        trustworthiness(places, space, n_neighbors=neighbors), abs=1e-12
    )
    assert (quality.neighbors, quality.probes, quality.points) == (neighbors, 90, 90)


def test_kept_share_is_the_overlap_of_the_nearest(space: np.ndarray) -> None:
    places, k = space[:, :2], 7

    def near(points: np.ndarray, i: int) -> set[int]:
        away = [
            math.inf if j == i else float(np.linalg.norm(points[i] - points[j])) for j in range(len(points))
        ]
        return set(np.argsort(away, kind="stable")[:k].tolist())

    expected = sum(len(near(space, i) & near(places, i)) for i in range(90)) / (90 * k)
    assert projection_quality(space, places, neighbors=k).kept_share == pytest.approx(expected)
    graphs = [
        NearestNeighbors(n_neighbors=k).fit(points).kneighbors_graph().toarray() for points in (space, places)
    ]
    overlap = (graphs[0] * graphs[1]).sum(axis=1) / k
    told = point_quality(space, places, neighbors=k)
    assert told["row"].tolist() == list(range(90))
    np.testing.assert_allclose(told["kept_share"], overlap, atol=1e-12)


def test_what_each_point_lost_is_counted_by_loops(space: np.ndarray) -> None:
    places, k = space[:, :2], 4

    def order(points: np.ndarray, i: int) -> list[int]:
        away = [float(np.linalg.norm(points[i] - other)) for other in points]
        return [j for j in sorted(range(90), key=away.__getitem__) if j != i]

    told = point_quality(space, places, neighbors=k)
    for i in (0, 17, 89):
        data, drawn = order(space, i), order(places, i)
        too_far = sum(max(0, data.index(j) + 1 - k) for j in drawn[:k])
        torn = sum(max(0, drawn.index(j) + 1 - k) for j in data[:k])
        assert told.loc[i, ["intrusion", "extrusion"]].tolist() == [too_far, torn]


def test_probes_of_a_sample_are_the_same_points_as_of_the_whole(space: np.ndarray) -> None:
    whole = point_quality(space, space[:, :2])
    few = point_quality(space, space[:, :2], most_probes=20)
    assert len(few) == 20
    np.testing.assert_allclose(few, whole.loc[few["row"]])


def test_a_map_that_is_the_data_keeps_everything() -> None:
    points = np.random.default_rng(0).normal(size=(40, 2))
    quality = projection_quality(points, points)
    assert (quality.trustworthiness, quality.continuity, quality.kept_share) == (1.0, 1.0, 1.0)


def test_a_sample_says_so_and_is_near_the_whole(space: np.ndarray) -> None:
    whole = projection_quality(space, space[:, :2])
    sampled = projection_quality(space, space[:, :2], most_probes=50)
    assert sampled.probes == 50
    assert sampled == projection_quality(space, space[:, :2], most_probes=50)
    assert sampled.trustworthiness == pytest.approx(whole.trustworthiness, abs=0.05)


def test_few_points_look_at_fewer_neighbors() -> None:
    points = np.random.default_rng(0).normal(size=(7, 2))
    assert projection_quality(points, points).neighbors == 3


@pytest.mark.parametrize("n", [0, 1, 2])
def test_too_few_points_have_no_quality(n: int) -> None:
    points = np.eye(3)[:n, :2]
    quality = projection_quality(points, points)
    assert math.isnan(quality.trustworthiness)
    assert math.isnan(quality.kept_share)
    assert (quality.probes, quality.points) == (0, n)


def test_points_in_one_place_have_no_quality(space: np.ndarray) -> None:
    for vectors, places in ((space, np.zeros((90, 2))), (np.ones((90, 6)), space[:, :2])):
        assert math.isnan(projection_quality(vectors, places).trustworthiness)
