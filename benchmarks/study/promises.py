"""What the method promises, what was measured of it, and a verdict by rule."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from benchmarks.study import cases
from benchmarks.study.cases import ALL, NONE, PAIR, Case
from benchmarks.study.methods import TUNED_INFONCE, TUNED_UWML
from benchmarks.study.paired import LEAN, Results, told
from benchmarks.study.plan import MODALITIES, tuned
from uwml_core.analysis.compare.seeds import SeedInterval

Terms = Sequence[tuple[float, Case]]

# R@1 by which a promise of "no difference" may be missed.
NEGLIGIBLE = 1.0
_CLAIMS = {"image": 5.0, "video": 8.0}
_NOTHING = SeedInterval(math.nan, math.nan, math.nan, 0)


class Promise(NamedTuple):
    """One promise.

    Attributes:
        text: what is promised.
        measured: what was compared, in words.
        claim: size of the promised gain, 0 where only its sign is; None where nothing is to change.
        interval: mean, 95 % interval and seeds of the gain.
        digits: after the point.
    """

    text: str
    measured: str
    claim: float | None
    interval: SeedInterval
    digits: int = 1

    @property
    def verdict(self) -> str:
        """By rule: a gain is seen if its interval is above 0, and holds if the interval reaches the claim."""
        low, high, n = self.interval.low, self.interval.high, self.interval.n
        if n < 2:
            return "not tested"
        if self.claim is None:
            if max(-low, high) < NEGLIGIBLE:
                return "holds"
            return "does not hold" if low > 0 or high < 0 else "not decided"
        if low <= 0:
            return "the opposite" if high < 0 else "not seen"
        return "holds" if high >= self.claim else "weaker"

    def line(self) -> str:
        """Row of the table."""
        value = told(self.interval, signed=True, digits=self.digits)
        return f"| {self.text} | {self.measured} | {value} | {self.interval.n} | {self.verdict} |"


def promises(results: Results) -> Iterator[Promise]:
    """All promises with what was measured."""
    yield from _gains(results)
    for text, measured, claim, terms in _RECALLS:
        yield Promise(text, f"R@1, {measured}", claim, contrast(results, terms))
    for text, measured, terms, measure in _STEADINESS:
        yield Promise(text, measured, 0.0, contrast(results, terms, measure), digits=3)


def contrast(
    results: Results, terms: Terms, measure: str = "R@1", modality: str = "image", noise: float = 0.4
) -> SeedInterval:
    """As ``Results.contrast`` for cases."""
    known = [(factor, case.configuration(modality, noise)) for factor, case in terms]
    return results.contrast(known, measure)


def _gains(results: Results) -> Iterator[Promise]:
    for modality in MODALITIES:
        claim = _CLAIMS[modality]
        for noise in (0.0, 0.2, 0.4):
            both = [tuned(results, name, modality, noise) for name in (TUNED_UWML, TUNED_INFONCE)]
            where = f"{modality}-text, {f'{noise:.0%} swapped' if noise else 'clean'}"
            if both[0] is None or both[1] is None:
                gain = apart = _NOTHING
            else:
                gain = results.difference(both[0], both[1], "R@1")
                apart = results.difference(both[1], both[0], LEAN)
            yield Promise(f"+{claim:.0f} R@1 over InfoNCE", f"{where}, both tuned", claim, gain)
            yield Promise("the weaker direction catches up", f"{where}, R@1 less apart", 0.0, apart)


def _minus(first: Case, second: Case) -> Terms:
    return ((1.0, first), (-1.0, second))


_JOINT = ((1.0, cases.NO_STAGE), (-1.0, PAIR), (-1.0, cases.DIRECTION), (1.0, NONE))
_RECALLS: tuple[tuple[str, str, float | None, Terms], ...] = (
    ("the pair weight gives most", "pair weight alone over InfoNCE", 0.0, _minus(PAIR, NONE)),
    ("the direction weight alone gives little", "over InfoNCE", None, _minus(cases.DIRECTION, NONE)),
    ("together they give more than the sum", "both minus each alone", 0.0, _JOINT),
    ("the stage schedule helps", "2 to 20 over 20 throughout", 0.0, _minus(ALL, cases.NO_STAGE)),
    (
        "the same in long trainings",
        "2 to 20 over 16 to 24, 60 epochs",
        0.0,
        _minus(cases.LONG_DEFAULTS, cases.LONG_NOISY),
    ),
    ("multiplying beats adding by about 2", "multiply over add", 2.0, _minus(ALL, cases.ADDED)),
    *(
        ("adaptive matches the best fixed ratio", f"adaptive over {case.title}", None, _minus(ALL, case))
        for case in (cases.FIXED[0], cases.NO_DIRECTION, cases.FIXED[1])
    ),
    ("detaching the weights costs nothing", "detached over attached", None, _minus(ALL, cases.ATTACHED)),
    ("updating every 10 steps equals every step", "10 over 1", None, _minus(ALL, cases.EVERY_STEP)),
    ("the queue helps", "4 batches over none", 0.0, _minus(cases.QUEUE, ALL)),
    ("the same under InfoNCE", "4 batches over none", 0.0, _minus(cases.NO_WEIGHTS_QUEUE, NONE)),
    ("(a shorter training is no cure)", "5 epochs over 12, InfoNCE", None, _minus(cases.SHORT, NONE)),
    ("batch 64 to 128 helps a little", "128 over 64, equal epochs", 0.0, _minus(ALL, cases.SMALL)),
    ("batch 192 helps no more", "192 over 128, equal epochs", None, _minus(cases.LARGE, ALL)),
    ("temperature 0.1 goes with weighting", "0.1 over 0.07", 0.0, _minus(cases.WARM, ALL)),
    ("a start with equal weights helps", "a fifth of InfoNCE", 0.0, _minus(cases.AFTER_INFONCE, ALL)),
)
_JITTER, _SPIKE = "loss_jitter", "gradient_spike"
_STEADINESS: tuple[tuple[str, str, Terms, str], ...] = (
    ("a smoother loss", "jitter of the late loss, InfoNCE minus UWML", _minus(NONE, ALL), _JITTER),
    ("no late spikes", "largest over median late gradient, InfoNCE minus UWML", _minus(NONE, ALL), _SPIKE),
    (
        "root of squares steadier than the sum",
        "jitter of the late loss, sum minus l2",
        _minus(cases.SUM, ALL),
        _JITTER,
    ),
    (
        "the same at batch 64",
        "jitter of the late loss, sum minus l2",
        _minus(cases.SMALL_SUM, cases.SMALL),
        _JITTER,
    ),
    (
        "short windows jitter",
        "change of the direction weight a step, window 5 minus 200",
        _minus(cases.SHORT_WINDOW, ALL),
        "direction_jitter",
    ),
    (
        "the start with equal weights calms",
        "jitter of the late loss, without minus with",
        _minus(ALL, cases.AFTER_INFONCE),
        _JITTER,
    ),
)
