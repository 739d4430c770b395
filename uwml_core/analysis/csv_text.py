"""Tables as CSV that a spreadsheet shows and does not run."""

from __future__ import annotations

import pandas as pd
from pandas.api.types import is_numeric_dtype

from uwml_core.analysis.text import is_number

_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def csv_text(frame: pd.DataFrame) -> str:
    """The frame as CSV, one line per row, no index; missing numbers are empty, infinite ones inf.

    A text that a spreadsheet would take for a formula gets an apostrophe in front, as captions and names are
    anybody's.

    Example:
        >>> print(csv_text(pd.DataFrame({"caption": ["=1+1", "-0.5"], "n": [-1, 2]})), end="")
        caption,n
        '=1+1,-1
        -0.5,2
    """
    shown = frame.copy(deep=False)
    for place, kind in enumerate(frame.dtypes):
        if not is_numeric_dtype(kind):
            shown.isetitem(place, [_as_text(value) for value in frame.iloc[:, place]])
    return str(shown.set_axis([_as_text(name) for name in frame.columns], axis=1).to_csv(index=False))


def _as_text(value: object) -> object:
    if not isinstance(value, str):
        return value
    # a carriage return by itself is not quoted, and would end the line
    text = value.replace("\r\n", "\n").replace("\r", "\n")
    return f"'{text}" if len(value) > 1 and value.startswith(_FORMULA) and not is_number(value) else text
