"""One store for all visitors: its bound in bytes, and that nobody gets a copy."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import streamlit as st

from tests.support.synthetic import make_run
from uwml_core.runlog.cache import BoundedCache
from uwml_core.runlog.weight import bytes_of
from uwml_core.ui import shared as module
from uwml_core.ui.shared import shared, store

PAGES = (
    "pages/watch/training.py",
    "pages/explain/weight_curve.py",
    "pages/explain/modal_balance.py",
    "pages/explain/hard_negatives.py",
    "pages/watch/runs.py",
)


@shared
def numbered(size: int, *, _fill: float) -> Any:
    return np.full(size, _fill) if size else None


@pytest.fixture(autouse=True)
def empty_store() -> None:
    st.cache_resource.clear()


def test_result_is_one_object_whatever_follows_from_its_key() -> None:
    assert numbered(10, _fill=1.0) is numbered(10, _fill=2.0)
    assert numbered(0, _fill=1.0) is None
    assert len(store()) == 2


def test_old_results_leave_when_the_bytes_are_used_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_BYTES", 100_000)
    first = numbered(1000, _fill=0.0)
    for size in range(1001, 1100):
        numbered(size, _fill=0.0)
    assert 50_000 < store().weight <= 100_000
    assert len(store()) < 13
    assert numbered(1000, _fill=0.0) is not first


def test_visits_to_all_pages_stay_within_the_store(
    open_page: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_BYTES", 200_000)
    make_run(tmp_path, steps=12, epochs=2)
    for page in PAGES:
        opened = open_page(page, tmp_path)
        assert not opened.failures
        kept = store()
        assert isinstance(kept, BoundedCache)
        assert kept.limit == 200_000
        assert 0 < kept.weight <= kept.limit
        # a figure may look something up when it is drawn, and remember it
        held = sum(bytes_of(value) for value, _weight in kept._entries.values())
        assert held == pytest.approx(kept.weight, rel=0.2)
