"""Events that the log itself sees in the steps: a new phase, numbers that are no longer finite."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

from uwml_core.runlog.records import EventRecord, StepRecord


class StepWatch:
    """Follows the steps of one segment; keeps the phase and the non-finite stretch between flushes."""

    def __init__(self) -> None:
        self._phase: str | None = None
        self._bad_since: int | None = None

    def events(self, records: Sequence[StepRecord]) -> list[EventRecord]:
        """Events of these steps, in their order; the first phase is one, too. Scalars are numbers here."""
        if self._is_quiet(records):
            return []
        found = []
        for record in records:
            found += self._phase_event(record)
            found += self._finite_event(record)
        return found

    def _is_quiet(self, records: Sequence[StepRecord]) -> bool:
        """Whether nothing happens in these steps, as nearly always: found out for many at once."""
        if self._bad_since is not None or not {record.phase for record in records} <= {None, self._phase}:
            return False
        watched = [value for record in records for value in _watched(record) if value is not None]
        return all(map(math.isfinite, watched))

    def _phase_event(self, record: StepRecord) -> list[EventRecord]:
        if record.phase is None or record.phase == self._phase:
            return []
        before, self._phase = self._phase, record.phase
        message = f"phase {record.phase!r} begins"
        return [_event(record, "phase", "info", message, phase=record.phase, before=before)]

    def _finite_event(self, record: StepRecord) -> list[EventRecord]:
        loss, norm = _watched(record)
        if self._bad_since is None and _is_finite(loss) and _is_finite(norm):
            return []
        watched = {"loss": loss, "gradient_norm": norm}
        bad = {name: value for name, value in watched.items() if not _is_finite(value)}
        if bad and self._bad_since is None:
            self._bad_since = record.step
            what = " and ".join(f"{name} is {value}" for name, value in bad.items())
            return [_event(record, "non_finite", "error", f"{what} at step {record.step}", names=list(bad))]
        if not bad and self._bad_since is not None:
            since, self._bad_since = self._bad_since, None
            message = f"numbers are finite again at step {record.step}, after step {since}"
            return [_event(record, "non_finite", "info", message, since=since)]
        return []


def _watched(record: StepRecord) -> tuple[float | None, float | None]:
    # a loop with a loss of its own logs it as a scalar
    scalars = record.scalars
    loss = scalars["loss"] if "loss" in scalars else getattr(record.last, "loss", None)
    return loss, scalars.get("gradient_norm")


def _is_finite(value: float | None) -> bool:
    """Whether a number is finite; one that is not there counts as such."""
    return value is None or math.isfinite(value)


def _event(record: StepRecord, kind: str, level: str, message: str, **data: Any) -> EventRecord:
    return EventRecord(record.time, record.step, level, kind, message, json.dumps(data, ensure_ascii=False))
