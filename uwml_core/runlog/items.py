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
) -> str:
    """SHA-256 over the items in the order of their keys: key, label, captions, picture bytes.

    Args:
        item_keys, labels, captions: one entry per item.
        pictures: encoded picture, or frames of a clip, or None, one entry per item.

    Returns:
        64 hex digits; the same for any order of the items.

    Example:
        >>> data_fingerprint(["a"], [0], [["one"]], [b"x"])[:8]
        'c78435ac'
    """
    digests = [
        (key, _item_digest(key, label, texts, picture))
        for key, label, texts, picture in zip(item_keys, labels, captions, pictures, strict=True)
    ]
    return hashlib.sha256(b"".join(digest for _, digest in sorted(digests))).hexdigest()


def _item_digest(
    key: str, label: int, captions: Sequence[str], picture: bytes | Sequence[bytes] | None
) -> bytes:
    digest = hashlib.sha256()
    frames = [] if picture is None else [picture] if isinstance(picture, bytes) else list(picture)
    texts = [key, str(int(label)), str(len(captions)), *captions]
    for piece in [*(text.encode() for text in texts), *frames]:
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
        fingerprint = data_fingerprint(item_keys, labels, captions, thumbnails)
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
    built = {
        column.name: columns.column(given[column.name] or [None] * n, column.type) for column in ITEMS.columns
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    write_parquet(columns.table(built, ITEMS.schema(("", ""))), path, ITEMS)
    return fingerprint
