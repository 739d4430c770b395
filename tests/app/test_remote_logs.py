"""The app over runs in object storage."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import streamlit as st

from tests.support.object_store import BUCKET, SECRET, ObjectStore, object_store
from tests.support.synthetic import make_run
from uwml_core.runlog import remote
from uwml_core.runlog.location import parse_remote

RUNS = "pages/watch/runs.py"
PAGES = ["pages/watch/training.py", "pages/explain/weight_curve.py", "pages/explain/hard_negatives.py"]


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ObjectStore]:
    with object_store(tmp_path / "cache", monkeypatch) as store:
        yield store


def read_folders(store: ObjectStore) -> set[str]:
    return {key.removeprefix("logs/demo/").rpartition("/")[0] for key in store.read()}


def test_pages_show_remote_runs_and_fetch_what_they_need(
    open_page: Callable[..., Any], store: ObjectStore, tmp_path: Path
) -> None:
    make_run(tmp_path / "logs", steps=30, name="far away")
    store.upload(tmp_path / "logs")
    opened = open_page(RUNS, store.url())
    assert not opened.failures
    assert "far away" in opened.text
    assert list(opened.app.dataframe[0].value["steps"]) == [30]
    assert "start-demo" not in [button.key for button in opened.app.button]
    assert not read_folders(store) & {"pairs", "snapshots", "neighbors", "ranks"}
    for page in PAGES:
        opened = open_page(page, store.url(), run="demo")
        assert not opened.failures, page
        assert "cannot be reached" not in opened.text
        assert "endpoint_override" not in opened.markup
    assert "pairs" in read_folders(store)


def test_page_says_that_the_storage_is_out_of_reach(
    open_page: Callable[..., Any], store: ObjectStore, tmp_path: Path
) -> None:
    store.down = True
    opened = open_page(RUNS, store.url())
    assert not opened.failures
    assert f"s3\\://{BUCKET}/logs cannot be reached" in opened.app.warning[0].value
    assert "No runs yet." not in opened.text
    store.down = False
    make_run(tmp_path / "logs", steps=30)
    store.upload(tmp_path / "logs")
    mirror = remote.mirror_of(parse_remote(store.url()))
    mirror.listing._due = float("-inf")
    st.cache_resource.clear()
    training = open_page(PAGES[0], store.url(), run="demo")
    assert not training.failures
    shown = set(training.charts())
    assert shown
    store.down = True
    mirror.folder("demo").listing.expire()
    st.cache_resource.clear()
    opened = open_page(PAGES[0], store.url(), run="demo")
    assert not opened.failures
    assert "this is how it was at" in opened.app.warning[0].value
    assert set(opened.charts()) == shown
    everything = opened.markup + "".join(warning.value for warning in opened.app.warning)
    assert SECRET not in everything
    assert "endpoint_override" not in everything
