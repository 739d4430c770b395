"""Clips as video files, made here with the library that reads them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from uwml_core.data import DataError, open_data
from uwml_core.data.formats import read_listing
from uwml_core.data.inspection import inspect
from uwml_core.data.pictures import decode

av = pytest.importorskip("av")

CODECS = {".mp4": "libx264", ".webm": "libvpx-vp9", ".avi": "mpeg4"}


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("UWML_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def video(path: Path, levels: list[int], size: tuple[int, int] = (64, 48)) -> Path:
    """A video of plain grey frames, one for each level."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with av.open(str(path), "w") as container:
        stream = container.add_stream(CODECS[path.suffix], rate=25)
        stream.width, stream.height = size
        stream.pix_fmt = "yuv420p"
        for level in levels:
            pixels = np.full((size[1], size[0], 3), level, np.uint8)
            container.mux(stream.encode(av.VideoFrame.from_ndarray(pixels, format="rgb24")))
        container.mux(stream.encode())
    return path


def msrvtt(folder: Path, clips: int = 3) -> Path:
    videos = [{"video_id": f"video{k}", "category": k, "split": "train"} for k in range(clips)]
    sentences = [{"video_id": f"video{k}", "caption": f"clip {k}", "sen_id": k} for k in range(clips)]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "MSRVTT_data.json").write_text(json.dumps({"videos": videos, "sentences": sentences}))
    return folder


def greys(frames: list[bytes]) -> list[int]:
    return [decode(data).getpixel((20, 20))[0] for data in frames]


@pytest.mark.parametrize("suffix", CODECS)
def test_frames_are_taken_at_even_distances(tmp_path, suffix):
    levels = [20 + 5 * k for k in range(40)]
    video(tmp_path / f"a{suffix}", levels)
    (tmp_path / "clips.csv").write_text(f"video,caption,split\na{suffix},rising grey,train\n")
    listing = read_listing(tmp_path)
    assert (listing.modality, listing.frames.length(0)) == ("video", 8)
    assert greys(listing.frames.read(0)) == pytest.approx(levels[2::5], abs=6)


def test_a_short_video_repeats_frames_and_is_counted(tmp_path):
    msrvtt(tmp_path)
    for k, length in enumerate((3, 8, 20)):
        video(tmp_path / "videos" / "all" / f"video{k}.mp4", [60 * (j % 4) + 20 for j in range(length)])
    listing = read_listing(tmp_path)
    assert greys(listing.frames.read(0)) == pytest.approx([20, 20, 20, 80, 80, 140, 140, 140], abs=8)
    found = inspect(listing)
    assert found.short == ["video0"]
    assert found.usable
    assert "  1 clips have fewer than 8 frames and repeat some: video0" in found.lines()


def test_short_folders_of_frames_are_counted_too(tmp_path):
    msrvtt(tmp_path, 1)
    frames = tmp_path / "frames" / "video0"
    frames.mkdir(parents=True)
    source = read_listing(_one(tmp_path / "source"))
    for k in range(3):
        (frames / f"{k}.jpg").write_bytes(source.frames.read(0)[0])
    assert inspect(read_listing(tmp_path)).short == ["video0"]


def _one(folder: Path) -> Path:
    video(folder / "a.mp4", [50] * 9)
    (folder / "c.csv").write_text("video,caption\na.mp4,grey\n")
    return folder


def test_a_video_that_is_missing_or_broken_is_left_out_and_counted(tmp_path):
    msrvtt(tmp_path, 5)
    for k in range(3):
        video(tmp_path / "videos" / f"video{k}.mp4", [40 * k] * 10)
    whole = (tmp_path / "videos" / "video2.mp4").read_bytes()
    (tmp_path / "videos" / "video3.mp4").write_bytes(whole[: len(whole) // 3])
    found = inspect(read_listing(tmp_path))
    assert [fault.key for fault in found.missing] == ["video4"]
    [broken] = found.broken
    assert (broken.key, broken.problem.partition(" (")[0]) == ("video3", "is no whole video")
    data = open_data(tmp_path)
    assert data.pictures.shape == (3, 8, 3, 32, 32)
    assert data.left_out is not None
    assert "2 of 5 items have no usable picture (first: video3 is no whole video" in data.left_out


def test_a_file_that_is_no_video_and_one_without_pictures_are_named(tmp_path):
    for name, data in (("text.mp4", b"not a video at all"), ("empty.mp4", b"")):
        (tmp_path / name).write_bytes(data)
    (tmp_path / "c.csv").write_text("video,caption\ntext.mp4,a\nempty.mp4,b\n")
    found = inspect(read_listing(tmp_path))
    assert [fault.key for fault in found.broken] == ["text.mp4", "empty.mp4"]
    with pytest.raises(DataError, match=r"none of 2 pictures can be read"):
        open_data(tmp_path)


def test_a_video_is_decoded_once_and_again_when_it_changes(tmp_path, cache, monkeypatch):
    listing = read_listing(_one(tmp_path / "d"))
    first = listing.frames.read(0)
    assert len(list(cache.rglob("*.zip"))) == 1
    decoded = []
    opened = av.open
    monkeypatch.setattr(av, "open", lambda *named: decoded.append(named) or opened(*named))
    assert listing.frames.read(0) == first
    assert not decoded
    video(tmp_path / "d" / "a.mp4", [200] * 30)
    assert greys(listing.frames.read(0)) == pytest.approx([200] * 8, abs=8)
    assert decoded
    [*_, newest] = sorted(cache.rglob("*.zip"), key=lambda path: path.stat().st_mtime_ns)
    newest.write_bytes(b"torn")
    assert greys(listing.frames.read(0)) == pytest.approx([200] * 8, abs=8)


def test_large_frames_are_made_smaller(tmp_path):
    video(tmp_path / "a.mp4", [90] * 9, size=(640, 320))
    (tmp_path / "c.csv").write_text("video,caption\na.mp4,grey\n")
    assert decode(read_listing(tmp_path).frames.read(0)[0]).size == (256, 128)


def test_pictures_beside_videos_are_refused(tmp_path):
    (tmp_path / "c.csv").write_text("filepath,caption\na.jpg,x\nb.mp4,y\n")
    with pytest.raises(DataError, match=r"c.csv: names pictures and videos, such as 'b.mp4'; expected one"):
        read_listing(tmp_path)


def test_without_the_library_it_says_what_to_install(tmp_path, monkeypatch):
    folder = _one(tmp_path / "d")
    monkeypatch.setattr("uwml_core.data.formats.videos.find_spec", lambda name: None)
    with pytest.raises(DataError, match=r'decoding them takes PyAV: pip install "uwml-lens\[video\]"'):
        read_listing(folder)
