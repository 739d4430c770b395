"""All rules, and asking them: the one entry for pages, commands and training loops."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from uwml_core.analysis.diagnosis.finding import SEVERITIES, Finding
from uwml_core.analysis.diagnosis.frames import Frames


class NotApplicable(Exception):
    """A rule cannot judge this run; the message, in the reader's language, says what it needs."""


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A rule of the registry.

    Attributes:
        name: language-free, unique.
        title: what it looks for, marked for translation (``i18n.translate``).
        tables: tables whose rows it reads; unchanged tables mean an unchanged result.
        needs: columns without which it cannot judge, as ``table.column``; ``_d`` stands for one direction.
        check: pure function of the frames; empty where nothing is wrong.
        early: whether it holds from the first step on; False where training begins like that and gets better.
    """

    name: str
    title: str
    tables: tuple[str, ...]
    needs: tuple[str, ...] = ()
    check: Callable[[Frames], Sequence[Finding]]
    early: bool = True


@dataclass(frozen=True, kw_only=True, eq=False)
class Diagnosis:
    """What all rules said about a run.

    Attributes:
        findings: most serious first, then the surest.
        silent: names of the rules that found nothing.
        not_applicable: rule to the reason why it cannot judge this run.
    """

    findings: tuple[Finding, ...]
    silent: tuple[str, ...]
    not_applicable: Mapping[str, str]

    @property
    def worst(self) -> str | None:
        """Highest severity found; None where nothing is wrong."""
        return self.findings[0].severity if self.findings else None


def sort_findings(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Most serious first, of equal ones the surest, then by rule."""
    return tuple(
        sorted(findings, key=lambda one: (SEVERITIES.index(one.severity), -one.confidence, one.rule))
    )
