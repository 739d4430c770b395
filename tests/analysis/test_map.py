"""Points, classes, neighbors, search and headline of the embedding map."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

from tests.support.snapshots import pair_vectors, snapshot, unit
from uwml_core.analysis import pair_strength as strength_module
from uwml_core.analysis.caption_search import items_saying
from uwml_core.analysis.gap_measures import gap_measures, merge_gaps
from uwml_core.analysis.map_classes import MOST_GROUPS, point_classes
from uwml_core.analysis.map_headline import map_headline
from uwml_core.analysis.map_points import (
    POINT_COLUMNS,
    describe_items,
    map_points,
    map_range,
    of_split,
    pair_lines,
    worst_pairs,
)
from uwml_core.analysis.neighbors_across import neighbors_across
from uwml_core.analysis.pair_strength import pair_strength
from uwml_core.runlog.snapshots import Snapshot

NAMES = ("image", "text")
NASTY = '<b>"quoted" & \u202bعربي\u202c\nsecond line</b>'


@pytest.fixture(params=[2, 1024])
def chunk(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strength_module, "_CHUNK", request.param)


def slow_strength(shot: Snapshot, point: int) -> tuple[float, float]:
    """Margin and rank by looking at every candidate."""
    mine = shot.vectors[point].astype(np.float64)
    others = [k for k in range(len(shot.item_ids)) if shot.modality[k] != shot.modality[point]]
    cosine = {k: float(shot.vectors[k].astype(np.float64) @ mine) for k in others}
    own = [k for k in others if shot.item_ids[k] == shot.item_ids[point]]
    right = {k for k in others if shot.labels[k] == shot.labels[point] >= 0} | set(own)
    wrong = [cosine[k] for k in others if k not in right]
    if not own:
        return float("nan"), float("nan")
    best = max(cosine[k] for k in right)
    tied = sum(value == best for value in wrong)
    level = sum(cosine[k] == best for k in right)
    rank = 1 + sum(value > best for value in wrong) + tied / (1 + level)
    return (cosine[own[0]] - max(wrong) if wrong else float("nan")), rank


@pytest.mark.usefixtures("chunk")
@pytest.mark.parametrize("labels", [None, [0, 0, 1, 1, 2, 3, 3], [-1] * 7])
def test_margin_and_rank_equal_those_by_looking_at_every_candidate(labels: list[int] | None) -> None:
    shot = snapshot(*pair_vectors(7, dim=3, noise=1.5), labels=labels)
    found = pair_strength(shot, NAMES)
    expected = [slow_strength(shot, point) for point in range(14)]
    np.testing.assert_allclose(found["margin"], [margin for margin, _ in expected], atol=1e-12)
    np.testing.assert_allclose(found["rank"], [rank for _, rank in expected])


def test_ties_share_the_rank_and_equal_labels_are_no_negatives() -> None:
    x = unit([[1, 0], [1, 0], [0, 1]])
    found = pair_strength(snapshot(x, x, labels=[7, 8, 9]), NAMES)
    assert found["rank"].tolist() == [1.5, 1.5, 1, 1.5, 1.5, 1]
    assert found["margin"].tolist() == [0, 0, 1, 0, 0, 1]
    same = pair_strength(snapshot(x, x, labels=[7, 7, 9]), NAMES)
    assert same["rank"].tolist() == [1] * 6
    assert same["margin"].tolist() == [1] * 6


def test_point_without_counterpart_or_negative_has_no_margin() -> None:
    assert pair_strength(snapshot(pair_vectors(3)[0], None), NAMES).isna().all(axis=None)
    lone = pair_strength(snapshot(*pair_vectors(1)), NAMES)
    assert lone["margin"].isna().all()
    assert lone["rank"].tolist() == [1, 1]


@pytest.fixture
def items() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "item_id": [0, 1, 2, 3],
            "item_key": ["k-0", "k-1", "k-2", "Straße"],
            "group": ["animals", None, NASTY, "animals"],
            "captions": [np.array(["A cat", "two"]), np.array([], object), np.array([NASTY]), None],
            "thumbnail": [b"x", None, b"", b"y"],
        }
    )


def layout(shot: Snapshot) -> pd.DataFrame:
    n = len(shot.item_ids)
    names = np.array(shot.modalities, dtype=object)[shot.modality]
    return pd.DataFrame(
        {
            "step": shot.step,
            "epoch": shot.epoch,
            "item_id": shot.item_ids.astype(np.int32),
            "modality": pd.Categorical(names),
            "x": np.arange(n, dtype=np.float32),
            "y": -np.arange(n, dtype=np.float32),
        }
    )


def points(shot: Snapshot, items: pd.DataFrame | None, placed: pd.DataFrame | None = None) -> pd.DataFrame:
    return map_points(shot, layout(shot) if placed is None else placed, pair_strength(shot, NAMES), items)


def test_points_carry_all_that_is_told_about_them(items: pd.DataFrame) -> None:
    shot = snapshot(*pair_vectors(3))
    frame = points(shot, items)
    assert tuple(frame.columns) == POINT_COLUMNS
    assert frame["x"].tolist() == [0, 1, 2, 3, 4, 5]
    assert frame["caption"].tolist() == ["A cat", "", NASTY] * 2
    assert frame["group"].tolist() == ["animals", "", NASTY] * 2
    assert frame["modality"].tolist() == ["image"] * 3 + ["text"] * 3
    assert set(zip(frame["step"], frame["epoch"], strict=True)) == {(10, 1)}
    expected = [slow_strength(shot, point)[0] for point in range(6)]
    np.testing.assert_allclose(frame["margin"], expected, atol=1e-12)


def test_points_without_a_place_are_left_out_and_order_does_not_matter(items: pd.DataFrame) -> None:
    shot = snapshot(*pair_vectors(4))
    placed = layout(shot).iloc[[7, 2, 0]]
    frame = points(shot, items, pd.concat([placed, layout(snapshot(*pair_vectors(4), step=99))]))
    assert frame[["modality", "item_id", "x"]].to_numpy().tolist() == [
        ["image", 0, 0.0], ["image", 2, 2.0], ["text", 3, 7.0]
    ]  # fmt: skip
    assert len(points(shot, items, placed.iloc[:0])) == 0


def test_points_without_items_have_empty_texts() -> None:
    frame = points(snapshot(*pair_vectors(2)), None)
    assert set(frame["caption"]) == set(frame["group"]) == {""}
    assert describe_items(np.array([5]), None)["item_id"].tolist() == [5]


def test_split_and_range_choose_points() -> None:
    frame = points(snapshot(*pair_vectors(4)), None)
    assert of_split(frame, "val")["item_id"].tolist() == [1, 3, 1, 3]
    assert len(of_split(frame, None)) == 8
    (left, right), (bottom, top) = map_range(frame)
    assert left < 0 < 7 < right
    assert bottom < -7 < 0 < top
    assert map_range(frame.iloc[:0]) == ((-1.0, 1.0), (-1.0, 1.0))


def test_worst_pairs_have_the_lowest_mean_margin() -> None:
    frame = points(snapshot(*pair_vectors(6, noise=1.0)), None)
    means = frame.groupby("item_id")["margin"].mean().sort_values()
    worst = worst_pairs(frame, NAMES, 2)
    assert worst["item_id"].tolist() == means.index[:2].tolist()
    np.testing.assert_allclose(worst["margin"], means.iloc[:2])
    line = pair_lines(frame, NAMES, [4])
    assert line[["x_0", "y_0", "x_1", "y_1"]].to_numpy().tolist() == [[4, -4, 10, -10]]
    assert len(pair_lines(frame[frame["modality"] == "image"], NAMES)) == 0


@pytest.mark.parametrize("color_by", ["modality", "group", "margin", "rank"])
def test_every_point_has_a_named_class_or_none(color_by: str, items: pd.DataFrame) -> None:
    frame = points(snapshot(*pair_vectors(4)), items)
    codes, names = point_classes(frame, color_by, NAMES)
    assert len(codes) == len(frame)
    assert codes.min() >= -1
    assert codes.max() < len(names)


def test_classes_have_the_edges_that_their_names_say() -> None:
    frame = pd.DataFrame(
        {"rank": [1, 1.5, 5, 5.5, 10, 10.5, np.nan], "margin": [-0.1, 0, 0.05, 0.25, 1, -1, np.nan]}
    )
    assert point_classes(frame, "rank", NAMES)[0].tolist() == [0, 1, 1, 2, 2, 3, -1]
    codes, names = point_classes(frame, "margin", NAMES)
    assert codes.tolist() == [0, 1, 2, 3, 3, 0, -1]
    assert names == ["misaligned < 0", "hard 0–0.05", "informative 0.05–0.25", "easy ≥ 0.25"]
    with pytest.raises(ValueError, match="color_by='size' is unknown"):
        point_classes(frame, "size", NAMES)


def test_rare_groups_become_one() -> None:
    groups = [f"g{k:02d}" for k in range(12) for _ in range(12 - k)] + [""]
    codes, names = point_classes(pd.DataFrame({"group": groups}), "group", NAMES)
    assert names == [f"g{k:02d}" for k in range(MOST_GROUPS)] + ["other groups"]
    assert codes[0] == 0
    assert codes[-1] == -1
    assert (codes == MOST_GROUPS).sum() == 3 + 2 + 1


def test_neighbors_are_the_most_similar_across_the_gap() -> None:
    shot = snapshot(*pair_vectors(8, noise=1.5), labels=[0, 0, 1, 2, 3, 4, 5, 6])
    found = neighbors_across(shot, NAMES, 0, most=3)
    for query, other in (NAMES, NAMES[::-1]):
        mine = found[found["query_modality"] == query]
        point = shot.vectors[shot.rows(query)[0]].astype(np.float64)
        cosine = [float(shot.vectors[row].astype(np.float64) @ point) for row in shot.rows(other)]
        order = sorted(range(8), key=lambda k: (-cosine[k], k))
        shown = order[:3] if 0 in order[:3] else [*order[:3], 0]
        assert mine["item_id"].tolist() == shown
        assert mine["place"].tolist() == [order.index(k) + 1 for k in shown]
        np.testing.assert_allclose(mine["similarity"], [cosine[k] for k in shown], atol=1e-12)
        assert mine["is_own"].tolist() == [k == 0 for k in shown]
        assert mine["is_positive"].tolist() == [k in (0, 1) for k in shown]
        assert set(mine["n"]) == {8}


def test_equally_near_neighbors_come_by_item() -> None:
    same = np.tile([[1.0, 0.0]], (9, 1))
    shot = snapshot(same, same)
    found = neighbors_across(shot, NAMES, 7, most=3)
    for query in NAMES:
        mine = found[found["query_modality"] == query]
        assert mine["item_id"].tolist() == [0, 1, 2, 7]
        assert mine["place"].tolist() == [1, 2, 3, 8]


def test_item_that_is_not_there_has_no_neighbors() -> None:
    assert neighbors_across(snapshot(*pair_vectors(3)), NAMES, 77).empty
    assert neighbors_across(snapshot(pair_vectors(3)[0], None), NAMES, 0).empty


def test_search_looks_at_captions_and_keys_whatever_their_case(items: pd.DataFrame) -> None:
    assert items_saying(items, "CAT").tolist() == [0]
    assert items_saying(items, "عربي").tolist() == [2]
    assert items_saying(items, "strasse").tolist() == [3]
    assert items_saying(items, "k-").tolist() == [0, 1, 2]
    assert items_saying(items, "  ").tolist() == []
    assert items_saying(items, "(").tolist() == []
    assert items_saying(None, "cat").tolist() == []


def gaps(*shots: Snapshot) -> pd.DataFrame:
    from tests.support.snapshots import table

    parts = []
    for shot in shots:
        names = np.array(shot.modalities, dtype=object)[shot.modality]
        rows = [
            (shot.step, shot.epoch, item, name, vector, label, "val")
            for item, name, vector, label in zip(shot.item_ids, names, shot.vectors, shot.labels, strict=True)
        ]
        parts.append(gap_measures(table(rows)))
    return merge_gaps(parts)


def test_headline_tells_first_and_last_snapshot() -> None:
    far = np.tile([[1.0, 0.0]], (8, 1)), np.tile([[-1.0, 0.0]], (8, 1))
    near = np.tile([[1.0, 0.0]], (8, 1)), np.tile([[0.6, 0.8]], (8, 1))
    text = map_headline(gaps(snapshot(*far, step=-1), snapshot(*near, step=30)))
    assert text == (
        "Each modality lies nearly in one place (uniformity 0.00 image, 0.00 text): its items are hard to "
        "tell apart. From before training to epoch 1 pairs went from 2.00 to 0.89 apart and the centers "
        "from 2.00 to 0.89; a straight cut tells 100.0 % of points apart."
    )


def test_headline_says_first_that_everything_lies_in_one_place() -> None:
    spread = pair_vectors(24)
    angle = np.linspace(0.0, 0.4, 24)
    arc = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    text = map_headline(gaps(snapshot(*spread, step=-1), snapshot(arc, arc[::-1], step=30)))
    assert re.match(
        r"All points lie nearly in one place \(uniformity −0\.\d\d image, −0\.\d\d text\): pairs are close "
        r"because everything is\. From before training to epoch 1 pairs went from",
        text,
    )
    back = map_headline(gaps(snapshot(arc, arc[::-1], step=-1), snapshot(*spread, step=30)))
    assert back.startswith("From before training")
    half = map_headline(gaps(snapshot(*spread, step=-1), snapshot(arc, unit(spread[1][:, :2]), step=30)))
    assert half.startswith("From before training")


def test_headline_of_too_few_points_for_a_cut_tells_none() -> None:
    alone = map_headline(gaps(snapshot(*pair_vectors(1)), snapshot(*pair_vectors(1), step=30)))
    assert alone.startswith("From epoch 1 to epoch 1 pairs went from")
    assert "cut" not in alone
    assert alone.endswith(".")


def test_headline_says_when_there_is_too_little() -> None:
    assert "too little data yet to say how they move" in map_headline(gaps(snapshot(*pair_vectors(5))))
    lone = snapshot(pair_vectors(5)[0], None)
    assert map_headline(gaps(lone)).startswith("Too little data yet: no snapshot in which an item has both")
    assert map_headline(merge_gaps([])).startswith("Too little data yet")
    assert map_headline(merge_gaps([]), 3).endswith("is being measured.")


def test_blank_group_is_none(items: pd.DataFrame) -> None:
    shot = snapshot(*pair_vectors(4))
    told = points(shot, items.assign(group="  "))
    assert set(told["group"]) == {""}
