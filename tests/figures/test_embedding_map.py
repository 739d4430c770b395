"""The map draws every point once, in its place, its colour and its shape; the gap a panel per measure."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from uwml_core.analysis.gap_measures import GAP_COLUMNS, MEASURES, SPLIT_MEASURES
from uwml_core.analysis.map_classes import COLOR_BY
from uwml_core.figures.embedding_map import GLIDE, embedding_map_figure, shortened
from uwml_core.figures.gap_measures import gap_measures_figure, measure_name
from uwml_core.figures.map_colors import class_colors
from uwml_core.figures.map_overlay import map_overlay

NAMES = ("image", "text")
RANGES = ((-1.0, 5.0), (-2.0, 2.0))
NASTY = '<b onclick="x">%{x} & \u202bعربي\u202c\nline</b>'


@pytest.fixture
def points():
    return pd.DataFrame(
        {
            "x": [0.0, 1.0, 2.0, 3.0],
            "y": [1.0, 0.0, -1.0, 0.5],
            "item_id": [5, 6, 5, 6],
            "modality": ["image", "image", "text", "text"],
            "group": ["a", NASTY, "a", NASTY],
            "caption": [NASTY, "", NASTY, ""],
            "margin": [0.1, np.nan, -0.2, 0.3],
            "rank": [1.0, np.nan, 4.0, 1.5],
        }
    )


def draw(points, look, **changed):
    codes = np.array([0, -1, 1, 1])[: len(points)]
    options = {"modalities": NAMES, "ranges": RANGES, **changed}
    return embedding_map_figure(points, codes, ["#111111", "#222222"], look, **options)


def test_each_modality_is_a_trace_with_a_shape_of_its_own(points, look):
    figure = draw(points, look)
    image, text = figure.data
    assert (image.name, text.name) == NAMES
    assert (image.type, text.type) == ("scattergl", "scattergl")
    assert image.marker.symbol != text.marker.symbol
    assert image.x.tolist() == [0, 1]
    assert text.y.tolist() == [-1, 0.5]
    assert image.x.dtype == text.marker.color.dtype == np.float32
    assert image.marker.color.tolist() == [0, -1]
    assert text.customdata[:, 0].tolist() == [5, 6]
    assert image.meta == text.meta == GLIDE


def test_axes_hold_the_same_range_at_every_snapshot_with_equal_scale(points, look):
    for rows in (points, points.iloc[:2]):
        layout = draw(rows, look).layout
        assert (tuple(layout.xaxis.range), tuple(layout.yaxis.range)) == RANGES
        assert layout.yaxis.scaleanchor == "x"
        assert not layout.xaxis.showticklabels


def test_text_from_the_log_stays_text(points, look):
    text = draw(points, look).data[0].text[0]
    assert "<b" not in text.replace("<br>", "")
    assert "&lt;b onclick=&quot;x&quot;&gt;" in text
    assert "\n" not in text


def test_long_caption_is_cut():
    assert shortened("ä" * 500) == "ä" * 90 + "…"
    assert shortened("short\ttext") == "short text"


def test_links_rings_and_the_chosen_item_are_drawn_on_top(points, look):
    links = pd.DataFrame({"x_0": [0.0, 1.0], "y_0": [1.0, 0.0], "x_1": [2.0, 3.0], "y_1": [-1.0, 0.5]})
    figure = map_overlay(look, links=links, found=points.iloc[:1], chosen=points.iloc[1:2])
    kinds = [(trace.mode, len(trace.x)) for trace in figure.data]
    assert kinds == [("lines", 6), ("markers", 1), ("markers", 1)]
    line = figure.data[0]
    assert line.x[:2].tolist() == [0, 2]
    assert np.isnan(line.x[2])
    assert figure.data[2].marker.color == look.accent
    assert not map_overlay(look, links=links.iloc[:0], found=points.iloc[:0]).data


def test_trails_join_places_of_one_point_and_have_the_colour_of_where_they_lead(look):
    way = pd.DataFrame(
        {
            "item_id": [1, 1, 1, 2, 2],
            "modality": ["image"] * 3 + ["text"] * 2,
            "x": [0.0, 1.0, 2.0, 5.0, 6.0],
            "y": [0.0] * 5,
            "phase": ["", "warmup", "train", "", "train"],
        }
    )
    by_modality = map_overlay(look, trails=way, trail_colors={"image": "#0000ff"}).data
    assert [trace.x[np.isfinite(trace.x)].tolist() for trace in by_modality] == [[0, 1, 1, 2], [5, 6]]
    assert "0, 0, 255" in by_modality[0].line.color
    by_phase = map_overlay(look, trails=way, trail_colors={}, trail_by="phase").data
    assert [trace.x[np.isfinite(trace.x)].tolist() for trace in by_phase] == [[0, 1], [1, 2, 5, 6]]


def test_crowded_points_are_smaller_and_let_others_shine_through(points, look):
    few = draw(points, look).data[0].marker
    crowd = pd.concat([points] * 10_000, ignore_index=True)
    figure = embedding_map_figure(crowd, np.zeros(40_000), ["#111111"], look, modalities=NAMES, ranges=RANGES)
    assert figure.data[0].marker.size < few.size
    assert figure.data[0].marker.opacity < few.opacity
    # their texts would be most of what is sent
    assert figure.data[0].text is None
    assert "%{text}" not in figure.data[0].hovertemplate
    assert "click it for picture and caption" in figure.data[0].hovertemplate
    assert "click" not in draw(points, look).data[0].hovertemplate


def test_points_without_margins_do_not_speak_of_them(points, look):
    trace = draw(points.assign(margin=np.nan, rank=np.nan), look).data[0]
    assert "margin" not in trace.hovertemplate
    assert trace.customdata.shape == (2, 1)


def test_nothing_to_draw_is_said(points, look):
    figure = draw(points.iloc[:0], look)
    assert not figure.data
    assert "No point" in figure.layout.annotations[0].text


@pytest.mark.parametrize("color_by", COLOR_BY)
def test_classes_have_different_colours(color_by, look):
    most = {"modality": 2, "group": 10}.get(color_by, 4)
    colors = class_colors(color_by, most, look)
    assert len(set(colors)) == len(colors) == most


@pytest.fixture
def gaps():
    rows = []
    for step, epoch in ((-1, -1), (9, 0), (19, 1)):
        for measure in MEASURES:
            names = (*NAMES, "across") if measure in SPLIT_MEASURES else (None,)
            rows += [
                (step, epoch, measure, name, 0.1 * step, 0.1 * step - 1, 0.1 * step + 2, 8) for name in names
            ]
    return pd.DataFrame(rows, columns=list(GAP_COLUMNS))


def test_each_measure_has_a_panel_and_the_shown_snapshot_a_ring(gaps, look):
    figure = gap_measures_figure(gaps, look, modalities=NAMES, step=9)
    lines = [trace for trace in figure.data if trace.mode == "lines+markers"]
    rings = [trace for trace in figure.data if trace.mode == "markers"]
    assert len(lines) == 13
    assert [trace.x.tolist() for trace in lines] == [[-1, 0, 1]] * 13
    assert len({trace.xaxis for trace in lines}) == len(rings) == 7
    assert all(set(ring.x.tolist()) == {0} for ring in rings)
    titles = [note.text for note in figure.layout.annotations]
    assert all(measure_name(measure) in titles for measure in MEASURES)


def test_lines_of_chance_say_what_they_are(gaps, look):
    layout = gap_measures_figure(gaps, look, modalities=NAMES).layout
    lines = {(line.yref, line.y0) for line in layout.shapes}
    assert {(note.yref, note.y) for note in layout.annotations if note.text == "chance"} == lines
    assert len(lines) == 2


@pytest.mark.parametrize(("values", "side"), [([1.0, 0.9, 0.55], "left"), ([0.8, 0.45, 0.1], "right")])
def test_chance_is_named_where_the_line_stays_away_from_it(gaps, look, values, side):
    gaps = gaps[gaps["measure"] == "separability"].iloc[:1]
    gaps = pd.concat(
        [gaps.assign(step=place, epoch=place, value=value) for place, value in enumerate(values)]
    )
    figure = gap_measures_figure(gaps, look, modalities=NAMES)
    # on the left in the panel that has no values
    anchors = sorted(note.xanchor for note in figure.layout.annotations if note.text == "chance")
    assert anchors == sorted(["left", side])


def test_each_line_lies_in_the_band_of_its_interval(gaps, look):
    gaps.loc[(gaps["step"] == 9), "low"] = np.nan
    figure = gap_measures_figure(gaps, look, modalities=NAMES)
    bands = [trace for trace in figure.data if trace.fill == "toself"]
    assert len(bands) == 13
    for band in bands:
        assert band.x.tolist() == [-1, 1, 1, -1]
        np.testing.assert_allclose(band.y, [-1.1, 0.9, 3.9, 1.9], rtol=1e-6)
        assert band.hoverinfo == "skip"
    low, high = figure.layout.yaxis.range
    assert low < -1.1
    assert high > 3.9


def test_panels_do_not_overlap(gaps, look):
    layout = gap_measures_figure(gaps, look, modalities=NAMES).layout
    boxes = [(layout[f"xaxis{k}"].domain, layout[f"yaxis{k}"].domain) for k in ("", *range(2, 8))]
    for i, (x, y) in enumerate(boxes):
        assert 0 <= x[0] < x[1] <= 1 + 1e-9
        for other_x, other_y in boxes[:i]:
            apart = x[0] >= other_x[1] or other_x[0] >= x[1] or y[0] >= other_y[1] or other_y[0] >= y[1]
            assert apart


def test_steps_stand_in_for_epochs_that_were_not_logged(gaps, look):
    figure = gap_measures_figure(gaps.assign(epoch=None), look, modalities=NAMES)
    assert next(trace for trace in figure.data if trace.mode == "lines+markers").x.tolist() == [-1, 9, 19]


def test_measures_that_are_not_finite_leave_gaps_and_an_empty_frame_is_said(gaps, look):
    gaps.loc[gaps["step"] == 9, "value"] = np.nan
    figure = gap_measures_figure(gaps, look, modalities=NAMES, step=9)
    assert json.loads(figure.to_json())
    assert not gap_measures_figure(gaps.assign(value=np.nan), look, modalities=NAMES).data
    assert not gap_measures_figure(gaps.iloc[:0], look, modalities=NAMES).data
