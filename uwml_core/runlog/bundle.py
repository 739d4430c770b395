"""A bundle: one zip with a chosen part of a run, and a manifest of sizes and SHA-256.

``manifest.json`` is first, then ``run/...`` as in the run's folder, and ``items/<fingerprint>.parquet``.
Parquet is compressed already, so it is stored as it is.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from uwml_core.runlog.parts import encode
from uwml_core.runlog.run import Run
from uwml_core.runlog.runfile import RUN_FILE
from uwml_core.runlog.scan import retrying
from uwml_core.runlog.schema import ITEMS, PAIRS, PROJECTIONS, SCHEMA_VERSION, SNAPSHOTS, TABLES

BUNDLE_VERSION = 1
MANIFEST = "manifest.json"
RUN_PREFIX = "run/"
ITEMS_PREFIX = "items/"
NOTES_FOLDER = "notes"

# the earliest date that a zip can hold: when a bundle was made is nobody's business
_NO_DATE = (1980, 1, 1, 0, 0, 0)
_CHUNK = 1 << 20


@dataclass(frozen=True, kw_only=True)
class BundleChoice:
    """What goes into a bundle beside the small tables, which always do.

    Attributes:
        pictures: thumbnails and paths of the items.
        embeddings: the snapshots.
        pairs: the raw rows of ``pairs``; the rollups go in either way.
    """

    pictures: bool = True
    embeddings: bool = True
    pairs: bool = True


@dataclass(frozen=True)
class BundleFile:
    """One file of a bundle: its name in it, and where or what its content is."""

    name: str
    source: Path | bytes

    @property
    def size(self) -> int:
        """Bytes of the content."""
        return len(self.source) if isinstance(self.source, bytes) else self.source.stat().st_size

    def chunks(self) -> Iterator[bytes]:
        """The content, a MiB at a time."""
        if isinstance(self.source, bytes):
            yield self.source
            return
        with self.source.open("rb") as file:
            while chunk := file.read(_CHUNK):
                yield chunk


def bundle_files(run: Run, choice: BundleChoice) -> list[BundleFile]:
    """Files that a bundle of a run holds, run.json first; only parts that a reader counts.

    Raises:
        ValueError: if the run has no run.json of ours.
        SchemaTooNew: if a newer version wrote the run.
        OSError: if it is remote and some of it cannot be fetched.
    """
    run.refuse_newer()
    if not run.info:
        raise ValueError(
            f"run {run.run_id!r} has no {RUN_FILE}; only a run that was logged by RunLogger can be bundled"
        )
    files = [BundleFile(f"{RUN_PREFIX}{RUN_FILE}", (run.path / RUN_FILE).read_bytes())]
    left_out = {SNAPSHOTS.name: not choice.embeddings, PAIRS.name: not choice.pairs}
    paths = [part.path for table in TABLES if not left_out.get(table) for part in run.parts(table)]
    paths += sorted(run.folder(PROJECTIONS.name).glob("*.parquet"))
    paths += sorted(run.folder(NOTES_FOLDER).glob("*.json"))
    files += [BundleFile(f"{RUN_PREFIX}{path.relative_to(run.path).as_posix()}", path) for path in paths]
    files += _items(run, choice)
    if (issue := run.out_of_reach()) is not None:
        raise OSError(f"the bundle would be incomplete: {issue.message}")
    return files


def _items(run: Run, choice: BundleChoice) -> list[BundleFile]:
    path = run.items_file()
    if path is None or not path.exists():
        return []
    name = f"{ITEMS_PREFIX}{path.name}"
    return [BundleFile(name, path if choice.pictures else _without_pictures(path))]


def _without_pictures(path: Path) -> bytes:
    table = pq.read_table(path)
    for name in ("thumbnail", "path"):
        place = table.schema.get_field_index(name)
        if place >= 0:
            field = table.schema.field(place)
            table = table.set_column(place, field, pa.nulls(len(table), field.type))
    sink = pa.BufferOutputStream()
    encode(table, sink, ITEMS)
    return bytes(sink.getvalue())


def bundle_size(run: Run, choice: BundleChoice) -> int:
    """Bytes of the files that a bundle would hold, to be said before it is made."""
    return sum(file.size for file in bundle_files(run, choice))


def write_bundle(run: Run, target: str | os.PathLike[str], choice: BundleChoice | None = None) -> Path:
    """Write a bundle of a run; it is there whole or not at all.

    Args:
        run: the run, which may be running: its files of this moment are taken.
        target: the zip to make.
        choice: what goes in; everything when None.

    Returns:
        The target.

    Raises:
        FileExistsError: if the target exists.
        ValueError: if the run has no run.json of ours.
        OSError: if the target cannot be written, or a remote run cannot be fetched.
    """
    path = Path(target)
    if path.exists():
        raise FileExistsError(f"{str(path)!r} exists; choose another name or remove it")
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        # a compaction of a running run may take a part away between listing and reading
        retrying(lambda: _write(temporary, run, bundle_files(run, choice or BundleChoice())))
        # unlike a rename, a link never replaces what came meanwhile
        os.link(temporary, path)
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()
    return path


def _write(path: Path, run: Run, files: list[BundleFile]) -> None:
    entries = [_described(file) for file in files]
    manifest = {
        "bundle_version": BUNDLE_VERSION,
        "schema_version": SCHEMA_VERSION,
        "run_id": run.run_id,
        "files": entries,
    }
    with zipfile.ZipFile(path, "w", allowZip64=True) as bundle:
        text = json.dumps(manifest, ensure_ascii=False, indent=1)
        bundle.writestr(_entry(MANIFEST, zipfile.ZIP_DEFLATED), text)
        for file, entry in zip(files, entries, strict=True):
            _copy(bundle, file, entry)


def _described(file: BundleFile) -> dict[str, Any]:
    digest, size = hashlib.sha256(), 0
    for chunk in file.chunks():
        digest.update(chunk)
        size += len(chunk)
    return {"path": file.name, "size": size, "sha256": digest.hexdigest()}


def _entry(name: str, compression: int) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, _NO_DATE)
    info.compress_type = compression
    info.external_attr = 0o644 << 16
    return info


def _copy(bundle: zipfile.ZipFile, file: BundleFile, described: dict[str, Any]) -> None:
    method = zipfile.ZIP_STORED if file.name.endswith(".parquet") else zipfile.ZIP_DEFLATED
    info = _entry(file.name, method)
    info.file_size = described["size"]
    with bundle.open(info, "w") as sink:
        for chunk in file.chunks():
            sink.write(chunk)
