import numpy as np
import pandas as pd
import pytest

from uwml_core.analysis.bands import bands_frame
from uwml_core.analysis.curves import curve_frame, curves_by_epoch
from uwml_core.figures.curve_by_epoch import curve_by_epoch_figure
from uwml_core.figures.theme import UI_REVISION
from uwml_core.figures.weight_curve import weight_curve_figure
from uwml_core.weighting import UWMLConfig

DIRECTIONS = ("i2t", "t2i")
IN_USE = f"in use, steepness {UWMLConfig().steepness_end:.1f}"
NOW, NEW = (curve_frame(UWMLConfig(center=c), [1.0]) for c in (0.15, 0.05))


def histogram(rows):
    frame = pd.DataFrame(rows, columns=["direction", "bin", "count"])
    left, right = (frame["bin"] - 200) / 100, (frame["bin"] - 199) / 100
    return frame.assign(
        left=left.where(frame["bin"] >= 0, -np.inf), right=right.where(frame["bin"] < 400, np.inf)
    )


HIST = histogram([("i2t", 210, 4), ("i2t", 211, 9), ("t2i", 200, 5), ("t2i", 201, 2)])


def draw(look, hist=HIST, now=NOW, new=NEW, **options):
    return weight_curve_figure(hist, now, new, bands_frame(), look, directions=DIRECTIONS, **options)


def by_name(figure, start):
    return next(trace for trace in figure.data if trace.name.startswith(start))


def test_margins_are_outlines_that_fall_to_zero_on_both_sides(look):
    i2t = by_name(draw(look), "i2t")
    assert i2t.x.tolist() == pytest.approx([0.1, 0.1, 0.11, 0.12, 0.12], abs=1e-6)
    assert i2t.y.tolist() == [0.0, 4.0, 9.0, 9.0, 0.0]
    assert i2t.line.color == look.first


def test_curve_and_ghost_are_the_frames_on_the_right_axis(look):
    figure = draw(look, center=0.05)
    ghost, tried = by_name(figure, "in use"), by_name(figure, "tried")
    assert ghost.name == IN_USE
    assert (ghost.line.dash, ghost.line.color) == ("dash", look.ghost)
    assert tried.line.color == look.accent
    assert tried.y.tolist() == pytest.approx(NEW["weight"].tolist(), abs=1e-6)
    assert {ghost.yaxis, tried.yaxis} == {"y2"}
    assert figure.layout.yaxis2.side == "right"
    assert figure.layout.uirevision == UI_REVISION
    assert "center 0.05" in [a.text for a in figure.layout.annotations]


def test_unchanged_curve_has_no_ghost(look):
    figure = draw(look, new=NOW)
    names = [trace.name for trace in figure.data if trace.yaxis == "y2"]
    assert names == [IN_USE]


def test_a_curve_that_the_run_does_not_tell_is_drawn_once_it_is_tried(look):
    assert [trace.name for trace in draw(look, new=NOW, known=False).data if trace.yaxis == "y2"] == []
    tried = [trace.name for trace in draw(look, known=False).data if trace.yaxis == "y2"]
    assert tried == [IN_USE.replace("in use", "tried")]


def test_flat_curve_has_no_center_and_no_steepness(look):
    flat = curve_frame(UWMLConfig(curve="uniform"), [1.0])
    figure = draw(look, new=flat, center=0.1)
    assert not any("center" in a.text for a in figure.layout.annotations)
    assert by_name(figure, "tried").name == "tried"


def test_bands_are_shaded_between_their_edges_and_named(look):
    figure = draw(look)
    boxes = [(s.x0, s.x1) for s in figure.layout.shapes if s.type == "rect"]
    assert boxes == [(-2.0, 0.0), (0.0, 0.05), (0.05, 0.25), (0.25, 2.0)]
    texts = {a.text for a in figure.layout.annotations}
    assert {"misaligned", "hard", "informative", "easy", "i2t, n = 13", "t2i, n = 7"} <= texts


@pytest.mark.parametrize("hist", [HIST, histogram([("i2t", 30, 1), ("i2t", 200, 5), ("t2i", 260, 1)])])
def test_names_of_the_directions_have_room_within_the_axes(look, hist):
    figure = draw(look, hist=hist)
    low, high = figure.layout.xaxis.range
    names = {a.xanchor: a.x for a in figure.layout.annotations if ", n = " in a.text}
    assert all(x - low >= 0.2 * (high - low) for anchor, x in names.items() if anchor == "right")
    assert all(high - x >= 0.2 * (high - low) for anchor, x in names.items() if anchor == "left")


def test_a_name_without_room_beside_its_flank_stands_at_the_edge_above_it(look):
    figure = draw(look, hist=histogram([("i2t", 100, 1), ("t2i", 200, 8), ("t2i", 238, 5)]))
    name = next(a for a in figure.layout.annotations if a.text == "t2i, n = 13")
    assert (name.x, name.xanchor) == (figure.layout.xaxis.range[1], "right")
    assert 5 < name.y <= 8


def test_a_narrow_band_is_named_beside_the_next_one_and_few_anchors_are_counted_whole(look):
    figure = draw(look, hist=histogram([("i2t", 210, 2)]))
    hard = next(a for a in figure.layout.annotations if a.text == "hard")
    assert (hard.x, hard.xanchor) == (0.05, "right")
    assert (figure.layout.yaxis.tickformat, figure.layout.yaxis.dtick) == ("d", 1)


def test_without_rows_the_curve_and_the_bands_stand_alone(look):
    figure = draw(look, hist=HIST.iloc[:0])
    assert [trace.yaxis for trace in figure.data] == ["y2", "y2"]
    low, high = figure.layout.xaxis.range
    assert low < 0 < 0.25 < high


def test_one_direction_or_one_bin_is_drawn(look):
    figure = draw(look, hist=histogram([("t2i", 399, 1)]))
    assert by_name(figure, "t2i").y.tolist() == [0.0, 1.0, 1.0, 0.0]
    assert figure.layout.xaxis.range[1] == pytest.approx(2.02)


def test_margins_beyond_the_axis_are_told(look):
    figure = draw(look, hist=histogram([("i2t", -1, 3), ("i2t", 200, 1), ("i2t", 400, 2)]))
    assert "5 anchors beyond ±2 not drawn" in [a.text for a in figure.layout.annotations]
    assert by_name(figure, "i2t").y.max() == 1.0


def test_epochs_are_one_ramp_labelled_at_the_end(look):
    epochs = pd.DataFrame({"epoch": [0, 1, 2], "progress": [0.0, 0.5, 1.0]})
    figure = curve_by_epoch_figure(curves_by_epoch(UWMLConfig(), epochs), look)
    assert [trace.line.color for trace in figure.data] == look.ramp(3)
    assert [a.text for a in figure.layout.annotations] == ["epoch 0", "epoch 1", "epoch 2"]


def test_many_epochs_label_the_first_and_the_last(look):
    epochs = pd.DataFrame({"epoch": np.arange(12), "progress": np.linspace(0, 1, 12)})
    texts = [
        a.text for a in curve_by_epoch_figure(curves_by_epoch(UWMLConfig(), epochs), look).layout.annotations
    ]
    assert (texts[0], texts[-1]) == ("epoch 0", "epoch 11")
    assert len(texts) < 12


def test_labels_of_curves_that_end_at_the_top_stay_within_the_chart(look):
    epochs = pd.DataFrame({"epoch": np.arange(8), "progress": np.linspace(0, 1, 8)})
    layout = curve_by_epoch_figure(curves_by_epoch(UWMLConfig(curve="uniform"), epochs), look).layout
    plot = layout.height - layout.margin.t - layout.margin.b
    above = [(1.0 - a.y / 1.05) * plot - a.yshift for a in layout.annotations]
    assert (layout.annotations[-1].text, len(above)) == ("epoch 7", 6)
    # half a line reaches into the margin
    assert min(above) >= 7.5 - layout.margin.t
    assert np.all(-np.diff(above) >= 15 - 1e-9)


def test_no_epoch_says_so(look):
    none = curves_by_epoch(UWMLConfig(), pd.DataFrame({"epoch": [], "progress": []}))
    assert curve_by_epoch_figure(none, look).layout.annotations[0].text == "No epoch yet"


@pytest.mark.parametrize(("center", "side"), [(-0.1, "right"), (0.3, "left"), (None, "right")])
def test_names_of_the_curves_stand_away_from_the_center(look, center, side):
    assert draw(look, center=center).layout.legend.xanchor == side
