"""The rules, one module each."""

from __future__ import annotations

from uwml_core.analysis.diagnosis.registry import Rule
from uwml_core.analysis.diagnosis.rules.collapse import COLLAPSE
from uwml_core.analysis.diagnosis.rules.jitter import JITTER
from uwml_core.analysis.diagnosis.rules.nonfinite import NON_FINITE

RULES: tuple[Rule, ...] = (NON_FINITE, COLLAPSE, JITTER)
