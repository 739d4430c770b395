import numpy as np
import pandas as pd

from uwml_core.analysis.nonfinite import count_nonfinite, nonfinite_note


def test_counts_nan_and_infinities_per_column():
    frame = pd.DataFrame(
        {"loss": [1.0, np.nan, np.inf, -np.inf], "fine": [1.0, 2.0, 3.0, 4.0], "name": ["a", "b", "ü", None]}
    )
    assert count_nonfinite(frame).values.tolist() == [["loss", 1, 2]]


def test_a_column_without_any_value_was_not_logged():
    assert count_nonfinite(pd.DataFrame({"temperature": [np.nan, np.nan]})).empty


def test_note_is_empty_when_all_is_finite_and_names_columns_otherwise():
    assert nonfinite_note(pd.DataFrame({"loss": [1.0]})) == ""
    note = nonfinite_note(pd.DataFrame({"loss": [1.0, np.nan], "gap": [np.inf, 1.0]}))
    assert note == "2 values are not finite and left out of ranges and means (loss 1, gap 1)."


def test_frame_without_rows_has_nothing_to_count():
    assert count_nonfinite(pd.DataFrame({"loss": np.empty(0)})).empty
