import numpy as np
import pytest

from uwml_core.analysis.bands import band_label, band_of, bands_frame


def test_edges_belong_to_the_band_above_in_the_precision_of_the_margins():
    values = [-1.0, -0.001, 0.0, 0.049, 0.05, 0.249, 0.25, 2.0]
    for dtype in (np.float32, np.float64):
        assert band_of(np.array(values, dtype)).tolist() == [0, 0, 1, 1, 2, 2, 3, 3]


def test_nan_is_in_no_band_and_infinities_in_the_outer_ones():
    assert band_of(np.array([np.nan, -np.inf, np.inf])).tolist() == [-1, 0, 3]


def test_frame_of_bands_has_no_gap():
    frame = bands_frame()
    assert frame["low"].tolist() == [-np.inf, 0.0, 0.05, 0.25]
    assert frame["high"].tolist() == [0.0, 0.05, 0.25, np.inf]
    assert frame["label"].tolist() == ["misaligned", "hard", "informative", "easy"]


def test_unknown_band_is_named():
    with pytest.raises(ValueError, match="name='simple' is no band; choose one of misaligned, hard"):
        band_label("simple")
