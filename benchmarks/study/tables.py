"""The tables of ``docs/results.md``, as Markdown, from the results alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from benchmarks.study.cases import (
    ABLATION,
    ALL,
    CANDIDATES,
    CHOICES,
    FAR,
    LONG,
    NONE,
    SCREENED,
    SENSITIVITY,
    Case,
)
from benchmarks.study.configuration import Configuration
from benchmarks.study.methods import BASE, METHODS, TUNED_INFONCE
from benchmarks.study.paired import Results, told
from benchmarks.study.plan import MODALITIES, tuned
from benchmarks.study.promises import promises
from uwml_core.analysis.compare.seeds import SeedInterval

_SEEN = ("ESS/n", "gradient of wrong pairs", "CPU s")
# whose weights belong to pairs of anchor and negative
_BY_PAIR = ("siglip",)


def methods(results: Results) -> str:
    """Every method on both sets, clean and with wrong pairs."""
    blocks = [_methods(results, modality, noise) for modality in MODALITIES for noise in (0.0, 0.2, 0.4)]
    return "\n\n".join(block for block in blocks if block)


def _methods(results: Results, modality: str, noise: float) -> str:
    base = tuned(results, TUNED_INFONCE, modality, noise)
    lines = []
    for name in METHODS:
        which = tuned(results, name, modality, noise)
        if base is None or which is None or not len(results.rows(which)):
            continue
        rows = results.rows(which)
        to_text, from_text = (rows[f"test_{column}"].mean() for column in ("there_r1", "back_r1"))
        cells = [
            name,
            told(results.mean(which, "R@1")),
            f"{to_text:.1f} / {from_text:.1f}",
            _over(results, which, base, "R@1"),
            _over(results, which, base, "R@10"),
            *_seen(results, which),
            str(len(rows)),
        ]
        lines.append(_row(cells))
    if not lines:
        return ""
    head = ("method", "R@1", "to text / from text", "over InfoNCE tuned", "the same, R@10", *_SEEN, "n")
    swapped = f"{noise:.0%} of the training captions swapped" if noise else "clean"
    return "\n".join([f"**{modality}-text, {swapped}**", "", *_head(head), *lines])


def _seen(results: Results, which: Configuration) -> list[str]:
    rows = results.rows(which)
    ess = "" if which.preset in _BY_PAIR else f"{rows['ess_share'].mean():.2f}"
    wrong = rows["wrong_gradient"].mean()
    return [ess, f"{wrong:.0%}" if wrong == wrong else "", f"{rows['train_s'].mean():.1f}"]


def tuning(results: Results) -> str:
    """The settings that each method was given for the test."""
    lines = []
    for name, method in METHODS.items():
        for modality in MODALITIES if method.grid else ():
            told_settings = [_settings(tuned(results, name, modality, noise)) for noise in (0.0, 0.2)]
            if any(told_settings):
                lines.append(_row([name, modality, *told_settings]))
    return "\n".join([*_head(("method", "set", "clean", "20 % and 40 % swapped")), *lines])


def _settings(which: Configuration | None) -> str:
    if which is None:
        return ""
    own = {*METHODS[which.method].settings.items(), *BASE[which.modality].items()}
    told_of = {key: value for key, value in which.settings.items() if (key, value) not in own}
    return ", ".join(f"{key.partition('.')[2]} {value:g}" for key, value in told_of.items()) or "as they are"


def candidates(results: Results) -> str:
    """Weightings over InfoNCE with the same rate and temperature."""
    return _everywhere(results, CANDIDATES, NONE, "frozen")


def _everywhere(results: Results, cases: Sequence[Case], base: Case, encoder: str) -> str:

    places = [(modality, noise) for modality in MODALITIES for noise in (0.0, 0.4)]
    head = ["weighting", *(f"{m}, {f'{n:.0%} swapped' if n else 'clean'}" for m, n in places), "n"]
    lines = [_row([f"{base.title}, R@1", *_levels(results, base, places, encoder), ""])]
    for case in cases:
        cells, seeds = [case.title], set()
        for place in places:
            which, other = (one.configuration(*place, encoder) for one in (case, base))
            difference = results.difference(which, other, "R@1")
            cells.append(told(difference, signed=True))
            seeds.add(difference.n)
        lines.append(_row([*cells, _counts(seeds)]))
    return "\n".join([*_head(head), *lines])


def _levels(results: Results, case: Case, places: Sequence[tuple[str, float]], encoder: str) -> list[str]:
    return [told(results.mean(case.configuration(*place, encoder), "R@1")) for place in places]


def ablation(results: Results) -> str:
    """The three factors on and off, over InfoNCE."""
    return _against(results, ABLATION, NONE, 0.4)


def sensitivity(results: Results) -> str:
    """Single changes of the weighting, over the base of the ablation."""
    return "\n\n".join(
        f"{'40 % swapped' if noise else 'clean'}\n\n" + _against(results, SENSITIVITY, ALL, noise)
        for noise in (0.4, 0.0)
    )


def scratch(results: Results) -> str:
    """Small encoders from scratch, over InfoNCE with the same rate and temperature."""
    return _everywhere(results, CHOICES[1:], CHOICES[0], "scratch")


def long(results: Results) -> str:
    """Five times as many epochs, over InfoNCE with as many."""
    return _everywhere(results, LONG[1:], LONG[0], "frozen")


def screening(results: Results) -> str:
    """Gains at R@1 on the validation split, by which the defaults were chosen."""
    places = [(m, noise, longer) for m in MODALITIES for noise in (0.0, 0.4) for longer in (1, FAR)]
    head = [f"{m}, {f'{n:.0%}' if n else 'clean'}{', long' if longer > 1 else ''}" for m, n, longer in places]
    lines = []
    for case in SCREENED:
        gains = [screened(results, case, *place) for place in places]
        cells = [told(gain, signed=True).partition(" ")[0].strip("*") for gain in gains]
        mean = float(np.mean([gain.mean for gain in gains]))
        lines.append(_row([case.title, *cells, f"{mean:+.1f}"]))
    return "\n".join([*_head(["weighting", *head, "mean"]), *lines])


def screened(results: Results, case: Case, modality: str, noise: float, longer: int) -> SeedInterval:
    """Gain over InfoNCE at R@1 of the validation split, over the seeds of the tuning."""
    which, base = (
        replace(one, longer=longer).configuration(modality, noise, purpose="tune") for one in (case, NONE)
    )
    return results.difference(which, base, "R@1", "val")


def _against(results: Results, cases: Sequence[Case], base: Case, noise: float) -> str:
    lines = []
    for case in cases:
        which, other = (one.configuration("image", noise) for one in (case, base))
        gain = results.difference(which, other, "R@1")
        if gain.n:
            cells = [case.title, told(results.mean(which, "R@1")), told(gain, signed=True)]
            cells += [*_seen(results, which)[:2], str(gain.n)]
            lines.append(_row(cells))
    return "\n".join([*_head(("", "R@1", f"over {base.title}", *_SEEN[:2], "n")), *lines])


def promised(results: Results) -> str:
    """The table of promises."""
    head = _head(("promise", "measured", "gain", "n", "verdict"))
    return "\n".join([*head, *(promise.line() for promise in promises(results))])


def cost(results: Results) -> str:
    """What the study took."""
    table = results.table
    total = table["train_s"].sum() / 60
    return f"{len(table)} trainings, {total:.0f} minutes of processor time in them."


def _over(results: Results, which: Configuration, base: Configuration, measure: str) -> str:
    return "" if which.key == base.key else told(results.difference(which, base, measure), signed=True)


def _counts(seeds: set[int]) -> str:
    return " / ".join(map(str, sorted(seeds)))


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _head(names: Sequence[str]) -> list[str]:
    return [_row(names), "|" + "---|" * len(names)]


TABLES: Mapping[str, Callable[[Results], str]] = {
    "promises": promised,
    "methods": methods,
    "candidates": candidates,
    "ablation": ablation,
    "sensitivity": sensitivity,
    "scratch": scratch,
    "long": long,
    "screening": screening,
    "tuning": tuning,
    "cost": cost,
}


def document(text: str, results: Results) -> str:
    """A document with each table between its marks ``<!-- NAME -->`` and ``<!-- /NAME -->`` made anew."""
    for name, make in TABLES.items():
        begin, end = f"<!-- {name} -->", f"<!-- /{name} -->"
        before, found, rest = text.partition(begin)
        if found:
            _old, _end, after = rest.partition(end)
            text = f"{before}{begin}\n{make(results)}\n{end}{after}"
    return text
