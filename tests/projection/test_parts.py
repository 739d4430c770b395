"""Neighbors, principal components and alignment against slow, obvious references."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.decomposition import PCA

from tests.support.snapshots import pair_vectors, unit
from uwml_core.projection import neighbors as neighbors_module
from uwml_core.projection.alignment import align
from uwml_core.projection.neighbors import nearest
from uwml_core.projection.pca import joint_axes, moments


@pytest.fixture(params=[60, 2**24])
def chunk(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neighbors_module, "_CELLS", request.param)


@pytest.mark.usefixtures("chunk")
@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
def test_neighbors_are_the_nearest_by_nested_loops(metric: str) -> None:
    vectors = np.concatenate(pair_vectors(10, dim=5)).astype(np.float32)
    rows, distances = nearest(vectors, 4, metric)
    for i, point in enumerate(vectors.astype(np.float64)):
        away = [1 - float(point @ other) for other in vectors.astype(np.float64)]
        if metric == "euclidean":
            away = [float(np.linalg.norm(point - other)) for other in vectors.astype(np.float64)]
        away[i] = -1.0
        order = np.argsort(away, kind="stable")[:4]
        assert rows[i].tolist() == order.tolist()
        expected = [0.0, *(away[j] for j in order[1:])]
        np.testing.assert_allclose(distances[i], expected, atol=2e-3 if metric == "euclidean" else 1e-3)


@pytest.mark.usefixtures("chunk")
def test_a_point_is_its_own_first_neighbor_among_duplicates() -> None:
    vectors = np.tile(unit([[1.0, 2.0]]), (7, 1)).astype(np.float32)
    rows, distances = nearest(vectors, 3)
    assert rows[:, 0].tolist() == list(range(7))
    assert all(len(set(row)) == 3 for row in rows.tolist())
    np.testing.assert_allclose(distances, 0.0, atol=1e-6)


def test_axes_equal_those_of_an_independent_pca_over_all_parts() -> None:
    parts = [np.concatenate(pair_vectors(30, dim=6, seed=seed)) for seed in range(3)]
    axes = joint_axes([moments(part) for part in parts])
    assert axes is not None
    reference = PCA(n_components=2, svd_solver="full").fit(np.concatenate(parts))
    signs = np.sign(np.sum(axes.directions * reference.components_, axis=1))
    np.testing.assert_allclose(axes.directions * signs[:, None], reference.components_, atol=1e-9)
    np.testing.assert_allclose(axes.shares, reference.explained_variance_ratio_, rtol=1e-9)
    places = axes.place(parts[1]) * signs
    np.testing.assert_allclose(places, reference.transform(parts[1]), atol=1e-6)


def test_sign_of_the_axes_does_not_depend_on_the_order_of_the_parts() -> None:
    parts = [moments(np.concatenate(pair_vectors(20, seed=seed))) for seed in range(3)]
    one, other = joint_axes(parts), joint_axes(parts[::-1])
    assert one is not None
    assert other is not None
    np.testing.assert_allclose(one.directions, other.directions, atol=1e-9)
    assert all(row[np.abs(row).argmax()] > 0 for row in one.directions)


@pytest.mark.parametrize(
    "vectors", [np.ones((5, 3)), np.ones((1, 3)), np.ones((4, 1)), np.tile([[0.6, 0.8]], (9, 1))]
)
def test_points_in_one_place_stay_in_one_place(vectors: np.ndarray) -> None:
    axes = joint_axes([moments(vectors)])
    assert axes is not None
    np.testing.assert_array_equal(axes.place(vectors), np.zeros((len(vectors), 2)))
    assert axes.shares.tolist() == [0.0, 0.0]


def test_points_on_a_line_have_one_axis() -> None:
    axes = joint_axes([moments(np.outer([-1.0, 0.0, 1.0], [3.0, 4.0, 0.0]))])
    assert axes is not None
    np.testing.assert_allclose(axes.directions, [[0.6, 0.8, 0], [0, 0, 0]], atol=1e-12)


def test_nothing_has_no_axes() -> None:
    assert joint_axes([]) is None
    assert joint_axes([moments(np.zeros((0, 4)))]) is None


def test_vectors_of_an_older_length_are_left_out() -> None:
    old, new = moments(np.eye(3)), moments(np.concatenate(pair_vectors(9, dim=5)))
    axes, alone = joint_axes([old, new]), joint_axes([new])
    assert axes is not None
    assert alone is not None
    np.testing.assert_array_equal(axes.directions, alone.directions)


@pytest.mark.parametrize("mirrored", [False, True])
def test_alignment_undoes_a_turn_a_mirror_and_a_shift(mirrored: bool) -> None:
    fixed = np.random.default_rng(0).normal(size=(20, 2))
    turn = np.array([[np.cos(2.0), -np.sin(2.0)], [np.sin(2.0), np.cos(2.0)]])
    moving = fixed * ([-1, 1] if mirrored else 1) @ turn + [5.0, -3.0]
    np.testing.assert_allclose(align(moving, fixed), fixed, atol=1e-12)


def test_alignment_keeps_distances() -> None:
    random = np.random.default_rng(1)
    moving, fixed = random.normal(size=(15, 2)), random.normal(size=(15, 2))
    aligned = align(moving, fixed)
    before = np.linalg.norm(moving[:, None] - moving[None], axis=2)
    after = np.linalg.norm(aligned[:, None] - aligned[None], axis=2)
    np.testing.assert_allclose(before, after, atol=1e-12)
    assert np.linalg.norm(aligned - fixed) <= np.linalg.norm(moving - fixed)


def test_alignment_looks_at_common_points_alone() -> None:
    fixed = np.random.default_rng(2).normal(size=(10, 2))
    common = np.arange(10) < 6
    moving = fixed + 4.0
    moving[~common] += 100.0
    np.testing.assert_allclose(align(moving, fixed, common)[common], fixed[common], atol=1e-12)
    np.testing.assert_array_equal(align(moving, fixed, np.zeros(10, bool)), moving)
