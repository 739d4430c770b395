import re

import numpy as np
import pandas as pd
import pytest

from uwml_core.analysis.modal_balance import modal_balance
from uwml_core.figures.modal_balance import balance_figure, contributions_figure
from uwml_core.figures.theme import UI_REVISION, fade
from uwml_core.weighting import UWMLConfig

DIRECTIONS = ("i2t", "t2i")
IN_USE, TRIED = UWMLConfig(window=5, update_every=2), UWMLConfig(window=3, update_every=2, smoothing=0.1)


def balance(n=12, after=TRIED, **columns):
    step = np.arange(n)
    steps = pd.DataFrame(
        {
            "step": step,
            "epoch": step // 6,
            "batch_size": 16,
            "gap_i2t": 0.1 + 0.01 * step,
            "gap_t2i": 0.05 + 0.01 * step,
            "loss_i2t": 1.0 / (1 + step),
            "loss_t2i": 2.0 / (1 + step),
            **columns,
        }
    )
    return modal_balance(steps, IN_USE, after, DIRECTIONS)


def draw(look, shown=None, **options):
    shown = shown or balance()
    return balance_figure(shown.lines.frame, shown.updates, look, directions=DIRECTIONS, **options)


def trace(figure, name):
    return next(trace for trace in figure.data if trace.name == name)


def test_lines_are_the_frame_in_the_colours_of_their_directions(look):
    shown = balance()
    figure = draw(look, shown)
    for quantity in ("gap", "weight"):
        for direction, color in zip(DIRECTIONS, (look.first, look.second), strict=True):
            drawn = trace(figure, f"{direction} {quantity} after")
            rows = shown.lines.frame.query(
                "quantity == @quantity and line == 'after' and direction == @direction"
            )
            assert drawn.x.dtype == drawn.y.dtype == np.float32
            assert drawn.x.tolist() == rows["step"].tolist()
            assert drawn.y.tolist() == pytest.approx(rows["value"].tolist())
            assert drawn.line.color == color
            assert drawn.line.dash is None


def test_what_is_in_use_is_a_dashed_ghost_of_the_same_colour(look):
    ghost = trace(draw(look), "t2i weight before")
    assert ghost.line.dash == "4px,3px"
    assert ghost.line.color == fade(look.second, 0.6)
    assert ghost.line.shape == "hv"
    assert "in use" in ghost.hovertemplate


def test_nothing_tried_draws_no_ghost_and_names_none(look):
    figure = draw(look, balance(after=IN_USE))
    assert not [drawn for drawn in figure.data if drawn.name.endswith("before")]
    assert not [note for note in figure.layout.annotations if "dashed" in note.text]


def test_panels_share_the_steps_and_each_has_its_title(look):
    figure = draw(look)
    assert figure.layout.xaxis.matches == "x2"
    assert figure.layout.xaxis2.title.text == "step"
    titles = [note.text for note in figure.layout.annotations]
    assert any(text.startswith("Mean margin") for text in titles)
    assert any(text.startswith("Direction weight") for text in titles)
    assert figure.layout.uirevision == UI_REVISION
    assert figure.layout.margin.t >= 24


def test_lines_are_named_and_valued_at_their_ends(look):
    shown = balance()
    labels = {note.text: note for note in draw(look, shown).layout.annotations}
    last = shown.summary["weight_last_after"].tolist()
    assert labels[f"i2t {last[0]:.2f}"].font.color == look.first
    assert labels[f"t2i {last[1]:.2f}"].font.color == look.second
    assert labels["i2t 0.200"].yref == "y"


def test_updates_are_ticks_at_the_foot_of_the_weights(look):
    ticks = trace(draw(look), "updates")
    assert ticks.x.tolist() == [1, 3, 5, 7, 9, 11]
    assert (ticks.xaxis, ticks.yaxis) == ("x2", "y12")
    assert set(ticks.y.tolist()) == {0.0}


def test_hidden_updates_and_modes_without_any_have_no_ticks(look):
    shown = balance()
    hidden = shown.updates.assign(shown=shown.updates["step"] > 6)
    figure = balance_figure(shown.lines.frame, hidden, look, directions=DIRECTIONS)
    assert trace(figure, "updates").x.tolist() == [7, 9, 11]
    off = draw(look, balance(after=UWMLConfig(direction_mode="off")))
    assert "updates" not in [drawn.name for drawn in off.data]


def test_hover_says_value_n_step_and_epoch(look):
    figure = draw(look)
    for name, n in {"i2t gap raw": 16, "i2t gap after": 3, "i2t weight after": 6}.items():
        drawn = trace(figure, name)
        assert drawn.customdata[-1].tolist() == [1.0, n]
        assert "step %{x:,}" in drawn.hovertemplate
        assert "n = %{customdata[1]" in drawn.hovertemplate


def test_gap_that_is_not_finite_is_a_tick_at_the_edge(look):
    gap = np.linspace(0.1, 0.2, 12)
    gap[4], gap[6] = np.nan, -np.inf
    figure = draw(look, balance(gap_i2t=gap))
    broken = trace(figure, "not finite")
    assert broken.x.tolist() == [4, 6]
    assert broken.y.tolist() == [1.0, 0.0]
    assert (broken.xaxis, broken.yaxis) == ("x", "y11")
    assert np.isfinite(trace(figure, "i2t gap raw").y).all()
    assert np.isfinite(figure.layout.yaxis.range).all()


def test_moment_and_phases_are_marked(look):
    bands = pd.DataFrame({"phase": ["warmup", "<b>"], "first_step": [0, 6], "last_step": [5, 11]})
    figure = draw(look, bands=bands, since=(6, "lagging since epoch 1"))
    texts = [note.text for note in figure.layout.annotations]
    assert {"warmup", "&lt;b&gt;", "lagging since epoch 1"} <= set(texts)
    marks = [(shape.x0, shape.yref) for shape in figure.layout.shapes if shape.x0 == shape.x1]
    assert marks == [(6, "y domain"), (6, "y2 domain")]


def test_steady_weights_are_not_blown_up(look):
    low, high = draw(look, balance(after=UWMLConfig(direction_mode="off"))).layout.yaxis2.range
    assert low < 0.45
    assert high > 0.55


def test_one_step_is_a_point(look):
    figure = draw(look, balance(n=1))
    assert trace(figure, "i2t gap after").mode == "lines+markers"
    assert figure.layout.xaxis2.range == (-0.5, 0.5)


def test_zoomed_lines_are_named_with_the_last_values_that_are_seen(look):
    shown = balance()
    figure = draw(look, shown, within=(2.0, 5.5))
    rows = shown.lines.frame.query("line == 'after' and step == 5 and quantity in ('gap', 'weight')")
    digits = {"gap": 3, "weight": 2}
    expected = {f"{row.direction} {row.value:.{digits[row.quantity]}f}" for row in rows.itertuples()}
    assert len(expected) == 4
    assert expected < {a.text for a in figure.layout.annotations}


def heights(rows, quantity, within, least=()):
    seen = rows[rows["quantity"] == quantity]
    # between two steps there is nothing to go by
    seen = seen[seen["step"].between(*within)] if seen["step"].between(*within).any() else seen
    values = [*seen["value"], *least]
    low, high = min(values), max(values)
    return pytest.approx((low - 0.06 * (high - low), high + 0.06 * (high - low)))


@pytest.mark.parametrize("within", [(2.0, 5.5), (3.1, 3.9), (0.0, 11.0)])
def test_zoomed_panels_are_as_high_as_the_values_that_are_seen(look, within):
    shown = balance()
    layout = draw(look, shown, within=within).layout
    rows = shown.lines.frame
    assert layout.yaxis.range == heights(rows, "gap", within)
    assert layout.yaxis2.range == heights(rows, "weight", within, (0.45, 0.55))
    rows = shown.contributions.frame
    layout = contributions_figure(rows, look, directions=DIRECTIONS, within=within).layout
    assert layout.yaxis.range == heights(rows, "contribution", within)
    assert layout.yaxis2.range == heights(rows, "share", within, (45.0, 55.0))


def test_nothing_logged_is_said(look):
    shown = balance(n=0)
    assert draw(look, shown).layout.annotations[0].text == "Nothing logged yet"
    figure = contributions_figure(shown.contributions.frame, look, directions=DIRECTIONS)
    assert figure.layout.annotations[0].text == "No loss per direction logged"


def test_unit_of_the_contributions_is_that_of_the_loss(look):
    def title(unit, after):
        frame = balance(after=after).contributions.frame
        drawn = contributions_figure(frame, look, directions=DIRECTIONS, unit=unit)
        return re.sub(r"<[^>]*>|\s+", " ", drawn.layout.annotations[0].text).split("Weight × loss")[1].strip()

    assert title("cosine", TRIED) == "cosine · dashed: in use"
    assert title("", TRIED) == "dashed: in use"
    assert title("nat", IN_USE) == "nat"
    assert title("", IN_USE) == ""


def test_contributions_are_in_the_unit_of_the_loss_and_in_percent(look):
    shown = balance()
    figure = contributions_figure(shown.contributions.frame, look, directions=DIRECTIONS, unit="nat")
    first, second = (trace(figure, f"{direction} share after") for direction in DIRECTIONS)
    assert (first.y + second.y).tolist() == pytest.approx([100.0] * 12, abs=1e-4)
    nat = trace(figure, "i2t contribution after")
    assert nat.y[0] == pytest.approx(0.5)
    assert (nat.yaxis, first.yaxis) == ("y", "y2")
    assert "i2t share before" in [drawn.name for drawn in figure.data]
