"""A drawing turns into the JSON that Plotly makes of the same figure."""

from __future__ import annotations

import copy
import json
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest

from uwml_core.figures.draft import Draft
from uwml_core.figures.drawing import Drawing, Encoded, encoded
from uwml_core.figures.theme import theme

ARRAYS = [
    np.array([1.5, np.nan, np.inf, -0.0]),
    np.array([1.5, 2.5], np.float32),
    np.array([1.5, 2.5], np.float16),
    np.array([-128, 127]),
    np.array([-129, 127]),
    np.array([0, 40_000]),
    np.array([0, 2**40]),
    np.array([0, 255], np.uint64),
    np.array([0, 2**40], np.uint64),
    np.array([1, 2], np.int32),
    np.array([True, False]),
    np.array(["a", "<b>"]),
    np.array(["a", None, 1.5], dtype=object),
    np.array(["2026-01-01", "2026-01-02"], "datetime64[ms]"),
    np.empty(0),
    np.arange(6.0).reshape(2, 3),
    np.arange(6.0).reshape(2, 3).T,
    np.arange(10)[::2],
    [1.0, float("nan"), None],
    ["a", "b"],
    (1, 2),
    [[1, 2], [np.float64(3.0), np.int64(4)]],
    [np.arange(2), np.arange(3)],
    pd.Series([1.0, 2.0]),
    pd.Series(["a", "b"]),
    pd.Index([1, 2]),
]


@pytest.mark.parametrize("values", ARRAYS, ids=lambda values: f"{type(values).__name__}-{str(values)[:18]}")
def test_every_kind_of_values_is_told_as_by_plotly(values: Any) -> None:
    data = [{"type": "scatter", "x": values, "marker": {"color": values}, "customdata": values}]
    layout = {
        "xaxis": {"range": np.array([0.0, 1.0]), "tickvals": values},
        "shapes": [{"x0": np.float32(0.5)}],
        "template": theme("light").template,
    }
    drawn, plain = Drawing(data, layout), go.Figure(data, layout, _validate=False)
    expected = json.loads(plain.to_json(validate=False))
    assert json.loads(drawn.to_json(validate=False)) == expected
    text = Encoded(drawn)
    assert json.loads(text.to_json(validate=False)) == expected
    both = go.Figure([*data, *data], layout, _validate=False)
    assert json.loads(text.over(data).to_json()) == json.loads(both.to_json(validate=False))
    # what lies over one stays out of the other
    assert json.loads(text.over([]).to_json()) == json.loads(text.to_json()) == expected


def test_what_is_drawn_to_be_kept_is_what_would_be_sent() -> None:
    def draw(values: list[float], *, height: int) -> go.Figure:
        figure = Draft(theme("dark"), height=height)
        figure.add_trace({"type": "scatter", "y": np.array(values, np.float32)})
        return figure.figure()

    kept = encoded(draw, [1.0, np.nan], height=150)
    assert json.loads(kept.to_json()) == json.loads(draw([1.0, np.nan], height=150).to_json(validate=False))


def test_a_drawing_that_was_changed_tells_the_change() -> None:
    figure = Draft(theme("light"), height=200)
    figure.add_trace({"type": "scatter", "y": np.arange(3)})
    drawn = figure.figure()
    before = drawn.to_json(validate=False)
    drawn.update_layout(height=300)
    assert json.loads(drawn.to_json(validate=False))["layout"]["height"] == 300
    assert json.loads(before)["layout"]["height"] == 200
    assert drawn.data[0].y.tolist() == [0, 1, 2]


def test_a_drawing_can_be_looked_into_copied_and_asked_for_what_is_not_there() -> None:
    figure = Draft(theme("light"), height=200)
    figure.add_trace({"type": "scatter", "y": np.arange(3)})
    drawn = figure.figure()
    again = copy.deepcopy(drawn)
    assert isinstance(again, Drawing)
    assert json.loads(again.to_json(validate=False)) == json.loads(drawn.to_json(validate=False))
    assert drawn.layout.height == 200
    for known in (drawn, figure.figure()):
        with pytest.raises(AttributeError, match="no_such_thing"):
            known.no_such_thing  # noqa: B018
