import numpy as np
import pandas as pd
import pytest

from uwml_core.analysis.bands import BAND_NAMES
from uwml_core.figures.shares import bands_figure, weights_figure

DIRECTIONS = ("v2t", "t2v")


def bands(shares):
    rows = [
        {"direction": d, "band": b, "n": 5, "steps": 7, "share_before": s, "share_after": s / 2,
         "share_before_sd": 0.1, "share_after_sd": 0.1}
        for d in DIRECTIONS
        for b, s in zip(BAND_NAMES, shares, strict=True)
    ]  # fmt: skip
    return pd.DataFrame(rows)


def test_bars_are_the_shares_in_percent_before_and_after(look):
    figure = bands_figure(bands([0.1, 0.2, 0.3, 0.4]), look, directions=DIRECTIONS)
    assert list(figure.data[0].y) == ["v2t in use", "v2t tried", "t2v in use", "t2v tried"]
    assert [trace.x[0] for trace in figure.data] == pytest.approx([10.0, 20.0, 30.0, 40.0])
    assert [trace.x[3] for trace in figure.data] == pytest.approx([5.0, 10.0, 15.0, 20.0])
    assert [trace.marker.color for trace in figure.data] == list(look.bands)
    assert list(figure.data[0].text) == ["10 %", "", "10 %", ""]
    assert figure.data[0].customdata.tolist() == [[pytest.approx(10.0), 7.0]] * 4
    for name in BAND_NAMES:
        assert name in figure.layout.annotations[0].text
    # one line from the left edge of the figure
    assert "<br>" not in figure.layout.annotations[0].text
    assert figure.layout.annotations[0].xshift == 2 - figure.layout.margin.l


@pytest.mark.parametrize("shares", [[np.nan] * 4, None])
def test_without_gradient_it_says_so(look, shares):
    frame = bands([0.0] * 4).iloc[:0] if shares is None else bands(shares)
    assert (
        bands_figure(frame, look, directions=DIRECTIONS).layout.annotations[0].text
        == "No gradient share logged"
    )


def weights(before, after):
    left = np.tile([0.0, 0.05, 0.1], 2)
    return pd.DataFrame(
        {"direction": np.repeat(DIRECTIONS, 3), "bin": [0, 1, 2] * 2, "left": left, "right": left + 0.05,
         "count_before": before, "count_after": after}
    )  # fmt: skip


def test_weights_have_a_panel_per_direction_and_mark_the_clamp(look):
    figure = weights_figure(
        weights([1, 2, 3, 4, 5, 6], [6, 5, 4, 3, 2, 1]), look, directions=DIRECTIONS, max_weight=2.0
    )
    assert [(t.xaxis, t.y.tolist()) for t in figure.data] == [
        ("x", [1.0, 2.0, 3.0]),
        ("x", [6.0, 5.0, 4.0]),
        ("x2", [4.0, 5.0, 6.0]),
        ("x2", [3.0, 2.0, 1.0]),
    ]
    assert [s.x0 for s in figure.layout.shapes] == [2.0, 2.0]
    assert figure.layout.xaxis.range[1] > 2.0
    assert figure.data[3].line.color == look.second


def test_without_weights_it_says_so(look):
    figure = weights_figure(weights([0] * 6, [0] * 6), look, directions=DIRECTIONS)
    assert figure.layout.annotations[0].text == "No weight logged"
