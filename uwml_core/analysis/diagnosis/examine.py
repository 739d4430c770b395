"""Asking the rules: once, or again and again while a run goes on."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import pandas as pd

from uwml_core.analysis.diagnosis.finding import Finding
from uwml_core.analysis.diagnosis.frames import READERS, Frames, frames_of, read_frames
from uwml_core.analysis.diagnosis.registry import Diagnosis, NotApplicable, Rule, sort_findings
from uwml_core.analysis.diagnosis.rules import RULES
from uwml_core.i18n import _, language
from uwml_core.runlog.reader import Run
from uwml_core.runlog.schema import ITEMS

_Result = tuple[Finding, ...] | str


def examine(frames: Frames, rules: Sequence[Rule] = RULES) -> Diagnosis:
    """Ask rules about frames.

    Args:
        frames: the run's tables.
        rules: which rules; all by default.
    """
    return _diagnosis({rule.name: ask(rule, frames) for rule in rules})


def diagnose(run: Run) -> Diagnosis:
    """Ask all rules about a run, finished, running, or another program's.

    Raises:
        SchemaTooNew: if a newer version wrote the run.
    """
    return examine(read_frames(run))


def ask(rule: Rule, frames: Frames) -> _Result:
    """Findings of one rule, or the sentence that says why it cannot judge this run."""
    missing = [need for need in rule.needs if not frames.logged(need)]
    if missing:
        return _("Not applicable: needs {columns}.").format(columns=", ".join(missing))
    try:
        return tuple(rule.check(frames))
    except NotApplicable as reason:
        return str(reason)


def _diagnosis(results: dict[str, _Result]) -> Diagnosis:
    found = [finding for result in results.values() if not isinstance(result, str) for finding in result]
    return Diagnosis(
        findings=sort_findings(found),
        silent=tuple(name for name, result in results.items() if result == ()),
        not_applicable={name: result for name, result in results.items() if isinstance(result, str)},
    )


class Examination:
    """Follows one run: rules whose tables have no new rows keep what they said.

    Args:
        run: the run, which may still be written.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._kept: dict[str, tuple[Hashable, _Result]] = {}
        self._frames: dict[str, tuple[Hashable, pd.DataFrame]] = {}

    def update(self) -> Diagnosis:
        """Ask again, reading only what has changed.

        Raises:
            SchemaTooNew: if a newer version wrote the run.
        """
        stamps = {table: self._stamp(table) for table in sorted({t for rule in RULES for t in rule.tables})}
        frames = frames_of(self._run, self._load)
        for rule in RULES:
            stamp = (language(), *(stamps[table] for table in rule.tables))
            if self._kept.get(rule.name, (None,))[0] != stamp:
                self._kept[rule.name] = (stamp, ask(rule, frames))
        return _diagnosis({name: result for name, (_stamp, result) in self._kept.items()})

    def _stamp(self, table: str) -> Hashable:
        if table != ITEMS.name:
            return tuple(part.key for part in self._run.parts(table))
        path = self._run.items_file()
        return None if path is None or not path.exists() else (str(path), path.stat().st_mtime_ns)

    def _load(self, name: str) -> pd.DataFrame:
        tables, read = READERS[name]
        stamp = tuple(self._stamp(table) for table in tables)
        if name not in self._frames or self._frames[name][0] != stamp:
            self._frames[name] = (stamp, read(self._run))
        return self._frames[name][1]
