"""The items of a data set, written once beside the runs that use it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from uwml_core.runlog import columns
from uwml_core.runlog.parts import write_parquet
from uwml_core.runlog.schema import ITEMS

ITEMS_FOLDER = "_items"

_FINGERPRINT = re.compile(r"[0-9a-f]{16,128}")


def data_fingerprint(
    item_keys: Sequence[str],
    labels: Sequence[int],
    captions: Sequence[Sequence[str]],
    pictures: Iterable[bytes | Sequence[bytes] | None],
    *,
    item_ids: Sequence[int] | None = None,
    splits: Sequence[str | None] | None = None,
) -> str:
    """SHA-256 over the items in the order of their keys: key, id, label, split, captions, picture bytes.

    Id and split are part of it because the items table, written once per fingerprint, holds both: a run
    on the same pictures in other rows must not be shown the wrong ones.

    Args:
        item_keys, labels, captions: one entry per item.
        pictures: encoded picture, or frames of a clip, or None, one entry per item.
        item_ids: rows of the data set; 0 to n - 1 when None.
        splits: split of each item, or None.

    Returns:
        64 hex digits; the same for any order in which the items are handed over with their ids.

    Example:
        >>> one, other = (data_fingerprint(["a"], [0], [["heart"]], [picture]) for picture in (b"x", b"y"))
        >>> len(one), one == other
        (64, False)
    """
    n = len(item_keys)
    ids = range(n) if item_ids is None else item_ids
    parts = splits if splits is not None else [None] * n
    rows = zip(item_keys, ids, labels, parts, captions, pictures, strict=True)
    digests = sorted(
        (
            key,
            _item_digest([key, str(int(item)), str(int(label)), split or "", str(len(texts)), *texts], shown),
        )
        for key, item, label, split, texts, shown in rows
    )
    return hashlib.sha256(b"".join(digest for _, digest in digests)).hexdigest()


def _item_digest(texts: Sequence[str], picture: bytes | Sequence[bytes] | None) -> bytes:
    digest = hashlib.sha256()
    frames = [] if picture is None else [picture] if isinstance(picture, bytes) else list(picture)
    for piece in [*(text.encode("utf-8", "surrogatepass") for text in texts), *frames]:
        # the length first, so that no two items share a byte string
        digest.update(len(piece).to_bytes(8, "little"))
        digest.update(piece)
    return digest.digest()


def items_path(root: Path, fingerprint: str) -> Path | None:
    """Where the items of a data set lie; None for a fingerprint that is no fingerprint."""
    if not isinstance(fingerprint, str) or not _FINGERPRINT.fullmatch(fingerprint):
        return None
    return root / ITEMS_FOLDER / f"{fingerprint}.parquet"


def write_items(
    root: Path,
    *,
    item_keys: Sequence[str],
    labels: Sequence[int],
    captions: Sequence[Sequence[str]],
    item_ids: Sequence[int] | None = None,
    groups: Sequence[str | None] | None = None,
    splits: Sequence[str | None] | None = None,
    thumbnails: Iterable[bytes | None] | None = None,
    paths: Sequence[str | None] | None = None,
    fingerprint: str | None = None,
) -> str:
    """Write ``root/_items/<fingerprint>.parquet`` unless it is there already.

    Args:
        root: logs folder.
        item_keys, labels, captions: the data's own name, label and captions of each of the n items.
        item_ids: rows of the data set; 0 to n - 1 when None.
        groups, splits, paths: category, split, path relative to the data root; null when None.
        thumbnails: WebP bytes or None each, read only when the file is written, so a generator is fine.
        fingerprint: from ``data_fingerprint``; over keys, labels, captions and thumbnails when None.

    Returns:
        The fingerprint.

    Raises:
        ValueError: if lengths differ, or the fingerprint is not hexadecimal.
        OSError: if the file cannot be written.
    """
    n = len(item_keys)
    if fingerprint is None:
        thumbnails = [None] * n if thumbnails is None else list(thumbnails)
        fingerprint = data_fingerprint(
            item_keys, labels, captions, thumbnails, item_ids=item_ids, splits=splits
        )
    path = items_path(root, fingerprint)
    if path is None:
        raise ValueError(f"fingerprint={fingerprint!r} is no fingerprint; expected 16 to 128 hex digits")
    if path.exists():
        return fingerprint
    given: dict[str, Sequence[Any] | None] = {
        "item_id": range(n) if item_ids is None else item_ids,
        "item_key": item_keys,
        "label": labels,
        "group": groups,
        "split": splits,
        "captions": captions,
        "thumbnail": None if thumbnails is None else list(thumbnails),
        "path": paths,
    }
    lengths = {name: len(values) for name, values in given.items() if values is not None and len(values) != n}
    if lengths:
        raise ValueError(f"items have {n} keys but {lengths}; expected as many of each")
    unknown: Sequence[Any] = [None] * n
    filled = {name: unknown if values is None else values for name, values in given.items()}
    built = {column.name: columns.column(filled[column.name], column.type) for column in ITEMS.columns}
    path.parent.mkdir(parents=True, exist_ok=True)
    write_parquet(columns.table(built, ITEMS.schema(("", ""))), path, ITEMS)
    return fingerprint
