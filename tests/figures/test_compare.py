"""What the figures of a comparison draw, against the tables that they are drawn from."""

import numpy as np
import pandas as pd
import pytest

from uwml_core.analysis.compare.comparison import DIFFERENCE_COLUMNS
from uwml_core.figures import compare as figures
from uwml_core.figures.theme import theme

HOSTILE = "<b>{x}</b> $y$ %{z}"


def curves(methods=("plain", "bell"), runs=1):
    rows = [
        {"method": m, "direction": d, "step": 10 * e, "epoch": e, "value": 10.0 * e + k, "low": 10.0 * e,
         "high": 10.0 * e + 2 * k, "runs": runs, "queries": 50}
        for k, m in enumerate(methods) for d in ("i2t", "t2i") for e in range(3)
    ]  # fmt: skip
    return pd.DataFrame(rows)


def differences(methods=("bell",), seeds=1):
    rows = []
    for m in methods:
        for direction in ("i2t", "t2i"):
            for metric, low, high in (("R@1", 0.5, 2.5), ("R@5", -1.0, 1.0), ("median_rank", -1.0, 1.0)):
                row = dict.fromkeys(DIFFERENCE_COLUMNS, np.nan)
                row |= {"method": m, "direction": direction, "metric": metric, "low": low, "high": high}
                row |= {"difference": (low + high) / 2, "queries": 50, "seeds": seeds}
                row |= {"verdict": "better" if low > 0 else "same"}
                if seeds > 1:
                    row |= {"seed_difference": 7.0, "seed_low": 6.0, "seed_high": 8.0}
                rows.append(row)
    return pd.DataFrame(rows)


def colors(*methods):
    return figures.method_colors(methods, theme("light"))


def test_each_direction_has_a_panel_with_a_line_per_method():
    frame = curves()
    figure = figures.progress_figure(
        frame, theme("light"), directions=("i2t", "t2i"), colors=colors("plain", "bell")
    )
    assert [(trace.name, trace.yaxis) for trace in figure.data] == [
        ("plain", "y"), ("bell", "y"), ("plain", "y2"), ("bell", "y2"),
    ]  # fmt: skip
    for trace, direction in zip(figure.data, ("i2t", "i2t", "t2i", "t2i"), strict=True):
        rows = frame[(frame["method"] == trace.name) & (frame["direction"] == direction)]
        assert list(trace.x) == rows["epoch"].tolist()
        assert list(trace.y) == rows["value"].tolist()
    texts = [note.text for note in figure.layout.annotations]
    assert "bell 21.0" in texts
    assert "plain 20.0" in texts


def test_several_runs_have_a_band_of_their_range():
    figure = figures.progress_figure(
        curves(("plain", "bell"), runs=3), theme("dark"), directions=("i2t",), colors=colors("plain", "bell")
    )
    band = figure.data[2]
    assert band.fill == "toself"
    assert list(band.y) == [2.0, 12.0, 22.0, 20.0, 10.0, 0.0]


def test_difference_and_interval_are_those_of_the_table():
    frame = differences()
    figure = figures.difference_figure(frame, theme("light"), colors=colors("plain", "bell"))
    (trace,) = figure.data
    assert list(figure.layout.yaxis.ticktext) == ["R@1 i2t", "R@5 i2t", "R@1 t2i", "R@5 t2i"]
    assert list(trace.x) == [1.5, 0.0, 1.5, 0.0]
    assert list(trace.x + trace.error_x.array) == [2.5, 1.0, 2.5, 1.0]
    assert list(trace.x - trace.error_x.arrayminus) == [0.5, -1.0, 0.5, -1.0]
    surface = theme("light").surface
    assert [color == surface for color in trace.marker.color] == [False, True, False, True]
    assert "<b>+1.5</b>  [+0.5, +2.5]" in [note.text for note in figure.layout.annotations]


def test_interval_over_seeds_is_drawn_where_there_is_one():
    shown = figures.shown_intervals(differences(seeds=3))
    assert shown[["difference", "low", "high", "n"]].to_numpy().tolist() == [[7.0, 6.0, 8.0, 3.0]] * 4
    assert set(shown["over"]) == {"seeds"}


def test_methods_do_not_cover_each_other():
    figure = figures.difference_figure(
        differences(("a", "b", "c")), theme("light"), colors=colors("plain", "a", "b", "c")
    )
    places = np.array([trace.y for trace in figure.data])
    assert np.abs(np.diff(places, axis=0)).min() > 0.15
    assert np.array_equal(np.round(places), np.tile(np.arange(4), (3, 1)))


def test_baseline_is_a_ghost_and_methods_have_colours_of_their_own():
    names = [f"m{k}" for k in range(8)]
    for base in ("light", "dark"):
        found = figures.method_colors(names, theme(base))
        assert found["m0"] == theme(base).ghost
        assert len(set(found.values())) == 8
    assert len(figures.method_colors([f"m{k}" for k in range(20)], theme("light"))) == 20


@pytest.mark.parametrize("base", ["light", "dark"])
def test_labels_are_readable_on_the_page(base):
    def luminance(color):
        channels = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    page = luminance(theme(base).surface)
    for color in list(figures.method_colors([f"m{k}" for k in range(8)], theme(base)).values())[1:]:
        light, dark = sorted([luminance(color), page], reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 4.5, color


def test_names_are_shown_literally():
    figure = figures.progress_figure(
        curves((HOSTILE,)), theme("light"), directions=("i2t",), colors=colors(HOSTILE)
    )
    assert "<b>{x}" not in figure.to_json()
    label = next(note.text for note in figure.layout.annotations if "20.0" in note.text)
    assert "<" not in label
    assert "%{z}" not in figure.data[0].hovertemplate


def test_nothing_to_draw_is_said():
    empty = figures.progress_figure(curves()[:0], theme("light"), directions=("i2t",), colors={})
    assert empty.layout.annotations[0].text == "No evaluation yet"
    nothing = figures.difference_figure(differences()[:0], theme("light"), colors={})
    assert nothing.layout.annotations[0].text == "Nothing to compare yet"
