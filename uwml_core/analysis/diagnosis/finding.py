"""What a rule has found: its numbers, the chart that proves it, the cause, what to try, where to look."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

SEVERITIES = ("serious", "warning", "note")


@dataclass(frozen=True, kw_only=True)
class Measured:
    """One number of a finding and what it was taken from.

    Attributes:
        name: language-free name, the key for tests and JSON.
        value: the number.
        unit: its unit, empty for none; ``1`` for a share.
        n: how many rows, steps, items or queries are behind it.
        first_step, last_step: the steps that they are from; None where no step says it.
    """

    name: str
    value: float
    unit: str = ""
    n: int = 0
    first_step: int | None = None
    last_step: int | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class Evidence:
    """A small table and how to draw it.

    Attributes:
        frame: tidy, at most a few hundred rows.
        x: column along the horizontal axis.
        y: columns drawn, each a line or a bar.
        kind: ``line``, ``bar`` or ``table``.
        unit: of what is drawn.
        limit: a horizontal reference line; None for none.
        limit_name: what that line is, in the reader's language.
    """

    frame: pd.DataFrame
    x: str
    y: tuple[str, ...]
    kind: str = "line"
    unit: str = ""
    limit: float | None = None
    limit_name: str = ""


@dataclass(frozen=True, kw_only=True)
class Change:
    """A parameter to change: ``uwml train --set name=value``.

    Attributes:
        name: setting by section, such as ``loss.temperature``.
        value: what to try.
        before: what the run had; None where unknown.
    """

    name: str
    value: Any
    before: Any = None


@dataclass(frozen=True, kw_only=True)
class PageLink:
    """Where the app shows it: last part of the page's address, and the choices in the address."""

    page: str
    query: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, eq=False)
class Finding:
    """One thing that is wrong.

    Texts are in the language of whoever called the rule.

    Attributes:
        rule: name in the registry.
        severity: one of ``SEVERITIES``.
        confidence: 0 to 1, how far the evidence lies beyond what healthy runs show.
        title: one sentence with the numbers.
        cause: what usually causes it.
        advice: what to do, in words.
        numbers: what the title rests on.
        evidence: the chart.
        changes: what to try, as parameters; empty where no parameter mends it.
        link: where the app shows it.
    """

    rule: str
    severity: str
    confidence: float
    title: str
    cause: str
    advice: str
    numbers: tuple[Measured, ...]
    evidence: Evidence
    changes: tuple[Change, ...] = ()
    link: PageLink

    def number(self, name: str) -> Measured:
        """One of the numbers.

        Raises:
            KeyError: if the finding has none of this name.
        """
        return {number.name: number for number in self.numbers}[name]


def confidence(value: float, limit: float, certain: float) -> float:
    """How sure: 0.5 where a number just reaches the limit, 1 from ``certain`` on, linear between.

    Example:
        >>> confidence(3.0, 2.0, 4.0), confidence(9.0, 2.0, 4.0), confidence(0.1, 0.2, 0.0)
        (0.75, 1.0, 0.75)
    """
    share = (value - limit) / (certain - limit)
    return round(0.5 + 0.5 * min(max(share, 0.0), 1.0), 3)
