"""Caches that are bounded by what they hold, and what that is."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from tests.support.synthetic import make_run
from uwml_core.runlog.cache import BoundedCache
from uwml_core.runlog.reader import open_run
from uwml_core.runlog.weight import bytes_of


def test_entries_that_were_used_last_stay_within_the_weight() -> None:
    cache = BoundedCache[bytes](10, len)
    for key in "abc":
        cache.put(key, b"123")
    assert (len(cache), cache.weight) == (3, 9)
    assert cache.get("a") == b"123"
    cache.put("d", b"1234")
    assert [cache.get(key) for key in "abcd"] == [b"123", None, b"123", b"1234"]
    cache.put("a", b"1")
    assert cache.weight == 8


def test_entry_heavier_than_all_is_not_kept() -> None:
    cache = BoundedCache[bytes](10, len)
    assert cache.get_or_make("a", lambda: b"x" * 11) == b"x" * 11
    assert (len(cache), cache.weight) == (0, 0)


def test_failure_is_not_kept_and_reaches_the_one_who_asked() -> None:
    cache = BoundedCache[int](10)
    with pytest.raises(ZeroDivisionError):
        cache.get_or_make("a", lambda: 1 // 0)
    assert cache.get_or_make("a", lambda: 7) == 7


def test_of_twenty_threads_one_makes_the_value() -> None:
    cache, calls, results = BoundedCache[object](10), [], []
    gate = threading.Barrier(20)

    def make() -> object:
        calls.append(1)
        time.sleep(0.05)
        return object()

    def ask() -> None:
        gate.wait()
        results.append(cache.get_or_make("a", make))

    threads = [threading.Thread(target=ask) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(calls) == 1
    assert len(set(map(id, results))) == 1


@pytest.mark.parametrize(
    ("value", "least"),
    [
        (np.zeros((1000, 2)), 16_000),
        (pd.DataFrame({"a": np.zeros(1000), "b": np.zeros(1000, np.float32)}), 12_000),
        (pd.DataFrame({"a": [f"text number {i}" for i in range(1000)]}), 12_000),
        (pd.Series([(f"text {i}" * 10,) for i in range(1000)], dtype=object), 70_000),
        (pd.DataFrame({"a": pd.Series([(f"text {i}" * 10,) for i in range(1000)], dtype=object)}), 70_000),
        (pd.DataFrame({"a": ["x" * 100, 1.5, None] * 500}), 50_000),
        (pd.Index([f"text number {i}" * 4 for i in range(1000)]), 60_000),
        ([{"a": np.zeros(1000)} for _ in range(1000)], 8_000_000),
        (pa.table({"a": np.zeros(1000)}), 8_000),
        (pa.chunked_array([np.zeros(500), np.zeros(500)]), 8_000),
        ([b"x" * 100 for _ in range(1000)], 100_000),
        ({"a": (np.zeros(1000), "x" * 1000)}, 9_000),
        (go.Figure(data=[{"type": "scatter", "y": np.zeros(1000)}]), 8_000),
        (pd.Categorical(["a", "b"] * 1000), 2_000),
    ],
)
def test_bytes_are_those_of_the_arrays_and_texts_inside(value: object, least: int) -> None:
    assert least <= bytes_of(value) < 3 * least + 50_000


def test_what_names_itself_is_counted_once() -> None:
    ring: list[object] = [np.zeros(1000)]
    ring.append(ring)
    assert 8_000 <= bytes_of(ring) < 9_000


def test_part_of_a_column_counts_with_the_memory_that_it_keeps_alive() -> None:
    assert bytes_of(pa.table({"a": np.zeros(100_000)}).slice(0, 1)) >= 800_000


def test_pictures_and_items_are_read_of_those_that_are_asked_for(tmp_path: Path) -> None:
    run = open_run(make_run(tmp_path, steps=2, epochs=1))
    whole = run.items()
    few = run.items(columns=("item_id", "captions"), filter=pc.field("item_id").isin([5, 3, 999]))
    pictures = run.pictures()
    assert whole is not None
    assert few is not None
    assert pictures is not None
    assert few["item_id"].tolist() == [3, 5]
    assert few["captions"].tolist() == whole.loc[[3, 5], "captions"].tolist()
    assert pictures.of([5, 999, 0, 5]) == {5: whole.loc[5, "thumbnail"], 0: whole.loc[0, "thumbnail"]}
    assert pictures.of([]) == {}
    told = sum(len(picture) for picture in whole["thumbnail"] if picture)
    assert told <= run.picture_bytes() < told + 16 * len(whole)


def test_rows_of_items_are_kept_as_they_were_read(tmp_path: Path) -> None:
    run = open_run(make_run(tmp_path, steps=2, epochs=1))
    whole, rows, some = run.items(), run.item_rows(columns=("item_id", "captions")), run.pictures([5, 999])
    assert whole is not None
    assert rows is not None
    assert some is not None
    assert rows.frame([5, 999, 3, 5])["captions"].tolist() == whole.loc[[5, 3], "captions"].tolist()
    assert rows.frame(columns=["item_id"])["item_id"].tolist() == whole["item_id"].tolist()
    assert some.of([3, 5]) == {5: whole.loc[5, "thumbnail"]}


def test_pictures_of_a_file_that_has_none_or_cannot_be_read(tmp_path: Path) -> None:
    run = open_run(make_run(tmp_path, steps=2, epochs=1))
    path = run.items_file()
    assert path is not None
    pq.write_table(pa.table({"item_id": pa.array([3, 4], pa.int64())}), path)
    bare = run.pictures([4])
    assert bare is not None
    assert bare.of([3, 4]) == {4: None}
    path.write_bytes(path.read_bytes()[:-9] + b"\0" * 9)
    assert run.pictures([4]) is None
