"""Results of the study: one small Parquet file for each configuration, and one table of all."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.study.configuration import Configuration

TABLE = "results.parquet"


class Store:
    """A folder of results.

    Args:
        folder: made when missing.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "parts").mkdir(parents=True, exist_ok=True)

    def missing(self, configuration: Configuration, seeds: Sequence[int]) -> list[int]:
        """Seeds that a configuration has no result of."""
        known = self._known(configuration)
        done = set() if known is None else set(known["seed"])
        return [seed for seed in seeds if seed not in done]

    def add(self, configuration: Configuration, rows: Sequence[dict[str, Any]]) -> None:
        """Add rows of a configuration; a reader sees the file as before or as after."""
        known, new = self._known(configuration), pd.DataFrame(rows)
        both = new if known is None else pd.concat([known, new], ignore_index=True)
        _write(both, self._path(configuration))

    def merge(self, extra: Path | None = None) -> pd.DataFrame:
        """Write all results as one table, and return it.

        Args:
            extra: where else to write the table.
        """
        parts = [pd.read_parquet(path) for path in sorted((self.folder / "parts").glob("*.parquet"))]
        table = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()
        for folder in (self.folder, extra):
            if folder is not None:
                _write(table, folder / TABLE)
        return table

    def _known(self, configuration: Configuration) -> pd.DataFrame | None:
        path = self._path(configuration)
        return pd.read_parquet(path) if path.exists() else None

    def _path(self, configuration: Configuration) -> Path:
        return self.folder / "parts" / f"{configuration.key}.parquet"


def _write(table: pd.DataFrame, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}-{os.getpid()}.tmp")
    try:
        table.to_parquet(temporary, index=False, compression="zstd")
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
