"""What a report is made of: sections of charts and ready markup."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from uwml_core.figures.theme import Theme
from uwml_core.report.markup import Html

Draw = Callable[[Theme], Any]


@dataclass(frozen=True, kw_only=True, eq=False)
class Chart:
    """A figure of a page, to be drawn in both colour schemes.

    Attributes:
        key: identity in the report.
        title: what it shows.
        draw: gives the figure for a theme; the page's own function.
        frame: exactly the table that it is drawn from; offered as CSV.
        unit: of the values, said beside the title.
        height: pixels.
        notes: small print; empty ones are left out.
        wide: whether it takes the whole width.
    """

    key: str
    title: str
    draw: Draw
    frame: pd.DataFrame
    unit: str = ""
    height: int = 300
    notes: Sequence[str] = ()
    wide: bool = False


Block = Chart | Html


@dataclass(frozen=True, kw_only=True, eq=False)
class Section:
    """A part of the report.

    Attributes:
        key: identity in the report and its address.
        title: of the section.
        question: what it answers; may be empty.
        headline: one sentence from an analysis function; may be empty.
        blocks: in order.
        extra: what the script needs beside the charts, by name.
    """

    key: str
    title: str
    question: str = ""
    headline: str = ""
    blocks: Sequence[Block] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)
