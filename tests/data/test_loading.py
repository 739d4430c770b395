"""Reading Parquet files of pairs: the shipped sets, and everything that can be wrong."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from uwml_core.data import SAMPLES, DataError, load_pairs, load_sample


def picture(colour="red", size=(48, 48), mode="RGB", encoding="WEBP") -> bytes:
    buffer = io.BytesIO()
    Image.new(mode, size, colour).save(buffer, encoding, **({"lossless": True} if encoding == "WEBP" else {}))
    return buffer.getvalue()


def columns(**changed):
    base = {
        "item_id": ["a", "a", "b", "c"],
        "split": ["train", "train", "train", "val"],
        "group": ["x", "x", "y", "y"],
        "captions": [["one", "two"], ["one"], ["three"], ["four"]],
        "image": [picture("red"), picture("green"), picture("blue"), picture("white")],
    }
    return {name: values for name, values in {**base, **changed}.items() if values is not None}


@pytest.fixture
def written(tmp_path: Path):
    def write(**changed) -> Path:
        path = tmp_path / "pairs.parquet"
        pq.write_table(pa.table(columns(**changed)), path)
        return path

    return write


def test_the_shipped_image_set_holds_what_its_description_says():
    data = load_sample("emoji_pairs")
    assert len(data) == 10_765
    assert data.modalities == ("image", "text")
    assert data.pictures.shape == (10_765, 3, 32, 32)
    assert len(np.unique(data.labels)) == 3_944
    assert len(data.rows("train")) == 8_395
    assert len(data.rows("val")) == 1_033
    raw = pq.read_table(Path(load_pairs.__code__.co_filename).parent / "sample" / "emoji_pairs.parquet")
    row = 4_321
    with Image.open(io.BytesIO(raw["image"][row].as_py())) as image:
        expected = np.asarray(image.convert("RGB").resize((32, 32), Image.Resampling.BILINEAR))
    assert (data.pictures[row].permute(1, 2, 0).numpy() == expected).all()
    assert list(data.captions[row]) == raw["captions"][row].as_py()
    same_key = np.array(data.item_keys) == data.item_keys[row]
    assert (same_key == (data.labels == data.labels[row])).all()


@pytest.mark.slow
def test_the_shipped_clip_set_fits_the_same_interface_and_its_split_column_can_be_chosen():
    data = load_sample("animated_emoji_pairs", split_column="split_item")
    assert data.modalities == ("video", "text")
    assert data.pictures.shape == (2_109, 8, 3, 32, 32)
    assert (data.pictures[0, 0] != data.pictures[0, 4]).any()
    file = Path(load_pairs.__code__.co_filename).parent / "sample" / "animated_emoji_pairs.parquet"
    raw = pq.read_table(file, columns=["split", "split_item"])
    assert list(data.splits) == raw["split_item"].to_pylist() != raw["split"].to_pylist()


def test_clips_are_read_frame_by_frame_and_shown_as_a_strip_of_four(written):
    frames = [[picture(colour, size=(40, 20)) for colour in ("red", "lime", "blue", "white", "black")]] * 4
    data = load_pairs(written(image=None, frames=frames))
    assert data.pictures.shape == (4, 5, 3, 32, 32)
    assert data.pictures[1, 1, :, 3, 3].tolist() == [0, 255, 0]
    with Image.open(io.BytesIO(next(data.thumbnails()))) as strip:
        assert strip.size == (160, 20)
        middles = [strip.convert("RGB").getpixel((20 + 40 * k, 10)) for k in range(4)]
    expected = [(255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 255)]
    assert np.abs(np.array(middles) - np.array(expected)).max() < 40


def test_labels_number_the_items_in_order_of_appearance(written):
    assert load_pairs(written()).labels.tolist() == [0, 0, 1, 2]
    assert load_pairs(written(item_id=[9, 5, 9, 5])).item_keys == ["9", "5", "9", "5"]


def test_transparent_parts_become_white_and_other_modes_rgb(written):
    images = [
        picture((255, 0, 0, 0), mode="RGBA", encoding="PNG"),
        picture(128, mode="L", encoding="PNG"),
        picture("blue", size=(7, 90), encoding="PNG"),
        picture("red", encoding="JPEG"),
    ]
    pictures = load_pairs(written(image=images)).pictures[:, :, 10, 10]
    assert pictures[0].tolist() == [255, 255, 255]
    assert pictures[1].tolist() == [128, 128, 128]
    assert pictures[2].tolist() == [0, 0, 255]


def test_thumbnails_keep_small_webp_and_shrink_the_rest(written):
    small = picture("red")
    images = [small, picture("red", size=(200, 100)), picture("red", encoding="PNG"), small]
    thumbnails = list(load_pairs(written(image=images)).thumbnails())
    assert thumbnails[0] == small
    opened = [Image.open(io.BytesIO(data)) for data in thumbnails]
    assert [(image.format, image.size) for image in opened[1:3]] == [("WEBP", (96, 48)), ("WEBP", (48, 48))]


def test_a_group_column_is_optional_and_captions_keep_any_script(written):
    data = load_pairs(written(group=None, captions=[["红心 ❤️"], ["a\nb"], ["<script>"], ["é" * 5000]]))
    assert list(data.groups) == ["", "", "", ""]
    assert data.captions[0] == ["红心 ❤️"]


def test_the_fingerprint_sees_every_part_of_the_data(written):
    base = load_pairs(written()).fingerprint
    assert len(base) == 64
    assert load_pairs(written()).fingerprint == base
    changes = [
        {"item_id": ["a", "a", "b", "d"]},
        {"captions": [["one", "two"], ["one"], ["three"], ["five"]]},
        {"captions": [["one"], ["two", "one"], ["three"], ["four"]]},
        {"image": [picture("red"), picture("green"), picture("blue"), picture("black")]},
        {"split": ["train", "val", "train", "val"]},
    ]
    prints = {load_pairs(written(**change)).fingerprint for change in changes}
    assert len(prints | {base}) == 1 + len(changes)


def test_a_new_order_of_rows_is_another_fingerprint_because_item_ids_are_rows(written):
    reversed_rows = {name: values[::-1] for name, values in columns().items()}
    assert load_pairs(written()).fingerprint != load_pairs(written(**reversed_rows)).fingerprint


BAD = {
    "captions missing": ({"captions": None}, "pairs.parquet, column 'captions': is missing; the file has"),
    "no captions": (
        {"captions": [["one"], [], ["x"], ["y"]]},
        "column 'captions', row 1: has no captions; expected a list of at least one text",
    ),
    "null captions": (
        {"captions": [["one"], None, ["x"], ["y"]]},
        "column 'captions', row 1: has no captions",
    ),
    "blank caption": ({"captions": [["one"], ["x"], ["a", " "], ["y"]]}, "row 2: contains an empty caption"),
    "null in captions": (
        {"captions": [["one"], ["x"], ["a", None], ["y"]]},
        "row 2: contains an empty caption",
    ),
    "captions are texts": (
        {"captions": ["one", "x", "a", "y"]},
        "column 'captions', row 0: is of type str; expected a list of texts",
    ),
    "no pictures": (
        {"image": None},
        "pairs.parquet, column 'image': is missing; expected encoded pictures in 'image', or lists",
    ),
    "item without picture": (
        {"image": [picture(), None, picture(), picture()]},
        "pairs.parquet, column 'image', row 1: is empty; expected an encoded picture",
    ),
    "picture is a path": (
        {"image": ["a.png", "b.png", "c.png", "d.png"]},
        "column 'image', row 0: is of type str; expected an encoded picture (bytes)",
    ),
    "cut picture": (
        {"image": [picture(), picture(), picture()[:20], picture()]},
        "column 'image', row 2: cannot be decoded (20 bytes); expected a whole WEBP",
    ),
    "empty bytes": ({"image": [picture(), b"", picture(), picture()]}, "row 1: cannot be decoded (0 bytes)"),
    "clip without frames": (
        {"image": None, "frames": [[picture()], [picture()], [], [picture()]]},
        "column 'frames', row 2: is empty; expected encoded pictures",
    ),
    "unequal clips": (
        {"image": None, "frames": [[picture()], [picture()] * 2, [picture()], [picture()]]},
        "column 'frames', row 1: has 2 frames; expected 1 as in row 0",
    ),
    "split missing": ({"split": None}, "column 'split': is missing; the file has item_id, group"),
    "null split": ({"split": ["train", None, "val", "val"]}, "column 'split', row 1: has no value"),
    "item_id missing": ({"item_id": None}, "column 'item_id': is missing"),
    "empty item_id": ({"item_id": ["a", "", "b", "c"]}, "column 'item_id', row 1: has no value"),
    "no rows": (
        {name: [] for name in ("item_id", "split", "group", "captions", "image")},
        "pairs.parquet: has no rows",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_wrong_is_said_in_one_line(written, case):
    change, message = BAD[case]
    with pytest.raises(DataError) as caught:
        load_pairs(written(**change))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_no_parquet_is_named(tmp_path):
    path = tmp_path / "torn.parquet"
    whole = tmp_path / "whole.parquet"
    pq.write_table(pa.table(columns()), whole)
    path.write_bytes(whole.read_bytes()[:-100])
    with pytest.raises(DataError, match=r"torn\.parquet: cannot be read; expected a whole Parquet file"):
        load_pairs(path)


def test_an_unknown_name_gets_near_ones(tmp_path):
    with pytest.raises(
        DataError, match=r"emoji_pears: is neither a file nor a shipped.*did you mean emoji_pairs"
    ):
        load_pairs("emoji_pears")
    with pytest.raises(DataError, match=f"shipped: {', '.join(SAMPLES)}"):
        load_pairs("zzz")
    with pytest.raises(DataError, match="is a folder"):
        load_pairs(tmp_path)


def test_a_split_with_one_item_has_no_negatives(written):
    data = load_pairs(written())
    assert data.rows("train").tolist() == [0, 1, 2]
    with pytest.raises(DataError, match=r"split 'val' has 1 different item\(s\); expected at least 2.*train"):
        data.rows("val")
    with pytest.raises(DataError, match=r"split 'test' has 0 different item\(s\)"):
        data.rows("test")
