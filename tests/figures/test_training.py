import numpy as np
import pandas as pd
import pytest

from uwml_core.figures.theme import UI_REVISION
from uwml_core.figures.training import line_figure, loss_figure, retrieval_figure

DIRECTIONS = ("i2t", "t2i")


def test_lines_are_exactly_the_series_in_float32(series, look, drawn):
    frame = series({None: [3.0, 2.0], "i2t": [1.0, 1.5], "t2i": [5.0, 2.5]})
    figure = loss_figure(frame, None, None, None, look, directions=DIRECTIONS)
    found = {trace.name: trace for trace in drawn(figure)}
    assert set(found) == {"total", "i2t", "t2i"}
    assert found["t2i"].y.tolist() == [5.0, 2.5]
    assert found["t2i"].x.dtype == found["t2i"].y.dtype == np.float32
    assert found["i2t"].line.color == look.first
    assert found["t2i"].line.color == look.second
    assert found["total"].line.color == look.text
    assert figure.layout.uirevision == UI_REVISION
    assert figure.layout.yaxis.range is None


def test_each_line_is_named_with_its_last_value_at_its_end(series, look):
    figure = loss_figure(
        series({None: [3.0, 2.0], "i2t": [1.0, 1.5]}), None, None, None, look, directions=DIRECTIONS
    )
    labels = {a.text: a for a in figure.layout.annotations}
    assert set(labels) == {"total 2.0", "i2t 1.5"}
    assert labels["i2t 1.5"].font.color == look.first


def test_a_zoomed_line_is_named_with_the_last_value_that_is_seen(series, look):
    frame = series({None: [9.0, 3.0, np.nan, 2.0], "i2t": [1.0, 1.5, 1.6, 4.0], "t2i": [np.nan] * 3 + [5.0]})
    figure = loss_figure(frame, None, None, None, look, directions=DIRECTIONS, within=(0.5, 2.5))
    # t2i has no value there
    assert {a.text: a.y for a in figure.layout.annotations} == {"total 3.0": 3.0, "i2t 1.6": 1.6}


def shown_heights(series, look, values, level, within):
    references = pd.DataFrame({"name": ["ln(1 + 127)"], "value": [level], "why": ["chance"]})
    frame = series(values)
    figure = loss_figure(frame, None, None, references, look, directions=DIRECTIONS, within=within)
    return figure.layout.yaxis.range


def test_a_zoomed_chart_is_as_high_as_the_values_that_are_seen(series, look):
    values = {None: [5.0, 3.0, np.nan, 1.0, 0.5, 40.0], "i2t": [4.0, 2.0, 0.7, np.inf, 0.6, 0.0]}
    assert shown_heights(series, look, values, 4.85, None) is None
    # between 0.5 and 1.0, the level of 4.85 would leave the lines a ninth of the height
    assert shown_heights(series, look, values, 4.85, (1.5, 4.5)) == pytest.approx((0.47, 1.03))
    assert shown_heights(series, look, values, 1.5, (1.5, 4.5)) == pytest.approx((0.44, 1.56))
    assert shown_heights(series, look, values, 0.0, (1.5, 4.5)) == pytest.approx((-0.06, 1.06))


def test_a_zoomed_chart_without_extent_or_values_has_a_height_all_the_same(series, look):
    flat = {None: [5.0, 1.0, 1.0, 1.0, np.nan, np.nan]}
    assert shown_heights(series, look, flat, 4.85, (1.0, 3.0)) == pytest.approx((0.8, 1.2))
    assert shown_heights(series, look, flat, 4.85, (4.0, 5.0)) == pytest.approx((0.76, 5.24))


def test_a_mean_that_still_knows_what_came_before_is_seen_in_a_zoomed_chart(series, look):
    frame, smooth = series({None: [5.0, 1.0, 0.5]}), series({None: [5.0, 3.0, 2.0]}).assign(window=25)
    figure = loss_figure(
        frame, None, None, None, look, directions=DIRECTIONS, smooth=smooth, within=(0.5, 2.0)
    )
    assert figure.layout.yaxis.range == pytest.approx((0.35, 3.15))


def test_numbers_of_a_small_unitless_rate_carry_no_prefix(series, look):
    frame = series({None: [8e-4, 4e-4, 3.03e-8]})
    figure = line_figure(frame, title="", unit="", theme=look, directions=DIRECTIONS)
    assert [a.text for a in figure.layout.annotations] == ["3.03e-8"]
    assert figure.layout.template.layout.yaxis.exponentformat == "e"
    assert figure.layout.yaxis.exponentformat is None


def test_thousands_are_abbreviated(series, look):
    figure = line_figure(
        series({None: [90.0, 18285.7]}), title="", unit="", theme=look, directions=DIRECTIONS
    )
    assert figure.layout.yaxis.exponentformat == "SI"
    assert figure.layout.yaxis.separatethousands


def test_hover_says_value_step_epoch_and_n(series, look, drawn):
    figure = line_figure(series({"i2t": [0.5, 0.6]}), title="", unit="", theme=look, directions=DIRECTIONS)
    template = drawn(figure)[0].hovertemplate
    for part in ("i2t", "%{y", "step %{x", "epoch %{customdata[0]", "n = %{customdata[1]"):
        assert part in template


def test_values_that_are_not_finite_are_ticks_at_the_edge_not_points_of_the_line(series, look, drawn):
    frame = series({None: [1.0, np.nan, np.inf, -np.inf, 2.0]})
    figure = loss_figure(frame, None, None, None, look, directions=DIRECTIONS)
    assert drawn(figure)[0].x.tolist() == [0.0, 4.0]
    ticks = next(trace for trace in figure.data if trace.name == "not finite")
    assert ticks.x.tolist() == [1.0, 2.0, 3.0]
    assert ticks.y.tolist() == [1.0, 1.0, 0.0]
    assert ticks.yaxis == "y2"
    assert list(ticks.customdata) == ["nan", "inf", "-inf"]


def test_series_of_nothing_but_nan_draws_ticks_and_no_line(series, look, drawn):
    figure = loss_figure(series({None: [np.nan, np.nan]}), None, None, None, look, directions=DIRECTIONS)
    assert drawn(figure) == []
    assert figure.data[0].name == "not finite"


def test_smooth_lines_stand_before_the_pale_series(series, look, drawn):
    frame = series({None: [1.0, 3.0]})
    smooth = series({None: [1.0, 2.0]}).assign(window=25)
    figure = loss_figure(frame, None, None, None, look, directions=DIRECTIONS, smooth=smooth)
    pale, front = drawn(figure)
    assert pale.opacity < 0.5 < front.opacity
    assert front.y.tolist() == [1.0, 2.0]
    assert "mean of 25 steps" in front.hovertemplate
    assert [a.text for a in figure.layout.annotations] == ["2"]


def test_empty_series_says_so(series, look):
    figure = loss_figure(series({None: []}), None, None, None, look, directions=DIRECTIONS)
    assert len(figure.data) == 0
    assert figure.layout.annotations[0].text == "Nothing logged yet"


def test_one_step_is_a_visible_point(series, look, drawn):
    figure = loss_figure(series({None: [1.0]}), None, None, None, look, directions=DIRECTIONS)
    assert drawn(figure)[0].mode == "lines+markers"
    assert figure.layout.xaxis.dtick == 1
    assert figure.layout.yaxis.range[0] < 1.0 < figure.layout.yaxis.range[1]


def test_phases_events_and_references_are_drawn_and_escaped(series, look):
    bands = pd.DataFrame({"phase": ["<b>warmup", "train"], "first_step": [0, 2], "last_step": [1, 3]})
    marks = pd.DataFrame(
        {
            "step": [1],
            "kind": ["non_finite"],
            "level": ["error"],
            "message": ["<script>x</script>"],
            "count": [3],
        }
    )
    references = pd.DataFrame({"name": ["ln(1 + 127)"], "value": [4.852], "why": ["chance"]})
    frame = series({None: [3.0, 2.0, 2.0, 1.0]})
    figure = loss_figure(frame, bands, marks, references, look, directions=DIRECTIONS)
    texts = [a.text for a in figure.layout.annotations]
    assert {"&lt;b&gt;warmup", "train", "ln(1 + 127) = 4.85, nothing learned"} <= set(texts)
    events = next(trace for trace in figure.data if trace.name == "events")
    assert list(events.customdata) == ["non_finite ×3: &lt;script&gt;x&lt;/script&gt;"]
    assert list(events.marker.color) == [look.warning]
    dotted = [s for s in figure.layout.shapes if s.type == "line"]
    assert [s.y0 for s in dotted] == [4.852]
    assert [s.x1 for s in figure.layout.shapes if s.type == "rect"] == [1]


def test_a_single_phase_needs_no_band(series, look):
    bands = pd.DataFrame({"phase": ["train"], "first_step": [0], "last_step": [1]})
    figure = loss_figure(series({None: [1.0, 2.0]}), bands, None, None, look, directions=DIRECTIONS)
    assert len(figure.layout.shapes) == 0


def curves(rows):
    columns = ["step", "epoch", "direction", "metric", "value", "n", "tied_share"]
    return pd.DataFrame(rows, columns=columns)


def test_recall_has_a_panel_per_k_and_a_line_per_direction(look):
    rows = [
        (s, s // 10, d, f"R@{k}", float(s + k), 7, 0.25) for k in (1, 5) for d in DIRECTIONS for s in (9, 19)
    ]
    figure = retrieval_figure(curves(rows), look, directions=DIRECTIONS)
    assert [(t.name, t.yaxis) for t in figure.data] == [
        ("R@1 i2t", "y"),
        ("R@1 t2i", "y"),
        ("R@5 i2t", "y2"),
        ("R@5 t2i", "y2"),
    ]
    assert figure.data[2].y.tolist() == [14.0, 24.0]
    assert figure.data[0].customdata.tolist() == [[0.0, 7.0, 25.0], [1.0, 7.0, 25.0]]
    assert figure.layout.uirevision == UI_REVISION
    texts = [a.text for a in figure.layout.annotations]
    assert "i2t 24.0" in texts


def test_recall_of_one_evaluation_or_one_direction_is_drawn(look):
    figure = retrieval_figure(curves([(9, 0, "t2i", "R@1", 0.0, 7, np.nan)]), look, directions=DIRECTIONS)
    assert [t.name for t in figure.data] == ["R@1 t2i"]
    # a marker at 0 is not cut in half
    assert tuple(figure.layout.yaxis.range) == (-0.06, 1.0)


def test_no_evaluation_says_so(look):
    figure = retrieval_figure(curves([]), look, directions=DIRECTIONS)
    assert figure.layout.annotations[0].text == "No evaluation yet"
