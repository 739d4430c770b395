import numpy as np
import pytest

from uwml_core.figures.draft import Draft
from uwml_core.figures.frame import finite_span, fit_axes, short_numbers, spread_labels
from uwml_core.figures.theme import theme


@pytest.mark.parametrize(
    "wished", [[0.0], [0, 0, 0], [0, 5, 30], [30, 5, 0, 4], list(np.zeros(6)), [0, 14, 28, 29]]
)
def test_labels_never_overlap_and_keep_their_order(wished):
    placed = np.array(wished) + spread_labels(wished, gap_px=15)
    order = np.argsort(wished, kind="stable")
    assert np.all(np.diff(placed[order]) >= 15 - 1e-9)
    assert placed.mean() == pytest.approx(np.mean(wished))


def test_labels_with_room_stay_where_they_are():
    assert spread_labels([0.0, 20.0, 100.0], gap_px=15) == [0.0, 0.0, 0.0]
    assert spread_labels([]) == []


def test_labels_do_not_reach_above_the_highest_place_where_there_is_room_for_all():
    wished = [40.0, 88.0, 99.0, 100.0]
    placed = np.array(wished) + spread_labels(wished, gap_px=15, lowest_px=0.0, highest_px=100.0)
    assert placed.tolist() == [40.0, 70.0, 85.0, 100.0]
    full = np.array([100.0] * 3) + spread_labels([100.0] * 3, gap_px=60, lowest_px=0.0, highest_px=100.0)
    assert full.tolist() == [0.0, 60.0, 120.0]


def test_labels_do_not_reach_below_the_lowest_place():
    assert spread_labels([0.0, 2.0, 18.0], gap_px=10, lowest_px=0.0) == [0.0, 8.0, 2.0]
    assert spread_labels([-5.0, 40.0], gap_px=10, lowest_px=0.0) == [5.0, 0.0]


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        ([0.17, 0.144], ["0.170", "0.144"]),
        ([0.23, 0.2301, 0.2294], ["0.230", "0.230", "0.229"]),
        ([2.0, 2.0], ["2", "2"]),
        ([1e-4, 2.5e-4], ["1.0e-4", "2.5e-4"]),
        ([0.0, -3e-8], ["0", "-3e-8"]),
        ([999.96, 1.0], ["1,000", "1"]),
        ([-18285.7, 12.0], ["-18,286", "12"]),
        ([0.0], ["0"]),
        ([], []),
    ],
)
def test_numbers_that_are_read_together_have_the_same_decimals(values, texts):
    assert short_numbers(values) == texts


def test_span_ignores_what_is_not_finite():
    assert finite_span(np.array([np.nan, 1.0, np.inf]), np.array([-2.0])) == (-2.0, 1.0)
    assert finite_span(np.array([np.nan])) == (0.0, 1.0)


@pytest.mark.parametrize(
    ("span", "written"), [((0.0009965, 0.001), "~e"), ((0.0, 0.003), None), ((0.5, 0.50001), None)]
)
def test_ticks_too_close_to_be_written_out_have_an_exponent(span, written):
    figure = Draft(theme("light"), height=200)
    fit_axes(figure, np.arange(30), span)
    assert figure.layout["yaxis"].get("tickformat") == written
