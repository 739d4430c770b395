"""The chain of layouts: repeatable, and still where the data are still."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.snapshots import pair_vectors, snapshot
from uwml_core.projection.layout import next_layout, place_by_pca
from uwml_core.projection.parameters import ProjectionParameters
from uwml_core.runlog.projections import PlacedSnapshot

PARAMETERS = ProjectionParameters(neighbors=5)

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def first() -> PlacedSnapshot:
    return next_layout(snapshot(*pair_vectors(40)), None, PARAMETERS)


def test_layout_has_a_finite_place_for_each_point_of_both_modalities(first: PlacedSnapshot) -> None:
    assert first.places.shape == (80, 2)
    assert first.places.dtype == np.float32
    assert np.isfinite(first.places).all()
    assert first.modality.tolist() == ["image"] * 40 + ["text"] * 40


def test_layout_is_the_same_at_every_call(first: PlacedSnapshot) -> None:
    again = next_layout(snapshot(*pair_vectors(40)), None, PARAMETERS)
    np.testing.assert_array_equal(first.places, again.places)
    other = next_layout(snapshot(*pair_vectors(40)), None, ProjectionParameters(neighbors=5, seed=1))
    assert not np.array_equal(first.places, other.places)


def test_still_data_move_less_than_from_a_start_of_their_own(first: PlacedSnapshot) -> None:
    same = snapshot(*pair_vectors(40), step=20)
    chained = next_layout(same, first, PARAMETERS)
    alone = next_layout(same, None, ProjectionParameters(neighbors=5, seed=1))

    def moved(places: np.ndarray) -> float:
        return float(np.median(np.linalg.norm(places - first.places, axis=1)))

    assert moved(chained.places) < moved(alone.places)


def test_new_items_get_a_place_and_known_ones_start_where_they_were(first: PlacedSnapshot) -> None:
    x, y = pair_vectors(50)
    grown = next_layout(snapshot(x, y), first, PARAMETERS)
    assert grown.places.shape == (100, 2)
    assert np.isfinite(grown.places).all()


@pytest.mark.parametrize("n", [1, 2])
def test_fewer_than_five_points_lie_by_their_principal_components(n: int) -> None:
    shot = snapshot(*pair_vectors(n))
    np.testing.assert_array_equal(next_layout(shot, None, PARAMETERS).places, place_by_pca(shot))


def test_few_points_take_the_neighbors_there_are() -> None:
    placed = next_layout(snapshot(*pair_vectors(4)), None, ProjectionParameters(neighbors=200))
    assert np.isfinite(placed.places).all()


def test_collapsed_embeddings_lie_in_one_place() -> None:
    same = np.tile([[0.6, 0.8]], (12, 1))
    np.testing.assert_array_equal(
        next_layout(snapshot(same, same), None, PARAMETERS).places, np.zeros((24, 2))
    )


def test_one_modality_alone_is_laid_out() -> None:
    placed = next_layout(snapshot(pair_vectors(12)[0], None), None, PARAMETERS)
    assert placed.modality.tolist() == ["image"] * 12
    assert np.isfinite(placed.places).all()


def test_snapshot_without_points_has_an_empty_layout(first: PlacedSnapshot) -> None:
    broken = snapshot(np.full((3, 2), np.nan), np.full((3, 2), np.nan))
    assert next_layout(broken, None, PARAMETERS).places.shape == (0, 2)
    assert next_layout(broken, first, PARAMETERS).places.shape == (0, 2)
    after = next_layout(snapshot(*pair_vectors(40)), next_layout(broken, None, PARAMETERS), PARAMETERS)
    np.testing.assert_array_equal(after.places, first.places)
