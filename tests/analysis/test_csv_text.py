"""CSV that a spreadsheet shows and does not run."""

from __future__ import annotations

import csv
import io

import numpy as np
import pandas as pd
import pytest

from uwml_core.analysis.csv_text import csv_text


@pytest.mark.parametrize("cell", ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", "\r=1"])
def test_a_formula_becomes_a_text(cell: str) -> None:
    head, *rows = csv.reader(io.StringIO(csv_text(pd.DataFrame({cell: [cell, "a"]})), newline=""))
    safe = "'" + cell.replace("\r", "\n")
    assert (head, rows) == ([safe], [[safe], ["a"]])


def test_what_is_no_formula_stays() -> None:
    frame = pd.DataFrame(
        {"text": ["-", "-0.5", "+1e3", "a=b", "größe, 心", ""], "n": [-1.0, np.nan, np.inf, -np.inf, 0, 2]}
    )
    rows = list(csv.reader(io.StringIO(csv_text(frame))))[1:]
    assert [row[0] for row in rows] == frame["text"].tolist()
    assert [row[1] for row in rows] == ["-1.0", "", "inf", "-inf", "0.0", "2.0"]


def test_columns_of_one_name_categories_and_missing_texts_are_written() -> None:
    frame = pd.DataFrame([["=x", None], ["y", "@z"]], columns=["a", "a"])
    assert csv_text(frame) == "a,a\n'=x,\ny,'@z\n"
    assert csv_text(pd.DataFrame({"d": pd.Categorical(["=i", "j"])})) == "d\n'=i\nj\n"
    assert csv_text(frame.iloc[:0]) == "a,a\n"
