"""One run, finished, running, killed or foreign: what it is, and its tables as Arrow and pandas."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from uwml_core.runlog.cache import BoundedCache
from uwml_core.runlog.foreign import guess_directions, guess_modalities
from uwml_core.runlog.listing import (
    HealthIssue,
    Listing,
    Part,
    check_footer,
    known_problem,
    list_table,
    stamp,
)
from uwml_core.runlog.losses import lost_issues
from uwml_core.runlog.rollup_reading import read_rollup
from uwml_core.runlog.run_items import RunWithItems
from uwml_core.runlog.scan import Limited, extra_field, retrying, scan, scan_in_order
from uwml_core.runlog.schema import ITEMS, TABLES
from uwml_core.runlog.weight import bytes_of

_Result = TypeVar("_Result")
_Choice = Callable[[Part], Callable[[pa.Table], _Result] | None]

# of the results of map_parts; many are counts of a few rows, some are the whole part
_MOST_BYTES = 96 * 2**20
_results: BoundedCache[tuple[Any]] = BoundedCache(_MOST_BYTES, bytes_of)


class Run(RunWithItems):
    """A run's folder. Every property looks at the files again, so a running run is followed by asking.

    Files that are cut off, foreign or unreadable are skipped everywhere and named by ``health()``.

    Args:
        path: the run's folder.
    """

    @property
    def directions(self) -> tuple[str, str]:
        """Names of both directions; of a foreign run what its columns say."""
        return self._info.pair("directions") or guess_directions(self._any_parts())

    @property
    def modalities(self) -> tuple[str, str]:
        """Names of both modalities; of a foreign run what the directions' letters say."""
        return self._info.pair("modalities") or guess_modalities(self.directions)

    def version(self) -> Hashable:
        """Cheap fingerprint of the visible files; a heartbeat alone does not change it."""
        described = {name: value for name, value in self.info.items() if name != "heartbeat_at"}
        digest = hashlib.blake2b(repr(described).encode(), digest_size=16)
        for table in TABLES:
            digest.update(repr(self._stamp(table)).encode())
        digest.update(repr(self._items_version()).encode())
        return digest.hexdigest()

    def _items_version(self) -> Hashable:
        return self._items_stamp()

    def _stamp(self, table: str) -> Sequence[Hashable]:
        return stamp(self.path, table)

    def has(self, table: str) -> bool:
        """Whether a table (or ``items``) has a file that can be read."""
        return self._items_stamp() is not None if table == ITEMS.name else bool(self.parts(table))

    def parts(self, table: str) -> tuple[Part, ...]:
        """Parts of a table that count: whole, not covered by a wider one, not replaced by a resume.

        Raises:
            ValueError: if the table is unknown.
        """
        return tuple(part for part, _ in self._limited(table).parts)

    def _listing(self, table: str) -> Listing:
        if table not in TABLES:
            raise ValueError(f"table={table!r} is unknown; choose one of {', '.join(TABLES)}")
        self._bring(table)
        return self._at_hand(table)

    def _at_hand(self, table: str) -> Listing:
        return list_table(self.path, table, foreign=self._info.foreign)

    def _bring(self, name: str) -> None:
        """Have the files of a table or folder at hand; those of a local run are."""

    def folder(self, name: str) -> Path:
        """A folder of the run that is no table, ``projections`` or ``notes``; it may be missing."""
        self._bring(name)
        return self.path / name

    def _limited(self, table: str) -> Limited:
        # first the files, then run.json: a new segment is in run.json before its first part is there
        parts = self._listing(table).parts
        return Limited(table, parts, self._info.limits())

    def _any_parts(self) -> Iterator[Part]:
        for table in TABLES:
            self._bring(table)
            yield from list_table(self.path, table, foreign=True).parts

    def table(
        self,
        name: str,
        *,
        columns: Sequence[str] | None = None,
        filter: pc.Expression | None = None,
        steps: tuple[int, int] | None = None,
    ) -> pa.Table:
        """Rows of a table, in the order in which they were logged.

        Args:
            name: a table of ``schema.TABLES``.
            columns: which columns, in this order; all of the schema when None. Scalars of one's own are
                read by naming them. A column that no file has is null.
            filter: pyarrow expression over any column, pushed down to row groups.
            steps: first and last step that the filter lets through, where that is known: parts of other
                steps are then not even opened.

        Returns:
            Arrow table with the schema's types; without rows where the table was not logged.

        Raises:
            SchemaTooNew: if a newer version wrote the run.
            ValueError: if the table is unknown.
        """
        self.refuse_newer()
        return retrying(lambda: self._read(name, columns, filter, steps))

    def _read(
        self,
        name: str,
        columns: Sequence[str] | None,
        filter: pc.Expression | None,
        steps: tuple[int, int] | None,
    ) -> pa.Table:
        limited = self._limited(name)
        if steps is not None:
            limited = limited.within(*steps)
        schema = self._schema(name, columns, [part for part, _ in limited.parts])
        wanted = columns or TABLES[name].schema(self.directions).names
        return scan_in_order(limited, schema, wanted, filter, self.directions)

    def _schema(self, name: str, columns: Sequence[str] | None, parts: Sequence[Part]) -> pa.Schema:
        schema = TABLES[name].schema(self.directions)
        for column in columns or ():
            if column not in schema.names:
                schema = schema.append(extra_field(column, parts))
        return schema

    def frame(
        self, name: str, *, columns: Sequence[str] | None = None, filter: pc.Expression | None = None
    ) -> pd.DataFrame:
        """``table`` as a pandas frame; directions and modalities become categories."""
        rows: pd.DataFrame = self.table(name, columns=columns, filter=filter).to_pandas(split_blocks=True)
        return rows

    def map_parts(
        self, table: str, function: Callable[[pa.Table], _Result], *, columns: Sequence[str] | None = None
    ) -> list[_Result]:
        """Results of a function for each part, remembered, so that following a run costs new parts only.

        Args:
            table: a table of ``schema.TABLES``.
            function: pure function of one part's rows; one defined at module level, as it is the key.
            columns: as in ``table``.

        Returns:
            One result per part, in the order of the parts.

        Raises:
            SchemaTooNew: if a newer version wrote the run.
            ValueError: if the table is unknown.
        """
        return self.map_each(table, lambda part: function, columns=columns)

    def map_each(
        self, table: str, choose: _Choice[_Result], *, columns: Sequence[str] | None = None
    ) -> list[_Result]:
        """As ``map_parts``, with a function for each part; None leaves the part out."""
        self.refuse_newer()
        return retrying(lambda: list(self._mapped(table, choose, columns)))

    def _mapped(
        self, table: str, choose: _Choice[_Result], columns: Sequence[str] | None
    ) -> Iterator[_Result]:
        limited = self._limited(table)
        for part, limit in limited.parts:
            function = choose(part)
            if function is None:
                continue
            key = (part.key, limit, function, tuple(columns or ()))
            kept = _results.get(key)
            if kept is None:
                one = Limited(table, [part], {} if limit is None else {part.segment: limit})
                schema = self._schema(table, columns, [part])
                rows = scan(one, schema, columns or TABLES[table].schema(self.directions).names, None)
                if known_problem(part):
                    continue
                kept = (function(rows),)
                _results.put(key, kept)
            yield kept[0]

    def rollup(
        self, name: str, *, columns: Sequence[str] | None = None, filter: pc.Expression | None = None
    ) -> pa.Table:
        """``margins`` (histograms) or ``items`` (statistics), merged; see ``rollup_reading.read_rollup``."""
        return read_rollup(self, name, filter, columns)

    def out_of_reach(self) -> HealthIssue | None:
        """Why something that was asked for is not at hand; None of a local run."""
        return None

    def health(self) -> tuple[HealthIssue, ...]:
        """Everything that is wrong with the files, and rows that never came to be in one.

        Reads each footer once. Of a remote run those at hand.
        """
        issues = [self._info.issue] if self._info.issue else []
        issues += lost_issues(self.info, self._info.limits())
        for table in TABLES:
            listing = self._at_hand(table)
            broken = [part for part in listing.parts if check_footer(part)]
            if broken:
                listing = self._at_hand(table)
            issues += listing.issues
        return tuple(issues)
