"""Layouts of the field, made small in exactly their form, with the traps that they are known for."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from uwml_core.data import DataError, open_data
from uwml_core.data.formats import read_listing
from uwml_core.data.inspection import inspect
from uwml_core.data.pictures import decode


def picture(color: str = "red", kind: str = "JPEG", mode: str = "RGB", size: int = 40) -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (size, size), color).convert(mode).save(buffer, kind)
    return buffer.getvalue()


def put(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(picture())


def put_json(path: Path, value: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def coco_image(number: int, split: str, captions: list[str], **more: Any) -> dict[str, Any]:
    sentences = [
        {"tokens": text.split(), "raw": text, "imgid": number, "sentid": 10 * number + k}
        for k, text in enumerate(captions)
    ]
    return {
        "filepath": "val2014",
        "sentids": [s["sentid"] for s in sentences],
        "filename": f"COCO_val2014_{number:012}.jpg",
        "imgid": number,
        "split": split,
        "sentences": sentences,
        "cocoid": 1000 + number,
        **more,
    }


class TestKarpathy:
    def images(self) -> list[dict[str, Any]]:
        captions = [f"caption {k}" for k in range(7)]
        return [
            coco_image(0, "train", captions[:5]),
            coco_image(3, "restval", captions[:6]),
            coco_image(4, "val", captions),
            coco_image(9, "test", captions[:5]),
        ]

    def test_all_captions_are_kept_and_restval_joins_train(self, tmp_path):
        path = put_json(tmp_path / "dataset_coco.json", {"images": self.images(), "dataset": "coco"})
        listing = read_listing(path)
        assert listing.layout == "Karpathy JSON"
        assert [len(captions) for captions in listing.captions] == [5, 6, 7, 5]
        assert list(listing.splits) == ["train", "train", "val", "test"]
        assert listing.keys[1] == "val2014/COCO_val2014_000000000003.jpg"
        assert listing.notes == ("1 images of the split 'restval' join 'train', as is usual for COCO",)

    def test_counts_say_what_is_missing_empty_or_broken(self, tmp_path):
        images = self.images()
        images[0]["sentences"][1]["raw"] = " "
        images[3]["sentences"] = []
        path = put_json(tmp_path / "dataset_coco.json", {"images": images, "dataset": "coco"})
        put(tmp_path, *(f"val2014/COCO_val2014_{k:012}.jpg" for k in (0, 9)))
        (tmp_path / "val2014" / f"COCO_val2014_{4:012}.jpg").write_bytes(b"\xff\xd8 half a picture")
        found = inspect(read_listing(path))
        assert found.split_sizes == {"train": 2, "val": 1, "test": 1}
        assert found.captions == (0, 5.0, 7, 17)
        assert found.without_captions == ["val2014/COCO_val2014_000000000009.jpg"]
        assert [fault.key[-8:] for fault in found.missing] == ["0003.jpg"]
        assert [fault.key[-8:] for fault in found.broken] == ["0004.jpg"]
        assert (found.empty_captions, found.looked_at, found.usable) == (1, 4, False)
        text = "\n".join(found.lines())
        assert "1 captions are empty and left out" in text
        assert "1 pictures are missing: val2014/COCO_val2014_000000000003.jpg" in text

    def test_a_name_that_leads_out_of_the_folder_is_not_opened(self, tmp_path):
        put(tmp_path, "secret.jpg")
        image = coco_image(0, "train", ["a"], filepath="..", filename="secret.jpg")
        path = put_json(tmp_path / "data" / "dataset.json", {"images": [image]})
        [fault] = inspect(read_listing(path)).broken
        assert fault.problem == "'../secret.jpg' does not lie in the data's folder"

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"split": None}, "dataset.json, column 'split', row 1: is missing; expected str"),
            ({"filename": 7}, "dataset.json, column 'filename', row 1: is int; expected str"),
            ({"sentences": "x"}, "dataset.json: 'sentences' of image 1 is str; expected a list of objects"),
            ({"sentences": [{}]}, "dataset.json, column 'raw', row 1: is missing; expected str"),
            (
                {"filename": "COCO_val2014_000000000000.jpg"},
                "dataset.json, column 'filename', row 1: is 'val2014/COCO_val2014_000000000000.jpg' as in "
                "row 0; expected each image once",
            ),
        ],
    )
    def test_a_wrong_entry_is_named(self, tmp_path, change, message):
        images = [coco_image(0, "train", ["a"]), coco_image(1, "train", ["b"]) | change]
        path = put_json(tmp_path / "dataset.json", {"images": images})
        with pytest.raises(DataError) as error:
            read_listing(path)
        assert str(error.value) == message

    def test_json_that_ends_too_early_is_named_with_its_line(self, tmp_path):
        path = tmp_path / "dataset.json"
        path.write_text('{"images": [\n{"filename": ')
        with pytest.raises(DataError, match=r"is no JSON: Expecting value at line 2, column 14"):
            read_listing(path)


class TestPrecomp:
    def folder(self, path: Path, part: str, images: np.ndarray, captions: list[str] | bytes) -> Path:
        path.mkdir(exist_ok=True)
        np.save(path / f"{part}_ims.npy", images)
        data = captions if isinstance(captions, bytes) else ("\n".join(captions) + "\n").encode()
        (path / f"{part}_caps.txt").write_bytes(data)
        return path

    @staticmethod
    def values(images: int, *shape: int) -> np.ndarray:
        return np.random.default_rng(images).normal(size=(images, *shape)).astype(np.float32)

    def test_five_captions_belong_to_each_image(self, tmp_path):
        values = self.values(4, 8)
        folder = self.folder(tmp_path / "f30k_precomp", "train", values, [f"c{k}" for k in range(20)])
        self.folder(folder, "dev", self.values(2, 8), [f"d{k}" for k in range(10)])
        (folder / "train_ids.txt").write_text("7\n3\n9\n100\n")
        listing = read_listing(folder)
        assert list(listing.keys) == ["train/7", "train/3", "train/9", "train/100", "dev/0", "dev/1"]
        assert listing.captions[1] == ["c5", "c6", "c7", "c8", "c9"]
        assert listing.splits[4:] == ["val", "val"]
        assert listing.notes[0] == "train: im_div 5, 4 images for 20 captions"
        assert listing.features is not None
        assert np.array_equal(listing.features.take(np.array([3, 0])), values[[3, 0]])

    def test_images_that_are_repeated_are_taken_once(self, tmp_path):
        values = self.values(3, 8)
        folder = self.folder(
            tmp_path / "p", "dev", np.repeat(values, 5, axis=0), [f"c{k}" for k in range(15)]
        )
        listing = read_listing(folder)
        assert [len(captions) for captions in listing.captions] == [5, 5, 5]
        assert listing.notes == (
            "dev: im_div 1, the 15 image rows repeat 3 images 5 times (3 of them compared)",
        )
        assert np.array_equal(listing.features.take(np.arange(3)), values)

    def test_one_caption_each_stays_one_caption_each(self, tmp_path):
        folder = self.folder(tmp_path / "p", "train", self.values(10, 8), [f"c{k}" for k in range(10)])
        assert read_listing(folder).notes == ("train: im_div 1, 10 images for 10 captions",)

    def test_regions_are_averaged_and_said(self, tmp_path):
        values = self.values(4, 36, 16)
        folder = self.folder(tmp_path / "p", "train", values, [f"c{k}" for k in range(20)])
        listing = read_listing(folder)
        taken = listing.features.take(np.array([2]))
        assert taken == pytest.approx(values[[2]].astype(np.float64).mean(axis=1), abs=1e-6)
        assert "the 36 regions of an image are averaged to 16 numbers" in listing.notes

    def test_a_blank_line_keeps_its_place_and_counts_as_empty(self, tmp_path):
        captions = [f"c{k}" for k in range(10)]
        captions[6] = ""
        folder = self.folder(tmp_path / "p", "train", self.values(2, 8), captions)
        listing = read_listing(folder)
        assert [list(texts) for texts in listing.captions] == [captions[:5], ["c5", "c7", "c8", "c9"]]
        assert listing.empty_captions == 1

    def test_windows_line_ends_byte_order_mark_and_blank_lines_at_the_end_do_no_harm(self, tmp_path):
        data = b"\xef\xbb\xbf" + "\r\n".join([f"hé {k}\u2028x" for k in range(10)]).encode() + b"\r\n\r\n\r\n"
        folder = self.folder(tmp_path / "p", "train", self.values(2, 8), data)
        assert read_listing(folder).captions[0][0] == "hé 0\u2028x"
        assert read_listing(folder).captions[1][-1] == "hé 9\u2028x"

    def test_another_encoding_is_named_with_its_line(self, tmp_path):
        folder = self.folder(tmp_path / "p", "train", self.values(2, 8), b"a\nb\ncaf\xe9\n")
        with pytest.raises(DataError, match=r"train_caps.txt, row 2: is no UTF-8 \(byte 0xe9\)"):
            read_listing(folder)

    def test_counts_that_do_not_fit_are_refused(self, tmp_path):
        folder = self.folder(tmp_path / "p", "train", self.values(4, 8), [f"c{k}" for k in range(19)])
        with pytest.raises(DataError, match="has 19 captions for 4 image rows; expected as many or a mult"):
            read_listing(folder)

    def test_ids_that_do_not_fit_are_refused(self, tmp_path):
        folder = self.folder(tmp_path / "p", "train", self.values(2, 8), [f"c{k}" for k in range(10)])
        (folder / "train_ids.txt").write_text("1\n2\n3\n")
        with pytest.raises(DataError, match="has 3 ids; expected 2, one per image, or 10, one per caption"):
            read_listing(folder)

    def test_objects_are_never_unpickled(self, tmp_path):
        folder = self.folder(tmp_path / "p", "train", self.values(2, 8), ["a", "b"])
        np.save(folder / "train_ims.npy", np.array([{}, {}], dtype=object), allow_pickle=True)
        with pytest.raises(DataError, match=r"cannot be read; expected a whole .npy file of plain numbers"):
            read_listing(folder)

    def test_testall_takes_the_place_of_test(self, tmp_path):
        folder = self.folder(tmp_path / "p", "test", self.values(2, 8), [f"c{k}" for k in range(10)])
        self.folder(folder, "testall", self.values(4, 8), [f"c{k}" for k in range(20)])
        listing = read_listing(folder)
        assert (set(listing.splits), len(listing)) == ({"testall"}, 4)
        assert "test is left out: testall contains it" in listing.notes


class TestVideos:
    def data(self, path: Path) -> Path:
        videos = [
            {"video_id": f"video{k}", "category": k, "url": "u", "start time": 0.0, "end time": 9.0,
             "split": split, "id": k}
            for k, split in enumerate(["train", "train", "validate", "test"])
        ]  # fmt: skip
        sentences = [
            {"caption": f"clip {k} said {j}", "video_id": f"video{k}", "sen_id": 20 * k + j}
            for k in range(4)
            for j in range(20)
        ]
        return put_json(path / "MSRVTT_data.json", {"info": {}, "videos": videos, "sentences": sentences})

    def test_the_official_splits_keep_all_twenty_sentences(self, tmp_path):
        listing = read_listing(self.data(tmp_path))
        assert (listing.modality, list(listing.splits)) == ("video", ["train", "train", "val", "test"])
        assert {len(captions) for captions in listing.captions} == {20}

    def test_the_csv_of_1k_a_gives_one_caption_to_each_clip(self, tmp_path):
        self.data(tmp_path)
        (tmp_path / "MSRVTT_train.9k.csv").write_text("video_id\nvideo0\nvideo2\n")
        (tmp_path / "MSRVTT_JSFUSION_test.csv").write_text(
            "key,vid_key,video_id,sentence\nret0,msr3,video3,a clip that is tested\n"
        )
        listing = read_listing(tmp_path)
        assert list(zip(listing.keys, listing.splits, strict=True)) == [
            ("video0", "train"), ("video2", "train"), ("video3", "test")
        ]  # fmt: skip
        assert listing.captions[2] == ["a clip that is tested"]
        assert "1 clips are in no csv and are left out" in listing.notes

    def test_a_clip_in_two_splits_is_refused(self, tmp_path):
        self.data(tmp_path)
        for part in ("train", "test"):
            (tmp_path / f"x_{part}.csv").write_text("video_id\nvideo0\n")
        with pytest.raises(
            DataError, match=r"x_test.csv, column 'video_id', row 0: is 'video0', in 'train' as"
        ):
            read_listing(tmp_path)

    def test_a_short_clip_repeats_frames_and_a_long_one_is_sampled(self, tmp_path):
        self.data(tmp_path)
        put(tmp_path, *(f"frames/video0/{k:04}.jpg" for k in range(3)))
        for k in range(16):
            path = tmp_path / "frames" / "video1" / f"{k:04}.jpg"
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(picture(size=k + 1))
        frames = read_listing(tmp_path).frames
        assert len(frames.read(0)) == 8
        widths = [Image.open(io.BytesIO(data)).width for data in frames.read(1)]
        assert widths == [2, 4, 6, 8, 10, 12, 14, 16]
        with pytest.raises(FileNotFoundError):
            frames.read(2)


class TestShards:
    def shard(self, path: Path, members: dict[str, bytes]) -> Path:
        with tarfile.open(path, "w") as archive:
            for name, data in members.items():
                info = tarfile.TarInfo(name)
                info.size = len(data)
                archive.addfile(info, io.BytesIO(data))
        return path

    def test_members_of_a_sample_share_the_name_up_to_the_first_dot(self, tmp_path):
        self.shard(
            tmp_path / "train-0000.tar",
            {"000.jpg": picture("red"), "000.txt": b"red", "000.seg.png": b"", "001.txt": b" ",
             "001.png": picture("blue", "PNG")},
        )  # fmt: skip
        self.shard(
            tmp_path / "val-0000.tar",
            {"a/0.webp": picture("lime", "WEBP"), "a/0.json": b'{"caption": "lime"}'},
        )
        listing = read_listing(tmp_path)
        assert list(listing.keys) == ["train/000", "train/001", "val/a/0"]
        assert [list(captions) for captions in listing.captions] == [["red"], [], ["lime"]]
        assert listing.empty_captions == 1
        assert listing.frames.read(2)[0] == picture("lime", "WEBP")

    def test_a_key_in_two_files_is_refused(self, tmp_path):
        for number in range(2):
            self.shard(tmp_path / f"{number}.tar", {"0.txt": b"x", "0.jpg": picture()})
        with pytest.raises(DataError, match=r"1.tar: holds 'train/0', which an earlier file holds as well"):
            read_listing(tmp_path)

    def test_a_file_that_ends_too_early_or_is_compressed_is_refused(self, tmp_path):
        whole = self.shard(tmp_path / "0.tar", {"0.jpg": bytes(100_000), "0.txt": b"x"}).read_bytes()
        (tmp_path / "0.tar").write_bytes(whole[:50_000])
        with pytest.raises(DataError, match=r"0.tar: is no whole, uncompressed tar file"):
            read_listing(tmp_path)
        (tmp_path / "0.tar").write_bytes(b"\x1f\x8b" + bytes(600))
        with pytest.raises(DataError, match=r"0.tar: is no whole, uncompressed tar file"):
            read_listing(tmp_path)

    def test_links_and_devices_are_not_followed(self, tmp_path):
        with tarfile.open(tmp_path / "0.tar", "w") as archive:
            link = tarfile.TarInfo("0.jpg")
            link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
            archive.addfile(link)
            text = tarfile.TarInfo("0.txt")
            text.size = 1
            archive.addfile(text, io.BytesIO(b"x"))
        assert [fault.key for fault in inspect(read_listing(tmp_path)).missing] == ["train/0"]


class TestTables:
    def test_lines_of_a_picture_come_together(self, tmp_path):
        (tmp_path / "train.tsv").write_bytes(
            b"\xef\xbb\xbffilepath\ttitle\r\na.jpg\tone, with comma\r\n\r\nb.jpg\ttwo\r\n"
            b"a.jpg\tthree\r\na.jpg\tthree\r\n"
        )
        listing = read_listing(tmp_path / "train.tsv")
        assert dict(zip(listing.keys, listing.captions, strict=True)) == {
            "a.jpg": ["one, with comma", "three"],
            "b.jpg": ["two"],
        }
        assert listing.notes == (
            "has no column 'split': all items are in 'train'",
            "1 lines repeat a picture and its caption",
        )

    def test_a_separator_of_lines_within_a_caption_ends_no_line(self, tmp_path):
        (tmp_path / "t.csv").write_text("image,caption\na.jpg,one\u2028two\x0bthree\nb.jpg,\x85 four\n")
        assert read_listing(tmp_path).captions[0] == ["one\u2028two\x0bthree"]

    def test_a_folder_of_pictures_with_a_csv_is_read(self, tmp_path):
        (tmp_path / "captions.csv").write_text(
            'image,caption,split\nx/ü.jpg,"a ""q"" b",train\ny.jpg,c,val\n'
        )
        put(tmp_path, "x/ü.jpg", "y.jpg")
        found = inspect(read_listing(tmp_path))
        assert found.usable
        assert found.split_sizes == {"train": 1, "val": 1}

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("image,words\na,b\n", "has no column for the caption; expected one of title, caption, captions"),
            ("image,caption\na.jpg\n", "row 0: has 1 values; expected 2 as in the first line"),
            ("image,caption\n,b\n", "column 'image', row 0: is empty; expected a file"),
            (
                "image,caption,split\na,b,train\na,c,val\n",
                "row 1: is 'val'; expected 'train' as before for 'a'",
            ),
            ('image,caption\na,"b\n', "is no table: unexpected end of data"),
            ("", "has no column for the picture"),
        ],
    )
    def test_a_wrong_table_is_named(self, tmp_path, text, message):
        (tmp_path / "t.csv").write_text(text)
        with pytest.raises(DataError) as error:
            read_listing(tmp_path / "t.csv")
        assert message in str(error.value)


class TestSavedDatasets:
    def rows(self, count: int) -> dict[str, list[Any]]:
        return {
            "image": [{"bytes": picture(), "path": None} for _ in range(count)],
            "caption": [[f"caption {k}", f"again {k}"] for k in range(count)],
            "filename": [f"{k}.jpg" for k in range(count)],
            "split": ["train"] * (count - 1) + ["val"],
        }

    def test_a_split_column_goes_before_the_folder(self, tmp_path):
        datasets = pytest.importorskip("datasets")
        features = datasets.Features(
            image=datasets.Image(),
            caption=datasets.Sequence(datasets.Value("string")),
            filename=datasets.Value("string"),
            split=datasets.Value("string"),
        )
        made = datasets.Dataset.from_dict(self.rows(4), features=features)
        datasets.DatasetDict({"test": made}).save_to_disk(str(tmp_path / "flickr30k"), num_shards={"test": 2})
        listing = read_listing(tmp_path / "flickr30k")
        assert list(listing.splits) == ["train", "train", "train", "val"]
        assert listing.captions[3] == ["caption 3", "again 3"]
        assert listing.keys[0] == "0.jpg"
        assert inspect(listing).usable

    def test_rows_in_another_order_than_the_files_are_refused(self, tmp_path):
        datasets = pytest.importorskip("datasets")
        made = datasets.Dataset.from_dict({"image": [b"x"] * 3, "text": ["a", "b", "c"]}).select([2, 0])
        made.save_to_disk(str(tmp_path / "d"))
        state = json.loads((tmp_path / "d" / "state.json").read_text())
        listing = read_listing(tmp_path / "d")
        assert [list(captions) for captions in listing.captions] == [["c"], ["a"]]
        put_json(tmp_path / "d" / "state.json", state | {"_indices_data_files": [{"filename": "i.arrow"}]})
        with pytest.raises(DataError, match="call flatten_indices"):
            read_listing(tmp_path / "d")

    def test_a_data_file_outside_the_folder_is_refused(self, tmp_path):
        put_json(tmp_path / "d" / "state.json", {"_data_files": [{"filename": "../x.arrow"}]})
        with pytest.raises(DataError, match="does not lie in the data's folder"):
            read_listing(tmp_path / "d")


class TestPictures:
    @pytest.mark.parametrize(
        ("kind", "mode"), [("JPEG", "CMYK"), ("PNG", "P"), ("PNG", "RGBA"), ("PNG", "1")]
    )
    def test_uncommon_pictures_are_decoded(self, tmp_path, kind, mode):
        rows = ["image,caption,split"] + [f"{k}.img,c{k},train" for k in range(4)]
        (tmp_path / "t.csv").write_text("\n".join(rows))
        for k in range(4):
            (tmp_path / f"{k}.img").write_bytes(picture("white", kind, mode))
        data = open_data(tmp_path)
        assert data.pictures.shape == (4, 3, 32, 32)
        assert data.pictures.float().mean() > 250

    def test_sixteen_bits_keep_their_grey(self):
        buffer = io.BytesIO()
        Image.fromarray(np.full((8, 8), 0x8000, np.uint16)).save(buffer, "PNG")
        assert decode(buffer.getvalue()).getpixel((3, 3)) == (128, 128, 128)

    def test_a_picture_is_turned_as_its_camera_says(self, tmp_path):
        half = Image.new("RGB", (40, 40), "black")
        half.paste("white", (0, 0, 40, 20))
        exif = Image.Exif()
        exif[0x0112] = 3
        half.save(tmp_path / "0.jpg", exif=exif)
        half.save(tmp_path / "1.jpg")
        (tmp_path / "t.csv").write_text("image,caption,split\n0.jpg,a,train\n1.jpg,b,train\n")
        data = open_data(tmp_path)
        turned, straight = (data.pictures[k].float() for k in range(2))
        assert (turned.flip(1) - straight).abs().mean() < 2

    def test_what_cannot_be_used_is_left_out_and_counted(self, tmp_path):
        rows = [f"{k}.jpg,{'' if k == 3 else f'c{k}'},train" for k in range(6)]
        (tmp_path / "t.csv").write_text("\n".join(["image,caption,split", *rows]))
        put(tmp_path, *(f"{k}.jpg" for k in range(5)))
        (tmp_path / "1.jpg").write_bytes(b"")
        data = open_data(tmp_path)
        assert list(data.item_keys) == ["0.jpg", "2.jpg", "4.jpg"]
        assert data.item_ids.tolist() == [0, 2, 4]
        assert data.left_out is not None
        assert data.left_out.startswith(
            "t.csv: 1 of 6 items have no caption; 2 of 6 items have no usable picture (first: 1.jpg"
        )

    def test_the_wrong_folder_is_refused(self, tmp_path):
        (tmp_path / "t.csv").write_text("image,caption\n" + "".join(f"{k}.jpg,c\n" for k in range(4)))
        put(tmp_path / "here", "0.jpg")
        with pytest.raises(DataError, match=r"3 of 4 pictures cannot be used, first 1.jpg is missing"):
            open_data(tmp_path / "t.csv", pictures=tmp_path / "here")


def test_an_unknown_layout_names_those_that_are_known(tmp_path):
    (tmp_path / "notes.md").write_text("x")
    with pytest.raises(
        DataError, match="has none of the layouts known: saved Hugging Face dataset, SCAN prec"
    ):
        read_listing(tmp_path)
