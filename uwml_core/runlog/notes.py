"""Pinned notes of a run: one JSON file each, in the run or, where that is read-only, in the user's cache.

A note holds no name of who wrote it. Files that are no notes are counted, never shown.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import stat
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from uwml_core.runlog.bundle import NOTES_FOLDER
from uwml_core.runlog.cache_folder import cache_folder, named
from uwml_core.runlog.remote_run import RemoteRun
from uwml_core.runlog.run import Run

ANCHORS = ("step", "item", "chart")
TEXT_BYTES = 16_384

_FILE_BYTES = 65_536
_MOST_NOTES = 1000
# a part of the names that a bundle may hold, so that every note can travel
_ID = re.compile(r"[a-z0-9][a-z0-9._-]{0,94}")
_NAME = re.compile(r"[a-z0-9_]{1,40}")
_MOST_CHOICES = 60


@dataclass(frozen=True, kw_only=True)
class Anchor:
    """What a note is pinned at.

    Attributes:
        kind: one of ``ANCHORS``.
        value: number of the step or the item, or name of the chart on its page.

    Raises:
        ValueError: if either is none.
    """

    kind: str
    value: str

    def __post_init__(self) -> None:
        if self.kind not in ANCHORS:
            raise ValueError(f"kind={self.kind!r} is unknown; choose one of {', '.join(ANCHORS)}")
        is_number = self.value.isascii() and self.value.isdecimal() and len(self.value) < 19
        if self.kind == "chart" and not _NAME.fullmatch(self.value):
            raise ValueError(f"value={self.value!r} is no chart; expected up to 40 of a-z, 0-9 and '_'")
        if self.kind != "chart" and not is_number:
            raise ValueError(f"value={self.value!r} is no {self.kind}; expected a whole number from 0")


@dataclass(frozen=True, kw_only=True)
class Note:
    """A note as it is written.

    Attributes:
        page: page of the app that it belongs to, such as ``training``.
        anchor: what it is pinned at.
        text: at most ``TEXT_BYTES`` of UTF-8, not blank.
        view: choices in the page's address when it was pinned, so that a link shows the same again.
        id: part of its file's name.
        created_at: UTC, ISO 8601.

    Raises:
        ValueError: naming what is wrong.
    """

    page: str
    anchor: Anchor
    text: str
    view: Mapping[str, str] = field(default_factory=dict)
    id: str = ""
    created_at: str = ""

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.page):
            raise ValueError(f"page={self.page!r} is no page; expected up to 40 of a-z, 0-9 and '_'")
        if not self.text.strip():
            raise ValueError("text is blank; write what is to be noted")
        try:
            size = len(self.text.encode())
        except UnicodeEncodeError as error:
            raise ValueError("text holds half a character (a surrogate) and cannot be stored") from error
        if size > TEXT_BYTES:
            raise ValueError(f"text has {size:,} bytes; expected at most {TEXT_BYTES:,}")
        if len(self.view) > _MOST_CHOICES:
            raise ValueError(f"view has {len(self.view)} choices; expected at most {_MOST_CHOICES}")


@dataclass(frozen=True, kw_only=True)
class Notes:
    """Notes of a run, oldest first, and how many files among them are none."""

    notes: tuple[Note, ...] = ()
    skipped: int = 0


def note_folders(run: Run) -> tuple[Path, Path]:
    """Where a run's notes lie: in the run, and in the user's cache for a run that cannot be written."""
    return run.folder(NOTES_FOLDER), cache_folder() / NOTES_FOLDER / named(
        str(run.path.absolute()), run.run_id
    )


def read_notes(run: Run) -> Notes:
    """Notes of both places; never raises for a file that is torn, foreign or too large."""
    found, skipped = [], 0
    for path in sorted(path for folder in note_folders(run) for path in _files(folder))[:_MOST_NOTES]:
        note = _read(path)
        skipped += note is None
        found += [note] if note else []
    return Notes(notes=tuple(sorted(found, key=lambda note: (note.created_at, note.id))), skipped=skipped)


def _files(folder: Path) -> list[Path]:
    try:
        return [path for path in folder.glob("*.json") if not path.name.startswith(".")]
    except OSError:
        return []


def _read(path: Path) -> Note | None:
    try:
        status = path.lstat()
        # a link could lead anywhere
        if not _ID.fullmatch(path.stem) or not stat.S_ISREG(status.st_mode) or status.st_size > _FILE_BYTES:
            return None
        return _parsed(json.loads(path.read_text(encoding="utf-8")), path.stem)
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return None


def _parsed(content: Any, note_id: str) -> Note:
    anchor = Anchor(kind=_text(content["anchor"]["kind"]), value=_text(content["anchor"]["value"]))
    view = {_text(name): _text(value) for name, value in content.get("view", {}).items()}
    created = datetime.fromisoformat(_text(content["created_at"]))
    return Note(
        page=_text(content["page"]),
        anchor=anchor,
        text=_text(content["text"]),
        view=view,
        id=note_id,
        created_at=created.astimezone(UTC).isoformat(timespec="seconds"),
    )


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is no text")
    value.encode()
    return value


def pin_note(run: Run, note: Note) -> Note:
    """Write a note; a reader sees all of it or nothing.

    Args:
        run: whose note it is.
        note: without ``id`` and ``created_at``, which are given here.

    Returns:
        The note as it was written.

    Raises:
        OSError: if neither the run nor the cache can be written.
        ValueError: if the note with its view is too large.
    """
    now = datetime.now(UTC)
    note_id = f"{now:%Y%m%d-%H%M%S}-{secrets.token_hex(4)}"
    content = asdict(note) | {"id": note_id, "created_at": now.isoformat(timespec="seconds")}
    data = json.dumps(content, ensure_ascii=False, indent=1).encode()
    if len(data) > _FILE_BYTES:
        raise ValueError(f"the note with its view has {len(data):,} bytes; expected at most {_FILE_BYTES:,}")
    path = _writable(run) / f"{note_id}.json"
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        temporary.write_bytes(data)
        os.replace(temporary, path)
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()
    return _parsed(content, note_id)


def delete_note(run: Run, note_id: str) -> None:
    """Delete a note; nothing happens where there is none, or where it lies in a remote run itself.

    Raises:
        OSError: if the folder cannot be written.
        ValueError: if the id is none.
    """
    if not _ID.fullmatch(note_id):
        raise ValueError(f"note_id={note_id!r} is no id; expected one that read_notes gave")
    own, cache = note_folders(run)
    for folder in (cache,) if isinstance(run, RemoteRun) else (own, cache):
        with contextlib.suppress(FileNotFoundError):
            (folder / f"{note_id}.json").unlink()


def _writable(run: Run) -> Path:
    own, cache = note_folders(run)
    # what lies in the mirror of a remote run may be removed to make room
    if not isinstance(run, RemoteRun):
        with contextlib.suppress(OSError):
            own.mkdir(exist_ok=True)
        # a mode bit says nothing about a read-only file system; access() asks it
        if own.is_dir() and os.access(own, os.W_OK | os.X_OK):
            return own
    cache.mkdir(parents=True, exist_ok=True)
    return cache
