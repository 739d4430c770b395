"""Asking the rules: once, or again and again while a run goes on."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from uwml_core.analysis.diagnosis.finding import Finding
from uwml_core.analysis.diagnosis.frames import Frames, read_frames
from uwml_core.analysis.diagnosis.registry import Diagnosis, NotApplicable, Rule, sort_findings
from uwml_core.analysis.diagnosis.rules import RULES
from uwml_core.i18n import _, language
from uwml_core.runlog.reader import Run

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

    def update(self) -> Diagnosis:
        """Ask again, reading only what has changed.

        Raises:
            SchemaTooNew: if a newer version wrote the run.
        """
        frames = read_frames(self._run)
        tables = {table for rule in RULES for table in rule.tables}
        stamps = {table: tuple(part.key for part in self._run.parts(table)) for table in sorted(tables)}
        for rule in RULES:
            stamp = (language(), *(stamps[table] for table in rule.tables))
            if self._kept.get(rule.name, (None,))[0] != stamp:
                self._kept[rule.name] = (stamp, ask(rule, frames))
        return _diagnosis({name: result for name, (_stamp, result) in self._kept.items()})
