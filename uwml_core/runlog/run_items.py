"""The items of a run's data set: what they are called, what is said of them, what they look like."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from uwml_core.runlog.described import DescribedRun
from uwml_core.runlog.item_frame import ItemRows, Pictures, column_bytes, items_frame, rows_by_piece
from uwml_core.runlog.items import items_path
from uwml_core.runlog.listing import Part, known_problem
from uwml_core.runlog.scan import Limited, read_or_remember, retrying, scan
from uwml_core.runlog.schema import ITEMS

# the table has no columns per direction
_SCHEMA = ITEMS.schema(("", ""))


class RunWithItems(DescribedRun):
    """A run's folder as far as its items go; they lie in a file beside it, which several runs may share."""

    def items_file(self) -> Path | None:
        """File with the items of the run's data set, which may be missing; None where none is named."""
        fingerprint = self._info.text("data_fingerprint")
        return items_path(self.path.parent, fingerprint) if fingerprint else None

    def _items_stamp(self) -> tuple[str, int, int] | None:
        path = self.items_file()
        try:
            stat = path.stat() if path else None
        except OSError:
            return None
        return (str(path), stat.st_size, stat.st_mtime_ns) if stat else None

    def items(
        self, *, columns: Sequence[str] | None = None, filter: pc.Expression | None = None
    ) -> pd.DataFrame | None:
        """Items of the run's data set, one row each; None where they were not logged or cannot be read.

        Args:
            columns: which columns, in this order; all when None. Thumbnails are most of the bytes.
            filter: pyarrow expression over any column, pushed down to row groups.

        Returns:
            Frame of the table ``items``; captions are tuples.

        Raises:
            SchemaTooNew: if a newer version wrote the run.
        """
        rows = self._item_rows(columns, filter)
        return None if rows is None else items_frame(rows)

    def item_rows(self, *, columns: Sequence[str]) -> ItemRows | None:
        """As ``items``, kept as they were read; ``item_id`` must be among the columns."""
        rows = self._item_rows(columns, None)
        return None if rows is None else ItemRows(rows)

    def pictures(self, item_ids: Iterable[int] | None = None) -> Pictures | None:
        """Thumbnails of the run's items, or of some of them; None as for ``items``.

        Of some they are read in a fraction of the memory, but all have to be looked through.
        """
        part = self._items_part()
        if part is None or known_problem(part):
            return None
        wanted = pa.schema([_SCHEMA.field(name) for name in ("item_id", "thumbnail")])
        ids = None
        if item_ids is not None:
            ids = pa.array(sorted({int(item) for item in item_ids}), wanted.field("item_id").type)
        rows = retrying(lambda: read_or_remember(part, lambda part: rows_by_piece(part.path, wanted, ids)))
        return None if rows is None else Pictures(rows)

    def _item_rows(self, columns: Sequence[str] | None, filter: pc.Expression | None) -> pa.Table | None:
        part = self._items_part()
        if part is None:
            return None
        limited = Limited(ITEMS.name, [part], {})
        rows = retrying(lambda: scan(limited, _SCHEMA, columns or _SCHEMA.names, filter))
        return None if known_problem(part) else rows

    def _items_part(self) -> Part | None:
        self.refuse_newer()
        stamp = self._items_stamp()
        return None if stamp is None else Part(Path(stamp[0]), 0, -1, -1, *stamp[1:])

    def picture_bytes(self) -> int:
        """Bytes that the thumbnails of all items take; 0 where there are none or they cannot be read."""
        path = self.items_file() if self._items_stamp() else None
        return column_bytes(path, "thumbnail") if path else 0
