"""What the study trains, stage by stage; a stage whose settings are tuned reads the results of the tuning."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from benchmarks.study.cases import (
    ABLATION,
    CANDIDATES,
    CHOICES,
    FAR,
    FEW_SEEDS,
    LONG,
    NONE,
    PROMISES,
    SCREENED,
    SENSITIVITY,
    Case,
)
from benchmarks.study.configuration import Configuration
from benchmarks.study.methods import (
    FLOORED,
    INFONCE,
    METHODS,
    NOISY,
    SEEDS,
    TUNED_AT,
    TUNED_INFONCE,
    TUNED_UWML,
    TUNING_SEEDS,
    UWML,
    configuration,
    tuning,
)
from benchmarks.study.paired import Results

MODALITIES = ("image", "video")
CORE = (INFONCE, FLOORED, UWML, NOISY, TUNED_INFONCE, TUNED_UWML)
# of the short trainings, which take seconds
SCREENING_SEEDS = tuple(range(100, 106))
OTHERS = tuple(name for name in METHODS if name not in CORE)


class Part(NamedTuple):
    """Configurations that are trained with the same seeds, once what they depend on is there."""

    make: Callable[[Results], Sequence[Configuration]]
    seeds: tuple[int, ...] = SEEDS


def chosen(results: Results, name: str, modality: str, noise: float) -> Configuration:
    """A method for the test: as it is, or with the settings that were best on the validation split."""
    more = {}
    if METHODS[name].grid:
        best = results.best(tuning(name, modality, TUNED_AT[noise]))
        more = dict(best.settings)
    return configuration(name, modality, noise, more)


def tuned(results: Results, name: str, modality: str, noise: float) -> Configuration | None:
    """As ``chosen``; None while the tuning has no results."""
    try:
        return chosen(results, name, modality, noise)
    except ValueError:
        return None


def parts() -> Iterator[Part]:
    """The whole study in the order in which it is trained."""
    for modality in MODALITIES:
        for noise in (0.4, 0.0):
            yield from _methods(CORE, modality, noise)
    for modality in MODALITIES:
        for noise in (0.4, 0.0):
            yield _cases(CANDIDATES, modality, noise)
    yield _cases(ABLATION, "image", 0.4)
    yield from _methods(OTHERS, "image", 0.4)
    for modality in MODALITIES:
        yield from _methods(CORE, modality, 0.2)
    yield _cases(PROMISES, "image", 0.4, FEW_SEEDS)
    yield _cases(SENSITIVITY, "image", 0.4, FEW_SEEDS)
    yield from _screening()
    yield from _grid(LONG, FEW_SEEDS)
    yield from _grid(CHOICES, FEW_SEEDS, "scratch")
    yield _cases(PROMISES, "image", 0.4)
    yield from _grid(CHOICES, SEEDS, "scratch")
    for modality, noise in (("video", 0.4), ("video", 0.0), ("image", 0.0), ("image", 0.2), ("video", 0.2)):
        yield from _methods(OTHERS, modality, noise)
    yield from _grid(LONG)
    yield _cases(SENSITIVITY, "image", 0.0, FEW_SEEDS)


def _methods(names: Sequence[str], modality: str, noise: float) -> Iterator[Part]:
    for name in names:
        grid = tuning(name, modality, TUNED_AT[noise])
        if grid:
            yield Part(partial(_same, grid), TUNING_SEEDS)
        yield Part(partial(_chosen, name, modality, noise))


def _chosen(name: str, modality: str, noise: float, results: Results) -> list[Configuration]:
    return [chosen(results, name, modality, noise)]


def _cases(
    cases: Sequence[Case],
    modality: str,
    noise: float,
    seeds: tuple[int, ...] = SEEDS,
    encoder: str = "frozen",
) -> Part:
    made = [case.configuration(modality, noise, encoder) for case in cases]
    return Part(partial(_same, made), seeds)


def _grid(cases: Sequence[Case], seeds: tuple[int, ...] = SEEDS, encoder: str = "frozen") -> Iterator[Part]:
    for modality in MODALITIES:
        for noise in (0.4, 0.0):
            yield _cases(cases, modality, noise, seeds, encoder)


def _screening() -> Iterator[Part]:
    for longer in (FAR, 1):
        for modality in MODALITIES:
            for noise in (0.4, 0.0):
                cases = (replace(case, longer=longer) for case in (NONE, *SCREENED))
                made = [case.configuration(modality, noise, purpose="tune") for case in cases]
                yield Part(partial(_same, made), TUNING_SEEDS if longer > 1 else SCREENING_SEEDS)


def _same(configurations: list[Configuration], _: Results) -> list[Configuration]:
    return configurations
