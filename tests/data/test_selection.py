"""Which rows of a file are used: one kind, one language, and what is said of the rest."""

from __future__ import annotations

import io
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from uwml_core.data import DataError, load_pairs, sample_path


def picture(colour: str) -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (8, 8), colour).save(buffer, "PNG")
    return buffer.getvalue()


COLUMNS = {
    "item_id": ["a", "a", "b", "c", "d"],
    "split": ["train", "train", "train", "val", "val"],
    "source": ["x", "y", "x", "x", "y"],
    "captions": [["one"], ["two"], ["three"], ["four"], ["five"]],
    "captions_zh": [["一"], [], ["三", "叁"], None, ["五"]],
    "image": [picture(c) for c in ("red", "green", "blue", "white", "black")],
}


@pytest.fixture
def written(tmp_path: Path):
    def write(**changed) -> Path:
        path = tmp_path / "pairs.parquet"
        pq.write_table(pa.table({**COLUMNS, **changed}), path)
        return path

    return write


def test_rows_without_captions_in_the_language_are_left_out_and_counted(written):
    data = load_pairs(written(), captions="zh")
    assert data.item_ids.tolist() == [0, 2, 4]
    assert data.captions == [["一"], ["三", "叁"], ["五"]]
    assert data.item_keys == ["a", "b", "d"]
    assert data.pictures[1, :, 4, 4].tolist() == [0, 0, 255]
    assert data.left_out == ("pairs.parquet: 2 of 5 rows have no captions in 'captions_zh' and are left out")


def test_nothing_is_said_where_nothing_is_left_out(written):
    assert load_pairs(written()).left_out is None
    assert load_pairs(written(captions_zh=[["一"]] * 5), captions="zh").left_out is None


def test_another_language_or_part_is_another_fingerprint(written):
    path = written(captions_zh=[["one"], ["two"], ["three"], ["four"], ["six"]])
    prints = {
        load_pairs(path, captions=c, only=o).fingerprint for c in ("en", "zh") for o in (None, "source=x")
    }
    # the rows of x have the same captions in both columns
    assert len(prints) == 3


def test_rows_of_one_kind_keep_their_numbers(written):
    data = load_pairs(written(), only=" source = x ")
    assert data.item_ids.tolist() == [0, 2, 3]
    assert data.labels.tolist() == [0, 1, 2]
    assert data.left_out is None
    both = load_pairs(written(), only="source=x", captions="zh")
    assert both.item_ids.tolist() == [0, 2]
    assert both.left_out.startswith("pairs.parquet: 1 of 3 rows")


def test_a_column_of_numbers_can_select_too(written):
    assert load_pairs(written(source=[1, 2, 1, 1, None]), only="source=1").item_ids.tolist() == [0, 2, 3]


def test_the_value_may_hold_an_equals_sign(written):
    assert load_pairs(written(source=["a=b", "c", "d", "e", "f"]), only="source=a=b").item_ids.tolist() == [0]


def test_what_is_left_out_may_be_broken(written):
    images = [*COLUMNS["image"][:3], b"broken", COLUMNS["image"][4]]
    assert len(load_pairs(written(image=images), captions="zh")) == 3


@pytest.mark.parametrize(
    ("arguments", "changed", "message"),
    [
        ({"captions": "fr"}, {}, "captions='fr' is unknown; choose one of en, zh"),
        ({"captions": "zh"}, {"captions_zh": [[]] * 5}, "'captions_zh': has no captions in any of 5 rows"),
        (
            {"captions": "zh"},
            {"captions_zh": [["一"], [], ["三", " "], None, ["五"]]},
            "column 'captions_zh', row 2: contains an empty caption",
        ),
        ({"captions": "zh"}, {"image": [*COLUMNS["image"][:4], b"x"]}, "column 'image', row 4: cannot be"),
        ({"only": "source"}, {}, "only='source' is not understood; expected column=value"),
        ({"only": "source=z"}, {}, "column 'source': is 'z' in no row; found: x (3 rows), y (2 rows)"),
        ({"only": "style=x"}, {}, "column 'style': is missing; the file has item_id"),
    ],
)
def test_what_cannot_be_selected_is_told_in_one_line(written, arguments, changed, message):
    with pytest.raises(ValueError, match=r".") as caught:
        load_pairs(written(**changed), **arguments)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_without_the_language_is_told_its_columns(tmp_path):
    path = tmp_path / "pairs.parquet"
    pq.write_table(pa.table(COLUMNS).drop_columns("captions_zh"), path)
    with pytest.raises(DataError, match="column 'captions_zh': is missing; the file has item_id, split"):
        load_pairs(path, captions="zh")


@pytest.mark.slow
def test_the_shipped_sets_have_chinese_captions_for_every_row():
    whole = pq.read_table(sample_path("emoji_pairs"), columns=["source", "captions_zh"])
    data = load_pairs("emoji_pairs", captions="zh", only="source=noto")
    expected = [row for row, source in enumerate(whole["source"].to_pylist()) if source == "noto"]
    assert data.item_ids.tolist() == expected
    assert data.left_out is None
    assert list(data.captions[7]) == whole["captions_zh"][expected[7]].as_py()
