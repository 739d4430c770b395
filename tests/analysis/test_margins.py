import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from tests.support.rollups import margins_of
from uwml_core.analysis.margins import epoch_progress, epochs_in, margin_histogram, select_epoch


def histogram(pairs):
    return margin_histogram(margins_of(pairs))


def test_histogram_equals_counting_by_hand(pair_table):
    frame = histogram(pair_table())
    assert frame[["epoch", "direction", "bin", "count"]].values.tolist() == [
        [0, "i2t", 190, 1],
        [0, "i2t", 210, 1],
        [0, "t2i", 200, 1],
        [0, "t2i", 230, 1],
        [1, "i2t", 204, 1],
        [1, "i2t", 206, 1],
        [1, "t2i", 220, 1],
        [1, "t2i", 250, 1],
    ]
    assert frame["weight_sum"].tolist() == pytest.approx([0.5, 1.5, 1.0, 1.0, 0.8, 1.2, 1.6, 0.4])
    assert frame["weight_sq_sum"].tolist() == pytest.approx([0.25, 2.25, 1.0, 1.0, 0.64, 1.44, 2.56, 0.16])
    assert frame["one_minus_p_sum"][0] == pytest.approx(1 - np.exp(-2.0))


def test_edges_belong_to_the_bin_above_and_the_last_edge_to_the_last_bin(pair_table):
    margin = [-2.0, 2.0, -2.5, 2.5, -np.inf, np.inf, np.nan, None]
    frame = histogram(pair_table(margin=margin, epoch=[0] * 8, direction=["i2t"] * 8))
    assert frame[["bin", "count"]].values.tolist() == [[-1, 1], [0, 1], [399, 1], [400, 1]]


def test_nulls_add_nothing_to_sums_but_are_counted(pair_table):
    empty = [None] * 8
    frame = histogram(pair_table(weight=empty, gradient_share=empty, pair_loss=empty))
    assert frame["count"].sum() == 8
    assert frame[["weight_sum", "gradient_share_sum", "one_minus_p_sum"]].to_numpy().sum() == 0.0


def test_rows_without_epoch_are_kept_apart(pair_table):
    frame = histogram(pair_table(epoch=[None] * 4 + [2] * 4))
    assert epochs_in(frame) == [-1, 2]
    assert frame["count"].sum() == 8


def test_rollups_of_a_run_give_the_histogram_of_its_raw_pairs(run):
    raw, kept = histogram(run.table("pairs")), margin_histogram(run.rollup("margins"))
    counted = ["epoch", "direction", "bin", "count"]
    pd.testing.assert_frame_equal(kept[counted], raw[counted])
    pd.testing.assert_frame_equal(kept, raw, rtol=1e-9)
    assert raw["count"].sum() == np.isfinite(run.table("pairs")["margin"].to_numpy()).sum()


def test_no_rows_give_an_empty_histogram_of_the_same_shape(pair_table):
    whole = histogram(pair_table())
    empty = histogram(pair_table().slice(0, 0))
    assert list(empty.columns) == list(whole.columns)
    assert (empty.dtypes == whole.dtypes).all()
    assert len(select_epoch(empty, None)) == 0
    only_nan = histogram(pair_table(margin=[np.nan] * 8))
    assert len(only_nan) == 0


def test_dictionary_encoded_directions_give_the_same_histogram(pair_table):
    table = pair_table()
    chunks = [
        pa.DictionaryArray.from_arrays(pa.array([0, 0, 1, 1], pa.int32()), pa.array(["i2t", "t2i"])),
        pa.DictionaryArray.from_arrays(pa.array([1, 1, 0, None], pa.int32()), pa.array(["t2i", "i2t"])),
    ]
    encoded = table.set_column(2, "direction", pa.chunked_array(chunks))
    frame, plain = histogram(encoded), histogram(table)
    assert frame["count"].sum() == 7
    pd.testing.assert_frame_equal(frame, plain.iloc[:-1])


def test_selected_epoch_fills_gaps_and_knows_the_edges(pair_table):
    shown = select_epoch(histogram(pair_table()), 0)
    i2t = shown[shown["direction"] == "i2t"]
    assert (i2t["left"].min(), i2t["right"].max()) == (-0.1, 0.31)
    assert len(i2t) == 41
    assert i2t.loc[i2t["count"] > 0, "left"].tolist() == [-0.1, 0.1]
    assert select_epoch(histogram(pair_table()), None)["count"].sum() == 8


def test_outer_bins_have_infinite_edges(pair_table):
    frame = histogram(pair_table(margin=[-3.0, 3.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]))
    shown = select_epoch(frame, None)
    i2t = shown[shown["direction"] == "i2t"]
    assert i2t[["left", "right", "count"]].values.tolist() == [
        [-np.inf, -2.0, 1],
        [0.0, 0.01, 2],
        [2.0, np.inf, 1],
    ]


def test_epoch_progress_is_that_of_the_middle_step():
    steps = pd.DataFrame(
        {
            "step": range(6),
            "epoch": [0.0, 0, 0, 1, 1, np.nan],
            "progress": [0, 0.1, 0.2, 0.3, np.nan, 0.5],
            "steepness": 2.0,
        }
    )
    assert epoch_progress(steps).values.tolist() == [[0, 0, 2, 0.1, 2.0], [1, 3, 4, 0.3, 2.0]]


def test_epoch_progress_of_no_epoch_is_empty(empty_frames):
    columns = ["epoch", "first_step", "last_step", "progress", "steepness"]
    assert list(epoch_progress(empty_frames[0]).columns) == columns
    without = pd.DataFrame({"step": [1], "epoch": [np.nan], "progress": [0.0], "steepness": [2.0]})
    assert epoch_progress(without).empty
