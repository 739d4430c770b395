import numpy as np
import pandas as pd
import pytest

from uwml_core.analysis.diagnosis.finding import Evidence
from uwml_core.figures.evidence import evidence_figure

DIRECTIONS = ("i2t", "t2i")


def evidence(*columns, **fields):
    frame = pd.DataFrame({"step": np.arange(4), **{name: np.arange(4.0) for name in columns}})
    return Evidence(**{"frame": frame, "x": "step", "y": columns, **fields})


@pytest.mark.parametrize("kind", ["line", "bar"])
def test_columns_of_both_directions_have_their_colours_and_a_legend(look, kind):
    figure = evidence_figure(evidence("gap_t2i", "gap_i2t", kind=kind), look, directions=DIRECTIONS)
    assert [trace.name for trace in figure.data] == ["Mean margin t2i", "Mean margin i2t"]
    colours = [trace.line.color for trace in figure.data] if kind == "line" else None
    assert colours in (None, [look.second, look.first])
    assert figure.layout.showlegend


def test_two_columns_of_one_direction_are_told_apart(look):
    columns = ("dead_share_i2t", "wrong_sign_share_i2t")
    figure = evidence_figure(evidence(*columns), look, directions=DIRECTIONS)
    assert len({trace.line.color for trace in figure.data}) == 2


def test_limit_is_a_line_across_with_its_name(look):
    shown = evidence("loss", limit=2.5, limit_name="plateau", unit="pairs")
    figure = evidence_figure(shown, look, directions=DIRECTIONS)
    (line,) = figure.layout.shapes
    assert (line.y0, line.y1, line.x0, line.x1, line.xref) == (2.5, 2.5, 0, 1, "x domain")
    assert [note.text for note in figure.layout.annotations] == ["plateau"]
    assert figure.layout.yaxis.title.text == "pairs"
    assert not figure.layout.showlegend
