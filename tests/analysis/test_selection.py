import numpy as np
import pandas as pd
import pyarrow as pa

from tests.support.parts import split_table
from tests.support.synthetic import make_run
from uwml_core.analysis.selection import PREVIEW_COLUMNS, select_steps
from uwml_core.runlog.reader import open_run


def steps(n, batch=10):
    return pd.DataFrame({"step": np.arange(n), "epoch": np.arange(n) // 50, "batch_size": batch})


def chosen(selection, n):
    table = pa.table({"step": np.arange(n)})
    return table.filter(selection.filter)["step"].to_pylist()


def test_all_steps_of_an_epoch_when_they_fit():
    selection = select_steps(steps(100), 1)
    assert selection.steps.tolist() == list(range(50, 100))
    assert (selection.rows, selection.sampled, selection.note) == (1000, False, "All 50 steps")
    assert chosen(selection, 100) == list(range(50, 100))


def test_a_sample_is_the_same_every_time_and_says_so():
    selection = select_steps(steps(100), None, max_rows=200)
    assert len(selection.steps) == 10
    assert selection.rows == 200
    assert selection.note == "A random sample of 10 of 100 steps, the same at every visit"
    assert chosen(selection, 100) == selection.steps.tolist()
    assert selection.steps.tolist() == select_steps(steps(100), None, max_rows=200).steps.tolist()
    assert selection.steps.tolist() != select_steps(steps(100), None, max_rows=200, seed=1).steps.tolist()


def test_sampled_steps_come_from_the_whole_epoch():
    selection = select_steps(steps(10_000), None, max_rows=20_000)
    assert len(selection.steps) == 1000
    assert abs(selection.steps.mean() - 5000) < 300


def test_one_step_is_taken_even_if_it_is_too_large():
    assert len(select_steps(steps(3, batch=1000), None, max_rows=10).steps) == 1


def test_no_step_selects_no_row():
    for selection in (select_steps(steps(0), None), select_steps(steps(10), 7)):
        assert selection.note == "All 0 steps"
        assert chosen(selection, 10) == []


def test_filter_reaches_the_reader(run):
    selection = select_steps(run.frame("steps"), 1, max_rows=300)
    pairs = run.table("pairs", columns=list(PREVIEW_COLUMNS), filter=selection.filter)
    assert pairs.num_rows == selection.rows
    assert sorted(set(pairs["step"].to_pylist())) == selection.steps.tolist()


def test_unknown_batch_size_counts_as_none():
    frame = steps(3).assign(batch_size=[np.nan, 2.0, 2.0])
    assert select_steps(frame, None).rows == 8


def test_too_many_rows_to_draw_from_are_pooled():
    selection = select_steps(steps(100), None, max_rows=200, most_read=1999)
    assert (len(selection.steps), selection.total_steps, selection.pooled, selection.sampled) == (
        0,
        100,
        True,
        False,
    )
    assert selection.note.startswith("Approximate, from histograms of all 100 steps pooled by epoch")
    assert not select_steps(steps(100), None, max_rows=200, most_read=2000).pooled
    # one epoch of them is not too many
    assert not select_steps(steps(100), 1, max_rows=200, most_read=1999).pooled
    assert select_steps(steps(100), 1, max_rows=200, most_read=999).epoch == 1


def test_parts_outside_the_span_are_not_opened(tmp_path):
    run = open_run(make_run(tmp_path, epochs=4, steps_per_epoch=50))
    selection = select_steps(run.frame("steps"), 3, max_rows=300)
    other, _newest = split_table(run.path, "pairs", 150)
    # whole at both ends, and nothing in between
    other.write_bytes(b"PAR1" + bytes(4) + (4).to_bytes(4, "little") + b"PAR1")
    pairs = run.table("pairs", columns=list(PREVIEW_COLUMNS), filter=selection.filter, steps=selection.span)
    assert sorted(set(pairs["step"].to_pylist())) == selection.steps.tolist()
    assert (
        run.table(
            "pairs", columns=["step"], filter=select_steps(steps(0), None).filter, steps=(0, -1)
        ).num_rows
        == 0
    )
