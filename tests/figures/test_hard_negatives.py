import numpy as np
import pandas as pd
import pytest

from uwml_core.analysis.hard_negatives.history import COLUMNS
from uwml_core.figures.hard_negatives import history_figure

DIRECTIONS = ("v2t", "t2v")


@pytest.fixture
def frame():
    rows = [
        ("batches", "v2t", 0, -0.25, -0.5, 0.0, 2, 7, 0),
        ("batches", "v2t", 1, 0.5, 0.5, 0.5, 1, 8, 0),
        ("pool", "t2v", -1, -0.125, -0.125, -0.125, 1, 9, 0),
        ("pool", "t2v", 1, 0.25, 0.25, 0.25, 1, 9, 0),
    ]
    frame = pd.DataFrame(rows, columns=list(COLUMNS))
    return frame.assign(negative=["<b>bold</b>", "x" * 500, "a\nb", 'say "hi"'])


def test_lines_are_the_frame_in_the_colours_of_their_directions(frame, look):
    figure = history_figure(frame, look, directions=DIRECTIONS)
    batches, pool = figure.data
    assert (batches.name, pool.name) == ("v2t, batches", "t2v, pool")
    assert (batches.line.color, pool.line.color) == (look.first, look.second)
    assert (batches.x.tolist(), batches.y.tolist()) == ([0.0, 1.0], [-0.25, 0.5])
    assert batches.error_y.array.tolist() == [0.25, 0.0]
    assert batches.error_y.arrayminus.tolist() == [0.25, 0.0]
    assert pool.error_y.visible is None
    assert all(trace.y.dtype == np.float32 for trace in figure.data)


def test_captions_are_text_in_the_hover_and_short(frame, look):
    texts = [text for trace in history_figure(frame, look, directions=DIRECTIONS).data for text in trace.text]
    assert texts == ["&lt;b&gt;bold&lt;/b&gt;", "x" * 59 + "…", "a b", "say &quot;hi&quot;"]


def test_ends_are_labelled_with_their_values_and_the_start_is_named(frame, look):
    figure = history_figure(frame, look, directions=DIRECTIONS)
    assert [note.text for note in figure.layout.annotations] == ["v2t, batches 0.50", "t2v, pool 0.25"]
    assert list(figure.layout.xaxis.ticktext) == ["start", "0", "1"]


def test_long_histories_keep_their_own_ticks(frame, look):
    long = frame.assign(epoch=[0, 40, 0, 40])
    assert history_figure(long, look, directions=DIRECTIONS).layout.xaxis.ticktext is None


def test_zero_is_always_in_view(frame, look):
    high = frame.assign(margin=0.9, low=0.9, high=0.9)
    low, top = history_figure(high, look, directions=DIRECTIONS).layout.yaxis.range
    assert low < 0 < 0.9 < top


def test_nothing_logged_is_said(frame, look):
    figure = history_figure(frame.iloc[:0], look, directions=DIRECTIONS)
    assert not figure.data
    assert figure.layout.annotations[0].text == "Nothing logged yet"
