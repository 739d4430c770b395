"""A call that only one process gets wrong: all refuse it, none waits for the others."""

from __future__ import annotations

import math
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
    found["steps"] = loss.step
    # and go on together afterwards
    found["loss"] = loss(image, text, **RIGHT).item()
    return found


def test_a_wrong_argument_in_one_process_is_refused_in_both(tmp_path: Path) -> None:
    first, second = run_in_processes(calls, 2, tmp_path)
    for name in WRONG:
        assert second[name].startswith(name.split()[0])
        assert first[name] == f"process 1 of 2 refuses its batch: {second[name]}"
    assert first["steps"] == second["steps"] == 0
    assert first["loss"] == second["loss"]
