"""Following a run: each finding as soon as it appears, and again when it grows more serious."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from uwml_core.analysis.diagnosis.examine import Examination
from uwml_core.analysis.diagnosis.finding import SEVERITIES, Finding
from uwml_core.analysis.diagnosis.rules import RULES
from uwml_core.analysis.diagnosis.thresholds import BEGINNING, FIRST_STEPS
from uwml_core.runlog.reader import Run

_LATE = frozenset(rule.name for rule in RULES if not rule.early)


def follow(run: Run, pause: Callable[[], bool]) -> Iterator[Finding]:
    """Look at a run until it runs no more, and once after its end; only new parts are read.

    Of rules that are not ``early`` nothing is told in the beginning of a run that goes on.

    Args:
        run: the run; one that has ended is looked at once.
        pause: waits between two looks; True ends the following.

    Yields:
        A finding when its rule first has it, and when it is more serious than ever before.

    Raises:
        SchemaTooNew: if a newer version wrote the run.
    """
    examination = Examination(run)
    told: dict[str, int] = {}
    while True:
        # asked first: what came in the meantime is then looked at once more
        running = run.status == "running"
        silent = _LATE if running and _begins(run) else frozenset()
        for finding in examination.update().findings:
            if finding.rule not in silent and _is_news(told, finding):
                yield finding
        if not running or pause():
            return


def _begins(run: Run) -> bool:
    """Whether too few steps were made to tell an illness from the beginning of a training."""
    last = max((part.last for part in run.parts("steps")), default=-1)
    return last + 1 < max(FIRST_STEPS, BEGINNING * (run.total_steps or 0))


def _is_news(told: dict[str, int], finding: Finding) -> bool:
    grave = SEVERITIES.index(finding.severity)
    if grave >= told.get(finding.rule, len(SEVERITIES)):
        return False
    told[finding.rule] = grave
    return True
