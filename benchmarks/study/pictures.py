"""The figure of ``docs/results.md`` as SVG: what each weighting gains over InfoNCE, with intervals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import NamedTuple

import numpy as np

from benchmarks.study.cases import CHOICES, LONG, Case
from benchmarks.study.paired import Results, told
from benchmarks.study.plan import MODALITIES
from uwml_core.analysis.compare.seeds import SeedInterval

PICTURE = "gains.svg"
# points of R@1 that a panel shows; an interval that reaches further is cut, its numbers are told anyway
LOW, HIGH = -5.0, 16.0
_LABEL, _PANEL, _GAP, _ROW, _TOP = 270, 180, 36, 22, 56
_PLACES = tuple((modality, noise) for modality in MODALITIES for noise in (0.0, 0.4))
_WIDTH = _LABEL + len(_PLACES) * (_PANEL + _GAP)
_INK, _SOFT, _LINE, _GAIN, _LOSS = "#1f2328", "#59636e", "#d1d9e0", "#0072b2", "#d55e00"


class Block(NamedTuple):
    """Rows of one training: what it is called, cases, what they are held against, which encoders."""

    title: str
    cases: Sequence[Case]
    base: Case
    encoder: str


BLOCKS = (
    Block("frozen encoders, 12 or 20 epochs", CHOICES[1:], CHOICES[0], "frozen"),
    Block("frozen encoders, 60 or 100 epochs", LONG[1:], LONG[0], "frozen"),
    Block("from scratch, 12 or 20 epochs", CHOICES[1:], CHOICES[0], "scratch"),
)


def picture(results: Results) -> str:
    """Gains at R@1 as an SVG document, one panel for each set, clean and with wrong pairs."""
    rows = sum(len(block.cases) + 1 for block in BLOCKS)
    height = _TOP + rows * _ROW + 40
    parts = list(_frame(height))
    top = float(_TOP)
    for block in BLOCKS:
        parts.append(_text(8, top + 15, block.title, weight="600"))
        top += _ROW
        for case in block.cases:
            parts.append(_text(20, top + 15, case.title))
            parts += _cells(results, block, case, top + _ROW / 2)
            top += _ROW
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" '
    style = 'font-family="system-ui, sans-serif" font-size="12" role="img">'
    title = "<title>Gain in R@1 over InfoNCE, mean and 95 % interval over seeds</title>"
    return "\n".join([head + style, title, *parts, "</svg>", ""])


def _left(place: int) -> float:
    return _LABEL + place * (_PANEL + _GAP)


def _x(place: int, value: float) -> float:
    share = (float(np.clip(value, LOW, HIGH)) - LOW) / (HIGH - LOW)
    return round(_left(place) + share * _PANEL, 1)


def _frame(height: int) -> Iterator[str]:
    yield f'<rect width="{_WIDTH}" height="{height}" fill="#ffffff"/>'
    yield _text(8, 20, "Gain in R@1 over InfoNCE (points, mean and 95 % interval over seeds)", weight="600")
    for place, (modality, noise) in enumerate(_PLACES):
        told_noise = f"{noise:.0%} swapped" if noise else "clean"
        yield _text(_left(place), 44, f"{modality}-text, {told_noise}", color=_SOFT)
        for value in range(-5, 16, 5):
            at, dark = _x(place, value), value == 0
            yield (
                f'<line x1="{at}" x2="{at}" y1="{_TOP}" y2="{height - 34}" '
                f'stroke="{_SOFT if dark else _LINE}"/>'
            )
            yield _text(at, height - 18, f"{value:+d}" if value else "0", color=_SOFT, anchor="middle")


def _cells(results: Results, block: Block, case: Case, middle: float) -> Iterator[str]:
    for place, where in enumerate(_PLACES):
        which, other = (one.configuration(*where, block.encoder) for one in (case, block.base))
        gain = results.difference(which, other, "R@1")
        if gain.n:
            yield from _mark(place, gain, middle)


def _mark(place: int, gain: SeedInterval, middle: float) -> Iterator[str]:
    color = _GAIN if gain.low > 0 else _LOSS if gain.high < 0 else _SOFT
    hint = f"<title>{escape(told(gain, signed=True).strip('*'))}, n = {gain.n}</title>"
    if np.isfinite(gain.low):
        low, high = _x(place, gain.low), _x(place, gain.high)
        yield f'<line x1="{low}" x2="{high}" y1="{middle}" y2="{middle}" stroke="{color}" stroke-width="2"/>'
    yield f'<circle cx="{_x(place, gain.mean)}" cy="{middle}" r="4" fill="{color}">{hint}</circle>'


def _text(
    x: float, y: float, text: str, *, color: str = _INK, weight: str = "400", anchor: str = "start"
) -> str:
    return (
        f'<text x="{x}" y="{y}" fill="{color}" font-weight="{weight}" text-anchor="{anchor}">'
        f"{escape(text)}</text>"
    )
