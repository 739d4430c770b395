import numpy as np
import pandas as pd
import pytest

from uwml_core.analysis.curves import curve_frame, curves_by_epoch
from uwml_core.weighting import UWMLConfig


def test_curve_is_the_bell_as_printed():
    config = UWMLConfig(center=0.1, steepness_start=4.0, steepness_end=8.0, hard_floor=0.2)
    frame = curve_frame(config, [0.5], np.array([-0.2, 0.1, 0.4]))

    def bell(m):
        s = 1 / (1 + np.exp(-6.0 * (m - 0.1)))
        return 4 * s * (1 - s)

    assert frame["steepness"].tolist() == pytest.approx([6.0] * 3)
    assert frame["weight"].tolist() == pytest.approx([0.2 + 0.8 * bell(-0.2), 1.0, bell(0.4)])


def test_unknown_progress_takes_the_steepness_of_the_end():
    frame = curve_frame(UWMLConfig(), [float("nan")], np.zeros(1))
    assert frame["steepness"].tolist() == [20.0]
    assert np.isnan(frame["progress"]).all()


def test_no_moment_gives_no_rows():
    assert curve_frame(UWMLConfig(), []).empty
    none = pd.DataFrame({"epoch": [], "progress": []})
    assert curves_by_epoch(UWMLConfig(), none).empty


def test_many_epochs_are_thinned_but_first_and_last_stay():
    epochs = pd.DataFrame({"epoch": np.arange(100), "progress": np.linspace(0, 1, 100)})
    shown = sorted(set(curves_by_epoch(UWMLConfig(), epochs, max_curves=5)["epoch"]))
    assert shown == [0, 25, 50, 74, 99]
    one = curves_by_epoch(UWMLConfig(), epochs.iloc[:1])
    assert set(one["epoch"]) == {0}
