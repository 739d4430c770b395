"""The part of the logger that keeps what a model makes of a fixed sample of items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from uwml_core.runlog.nearest import Nearest, neighbors_record
from uwml_core.runlog.records import Record
from uwml_core.runlog.rows import Where, snapshot_record


class SnapshotLog:
    """Snapshots and the nearest wrong candidates that belong to them.

    Attributes:
        directions: names of both directions.
    """

    directions: tuple[str, str]

    def log_snapshot(
        self,
        *,
        embeddings: Mapping[str, Any],
        item_ids: Any,
        labels: Any,
        splits: str | Sequence[str],
        step: int | None = None,
        epoch: int | None = None,
    ) -> None:
        """Log embeddings of a fixed sample; a second snapshot of the same step replaces the first.

        Args:
            embeddings: per modality an array ``[n, dim]`` of unit-norm rows; stored as float16.
            item_ids, labels: whole numbers ``[n]``.
            splits: one split, or one per row.
            step, epoch: last completed step, that of the log when None, and its epoch.

        Raises:
            ValueError: if shapes or lengths differ, naming them.
        """
        where = self._where(step, epoch, "")
        self._put(snapshot_record(where, embeddings, item_ids, labels, splits))

    def log_neighbors(
        self,
        *,
        nearest: Mapping[str, Nearest],
        item_ids: Any,
        splits: str | Sequence[str],
        caption: int = 0,
        step: int | None = None,
        epoch: int | None = None,
    ) -> None:
        """Log the nearest wrong candidates of a snapshot's items; a second call at a step replaces the first.

        Args:
            nearest: per direction what ``Nearest`` describes: exact, by cosine in the original space,
                among a pool of items that stays the same, labels differing from the item's.
            item_ids: whole numbers ``[n]``, the items of the snapshot.
            splits: one split, or one per item.
            caption: index of the caption that stood for each item, own or candidate.
            step, epoch: last completed step, that of the log when None, and its epoch.

        Raises:
            ValueError: for an unknown direction, or shapes that do not fit.
        """
        where = self._where(step, epoch, "")
        rows = neighbors_record(
            where, self.directions, nearest, item_ids=item_ids, splits=splits, caption=caption
        )
        self._put(rows)

    def _where(self, step: int | None, epoch: int | None, split: str) -> Where:
        raise NotImplementedError

    def _put(self, record: Record | None) -> None:
        raise NotImplementedError
