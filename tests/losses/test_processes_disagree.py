"""A call that only one process gets wrong: all refuse it, none waits for the others."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist

from tests.support.processes import run_in_processes
from uwml_core.losses import UWMLLoss

pytestmark = pytest.mark.slow

WRONG: dict[str, dict[str, Any]] = {
    "progress": {"progress": 2.0},
    "logit_scale": {"logit_scale": -1.0},
    "logit_scale tensor": {"logit_scale": torch.tensor(math.nan)},
    "logit_bias": {"logit_bias": math.inf},
    "logit_bias tensor": {"logit_bias": torch.tensor(math.nan)},
    "item_ids": {"item_ids": ["a"]},
    "labels": {"labels": [0.5, 1.5, 2.5, 3.5]},
    "labels None": {"labels": [1, None, 2, 3]},
    "labels long": {"labels": [2**70, 1, 2, 3]},
    "progress text": {"progress": "x"},
    "item_ids number": {"item_ids": 5},
}


class Faulty:
    """Ids that fail when they are looked at."""

    def __len__(self) -> int:
        raise ZeroDivisionError("no ids today")


# what no check foresees
BROKEN: dict[str, Callable[[], dict[str, Any]]] = {
    "when read": lambda: {"item_ids": Faulty()},
    "when sent": lambda: {"item_ids": [lambda: 0, 1, 2, 3]},
}
RIGHT = {"progress": 0.5, "logit_scale": torch.tensor(5.0), "logit_bias": torch.tensor(-1.0)}


def calls() -> dict[str, Any]:
    rank = dist.get_rank()
    loss = UWMLLoss(base="sigmoid", memory_batches=1, total_steps=9)
    image, text = torch.randn(2, 4, 3, generator=torch.Generator().manual_seed(rank))
    found: dict[str, Any] = {}
    for name, wrong in WRONG.items():
        given = {**RIGHT, "labels": [4 * rank + i for i in range(4)], **(wrong if rank == 1 else {})}
        try:
            loss(image, text, **given)
        except ValueError as error:
            found[name] = str(error)
    for name, wrong in BROKEN.items():
        try:
            loss(image, text, **{**RIGHT, **(wrong() if rank == 1 else {})})
        except Exception as error:
            found[f"broken {name}"] = f"{type(error).__name__}: {error}"
    found["steps"] = loss.step
    # and go on together afterwards
    found["loss"] = loss(image, text, **RIGHT).item()
    return found


# what differs in the second process: settings, calls alone before, arguments
APART: dict[str, tuple[dict[str, Any], int, dict[str, Any]]] = {
    "center is 0.15, 0.1": ({"center": 0.1}, 0, {}),
    "validate is True, False": ({"validate": False}, 0, {}),
    "step is 0, 1": ({}, 1, {}),
    "progress is 0.5, 0.25": ({}, 0, {"progress": 0.25}),
    "progress is 0.5, None": ({}, 0, {"progress": None}),
    "call of the step is 0, 1": ({"accumulate_batches": 2}, 1, {}),
}


def losses_apart() -> dict[str, str]:
    rank, found = dist.get_rank(), {}
    image, text = torch.randn(2, 4, 3, generator=torch.Generator().manual_seed(rank))
    for words, (settings, before, given) in APART.items():
        both = settings if "call" in words or rank == 1 else {}
        loss = UWMLLoss(**{"total_steps": 9, **both})
        loss.distributed = False
        for _ in range(before * rank):
            loss(image, text)
        loss.distributed = True
        try:
            loss(image, text, **{"progress": 0.5, **(given if rank == 1 else {})})
        except ValueError as error:
            found[words] = str(error)
    loss = UWMLLoss(total_steps=9)
    loss.set_extra_state({**loss.get_extra_state(), "next_label": 4 * rank})
    try:
        loss(image, text)
    except ValueError as error:
        found["label counter is 0, 4"] = str(error)
    return found


def test_losses_that_stand_or_are_set_otherwise_are_refused_by_name(tmp_path: Path) -> None:
    first, second = run_in_processes(losses_apart, 2, tmp_path)
    assert first == second
    assert first == {
        words: f"{words} in processes 0 to 1; expected the same in all"
        for words in (*APART, "label counter is 0, 4")
    }


def test_a_wrong_argument_in_one_process_is_refused_in_both(tmp_path: Path) -> None:
    first, second = run_in_processes(calls, 2, tmp_path)
    for name in WRONG:
        assert second[name].startswith(name.split()[0])
        assert first[name] == f"process 1 of 2 refuses its batch: {second[name]}"
    assert second["broken when read"] == "ZeroDivisionError: no ids today"
    assert "pickle" in second["broken when sent"]
    for name in BROKEN:
        told = f"ValueError: process 1 of 2 refuses its batch: {second[f'broken {name}']}"
        assert first[f"broken {name}"] == told
    assert first["steps"] == second["steps"] == 0
    assert first["loss"] == second["loss"]
