"""Importing a bundle from elsewhere: unpacked beside the runs, checked, and only then made visible."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import secrets
import shutil
import struct
import zipfile
import zlib
from pathlib import Path
from typing import BinaryIO

from uwml_core.runlog.bundle import ITEMS_PREFIX, MANIFEST, RUN_PREFIX
from uwml_core.runlog.bundle_checks import (
    BundleRefused,
    ImportLimits,
    Listed,
    check_entries,
    check_parquet,
    check_run_json,
    read_manifest,
)
from uwml_core.runlog.items import ITEMS_FOLDER
from uwml_core.runlog.location import local_folder
from uwml_core.runlog.runfile import RUN_FILE

_CHUNK = 1 << 20
_NAMES = 1000


def import_bundle(
    source: str | os.PathLike[str] | BinaryIO,
    root: str | os.PathLike[str],
    limits: ImportLimits | None = None,
) -> Path:
    """Import a bundle into a logs folder.

    Nothing is executed or unpickled, and no name of the bundle becomes a path outside a folder of its
    own. A run of the same id stays; the imported one then gets a number behind its id.

    Args:
        source: the zip, or an open binary file.
        root: logs folder; made when missing.
        limits: largest bundle taken.

    Returns:
        Folder of the imported run.

    Raises:
        BundleRefused: saying why; nothing is left behind then.
        OSError: if the source cannot be read or the folder cannot be written.
    """
    limits = limits or ImportLimits()
    folder = local_folder(root, "root")
    try:
        with zipfile.ZipFile(source) as bundle:
            entries = check_entries(bundle, limits)
            if MANIFEST not in entries:
                raise BundleRefused(f"the file has no {MANIFEST}; expected a bundle that uwml bundle made")
            run_id, listed = read_manifest(bundle.read(MANIFEST), set(entries))
            folder.mkdir(parents=True, exist_ok=True)
            # a name with a dot: no reader takes it for a run
            unpacked = folder / f".import-{secrets.token_hex(8)}"
            try:
                _unpack(bundle, listed, unpacked)
                _check_content(unpacked, listed)
                return _publish(unpacked, run_id, folder)
            finally:
                shutil.rmtree(unpacked, ignore_errors=True)
    except BundleRefused:
        raise
    # what the zip library raises on bytes that are no zip, of which it documents the first
    except (zipfile.BadZipFile, EOFError, zlib.error, struct.error, ValueError, RuntimeError) as error:
        raise BundleRefused(f"the file is no whole zip ({error})") from error
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        raise BundleRefused("the file is no whole zip (it points outside itself)") from error


def _unpack(bundle: zipfile.ZipFile, listed: list[Listed], target: Path) -> None:
    for entry in listed:
        path = target / entry.path
        path.parent.mkdir(parents=True, exist_ok=True)
        digest, size = hashlib.sha256(), 0
        with bundle.open(entry.path) as packed, path.open("xb") as file:
            while chunk := packed.read(_CHUNK):
                size += len(chunk)
                # what the zip declares may be a lie
                if size > entry.size:
                    break
                digest.update(chunk)
                file.write(chunk)
        if size != entry.size:
            raise BundleRefused(f"file {entry.path!r} has not the {entry.size} bytes that {MANIFEST} says")
        if digest.hexdigest() != entry.sha256:
            raise BundleRefused(f"file {entry.path!r} has another SHA-256 than {MANIFEST} says")


def _check_content(unpacked: Path, listed: list[Listed]) -> None:
    content = check_run_json(unpacked / RUN_PREFIX / RUN_FILE)
    first, second = content["directions"]
    own = f"{ITEMS_PREFIX}{content.get('data_fingerprint')}.parquet"
    for path in (entry.path for entry in listed if entry.path.startswith(ITEMS_PREFIX)):
        if path != own:
            raise BundleRefused(f"file {path!r} holds items of another data set than the run's")
    for entry in listed:
        check_parquet(unpacked / entry.path, entry.path, (first, second))


def _publish(unpacked: Path, run_id: str, root: Path) -> Path:
    items = root / ITEMS_FOLDER
    for path in sorted((unpacked / ITEMS_PREFIX).glob("*.parquet")):
        items.mkdir(exist_ok=True)
        if not (items / path.name).exists():
            os.replace(path, items / path.name)
    for number in range(1, _NAMES):
        target = root / (run_id if number == 1 else f"{run_id}-{number}")
        if target.exists():
            continue
        _rename_run(unpacked / RUN_PREFIX / RUN_FILE, target.name)
        os.rename(unpacked / RUN_PREFIX, target)
        return target
    raise BundleRefused(f"the folder has {_NAMES - 1} runs named {run_id!r} already; remove some")


def _rename_run(path: Path, run_id: str) -> None:
    content = json.loads(path.read_text(encoding="utf-8"))
    content["run_id"] = run_id
    path.write_text(json.dumps(content, ensure_ascii=False, indent=1), encoding="utf-8")
