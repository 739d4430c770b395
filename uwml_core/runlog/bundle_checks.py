"""What a bundle from elsewhere may hold: names, sizes, hashes, and content that fits the schema."""

from __future__ import annotations

import json
import re
import stat
import unicodedata
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from uwml_core.runlog.bundle import (
    BUNDLE_VERSION,
    ITEMS_PREFIX,
    MANIFEST,
    NOTES_FOLDER,
    RUN_PREFIX,
)
from uwml_core.runlog.parts import parse_part_name
from uwml_core.runlog.runfile import RUN_FILE, check_run_id
from uwml_core.runlog.schema import ITEMS, PROJECTIONS, SCHEMA_VERSION, TABLES, Table

_DEVICE = re.compile(r"(con|prn|aux|nul|conin\$|conout\$|com[0-9¹²³]|lpt[0-9¹²³])(\..*)?", re.IGNORECASE)
_KEYED = re.compile(r"[0-9a-f]{8,128}\.parquet")
_NOTE = re.compile(r"[a-z0-9][a-z0-9._-]{0,99}\.json")
_DIRECTION = re.compile(r"[a-z0-9_]{1,20}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_JSON_BYTES = 4 * 2**20
_ROWS = 200_000_000


class BundleRefused(ValueError):
    """A bundle that is not imported; the message says why, and nothing was written."""


@dataclass(frozen=True, kw_only=True)
class ImportLimits:
    """Largest bundle that is taken.

    Attributes:
        total_bytes: of all files, as declared and as found.
        files: number of entries.
        ratio: bytes of an entry over its bytes in the zip.
    """

    total_bytes: int = 8 * 2**30
    files: int = 100_000
    ratio: int = 100


class Listed(NamedTuple):
    """A file as the manifest lists it."""

    path: str
    size: int
    sha256: str


def name_problem(name: str) -> str | None:
    """Why a name may not be in a bundle; None for one that may.

    Example:
        >>> name_problem("run/../../etc/passwd")
        "leads out of the run with '..'"
        >>> name_problem("run/run.json") is None
        True
    """
    pieces = name.split("/")
    if name.startswith("/") or re.match(r"[A-Za-z]:", name):
        return "is an absolute path"
    if ".." in pieces:
        return "leads out of the run with '..'"
    if "\\" in name or not name.isascii() or not name.isprintable():
        return "holds a backslash, or a character that is not plain ASCII"
    if any(_DEVICE.fullmatch(piece) for piece in pieces):
        return "is the name of a device on some systems"
    if name == MANIFEST or _table_of(name) is not None or name == f"{RUN_PREFIX}{RUN_FILE}":
        return None
    return None if _is_note(name) else "is no file of a run"


def _is_note(name: str) -> bool:
    folder = f"{RUN_PREFIX}{NOTES_FOLDER}/"
    return name.startswith(folder) and _NOTE.fullmatch(name.removeprefix(folder)) is not None


def _table_of(name: str) -> Table | None:
    """Table whose rows a file of this name holds."""
    folder, _, file = name.rpartition("/")
    if folder == ITEMS_PREFIX.rstrip("/") and _KEYED.fullmatch(file):
        return ITEMS
    table = folder.removeprefix(RUN_PREFIX)
    if not folder.startswith(RUN_PREFIX):
        return None
    if table == PROJECTIONS.name and _KEYED.fullmatch(file):
        return PROJECTIONS
    return TABLES.get(table) if parse_part_name(file) else None


def check_entries(bundle: zipfile.ZipFile, limits: ImportLimits) -> dict[str, zipfile.ZipInfo]:
    """Entries by name, after everything that the zip's directory can tell.

    Raises:
        BundleRefused: for the first entry that may not be there, or sizes over the limits.
    """
    entries = bundle.infolist()
    if len(entries) > limits.files:
        raise BundleRefused(f"the bundle has {len(entries)} files; expected at most {limits.files}")
    seen: dict[str, zipfile.ZipInfo] = {}
    folded: set[str] = set()
    for entry in entries:
        # zipfile cuts a name at its first NUL; the original is what another tool would take
        name = entry.orig_filename
        if problem := name_problem(name) or _entry_problem(entry, limits):
            raise BundleRefused(f"file {name!r} of the bundle {problem}")
        key = unicodedata.normalize("NFKC", name).casefold()
        if key in folded:
            raise BundleRefused(f"file {name!r} is in the bundle twice")
        folded.add(key)
        seen[name] = entry
    total = sum(entry.file_size for entry in entries)
    if total > limits.total_bytes:
        raise BundleRefused(
            f"the bundle unpacks to {total / 2**30:.1f} GiB; expected at most "
            f"{limits.total_bytes / 2**30:.1f} GiB"
        )
    return seen


def _entry_problem(entry: zipfile.ZipInfo, limits: ImportLimits) -> str | None:
    mode = entry.external_attr >> 16
    if stat.S_IFMT(mode) not in (0, stat.S_IFREG):
        return "is a link or another special file"
    if entry.flag_bits & 0x1:
        return "is encrypted"
    if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        return "is compressed in a way that bundles do not use"
    if entry.file_size > limits.ratio * max(entry.compress_size, 64):
        return f"unpacks to more than {limits.ratio} times its size, as a zip bomb does"
    if entry.filename.endswith(".json") and entry.file_size > _JSON_BYTES:
        return f"has {entry.file_size} bytes; expected at most {_JSON_BYTES} of JSON"
    return None


def read_manifest(text: bytes, names: set[str]) -> tuple[str, list[Listed]]:
    """Run id and files of a manifest, which lists exactly what the bundle holds.

    Raises:
        BundleRefused: if it is no manifest, or of a newer version, or lists other files.
    """
    content = _json(text, MANIFEST)
    for key, known in (("bundle_version", BUNDLE_VERSION), ("schema_version", SCHEMA_VERSION)):
        version = content.get(key)
        if not isinstance(version, int) or isinstance(version, bool) or not 1 <= version <= known:
            raise BundleRefused(f"{MANIFEST} has {key}={version!r}; this version takes up to {known}")
    try:
        listed = [Listed(str(e["path"]), int(e["size"]), str(e["sha256"])) for e in content["files"]]
        run_id = check_run_id(content["run_id"])
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise BundleRefused(f"{MANIFEST} cannot be used ({error}); expected run_id and files") from error
    paths = [entry.path for entry in listed]
    if _DEVICE.fullmatch(run_id):
        raise BundleRefused(f"{MANIFEST} has run_id={run_id!r}, the name of a device on some systems")
    different = set(paths) ^ (names - {MANIFEST})
    if different or len(set(paths)) != len(paths):
        which = sorted(different)[:3] or "one file twice"
        raise BundleRefused(f"{MANIFEST} and the bundle do not hold the same files: {which}")
    if any(not _SHA256.fullmatch(entry.sha256) for entry in listed):
        raise BundleRefused(f"{MANIFEST} has a sha256 that is none; expected 64 hex digits")
    if f"{RUN_PREFIX}{RUN_FILE}" not in paths:
        raise BundleRefused(f"the bundle has no {RUN_PREFIX}{RUN_FILE}")
    return run_id, listed


def _json(text: bytes, name: str) -> dict[str, Any]:
    try:
        content = json.loads(text.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise BundleRefused(f"{name} is no JSON ({error})") from error
    if not _encodable(content):
        raise BundleRefused(f"{name} holds half a surrogate pair, which is no text")
    if not isinstance(content, dict):
        raise BundleRefused(f"{name} is a {type(content).__name__}; expected an object")
    return content


def _encodable(content: object) -> bool:
    """Whether all texts can be written again; JSON's escapes allow some that cannot."""
    try:
        json.dumps(content, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def check_run_json(path: Path) -> dict[str, Any]:
    """Content of a run.json that this version can show.

    Raises:
        BundleRefused: if the schema is newer, or the directions are no names of directions.
    """
    content = _json(path.read_bytes(), RUN_FILE)
    version = content.get("schema_version")
    if not isinstance(version, int) or isinstance(version, bool) or not 1 <= version <= SCHEMA_VERSION:
        raise BundleRefused(
            f"{RUN_FILE} has schema_version={version!r}; this version takes up to {SCHEMA_VERSION}, "
            "update uwml-lens"
        )
    names = content.get("directions")
    if (
        not isinstance(names, list)
        or len(names) != 2
        or not all(isinstance(name, str) and _DIRECTION.fullmatch(name) for name in names)
        or names[0] == names[1]
    ):
        raise BundleRefused(
            f"{RUN_FILE} has directions={names!r}; expected two different names such as i2t and t2i"
        )
    return content


def check_parquet(path: Path, name: str, directions: tuple[str, str]) -> None:
    """Read a file's footer: columns of the schema must have its types.

    Raises:
        BundleRefused: if it is no Parquet, has other types, or more rows than any run.
    """
    table = _table_of(name)
    if table is None:
        return
    try:
        footer = pq.read_metadata(path)
        found = footer.schema.to_arrow_schema()
    except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
        raise BundleRefused(f"file {name!r} is no Parquet ({' '.join(str(error).split())})") from error
    if footer.num_rows > _ROWS:
        raise BundleRefused(f"file {name!r} has {footer.num_rows} rows; expected at most {_ROWS}")
    for field in table.schema(directions):
        place = found.get_field_index(field.name)
        if place >= 0 and not _fits(found.field(place).type, field.type):
            raise BundleRefused(
                f"file {name!r} has column {field.name} of type {found.field(place).type}; "
                f"expected {field.type}"
            )
    if table.columns[0].name not in found.names:
        raise BundleRefused(f"file {name!r} has no column {table.columns[0].name}; expected {table.name}")


def _fits(found: pa.DataType, expected: pa.DataType) -> bool:
    if pa.types.is_dictionary(expected):
        plain = found.value_type if pa.types.is_dictionary(found) else found
        return bool(plain == expected.value_type)
    if pa.types.is_list(expected):
        nested = pa.types.is_list(found) or pa.types.is_fixed_size_list(found)
        return nested and bool(found.value_type == expected.value_type)
    return bool(found == expected)
