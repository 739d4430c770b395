import numpy as np
import pytest

from uwml_core.figures.frame import finite_span, spread_labels


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


def test_span_ignores_what_is_not_finite():
    assert finite_span(np.array([np.nan, 1.0, np.inf]), np.array([-2.0])) == (-2.0, 1.0)
    assert finite_span(np.array([np.nan])) == (0.0, 1.0)
