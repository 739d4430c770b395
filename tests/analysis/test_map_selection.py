"""What is drawn around on the map: which points that is, what they have in common, where they went."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from tests.support.snapshots import pair_vectors, snapshot
from uwml_core.analysis.map_measures import item_weights, with_kept_share, with_weights
from uwml_core.analysis.map_selection import (
    MOST_CORNERS,
    area_of,
    area_text,
    inside,
    keep_selected,
    parse_area,
    rows_of_points,
    selected_groups,
    selection_statistics,
    with_strength,
)
from uwml_core.analysis.map_statements import snapshot_statements
from uwml_core.analysis.map_trails import phase_at, trails
from uwml_core.analysis.pair_strength import pair_strength

NAMES = ("image", "text")


def test_points_inside_are_those_that_a_ray_leaves_through_an_odd_number_of_edges() -> None:
    # a star, whose middle lies outside by the even-odd rule
    corners = [(math.sin(4 * math.pi * k / 5), math.cos(4 * math.pi * k / 5)) for k in range(5)]
    area = area_of(number for corner in corners for number in corner)
    assert area is not None
    points = pd.DataFrame(np.random.default_rng(0).uniform(-1.2, 1.2, (400, 2)), columns=["x", "y"])

    def odd(x: float, y: float) -> bool:
        crossed = 0
        for (ax, ay), (bx, by) in zip(corners, [*corners[1:], corners[0]], strict=True):
            if (ay > y) != (by > y) and x < ax + (y - ay) / (by - ay) * (bx - ax):
                crossed += 1
        return crossed % 2 == 1

    expected = [odd(*point) for point in points.to_numpy().tolist()]
    assert 20 < sum(expected) < 200
    assert inside(points, area).tolist() == expected
    assert not inside(pd.DataFrame({"x": [0.0], "y": [0.0]}), area)[0]
    assert inside(points.iloc[:0], area).tolist() == []


def test_points_without_a_place_are_outside() -> None:
    area = np.array([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]])
    frame = pd.DataFrame({"x": [np.nan, 0.0, 0.0, np.inf], "y": [0.0, np.nan, 0.0, 0.0]})
    assert inside(frame, area).tolist() == [False, False, True, False]


def test_area_goes_through_an_address_and_back() -> None:
    area = area_of([0.123456, 1, -2, 3.5, 1e5, -7])
    assert area is not None
    back = parse_area(area_text(area))
    assert back is not None
    np.testing.assert_allclose(back, area, rtol=1e-3)
    many = area_of(float(k) for k in range(2 * 1000))
    assert many is not None
    assert len(many) <= MOST_CORNERS
    assert parse_area(area_text(many)) is not None


@pytest.mark.parametrize(
    "text", ["", "1", "1_2_3_4", "a_b_c_d_e_f", "1_2_3_4_5_inf", "1_2_3_4_5", "٣_1_1_2_2_3", "1_" * 5000]
)
def test_text_that_is_no_area_is_none(text: str) -> None:
    assert parse_area(text) is None


@pytest.fixture
def points() -> pd.DataFrame:
    shot = snapshot(*pair_vectors(12, noise=1.0))
    strength = pair_strength(shot, NAMES)
    names = np.array(NAMES, object)[shot.modality]
    groups = ["a" if item < 8 else "b" if item < 11 else "" for item in shot.item_ids]
    return pd.DataFrame({"item_id": shot.item_ids, "modality": names, "group": groups, **strength})


def test_statistics_are_over_the_selected_points_that_have_values(points: pd.DataFrame) -> None:
    selected = points.iloc[[0, 1, 2, 13, 14]].copy()
    selected.iloc[2, selected.columns.get_indexer(["margin", "rank"])] = np.nan
    found = selection_statistics(selected, NAMES)
    assert found["modality"].tolist()[:2] == list(NAMES)
    assert pd.isna(found["modality"].iloc[2])
    assert found["n"].tolist() == [3, 2, 5]
    assert found["margin_n"].tolist() == [2, 2, 4]
    both = selected["margin"].dropna().tolist()
    mean = sum(both) / 4
    assert found["margin"].iloc[2] == pytest.approx(mean)
    assert found["margin_sd"].iloc[2] == pytest.approx(math.sqrt(sum((m - mean) ** 2 for m in both) / 3))
    ranks = selected["rank"].dropna().tolist()
    assert found["recall_at_1"].iloc[2] == pytest.approx(sum(rank <= 1 for rank in ranks) / 4)
    assert selection_statistics(points.iloc[:0], NAMES)["n"].tolist() == [0, 0, 0]


def test_groups_are_counted_beside_what_chance_would_give(points: pd.DataFrame) -> None:
    found = selected_groups(points.iloc[[0, 1, 8, 11]], points)
    assert found.to_numpy().tolist() == [["a", 2, 0.5, 16 / 24], ["b", 1, 0.25, 6 / 24]]
    assert selected_groups(points.iloc[:0], points).empty


def test_selected_points_are_found_again_in_another_order(points: pd.DataFrame) -> None:
    chosen = pd.DataFrame({"item_id": [3, 5, 99], "modality": pd.Categorical(["text", "image", "image"])})
    found = keep_selected(points.iloc[::-1], chosen)
    assert found[["item_id", "modality"]].to_numpy().tolist() == [[3, "text"], [5, "image"]]
    assert keep_selected(points, chosen.iloc[:0]).empty


def test_strength_of_a_few_points_is_that_among_all_candidates(points: pd.DataFrame) -> None:
    shot = snapshot(*pair_vectors(12, noise=1.0))
    few = points.iloc[[17, 2, 5]].assign(margin=np.nan, rank=np.nan)
    told, compared = with_strength(shot, few, NAMES, 10)
    assert compared == 3
    np.testing.assert_allclose(told[["margin", "rank"]], points.loc[few.index, ["margin", "rank"]])
    sampled, compared = with_strength(shot, points.assign(margin=np.nan), NAMES, 4)
    assert compared == sampled["margin"].notna().sum() == 4
    known = sampled["margin"].notna()
    np.testing.assert_allclose(sampled.loc[known, "rank"], points.loc[known, "rank"])
    stranger = pd.DataFrame({"item_id": [0, 77], "modality": ["text", "image"]})
    assert rows_of_points(shot, stranger).tolist() == [12, -1]


def test_weight_is_the_mean_over_the_rows_that_have_one() -> None:
    pairs = pa.table(
        {
            "item_id": pa.array([1, 1, 1, 2, 1], pa.int32()),
            "direction": pa.array(["i2t", "i2t", "i2t", "i2t", "t2i"]).dictionary_encode(),
            "weight": pa.array([0.5, 1.0, float("nan"), None, 2.0], pa.float32()),
            "step": [0, 1, 2, 3, 4],
        }
    )
    weights = item_weights(pairs, np.arange(4))
    assert weights.to_numpy().tolist() == [[1, "i2t", 0.75, 2], [1, "t2i", 2.0, 1]]
    assert item_weights(pairs, np.array([2, 3])).empty
    frame = pd.DataFrame({"item_id": [1, 1, 2], "modality": ["image", "text", "image"]})
    told = with_weights(frame, weights, NAMES, ("i2t", "t2i"))["weight"].tolist()
    assert told[:2] == [0.75, 2.0]
    assert math.isnan(told[2])


def test_kept_share_is_nan_where_nobody_looked() -> None:
    frame = pd.DataFrame({"item_id": [4, 5, 6]})
    told = with_kept_share(frame, pd.DataFrame({"row": [2, 0], "kept_share": [0.25, 1.0]}))
    assert told["kept_share"].fillna(-1).tolist() == [1.0, -1.0, 0.25]


def test_trails_lead_through_the_snapshots_in_order_up_to_the_shown_one() -> None:
    layout = pd.DataFrame(
        {
            "step": [19, 9, 29, 9, 19, 9],
            "item_id": [1, 1, 1, 2, 1, 1],
            "modality": pd.Categorical(["image"] * 4 + ["text"] * 2),
            "x": [1.0, 0.0, 2.0, 9.0, np.nan, 5.0],
            "y": [0.0] * 6,
        }
    )
    phases = pd.DataFrame({"phase": ["warmup", "train"], "first_step": [0, 10], "last_step": [9, 19]})
    found = trails(layout, [1], 19, phases)
    assert found[["modality", "step", "x", "phase"]].to_numpy().tolist() == [
        ["image", 9, 0.0, "warmup"], ["image", 19, 1.0, "train"], ["text", 9, 5.0, "warmup"]
    ]  # fmt: skip
    assert trails(layout, [], 19).empty
    assert [phase_at(phases, step) for step in (-1, 0, 9, 10, 20)] == ["", "warmup", "warmup", "train", ""]
    assert phase_at(None, 3) == ""


def test_common_snapshot_says_nothing_and_odd_ones_what_is_odd() -> None:
    shot = snapshot(*pair_vectors(6))
    assert snapshot_statements(shot, None, NAMES) == []
    assert snapshot_statements(shot, snapshot(*pair_vectors(6), step=0), NAMES) == []
    other = snapshot(*pair_vectors(6, dim=5), items=[4, 5, 6, 7, 8, 9], step=0)
    told = snapshot_statements(shot, other, NAMES)
    assert told[0].startswith("The vectors have 8 numbers, in epoch 1 they had 5")
    assert "2 stayed, 4 new, 4 gone" in told[1]
    lone = snapshot_statements(snapshot(pair_vectors(1)[0], None), None, NAMES)
    assert [text.split(":")[0] for text in lone] == [
        "This snapshot has no point of text", "This snapshot holds a single item"
    ]  # fmt: skip
    broken = np.full((3, 2), np.nan)
    assert "No row of this snapshot" in snapshot_statements(snapshot(broken, broken), shot, NAMES)[0]
    same = np.tile([[1.0, 0.0]], (3, 1))
    assert snapshot_statements(snapshot(same, same), None, NAMES) == [
        "All vectors of this snapshot are equal: every place on the map says nothing."
    ]
