"""What a run's run.json says of it, as properties."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from uwml_core.runlog.info import RunInfo, read_info


class DescribedRun:
    """The description of a run's folder; every property looks at run.json again.

    Args:
        path: the run's folder.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path).absolute()

    def __repr__(self) -> str:
        return f"Run({str(self.path)!r})"

    @property
    def run_id(self) -> str:
        """Name of the folder, which is what addresses name."""
        return self.path.name

    @property
    def _info(self) -> RunInfo:
        return read_info(self.path)

    @property
    def info(self) -> dict[str, Any]:
        """Content of run.json; empty where the run is foreign."""
        return self._info.values

    @property
    def name(self) -> str:
        """Free text given to the run, to be escaped where it is shown; the run id without one."""
        return self._info.text("name") or self.run_id

    @property
    def config(self) -> dict[str, Any]:
        """Configuration, one section per key; empty where it was not logged."""
        config = self.info.get("config")
        return config if isinstance(config, dict) else {}

    @property
    def created_at(self) -> datetime:
        """When the run was made, UTC; of a foreign run when its folder changed last."""
        return self._info.moment("created_at") or datetime.fromtimestamp(self.path.stat().st_mtime, UTC)

    @property
    def heartbeat_at(self) -> datetime | None:
        """Last sign of life of the writer, UTC."""
        return self._info.moment("heartbeat_at")

    @property
    def status(self) -> str:
        """One of running, finished, stopped, failed, stale or foreign."""
        return self._info.status()

    @property
    def total_steps(self) -> int | None:
        """Optimizer steps planned, where that was logged."""
        total = self.info.get("total_steps")
        return total if isinstance(total, int) else None

    def refuse_newer(self) -> None:
        """Raise where a newer version wrote the run.

        Raises:
            SchemaTooNew: naming the run and both versions.
        """
        self._info.refuse_newer(self.run_id)
