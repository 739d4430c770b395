"""The rules, one module for each question; most serious questions first."""

from __future__ import annotations

from uwml_core.analysis.diagnosis.registry import Rule
from uwml_core.analysis.diagnosis.rules.batch import CLAIMED_BATCH, NO_NEGATIVES
from uwml_core.analysis.diagnosis.rules.collapse import COLLAPSE
from uwml_core.analysis.diagnosis.rules.dead_zone import DEAD_ZONE
from uwml_core.analysis.diagnosis.rules.false_negatives import FALSE_NEGATIVES
from uwml_core.analysis.diagnosis.rules.few_pairs import FEW_PAIRS
from uwml_core.analysis.diagnosis.rules.jitter import JITTER
from uwml_core.analysis.diagnosis.rules.learning import NOT_LEARNING, STUCK, UNSTABLE
from uwml_core.analysis.diagnosis.rules.logit_scale import LOGIT_SCALE
from uwml_core.analysis.diagnosis.rules.memorised import MEMORISED
from uwml_core.analysis.diagnosis.rules.moving import FROZEN, STALE_QUEUE
from uwml_core.analysis.diagnosis.rules.nonfinite import NON_FINITE
from uwml_core.analysis.diagnosis.rules.one_direction import LAGGING, ONE_DIRECTION
from uwml_core.analysis.diagnosis.rules.overfitting import OVERFITTING
from uwml_core.analysis.diagnosis.rules.similarities import NOT_NORMALISED, TIES
from uwml_core.analysis.diagnosis.rules.speed import TELEMETRY_COST, THROUGHPUT
from uwml_core.analysis.diagnosis.rules.temperature import EASY_NEGATIVES, SMALL_TEMPERATURE_RULE
from uwml_core.analysis.diagnosis.rules.wrong_pairs import WRONG_PAIRS

RULES: tuple[Rule, ...] = (
    NON_FINITE,
    COLLAPSE,
    NOT_LEARNING,
    STUCK,
    NOT_NORMALISED,
    ONE_DIRECTION,
    UNSTABLE,
    LOGIT_SCALE,
    SMALL_TEMPERATURE_RULE,
    OVERFITTING,
    MEMORISED,
    WRONG_PAIRS,
    FALSE_NEGATIVES,
    FROZEN,
    STALE_QUEUE,
    CLAIMED_BATCH,
    NO_NEGATIVES,
    FEW_PAIRS,
    EASY_NEGATIVES,
    DEAD_ZONE,
    TIES,
    LAGGING,
    JITTER,
    THROUGHPUT,
    TELEMETRY_COST,
)
