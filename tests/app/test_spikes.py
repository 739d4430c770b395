"""A hundred one-step spikes in a long run: the training page draws every one of them."""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.synthetic import make_run
from tests.support.written_steps import write_steps

TRAINING = "pages/watch/training.py"
SPIKES, MOST_POINTS = 100, 2_000
# quantity, the title of its chart, what the page multiplies it with
DRAWN = (
    ("loss", "Loss and its parts", 1.0),
    ("gradient_norm", "Gradient norm", 1.0),
    ("accuracy_i2t", "In-batch rank-1 accuracy", 100.0),
)


def long_run(folder: Path, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """A run of noise with spikes of one step, of all heights; gives their steps, and values by quantity."""
    path = make_run(folder, run_id="long", steps=2, epochs=1, without=("pairs", "steps"))
    random = np.random.default_rng(steps)
    values = random.normal(1.0, 0.01, (len(DRAWN), steps))
    spikes = np.sort(random.choice(np.arange(2, steps - 2, 2), SPIKES - 2, replace=False))
    # two in what is one point of the screen
    spikes = np.union1d(spikes, [steps // 2 + 2, steps // 2 + 6])
    values[:, spikes] += np.geomspace(0.2, 20.0, len(spikes))
    columns = {name: values[k] for k, (name, _title, _factor) in enumerate(DRAWN)}
    write_steps(path, {"step": np.arange(steps), "batch_size": np.full(steps, 64), **columns})
    return spikes, values


def numbers(values: Any) -> np.ndarray:
    if isinstance(values, dict):
        return np.frombuffer(base64.b64decode(values["bdata"]), values["dtype"]).astype(np.float64)
    return np.asarray(values, np.float64)


@pytest.mark.parametrize("steps", [20_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
def test_every_spike_is_drawn(open_page: Callable[..., Any], tmp_path: Path, steps: int) -> None:
    spikes, values = long_run(tmp_path, steps)
    assert len(spikes) >= SPIKES - 1
    page = open_page(TRAINING, tmp_path, run="long")
    assert not page.failures
    charts = page.charts()
    for logged, (_name, title, factor) in zip(values, DRAWN, strict=True):
        found = set()
        for trace in charts[title]["data"]:
            step = numbers(trace["x"]).astype(int)
            assert len(step) <= MOST_POINTS
            # the mean that is drawn beside them is no spike
            spiky = np.isin(step, spikes) & np.isclose(numbers(trace["y"]), factor * logged[step], rtol=1e-5)
            found |= set(step[spiky].tolist())
        assert found == set(spikes.tolist()), title
    assert f"of {steps:,} points" in page.text
