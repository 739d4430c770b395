"""Which part files of a run are read, and which are skipped and why."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from uwml_core.runlog.cache import BoundedCache
from uwml_core.runlog.parts import PartName, parse_part_name
from uwml_core.runlog.tables import SCHEMA_VERSION

_MAGIC = b"PAR1"
# what stands behind the data of a whole file: footer length and magic
_TAIL = 8
# key and value as they stand in a footer, which is not worth decoding for them
_VERSION = re.compile(rb"uwml_schema_version\x18.(\d{1,9})", re.DOTALL)


@dataclass(frozen=True)
class Part:
    """One part file; first and last are -1 where a foreign file's name does not say."""

    path: Path
    segment: int
    first: int
    last: int
    size: int
    mtime_ns: int
    rank: int = 0

    @property
    def key(self) -> tuple[str, int, int]:
        """What identifies the content: path, size and time of change."""
        return str(self.path), self.size, self.mtime_ns

    @property
    def named(self) -> bool:
        """Whether the file's name says which steps it holds; -1 is also the step before training."""
        return self.last >= 0 or parse_part_name(self.path.name) is not None


@dataclass(frozen=True)
class HealthIssue:
    """One thing that is wrong with a run's files.

    Attributes:
        file: path relative to the run's folder.
        kind: ``torn`` (cut off), ``foreign`` (not ours), ``unreadable``, ``run_file``, ``lost`` (never
            written; ``file`` is the table then) or ``remote`` (out of reach; ``file`` is the place then).
        message: one sentence.
        since: of a remote place that is out of reach, when it was read last (UTC); None where it never was.
        steps: of lost rows, the first and the last step.
    """

    file: str
    kind: str
    message: str
    since: str | None = None
    steps: tuple[int, int] | None = None


@dataclass(frozen=True)
class Listing:
    """Parts to read, in the order of segment and range, and issues with the other files."""

    parts: tuple[Part, ...] = ()
    issues: tuple[HealthIssue, ...] = ()


_TRIES = 10
_WHOLE = ""
# What is wrong with a file, or _WHOLE. The key holds size and time, so a mended file is looked at again.
_verdicts: BoundedCache[str] = BoundedCache(100_000)
# How many problems were remembered so far: each may change what was listed.
_remembered = [0]
# A table's files as they were listed last, and what came of it: a page asks a dozen times.
_listings: BoundedCache[tuple[Hashable, Listing]] = BoundedCache(1_000)
_Files = tuple[tuple[str, int, int], ...]


def list_table(run: Path, table: str, *, foreign: bool) -> Listing:
    """List a table's folder; where the run is foreign, any Parquet file counts, ``<table>.parquet``, too."""
    key, remembered = (str(run), table, foreign), _remembered[0]
    known = _listings.get(key)
    if known is not None and known[0] == (_files(run, table, foreign), remembered):
        return known[1]
    files, parts, issues = _usable(run, table, foreign)
    kept, _ = without_covered(parts)
    listing = Listing(tuple(kept), tuple(sorted(issues, key=lambda issue: issue.file)))
    _listings.put(key, ((files, remembered), listing))
    return listing


def remove_covered(run: Path, tables: Iterable[str]) -> None:
    """Delete files that a wider one has made superfluous; only for the one that holds the run's lock."""
    for table in tables:
        _files_there, parts, _issues = _usable(run, table, foreign=False)
        for part in without_covered(parts)[1]:
            with contextlib.suppress(OSError):
                part.path.unlink()


def _usable(run: Path, table: str, foreign: bool) -> tuple[_Files, list[Part], list[HealthIssue]]:
    for _ in range(_TRIES - 1):
        with contextlib.suppress(FileNotFoundError):
            return _looked_at(run, table, foreign)
    return _looked_at(run, table, foreign)


def _files(run: Path, table: str, foreign: bool) -> _Files:
    """Path, size and time of change of every file that may be a part of a table."""
    entries = _scan(run / table)
    if foreign:
        entries += [found for found in _scan(run) if found[0].name == f"{table}.parquet"]
    return tuple((entry.path, stat.st_size, stat.st_mtime_ns) for entry, stat in entries)


def _looked_at(run: Path, table: str, foreign: bool) -> tuple[_Files, list[Part], list[HealthIssue]]:
    """Files, which of them are whole parts, and what is wrong with the others.

    Raises:
        FileNotFoundError: if a file vanished after it was listed.
    """
    files, parts, issues = _files(run, table, foreign), [], []
    for path, size, mtime_ns in files:
        part = _as_part(path, size, mtime_ns, foreign)
        problem = _problem(part)
        if part is not None and problem is None:
            parts.append(part)
        elif problem is not None:
            kind, what = problem
            name = os.path.relpath(path, run)
            issues.append(HealthIssue(name, kind, f"{name} {what} and is skipped"))
    return files, parts, issues


def stamp(run: Path, table: str) -> list[tuple[str, int, int]]:
    """Name, size and time of change of every file that may belong to a table, without looking inside."""
    found = [*_scan(run / table), *(flat for flat in _scan(run) if flat[0].name == f"{table}.parquet")]
    return sorted((entry.name, stat.st_size, stat.st_mtime_ns) for entry, stat in found)


def _scan(folder: Path) -> list[tuple[os.DirEntry[str], os.stat_result]]:
    """Files of a folder at one moment: looked at again while it changes.

    Otherwise the file that a compaction made could be missed, and those it took away, too.
    """
    found: list[tuple[os.DirEntry[str], os.stat_result]] = []
    try:
        for _ in range(_TRIES):
            before = os.stat(folder).st_mtime_ns
            found, whole = _files_in(folder)
            if whole and os.stat(folder).st_mtime_ns == before:
                break
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return []
    return found


def _files_in(folder: Path) -> tuple[list[tuple[os.DirEntry[str], os.stat_result]], bool]:
    """Files with their size and time, and whether none has vanished meanwhile."""
    found, whole = [], True
    with os.scandir(folder) as entries:
        for entry in entries:
            if not entry.name.startswith(".") and entry.is_file():
                try:
                    found.append((entry, entry.stat()))
                except FileNotFoundError:
                    whole = False
    return found, whole


@lru_cache(maxsize=20_000)
def _as_part(path: str, size: int, mtime_ns: int, foreign: bool) -> Part | None:
    name = parse_part_name(os.path.basename(path))
    if name is None and not (foreign and path.endswith(".parquet")):
        return None
    segment, first, last, rank = name or PartName(0, -1, -1)
    return Part(Path(path), segment, first, last, size, mtime_ns, rank)


def _problem(part: Part | None) -> tuple[str, str] | None:
    """Kind of a health issue and what is wrong; None for a part that can be used."""
    if part is None:
        return "foreign", "is no part of the run log"
    if problem := _tail_problem(part):
        return "torn", problem
    if problem := known_problem(part):
        return "unreadable", f"cannot be read ({problem})"
    return None


def _tail_problem(part: Part) -> str:
    key = ("tail", *part.key)
    verdict = _verdicts.get(key)
    if verdict is None:
        verdict = _look_at_tail(part)
        _verdicts.put(key, verdict)
    return verdict


def _look_at_tail(part: Part) -> str:
    if part.size < 2 * len(_MAGIC) + _TAIL:
        return f"has {part.size} bytes"
    try:
        with part.path.open("rb") as file:
            head = file.read(len(_MAGIC))
            file.seek(-_TAIL, os.SEEK_END)
            tail = file.read(_TAIL)
            length = int.from_bytes(tail[:4], "little")
            if head != _MAGIC or tail[4:] != _MAGIC or length + _TAIL > part.size:
                return "is cut off or no Parquet"
            file.seek(-_TAIL - length, os.SEEK_END)
            version = _VERSION.search(file.read(length))
    except FileNotFoundError:
        raise
    except OSError as error:
        return f"cannot be opened ({error.strerror})"
    if version and int(version[1]) > SCHEMA_VERSION:
        newer = f"schema version {int(version[1])} is newer than {SCHEMA_VERSION}, update uwml-lens"
        remember_problem(part, ValueError(newer))
    return _WHOLE


def check_footer(part: Part) -> bool:
    """Read a part's footer once and remember whether that works; True where a problem was found now."""
    key = ("footer", *part.key)
    if _verdicts.get(key) is not None:
        return False
    try:
        pq.read_metadata(part.path)
    except FileNotFoundError:
        return False
    except (OSError, pa.ArrowException) as error:
        remember_problem(part, error)
    _verdicts.put(key, _WHOLE)
    return bool(known_problem(part))


def remember_problem(part: Part, error: Exception) -> None:
    """Have every later listing skip a part that could not be read."""
    lines = str(error).strip().splitlines()
    _verdicts.put(("read", *part.key), lines[0] if lines else type(error).__name__)
    _remembered[0] += 1


def known_problem(part: Part) -> str:
    """What ``remember_problem`` was told about a part; empty when nothing."""
    return _verdicts.get(("read", *part.key)) or ""


def without_covered(parts: list[Part]) -> tuple[list[Part], list[Part]]:
    """Files that count, and those whose range lies inside a wider one of the same segment and process.

    A compaction leaves them when it dies.
    """
    ordered = sorted(parts, key=lambda part: (part.segment, part.first, -part.last, part.path))
    kept: list[Part] = []
    covered: list[Part] = []
    reached: dict[tuple[int, int], int] = {}
    for part in ordered:
        named, source = part.named, (part.segment, part.rank)
        if named and part.last <= reached.get(source, part.last - 1):
            covered.append(part)
            continue
        if named:
            reached[source] = part.last
        kept.append(part)
    return kept, covered
