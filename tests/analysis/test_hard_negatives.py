"""What the model confuses: against DuckDB over the raw files, nested loops, and rows written by hand."""

from __future__ import annotations

import io

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from PIL import Image

from uwml_core.analysis.hard_negatives import browse, history
from uwml_core.analysis.hard_negatives.catalogue import (
    caption_text,
    caption_texts,
    catalogue,
    groups_in,
    matching,
)
from uwml_core.analysis.hard_negatives.confusions import PAIR_COLUMNS, confusions
from uwml_core.analysis.hard_negatives.facts import all_facts, main_fact
from uwml_core.analysis.hard_negatives.false_negatives import (
    false_negatives_headline,
    suspected_false_negatives,
)
from uwml_core.analysis.hard_negatives.hardest import hardest_headline
from uwml_core.analysis.hard_negatives.likeness import picture_likeness, text_likeness
from uwml_core.analysis.hard_negatives.memorised import memorised, memorised_headline, recall_fall
from uwml_core.analysis.hard_negatives.order import ORDERS
from uwml_core.analysis.hard_negatives.order import ordered as in_order
from uwml_core.analysis.hard_negatives.persistent import (
    persistent,
    persistent_headline,
    until,
    with_margin,
)
from uwml_core.analysis.hard_negatives.rows import rows_of_epoch, rows_of_item
from uwml_core.analysis.hard_negatives.wrong_pairs import (
    probe_confusions,
    suspected_wrong_pairs,
    wrong_pairs_headline,
)

DIRECTIONS = ("i2t", "t2i")


def pairs(**changes: list) -> pa.Table:
    """Item 1 meets 2 twice and 3 once as a picture, 2 meets 1 as a caption; two rows without a margin."""
    columns = {
        "epoch": [0, 1, 1, 1, 0, 0],
        "direction": ["i2t", "i2t", "i2t", "t2i", "t2i", "i2t"],
        "item_id": [1, 1, 1, 2, 2, 9],
        "caption": [0, 1, 0, 0, 1, 0],
        "negative_item_id": [2, 2, 3, 1, None, 4],
        "negative_caption": [1, 0, 2, 0, None, 0],
        "margin": [-0.25, -0.5, 0.125, 0.5, float("nan"), float("nan")],
        "weight": [1.0, 3.0, None, 2.0, 1.0, 1.0],
        "suspected_false_negative": [True, False, False, False, False, False],
        **changes,
    }
    types = {"caption": pa.int16(), "negative_caption": pa.int16(), "margin": pa.float32()}
    ids = {name: pa.int32() for name in ("epoch", "item_id", "negative_item_id")}
    return pa.table(
        {
            name: pa.array(values, {**types, **ids, "weight": pa.float32()}.get(name))
            for name, values in columns.items()
        }
    )


def test_confusions_of_rows_written_by_hand() -> None:
    found = confusions(pairs(), DIRECTIONS)
    assert found.to_dict("list") == {
        "direction": ["i2t", "i2t", "t2i"],
        "item_id": [1, 1, 2],
        "negative_item_id": [2, 3, 1],
        "caption": [1, 0, 0],
        "negative_caption": [0, 2, 0],
        "n": [2, 1, 1],
        "below": [2, 0, 0],
        "above": [1, 0, 0],
        "margin": [-0.375, 0.125, 0.5],
        "lowest": [-0.5, 0.125, 0.5],
        "weight": [2.0, pytest.approx(float("nan"), nan_ok=True), 2.0],
        "first_epoch": [0, 1, 1],
        "last_epoch": [1, 1, 1],
    }


def test_confusions_equal_duckdb_over_the_raw_files(folder, run) -> None:
    found = confusions(run.table("pairs", columns=PAIR_COLUMNS), run.directions)
    raw = duckdb.sql(
        f"""
        select direction::varchar direction, item_id, negative_item_id, count(*) n,
               sum((margin < 0)::int) below, avg(margin::double) margin, min(margin)::double lowest,
               avg(weight::double) weight, min(epoch) first_epoch, max(epoch) last_epoch
        from '{folder}/pairs/*.parquet'
        where negative_item_id is not null and not isnan(margin)
        group by all order by direction, item_id, negative_item_id
        """
    ).df()
    assert len(found) == len(raw) > 100
    for name in ("direction", "item_id", "negative_item_id", "n", "below", "first_epoch", "last_epoch"):
        assert found[name].tolist() == raw[name].tolist()
    for name in ("margin", "lowest", "weight"):
        np.testing.assert_allclose(found[name], raw[name], rtol=1e-12, atol=1e-15)


def test_no_pairs_give_no_confusions() -> None:
    empty = pairs().slice(0, 0)
    found = confusions(empty, DIRECTIONS)
    assert found.empty
    assert "Too little data yet" in hardest_headline(found, DIRECTIONS, "epoch 0")
    assert "Too little data yet" in false_negatives_headline(found, found, "epoch 0")
    assert "Too little data yet" in wrong_pairs_headline(found, suspected_wrong_pairs(found))


def test_large_ids_do_not_collide() -> None:
    most = 2**31 - 1
    table = pairs(item_id=[most, most, 0, most, 2, 9], negative_item_id=[0, most - 1, most, 0, None, 4])
    found = confusions(table, DIRECTIONS)
    assert found[["direction", "item_id", "negative_item_id"]].to_numpy().tolist() == [
        ["i2t", 0, most],
        ["i2t", most, 0],
        ["i2t", most, most - 1],
        ["t2i", most, 0],
    ]


def test_hardest_headline_counts_encounters() -> None:
    sentence = hardest_headline(confusions(pairs(), DIRECTIONS), DIRECTIONS, "epoch 1")
    assert (
        sentence
        == "In epoch 1, 66.7 % of 3 i2t pairs and 0.0 % of 1 t2i pair lie below their hardest negative."
    )


@pytest.mark.parametrize(
    ("epoch", "until_", "expected"), [(1, False, 480), (1, True, 960), (None, True, 1440)]
)
def test_rows_of_an_epoch_are_pushed_down(run, epoch: int | None, until_: bool, expected: int) -> None:
    wanted = rows_of_epoch(run.frame("steps"), epoch, until=until_)
    assert run.table("pairs", filter=wanted.filter).num_rows == 3 * expected
    without = rows_of_epoch(run.frame("steps").iloc[:0], epoch, until=until_)
    assert run.table("pairs", filter=without.filter).num_rows == 3 * expected
    assert without.note == ""


def test_too_many_rows_become_a_sample_that_says_so(run) -> None:
    wanted = rows_of_epoch(run.frame("steps"), None, until=True, most=200)
    assert run.table("pairs", filter=wanted.filter).num_rows <= 200
    assert "A random sample of" in wanted.note


def neighbors(rows: list[tuple], splits: str = "train") -> pd.DataFrame:
    """Rows (step, epoch, direction, item, negative, rank, similarity, positive)."""
    names = [
        "step",
        "epoch",
        "direction",
        "item_id",
        "negative_item_id",
        "rank",
        "similarity",
        "positive_similarity",
    ]
    frame = pd.DataFrame(rows, columns=names)
    return frame.assign(split=splits, caption=0, negative_caption=0)


def test_persistent_counts_back_from_the_last_snapshot() -> None:
    held = [(step, step // 10, "i2t", 1, 7, 1, 0.5, 0.25) for step in (9, 19, 29)]
    changed = [(step, step // 10, "i2t", 2, 5 + (step == 19), 1, 0.5, 0.25) for step in (9, 19, 29)]
    absent = [(step, step // 10, "t2i", 1, 7, 1, 0.5, 0.75) for step in (9, 29)]
    second = [(29, 2, "i2t", 1, 8, 2, 0.4, 0.25)]
    rows = with_margin(neighbors([*held, *changed, *absent, *second]))
    found = persistent(rows)
    assert found.to_dict("records") == [
        {
            "direction": "i2t", "item_id": 1, "caption": 0, "negative_item_id": 7, "negative_caption": 0,
            "margin": -0.25, "n": 3, "snapshots": 3, "first_epoch": 0, "last_epoch": 2,
        }
    ]  # fmt: skip
    assert persistent_headline(rows, found) == (
        "33.3 % of 3 probe queries have kept their nearest wrong candidate for 3 snapshots or more; in 1 of "
        "these it lies above the right answer."
    )
    assert persistent(until(rows, 1)).empty
    assert "Too little data yet: 2 snapshots" in persistent_headline(until(rows, 1), found)


def test_persistent_equals_a_loop_over_the_raw_files(folder, run) -> None:
    raw = duckdb.sql(
        f"""select step, direction::varchar direction, item_id, negative_item_id
            from '{folder}/neighbors/*.parquet' where rank = 1"""
    ).fetchall()
    nearest = {(step, direction, item): negative for step, direction, item, negative in raw}
    steps = sorted({step for step, *_ in nearest}, reverse=True)
    expected = {}
    for direction, item in sorted({(direction, item) for _, direction, item in nearest}):
        n = 0
        while (
            n < len(steps) and nearest.get((steps[n], direction, item)) == nearest[steps[0], direction, item]
        ):
            n += 1
        if n >= 3:
            expected[direction, item] = (n, nearest[steps[0], direction, item])
    found = persistent(with_margin(run.frame("neighbors")))
    keys = zip(found["direction"], found["item_id"], strict=True)
    values = zip(found["n"], found["negative_item_id"], strict=True)
    assert dict(zip(keys, values, strict=True)) == expected
    assert len(expected) >= 2 * 22


def test_no_neighbors_give_nothing() -> None:
    rows = with_margin(neighbors([]))
    assert persistent(rows).empty
    assert probe_confusions(rows).empty
    assert "Too little data yet: 0 snapshots" in persistent_headline(rows, persistent(rows))


def picture(color: str) -> bytes:
    sink = io.BytesIO()
    Image.new("RGB", (20, 20), color).save(sink, format="WEBP", lossless=True)
    return sink.getvalue()


def items() -> pd.DataFrame:
    red = picture("red")
    return catalogue(
        pd.DataFrame(
            {
                "item_id": [1, 2, 3, 4],
                "item_key": ["a", "b", "c", None],
                "label": [0, 1, 2, 3],
                "group": ["animals", "animals", " ", None],
                "split": ["train"] * 4,
                "captions": [["Red heart", "love"], ["red heart!"], ["שלום\nעולם"], None],
                "thumbnail": [red, picture("blue"), red, b"broken"],
            }
        )
    )


def test_catalogue_knows_captions_groups_and_what_a_search_finds() -> None:
    known = items()
    assert groups_in(known) == ["animals"]
    assert [caption_text(known, 1, 1), caption_text(known, 1, 99), caption_text(known, 2, -1)] == [
        "love", "Red heart", "red heart!",
    ]  # fmt: skip
    assert [caption_text(known, 4), caption_text(known, 77)] == ["item 4", "item 77"]
    assert matching(known, "HEART").tolist() == [1, 2]
    assert matching(known, "a.*").empty
    assert matching(known, "  ").tolist() == [1, 2, 3, 4]
    assert catalogue(None).empty
    assert matching(catalogue(None), "x").empty


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("night", "nacht", 2 * 2 / 12),
        ("", "a", 0.0),
        ("A  b", "a b", 1.0),
        ("心", "心", 1.0),
        ("心", "红", 0.0),
    ],
)
def test_text_likeness(first: str, second: str, expected: float) -> None:
    assert text_likeness(first, second) == pytest.approx(expected)


def test_picture_likeness_of_colours() -> None:
    assert picture_likeness(picture("red"), picture("red")) == 1.0
    assert picture_likeness(picture("red"), picture("blue")) == pytest.approx(1 / 3, abs=0.02)
    assert np.isnan(picture_likeness(picture("red"), None))
    assert np.isnan(picture_likeness(b"no picture", picture("red")))


def confusion(item: int, negative: int, margin: float, **changes) -> dict:
    values = {
        "direction": "i2t", "item_id": item, "negative_item_id": negative, "caption": 0,
        "negative_caption": 0,
        "n": 1, "below": int(margin < 0), "above": int(margin < -0.1), "margin": margin, "lowest": margin,
        "weight": 1.0, "first_epoch": 0, "last_epoch": 0,
    }  # fmt: skip
    return {**values, **changes}


def test_false_negatives_have_a_reason() -> None:
    rows = pd.DataFrame(
        [
            confusion(1, 2, -0.05),
            confusion(1, 3, -0.05),
            confusion(1, 3, 0.05),
            confusion(2, 3, -0.2),
            confusion(2, 4, -0.05),
        ]
    )
    found = suspected_false_negatives(rows, items())
    assert found[["item_id", "negative_item_id", "reason"]].to_numpy().tolist() == [
        [1, 3, "picture"],
        [1, 2, "caption"],
        [2, 3, "far_above"],
    ]
    assert false_negatives_headline(rows, found, "epoch 0") == (
        "In epoch 0, 3 of 4 negatives above their positive may be right answers; 2 have a near-duplicate "
        "caption or picture."
    )
    assert main_fact(found.iloc[0].to_dict()) == "near-duplicate picture"
    assert suspected_false_negatives(rows, items(), most=1)["reason"].tolist() == ["far_above"]
    assert suspected_false_negatives(rows, catalogue(None))["reason"].tolist() == ["far_above"]


def test_wrong_pairs_are_below_at_every_encounter_in_both_directions() -> None:
    both = [confusion(1, k, -0.1 * k, direction=d) for d in DIRECTIONS for k in (2, 3, 4)]
    one_way = [confusion(2, k, -0.1, direction=d) for d in DIRECTIONS for k in (1, 3, 4)]
    one_way[-1] |= {"margin": 0.1, "below": 0}
    seldom = [confusion(3, 1, -0.1, n=2, below=2)]
    rows = pd.DataFrame([*both, *one_way, *seldom])
    found = suspected_wrong_pairs(rows)
    assert set(found["item_id"]) == {1}
    assert found["encounters"].tolist() == [3] * 6
    assert found["mean_margin"].tolist() == pytest.approx([-0.3] * 6)
    assert found["margin"].tolist() == pytest.approx([-0.4, -0.4, -0.3, -0.3, -0.2, -0.2])
    assert "too weak to tell" in wrong_pairs_headline(rows, found)
    assert main_fact(found.iloc[0].to_dict()) == "below in all 3 encounters"


def test_probes_count_where_all_their_candidates_lie_above() -> None:
    rows = [
        (step, step, "i2t", 1, 10 + rank, rank, 0.5 - 0.1 * rank, 0.35 if step == 2 else 0.2)
        for step in (-1, 0, 1, 2)
        for rank in (1, 2)
    ]
    found = probe_confusions(with_margin(neighbors(rows)))
    assert found[["negative_item_id", "n", "below"]].to_numpy().tolist() == [[11, 3, 2], [12, 0, 0]]


def evals(values: list[float], n: int = 1000, direction: str = "i2t") -> pd.DataFrame:
    rows = [(k - 1, k - 1, "val", direction, "R@1", value, n) for k, value in enumerate(values)]
    return pd.DataFrame(rows, columns=["step", "epoch", "split", "direction", "metric", "value", "n"])


def test_recall_falls_only_beyond_chance() -> None:
    clear = recall_fall(evals([0.0, 30.0, 40.0, 30.0, 20.0]), "i2t")
    # sqrt(40 * 60 / 1000 + 20 * 80 / 1000) = 2
    assert (clear.best, clear.best_epoch, clear.last, clear.last_epoch) == (40.0, 1, 20.0, 3)
    assert clear.error == pytest.approx(4.0)
    assert clear.falls
    assert not recall_fall(evals([0.0, 30.0, 40.0, 30.0, 38.0]), "i2t").falls
    assert not recall_fall(evals([0.0, 40.0, 30.0, 20.0]), "i2t").enough
    assert recall_fall(evals([]), "i2t").evaluations == 0
    assert recall_fall(evals([0.0, 30.0, 40.0, 30.0, 20.0]), "i2t", 1).last == 40.0
    assert not recall_fall(evals([0.0, float("nan"), float("nan")]), "i2t").falls


def test_memorised_probes_grow_while_recall_falls() -> None:
    grown = [(k, k, "i2t", 1, 7, 1, 0.5, 0.5 + 0.125 * k) for k in range(4)]
    shrunk = [(k, k, "i2t", 2, 7, 1, 0.5, 0.5 - 0.125 * k) for k in range(4)]
    rows = with_margin(neighbors([*grown, *shrunk]))
    falls = [recall_fall(evals([0.0, 30.0, 40.0, 30.0, 20.0]), "i2t")]
    found = memorised(rows, falls)
    assert found[["item_id", "margin_then", "margin", "growth", "n", "first_epoch"]].to_numpy().tolist() == [
        [1, 0.125, 0.375, 0.25, 3, 1]
    ]
    assert memorised_headline(found, falls) == (
        "R@1 on val fell, i2t from 40.0 % in epoch 1 to 20.0 %, while the margins of 1 train probes kept "
        "growing."
    )
    assert memorised(rows.assign(split="val"), falls).empty
    steady = [recall_fall(evals([0.0, 30.0, 40.0, 30.0, 40.0]), "i2t")]
    assert memorised(rows, steady).empty
    assert "does not fall, i2t 40.0 % (best 40.0 %)" in memorised_headline(memorised(rows, steady), steady)
    early = [recall_fall(evals([0.0, 1.0]), "i2t")]
    assert "Too little data yet: 1 evaluation on val" in memorised_headline(memorised(rows, early), early)


def test_history_of_an_item_in_batches_and_pool() -> None:
    frame = pairs().to_pandas()
    rows = with_margin(neighbors([(9, 0, "i2t", 1, 5, 1, 0.5, 0.75), (9, 0, "i2t", 1, 6, 2, 0.25, 0.75)]))
    found = history.item_history(frame, rows, 1)
    assert found.to_numpy().tolist() == [
        ["batches", "i2t", 0, -0.25, -0.25, -0.25, 1, 2, 1],
        ["batches", "i2t", 1, -0.1875, -0.5, 0.125, 2, 2, 0],
        ["pool", "i2t", 0, 0.25, 0.25, 0.25, 1, 5, 0],
    ]
    assert history.named(found, items())["negative"].tolist() == ["red heart!", "red heart!", "item 5"]
    assert (
        history.history_headline(found, DIRECTIONS, "a\nb")
        == "“a b”: i2t margin 0.250, below 0 at 0 of 1 snapshot."
    )
    near = history.candidates(frame, rows, 1)
    assert near[["place", "negative_item_id", "margin"]].to_numpy().tolist() == [[1, 5, 0.25], [2, 6, 0.5]]


def test_item_that_is_no_probe_shows_its_batches() -> None:
    near = history.candidates(pairs().to_pandas(), with_margin(neighbors([])), 1)
    assert near[["epoch", "place", "negative_item_id"]].to_numpy().tolist() == [
        [1, 1, 2],
        [1, 2, 3],
        [0, 1, 2],
    ]


def test_unknown_item_has_no_history() -> None:
    found = history.item_history(pairs().to_pandas(), with_margin(neighbors([])), 12345)
    assert found.empty
    assert "Too little data yet" in history.history_headline(found, DIRECTIONS, "x")
    assert history.named(found, items()).empty


def test_item_rows_equal_duckdb(folder, run) -> None:
    frame = run.frame("pairs", filter=rows_of_item(5))
    found = history.item_history(frame, with_margin(run.frame("neighbors")), 5)
    raw = duckdb.sql(
        f"""select direction::varchar, epoch, avg(margin::double), min(margin), max(margin), count(*)
            from '{folder}/pairs/*.parquet' where item_id = 5 and not isnan(margin)
            group by all order by all"""
    ).fetchall()
    batches = found[found["source"] == "batches"]
    columns = ["direction", "epoch", "margin", "low", "high", "n"]
    assert batches[columns].to_numpy().tolist() == [pytest.approx(list(row)) for row in raw]


@pytest.fixture
def three() -> pd.DataFrame:
    return pd.DataFrame(
        [
            confusion(1, 3, 0.03, n=5),
            confusion(2, 1, -0.3, weight=3.0),
            confusion(1, 2, -0.1, direction="t2i"),
            confusion(1, 4, -0.2),
        ]
    )


@pytest.mark.parametrize(
    ("wanted", "kept"),
    [
        ({}, [0, 1, 2, 3]),
        ({"direction": "t2i"}, [2]),
        ({"band": "hard"}, [0]),
        ({"band": "misaligned", "direction": "i2t"}, [1, 3]),
        ({"group": "animals"}, [0, 1, 2, 3]),
        ({"group": "none of these"}, []),
        ({"text": "LOVE"}, [0, 1, 2, 3]),
        ({"text": "שלום"}, [0]),
        ({"text": "(["}, []),
    ],
)
def test_select(three: pd.DataFrame, wanted: dict, kept: list[int]) -> None:
    assert browse.select(three, items(), browse.SheetFilter(**wanted)).index.tolist() == kept


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ("margin", [(2, 1), (1, 4), (1, 3), (1, 2)]),
        ("often", [(1, 3), (1, 4), (2, 1), (1, 2)]),
        ("weight", [(2, 1), (1, 4), (1, 3), (1, 2)]),
    ],
)
def test_sort_keeps_an_anchor_together(three: pd.DataFrame, order: str, expected: list) -> None:
    ordered = in_order(three, order).frame()
    assert list(zip(ordered["item_id"], ordered["negative_item_id"], strict=True)) == expected
    assert ordered["anchor"].is_monotonic_increasing
    assert ordered.groupby("anchor")[["direction", "item_id"]].nunique().to_numpy().max() == 1


def test_sort_puts_missing_numbers_last_and_refuses_unknown_orders(three: pd.DataFrame) -> None:
    likeness = three.assign(likeness=[np.nan, 0.5, 0.9, np.nan])
    assert in_order(likeness, "likeness").frame()["likeness"].tolist()[:2] == [0.9, 0.5]
    with pytest.raises(ValueError, match="order='x' is unknown"):
        in_order(three, "x")


def test_pages_hold_whole_anchors(three: pd.DataFrame) -> None:
    found = in_order(three, "margin")
    assert (len(found.anchors), found.pages(2)) == (3, 2)
    assert [len(found.page(page, 2)) for page in (1, 2, 3)] == [3, 1, 0]
    nothing = in_order(three.iloc[:0], "margin")
    assert (len(nothing.anchors), nothing.pages(2), len(nothing.page(1, 2))) == (0, 1, 0)


@pytest.mark.parametrize("order", ["margin", "often", "weight"])
@pytest.mark.parametrize("gathered", [True, False])
def test_order_is_that_of_a_stable_sort(order: str, gathered: bool) -> None:
    rng = np.random.default_rng(4)
    # many equal margins, some missing, few anchors
    margin = rng.choice([*np.linspace(-0.2, 0.3, 7), np.nan], 300)
    frame = pd.DataFrame(
        {
            "direction": rng.choice(["i2t", "t2i"], 300),
            "item_id": rng.integers(0, 40, 300),
            "negative_item_id": np.arange(300),
            "margin": margin,
            "n": rng.integers(1, 4, 300),
            "weight": rng.choice([0.5, 1.0, np.nan], 300),
        }
    )
    if gathered:
        frame = frame.sort_values(["direction", "item_id"], kind="stable", ignore_index=True)
    column, ascending = ORDERS[order]
    keys, ways = [column, "margin"], [ascending, True]
    by_rank = frame.sort_values(keys, ascending=ways, kind="stable")
    heads = by_rank.drop_duplicates(["direction", "item_id"])
    heads = heads.sort_values([*keys, "direction", "item_id"], ascending=[*ways, True, True], kind="stable")
    pieces = [
        by_rank[(by_rank["direction"] == head.direction) & (by_rank["item_id"] == head.item_id)].assign(
            anchor=number
        )
        for number, head in enumerate(heads.itertuples())
    ]
    expected = pd.concat(pieces, ignore_index=True)
    found = in_order(frame, order)
    pd.testing.assert_frame_equal(found.frame(), expected)
    pages = [found.page(page, 7) for page in range(1, found.pages(7) + 1)]
    pd.testing.assert_frame_equal(pd.concat(pages, ignore_index=True), expected)


def test_export_names_what_the_ids_stand_for(three: pd.DataFrame) -> None:
    table = browse.export(three.iloc[:1], items())
    assert table.to_dict("records") == [
        {
            "direction": "i2t", "item_id": 1, "item_key": "a", "split": "train", "caption": "Red heart",
            "negative_item_id": 3, "negative_item_key": "c", "negative_caption": "שלום\nעולם", "margin": 0.03,
            "n": 5, "first_epoch": 0, "last_epoch": 0, "weight": 1.0, "new_label": "",
        }
    ]  # fmt: skip


def test_facts_say_how_often_and_when(three: pd.DataFrame) -> None:
    row = {**three.iloc[0].to_dict(), "last_epoch": 4, "lowest": -0.5}
    assert main_fact(row) == "5 times · epochs 0 to 4"
    assert all_facts(row) == [
        "margin 0.030",
        "lowest margin −0.500",
        "weight 1.00",
        "5 times",
        "epochs 0 to 4",
    ]
    assert main_fact({**row, "n": 4, "snapshots": 9}) == "4 of 9 snapshots"
    assert main_fact({**row, "growth": 0.25}) == "margin +0.25 since epoch 0"
    assert main_fact({**row, "n": 1, "first_epoch": -1, "last_epoch": -1}) == ""


@pytest.mark.parametrize("blank", ["", "  ", "\n"])
def test_blank_caption_is_shown_as_the_name_of_its_item(blank: str) -> None:
    known = items()
    known.at[1, "captions"] = ("Red heart", blank)
    known.at[3, "captions"] = (blank,)
    known.at[3, "item_key"] = blank
    assert [caption_text(known, 1, 0), caption_text(known, 1, 1)] == ["Red heart", "a"]
    assert caption_text(known, 3, 0) == "item 3"
    assert caption_texts(known, [1, 1, 1, 3], [0, 1, 99, 0]) == ["Red heart", "a", "Red heart", "item 3"]
