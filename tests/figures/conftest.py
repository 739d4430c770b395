import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest

from uwml_core.figures.draft import Draft
from uwml_core.figures.theme import theme


@pytest.fixture(params=["light", "dark"])
def look(request):
    return theme(request.param)


@pytest.fixture
def series():
    """Build a tidy series; key None is the total."""

    def build(values):
        frames = [
            pd.DataFrame({"step": np.arange(len(v)), "epoch": 0.0, "direction": name, "value": v, "n": 4.0})
            for name, v in values.items()
        ]
        frame = pd.concat(frames, ignore_index=True)
        return frame.assign(direction=pd.Categorical(frame["direction"], categories=["i2t", "t2i"]))

    return build


def lines(figure):
    return [trace for trace in figure.data if trace.mode and "lines" in trace.mode]


@pytest.fixture
def drawn():
    """The traces of a figure that are lines."""
    return lines


@pytest.fixture(autouse=True)
def every_field_is_known_to_plotly(monkeypatch):
    """A draft's figure is not checked where it is made; here each one is."""
    finished = Draft.figure

    def checked(draft, *over):
        go.Figure(data=[*draft.data, *over], layout=draft.layout)
        return finished(draft, *over)

    monkeypatch.setattr(Draft, "figure", checked)
