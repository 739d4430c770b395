"""The logger that writes nothing, so that a training loop needs no ``if``."""

from __future__ import annotations

from typing import Any, Self


class NullLogger:
    """Has the methods of ``RunLogger`` and does nothing.

    Example:
        >>> with NullLogger() as log:
        ...     log.log_event("note", "nobody reads this")
    """

    path = None
    run_id = None

    def log_step(self, last: Any, **values: Any) -> None:
        """Do nothing."""

    def log_similarities(self, sim: Any, **values: Any) -> None:
        """Do nothing."""

    def log_eval(self, *values: Any, **named: Any) -> None:
        """Do nothing."""

    def log_ranks(self, *values: Any, **named: Any) -> None:
        """Do nothing."""

    def log_snapshot(self, *values: Any, **named: Any) -> None:
        """Do nothing."""

    def log_neighbors(self, *values: Any, **named: Any) -> None:
        """Do nothing."""

    def log_items(self, **described: Any) -> str:
        """Do nothing; return no fingerprint."""
        return ""

    def log_event(self, *values: Any, **named: Any) -> None:
        """Do nothing."""

    def flush(self, timeout_s: float = 60.0) -> bool:
        """Do nothing; nothing is left unwritten."""
        return True

    def close(self, status: str = "finished") -> None:
        """Do nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        """Do nothing."""
