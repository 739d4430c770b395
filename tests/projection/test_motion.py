"""Ways in the data: a turn is none, movers do not drag along what rests."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.snapshots import unit
from uwml_core.projection.motion import motion, ways


def points(n: int = 200, dim: int = 12) -> np.ndarray:
    return unit(np.random.default_rng(0).normal(size=(n, dim))).astype(np.float32)


def turned(vectors: np.ndarray) -> np.ndarray:
    dim = vectors.shape[1]
    turn = np.linalg.qr(np.random.default_rng(1).normal(size=(dim, dim)))[0]
    return unit(vectors @ turn).astype(np.float16).astype(np.float32)


def test_turn_and_rounding_to_half_precision_are_no_way() -> None:
    np.testing.assert_array_equal(ways(points(), points()), 0.0)
    assert np.median(ways(points(), turned(points()))) == 0.0


@pytest.mark.parametrize("share", [0.05, 0.3])
def test_movers_are_told_from_the_rest_in_a_turned_space(share: float) -> None:
    before, after = points(), points()
    movers = np.arange(int(200 * share))
    after[movers] = unit(np.random.default_rng(2).normal(size=(len(movers), 12)))
    way = ways(before, turned(after))
    expected = np.linalg.norm(before - after, axis=1)
    np.testing.assert_allclose(way[movers], expected[movers], atol=0.02)
    assert way[len(movers) :].max() < 0.01


def test_vectors_of_different_sizes_are_compared_in_the_larger_space() -> None:
    wider = turned(np.pad(points(), ((0, 0), (0, 5))))
    assert np.median(ways(points(), wider)) == 0.0
    assert np.median(ways(wider, points())) == 0.0


def test_motion_is_a_share_of_the_smaller_distance_and_finite_among_duplicates() -> None:
    told = motion(np.array([0.1, 0.1, 0.0]), np.array([0.5, 0.2, 0.0]), np.array([0.2, 0.4, 0.0]))
    assert told.tolist() == [0.5, 0.5, 0.0]
