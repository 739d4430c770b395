"""CSV or TSV with the path of a picture or video and a caption in each line, as open_clip and others."""

from __future__ import annotations

from pathlib import Path

from uwml_core.data.errors import DataError
from uwml_core.data.formats.files import PictureFiles
from uwml_core.data.formats.listing import Frames, Listing, spoken
from uwml_core.data.formats.videos import VideoFiles, is_video
from uwml_core.data.formats.words import read_table, read_text

LAYOUT = "table of pictures and captions"
# Column names in use: open_clip, CLIP_benchmark, run_clip, Flickr's own table, img2dataset.
PICTURE_COLUMNS = (
    "filepath",
    "image",
    "image_path",
    "filename",
    "file_name",
    "path",
    "image_name",
    "picture",
    "video",
    "video_path",
)
# Frames that are taken of each video.
FRAMES = 8
CAPTION_COLUMNS = ("title", "caption", "captions", "text", "comment", "sentence")
_SPLIT = "split"
_GROUP = "group"
DEFAULT_SPLIT = "train"


def recognised(path: Path) -> bool:
    """Whether a path is a .csv or .tsv file, or a folder with exactly one beside its pictures."""
    return _file(path) is not None


def read(path: Path, pictures: Path | None = None) -> Listing:
    """Read lines, those of one picture together, in the order of first appearance.

    Args:
        path: the table, or the folder that holds it.
        pictures: folder that the names are relative to; the table's own when None.

    Raises:
        DataError: if a column is missing, a name is empty, or lines of a picture name different splits; and
            for pictures beside videos.
    """
    file = _file(path)
    if file is None:
        raise DataError(str(path), "holds no table; expected one .csv or .tsv file")
    separator = "\t" if "\t" in read_text(file).partition("\n")[0] else ","
    header, rows = read_table(file, separator)
    image = _column(file, header, PICTURE_COLUMNS, "the picture")
    texts = _column(file, header, CAPTION_COLUMNS, "the caption")
    captions: dict[str, list[str]] = {}
    for number, row in enumerate(rows):
        if not row[image].strip():
            raise DataError(file.name, "is empty; expected a file", column=header[image], row=number)
        captions.setdefault(row[image].strip(), []).append(row[texts])
    found = [spoken(several) for several in captions.values()]
    names = [row[image].strip() for row in rows]
    splits = _told(file, header, rows, names, _SPLIT)
    notes = () if splits else (f"has no column 'split': all items are in {DEFAULT_SPLIT!r}",)
    repeated = sum(len(several) - len(set(several)) for several in captions.values())
    return Listing(
        name=file.name,
        layout=LAYOUT,
        keys=list(captions),
        splits=list(splits.values()) if splits else [DEFAULT_SPLIT] * len(captions),
        groups=list(groups.values()) if (groups := _told(file, header, rows, names, _GROUP)) else None,
        captions=[list(dict.fromkeys(said)) for said, _ in found],
        empty_captions=sum(empty for _, empty in found),
        frames=_frames(file, file.parent if pictures is None else pictures, list(captions)),
        modality="video" if is_video(next(iter(captions), "")) else "image",
        notes=(*notes, *((f"{repeated} lines repeat a picture and its caption",) if repeated else ())),
    )


def _frames(file: Path, folder: Path, names: list[str]) -> Frames:
    videos = [is_video(name) for name in names]
    if not any(videos):
        return PictureFiles(folder, names)
    if not all(videos):
        other = names[videos.index(not videos[0])]
        raise DataError(file.name, f"names pictures and videos, such as {other[:80]!r}; expected one kind")
    return VideoFiles(folder, names, FRAMES)


def _file(path: Path) -> Path | None:
    if path.is_file():
        return path if path.suffix.lower() in (".csv", ".tsv") else None
    if not path.is_dir():
        return None
    tables = [file for file in path.iterdir() if file.suffix.lower() in (".csv", ".tsv") and file.is_file()]
    return tables[0] if len(tables) == 1 else None


def _column(file: Path, header: list[str], known: tuple[str, ...], what: str) -> int:
    for name in known:
        if name in header:
            return header.index(name)
    problem = f"has no column for {what}; expected one of {', '.join(known)}; the first line has "
    raise DataError(file.name, problem + (", ".join(header) or "nothing"))


def _told(
    file: Path, header: list[str], rows: list[list[str]], names: list[str], column: str
) -> dict[str, str]:
    """Value of a column for each picture; nothing where there is no such column."""
    if column not in header:
        return {}
    place, values = header.index(column), dict[str, str]()
    for number, (name, row) in enumerate(zip(names, rows, strict=True)):
        if values.setdefault(name, row[place]) != row[place]:
            problem = f"is {row[place][:40]!r}; expected {values[name][:40]!r} as before for {name[:80]!r}"
            raise DataError(file.name, problem, column=column, row=number)
    return values
