"""MSR-VTT: MSRVTT_data.json with a csv of the split, clips as video files or as folders of frames.

Reference: Xu et al., "MSR-VTT: A large video description dataset for bridging video and language", 2016;
split 1k-A: Yu et al., "A joint sequence fusion model for video question answering and retrieval", 2018.
"""

from __future__ import annotations

from pathlib import Path

from uwml_core.data.errors import DataError
from uwml_core.data.formats.files import FrameFolders
from uwml_core.data.formats.listing import Frames, Listing, spoken
from uwml_core.data.formats.splits import split_of
from uwml_core.data.formats.videos import VideoFiles, video_names
from uwml_core.data.formats.words import entry, listed, read_json, read_table

LAYOUT = "MSR-VTT"
FRAMES = 8
_JSON = ("MSRVTT_data.json", "MSRVTT_v2.json", "videodatainfo.json")


def recognised(path: Path) -> bool:
    """Whether a path is a JSON with ``videos`` and ``sentences``, or a folder that holds one."""
    file = _file(path)
    if file is None:
        return False
    with file.open("rb") as opened:
        head = opened.read(65536)
    return b'"video_id"' in head


def read(path: Path, pictures: Path | None = None) -> Listing:
    """Read clips with all of their sentences.

    A csv ``*train*.csv`` (column ``video_id``) and ``*test*.csv`` (``video_id`` and ``sentence``) beside
    the JSON take the place of its own splits: one caption then stands for each clip that is tested.

    Args:
        path: the JSON, or the folder that holds it.
        pictures: folder with a folder of frames per clip, or with video files anywhere below it; when None,
            ``frames`` beside the JSON, else the video files below the JSON's folder.

    Raises:
        DataError: for entries that are not as they should be, and clips that do not exist.
    """
    file = _file(path)
    if file is None:
        raise DataError(str(path), f"holds no {_JSON[0]}")
    value = read_json(file)
    if not isinstance(value, dict):
        raise DataError(file.name, f"is {type(value).__name__}; expected 'videos' and 'sentences'")
    videos = listed(value.get("videos"), file, "'videos'")
    ids = [str(entry(video, "video_id", str, file, row)) for row, video in enumerate(videos)]
    captions: dict[str, list[str]] = {name: [] for name in ids}
    for row, sentence in enumerate(listed(value.get("sentences"), file, "'sentences'")):
        name = entry(sentence, "video_id", str, file, row)
        if name not in captions:
            raise DataError(file.name, f"names {name[:40]!r}, which is no video", column="video_id", row=row)
        captions[name].append(str(entry(sentence, "caption", str, file, row)))
    splits = {name: str(video.get("split", "train")) for name, video in zip(ids, videos, strict=True)}
    splits, notes = _by_tables(file.parent, splits, captions)
    found = {name: spoken(captions[name]) for name in splits}
    groups = {name: str(video.get("category", "")) for name, video in zip(ids, videos, strict=True)}
    return Listing(
        name=file.name,
        layout=LAYOUT,
        keys=list(splits),
        splits=[split_of(split) for split in splits.values()],
        groups=[groups[name] for name in splits],
        captions=[found[name][0] for name in splits],
        empty_captions=sum(empty for _, empty in found.values()),
        frames=_frames(file.parent, pictures, list(splits)),
        modality="video",
        notes=tuple(notes),
    )


def _frames(folder: Path, pictures: Path | None, ids: list[str]) -> Frames:
    beside = folder / "frames"
    if pictures is None and beside.is_dir():
        return FrameFolders(beside, ids, FRAMES)
    within = folder if pictures is None else pictures
    files = video_names(within)
    if any(name in files for name in ids):
        return VideoFiles(within, [files.get(name) for name in ids], FRAMES)
    return FrameFolders(beside if pictures is None else pictures, ids, FRAMES)


def _file(path: Path) -> Path | None:
    if path.is_file():
        return path if path.suffix.lower() == ".json" else None
    return next((path / name for name in _JSON if (path / name).is_file()), None)


def _by_tables(
    folder: Path, splits: dict[str, str], captions: dict[str, list[str]]
) -> tuple[dict[str, str], list[str]]:
    """Splits as the csv files name them, and what they say; the JSON's own without any."""
    chosen: dict[str, str] = {}
    notes: list[str] = []
    for part in ("train", "val", "test"):
        for table in sorted(folder.glob(f"*{part}*.csv")):
            header, rows = read_table(table, ",")
            if "video_id" not in header:
                raise DataError(
                    table.name, "is missing; the first line has " + ", ".join(header), column="video_id"
                )
            names = [row[header.index("video_id")] for row in rows]
            _check_known(table, names, splits, chosen, part)
            chosen |= dict.fromkeys(names, part)
            if "sentence" in header:
                for name, row in zip(names, rows, strict=True):
                    captions[name] = [row[header.index("sentence")]]
            each = "one caption each" if "sentence" in header else "all their captions"
            notes.append(f"{table.name}: {len(names)} clips in {part!r}, {each}")
    if not chosen:
        return splits, notes
    unnamed = len(splits) - len(chosen)
    if unnamed:
        notes.append(f"{unnamed} clips are in no csv and are left out")
    return chosen, notes


def _check_known(
    table: Path, names: list[str], splits: dict[str, str], chosen: dict[str, str], part: str
) -> None:
    seen: set[str] = set()
    for row, name in enumerate(names):
        if name not in splits:
            problem = f"is {name[:40]!r}, which is no video of the JSON"
            raise DataError(table.name, problem, column="video_id", row=row)
        if name in seen or chosen.get(name, part) != part:
            where = "twice here" if name in seen else f"in {chosen[name]!r} as well"
            raise DataError(table.name, f"is {name[:40]!r}, {where}", column="video_id", row=row)
        seen.add(name)
