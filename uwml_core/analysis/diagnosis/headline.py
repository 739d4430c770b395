"""What is wrong with a run, in a sentence."""

from __future__ import annotations

from uwml_core.analysis.diagnosis.finding import SEVERITIES
from uwml_core.analysis.diagnosis.registry import Diagnosis
from uwml_core.analysis.text import listed, sentences
from uwml_core.i18n import _, ngettext


def severity_name(severity: str) -> str:
    """What a severity is called.

    Raises:
        KeyError: if it is none of ``SEVERITIES``.
    """
    return {"serious": _("serious"), "warning": _("warning"), "note": _("note")}[severity]


def diagnosis_headline(diagnosis: Diagnosis) -> str:
    """Say how many findings there are and what the gravest is, or how many rules are silent."""
    asked = len(diagnosis.silent) + len({finding.rule for finding in diagnosis.findings})
    if asked == 0:
        return _("Too little data yet: no rule can judge this run.")
    if not diagnosis.findings:
        text = ngettext(
            "Nothing found: the {n} rule that can judge this run is silent.",
            "Nothing found: all {n} rules that can judge this run are silent.",
            asked,
        )
        return text.format(n=asked)
    count = len(diagnosis.findings)
    text = ngettext("{n} finding: {counts}.", "{n} findings: {counts}.", count)
    return sentences([text.format(n=count, counts=_counts(diagnosis)), diagnosis.findings[0].title])


def _counts(diagnosis: Diagnosis) -> str:
    found = [finding.severity for finding in diagnosis.findings]
    return listed([f"{found.count(name)} {severity_name(name)}" for name in SEVERITIES if name in found])
