"""The chain of layouts: repeatable, still where the data are still, moved where they moved."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.snapshots import pair_vectors, snapshot, unit
from uwml_core.projection.layout import Laid, next_layout, noise_floor, place_by_pca, taken_up
from uwml_core.projection.parameters import ProjectionParameters
from uwml_core.runlog.snapshots import Snapshot

PARAMETERS = ProjectionParameters(neighbors=5)
ITEMS = 40

pytestmark = pytest.mark.slow


def clusters(n: int = 60, *, gap: float = 0.0, of: int = 4, dim: int = 16, seed: int = 3) -> np.ndarray:
    """Both modalities ``[2, n, dim]`` of items in well separated clusters; item k is in cluster k % of."""
    random = np.random.default_rng(seed)
    centers, apart = 4.0 * np.eye(of, dim), np.eye(dim)[-1]
    concept = centers[np.arange(n) % of] + 0.3 * random.normal(size=(n, dim))
    return np.stack([unit(concept + side * gap * apart) for side in (-0.5, 0.5)])


def turn(dim: int = 16, seed: int = 0) -> np.ndarray:
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(dim, dim)))[0]


def ways(before: Laid, after: Laid) -> np.ndarray:
    """Ways on the map as shares of its radius."""
    places = before.placed.places.astype(np.float64)
    radius = np.sqrt(((places - places.mean(axis=0)) ** 2).sum(axis=1).mean())
    return np.linalg.norm(after.placed.places - places, axis=1) / radius


@pytest.fixture(scope="module")
def first() -> Laid:
    return next_layout(snapshot(*pair_vectors(ITEMS)), None, PARAMETERS)


@pytest.fixture(scope="module")
def grouped() -> Laid:
    return next_layout(snapshot(*clusters()), None, PARAMETERS)


def test_layout_has_a_finite_place_for_each_point_of_both_modalities(first: Laid) -> None:
    assert first.placed.places.shape == (80, 2)
    assert first.placed.places.dtype == np.float32
    assert np.isfinite(first.placed.places).all()
    assert first.placed.modality.tolist() == ["image"] * 40 + ["text"] * 40
    assert first.facts.outcome == "start"
    assert (first.facts.points, first.facts.dimension, first.facts.data_motion) == (80, 8, None)


def test_layout_is_the_same_at_every_call(first: Laid) -> None:
    again = next_layout(snapshot(*pair_vectors(ITEMS)), None, PARAMETERS)
    np.testing.assert_array_equal(first.placed.places, again.placed.places)
    other = next_layout(snapshot(*pair_vectors(ITEMS)), None, ProjectionParameters(neighbors=5, seed=1))
    assert not np.array_equal(first.placed.places, other.placed.places)


def test_frozen_epoch_does_not_move_at_all(first: Laid) -> None:
    same = next_layout(snapshot(*pair_vectors(ITEMS), step=20), first, PARAMETERS)
    np.testing.assert_array_equal(same.placed.places, first.placed.places)
    assert (same.facts.outcome, same.facts.data_motion, same.facts.map_motion) == ("still", 0.0, 0.0)


def test_turn_of_the_whole_space_moves_nothing(grouped: Laid) -> None:
    turned = next_layout(snapshot(*(clusters() @ turn()), step=20), grouped, PARAMETERS)
    assert np.median(ways(grouped, turned)) < 0.002
    assert turned.facts.data_motion is not None
    assert turned.facts.data_motion < 0.01


@pytest.mark.parametrize("turned", [False, True])
def test_points_that_jump_arrive_and_the_others_stay(grouped: Laid, turned: bool) -> None:
    vectors = clusters()
    # items 0, 4, ... 16 leave cluster 0 for cluster 1
    movers = np.arange(0, 20, 4)
    vectors[:, movers] = clusters()[:, movers + 1] + 1e-3
    after = next_layout(
        snapshot(*(unit(v) @ (turn() if turned else np.eye(16)) for v in vectors)), grouped, PARAMETERS
    )
    rows = np.concatenate([movers, 60 + movers])
    rest = np.setdiff1d(np.arange(120), rows)
    way = ways(grouped, after)
    assert way[rows].min() > 0.5
    assert np.median(way[rest]) < 0.01
    middle = after.placed.places[rest[rest % 4 == 1]].mean(axis=0)
    other = after.placed.places[rest[rest % 4 == 0]].mean(axis=0)
    places = after.placed.places[rows]
    assert (np.linalg.norm(places - middle, axis=1) < np.linalg.norm(places - other, axis=1)).all()


def test_many_small_ways_in_one_direction_arrive(grouped: Laid) -> None:
    movers = np.arange(0, 20, 4)
    before, start, end = grouped, clusters(), clusters()
    end[:, movers] = clusters()[:, movers + 1] + 1e-3
    for share in np.linspace(0.0, 1.0, 13)[1:]:
        between = [unit((1.0 - share) * a + share * b) for a, b in zip(start, end, strict=True)]
        before = next_layout(snapshot(*between), before, PARAMETERS)
    rest = np.setdiff1d(np.arange(60), movers)
    places = before.placed.places
    middles = [places[rest[rest % 4 == k]].mean(axis=0) for k in (0, 1)]
    from_old, from_new = (np.linalg.norm(places[movers] - middle, axis=1) for middle in middles)
    assert (from_new < from_old).all()


def between_modalities(laid: Laid) -> float:
    """Distance of an item's two points, as a share of the map's radius."""
    places = laid.placed.places.astype(np.float64)
    radius = np.sqrt(((places - places.mean(axis=0)) ** 2).sum(axis=1).mean())
    return float(np.median(np.linalg.norm(places[:60] - places[60:], axis=1)) / radius)


def test_modalities_that_coincide_look_coincident_and_shifted_ones_shifted(grouped: Laid) -> None:
    shifted = next_layout(snapshot(*clusters(gap=12.0)), None, PARAMETERS)
    assert between_modalities(grouped) < 0.1
    assert between_modalities(shifted) > 0.5


def test_noise_floor_is_a_small_share_of_the_map(grouped: Laid, first: Laid) -> None:
    for laid in (grouped, first):
        floor = noise_floor(laid, PARAMETERS)
        assert floor is not None
        assert 0.0 < floor < 0.03


def test_new_items_start_among_their_neighbors_and_known_ones_stay(grouped: Laid) -> None:
    x, y = clusters()
    grown = snapshot(np.concatenate([x, x[:8]]), np.concatenate([y, y[:8]]))
    after = next_layout(grown, grouped, PARAMETERS)
    assert after.facts.new == 16
    assert after.facts.outcome == "moved"
    for modality in ("image", "text"):
        rows = np.flatnonzero(after.placed.modality == modality)
        known, new = after.placed.places[rows[:60]], after.placed.places[rows[60:]]
        np.testing.assert_array_equal(known, grouped.placed.places[grouped.placed.modality == modality])
        # each is a copy of an item of the same cluster
        nearest = np.linalg.norm(new[:, None] - known[None], axis=2).argmin(axis=1)
        assert (nearest % 4).tolist() == [k % 4 for k in range(8)]


@pytest.mark.parametrize("n", [1, 2])
def test_fewer_than_five_points_lie_by_their_principal_components(n: int, first: Laid) -> None:
    shot = snapshot(*pair_vectors(n))
    for before in (None, first):
        laid = next_layout(shot, before, PARAMETERS)
        np.testing.assert_array_equal(laid.placed.places, place_by_pca(shot.vectors))
        assert laid.facts.outcome == "few"
        assert not laid.goes_on


def test_few_points_take_the_neighbors_there_are() -> None:
    placed = next_layout(snapshot(*pair_vectors(4)), None, ProjectionParameters(neighbors=200))
    assert np.isfinite(placed.placed.places).all()


def test_collapsed_embeddings_lie_in_one_place(first: Laid) -> None:
    same = np.tile([[0.6, 0.8]], (12, 1))
    for before in (None, first):
        laid = next_layout(snapshot(same, same), before, PARAMETERS)
        np.testing.assert_array_equal(laid.placed.places, np.zeros((24, 2)))
        assert laid.facts.outcome == "same"
        assert noise_floor(laid, PARAMETERS) is None


def test_modality_that_is_missing_is_named(grouped: Laid) -> None:
    alone = next_layout(snapshot(clusters()[0], None), grouped, PARAMETERS)
    assert alone.placed.modality.tolist() == ["image"] * 60
    assert alone.facts.missing == ("text",)
    np.testing.assert_array_equal(alone.placed.places, grouped.placed.places[:60])


def test_vectors_of_another_size_go_on_after_the_best_turn(grouped: Laid) -> None:
    wider = np.pad(clusters(), ((0, 0), (0, 0), (0, 8))) @ turn(24)
    after = next_layout(snapshot(*wider), grouped, PARAMETERS)
    assert (after.facts.dimension, after.facts.dimension_before) == (24, 16)
    assert np.median(ways(grouped, after)) < 0.002


def test_other_items_are_a_new_start(first: Laid) -> None:
    x, y = pair_vectors(ITEMS)
    other = next_layout(snapshot(x, y, items=range(100, 140)), first, PARAMETERS)
    assert (other.facts.outcome, other.facts.new, other.facts.data_motion) == ("new", 80, None)
    np.testing.assert_array_equal(other.placed.places, first.placed.places)


def test_rows_that_are_not_numbers_are_left_out_and_counted(grouped: Laid) -> None:
    x, y = clusters()
    x[3] = np.nan
    laid = next_layout(snapshot(x, y), grouped, PARAMETERS)
    assert (laid.facts.points, laid.facts.left_out) == (119, 1)
    kept = np.delete(grouped.placed.places, 3, axis=0)
    np.testing.assert_array_equal(laid.placed.places, kept)


def test_snapshot_without_points_has_an_empty_layout(first: Laid) -> None:
    broken = snapshot(np.full((3, 2), np.nan), np.full((3, 2), np.nan))
    for before in (None, first):
        laid = next_layout(broken, before, PARAMETERS)
        assert laid.placed.places.shape == (0, 2)
        assert (laid.facts.outcome, laid.goes_on) == ("empty", False)


def test_layout_that_was_kept_goes_on_as_the_one_in_memory(grouped: Laid) -> None:
    shot: Snapshot = snapshot(*clusters())
    again = taken_up(grouped.placed, shot, grouped.facts, PARAMETERS)
    later = snapshot(*clusters(seed=4))
    np.testing.assert_array_equal(
        next_layout(later, again, PARAMETERS).placed.places,
        next_layout(later, grouped, PARAMETERS).placed.places,
    )
