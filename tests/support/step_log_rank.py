"""One of several processes whose trainer calls a loss and keeps a run log."""

from __future__ import annotations

import torch
import torch.distributed as dist

from uwml_core.integrations.step_log import StepLog
from uwml_core.losses import UWMLLoss


def two_logged_steps(logs: str) -> str | None:
    """Two steps of three pairs, items from ten times the rank on; returns the run's id."""
    rank, world_size = dist.get_rank(), dist.get_world_size()
    loss, steps = UWMLLoss(), StepLog(logs)
    steps.attach(loss, lambda: loss.step / 2)
    steps.open(loss, total_steps=2, rank=rank, world_size=world_size)
    items = torch.arange(3) + 10 * rank
    for number in range(2):
        loss(torch.eye(3), torch.eye(3), labels=items, item_ids=items)
        steps.step(number, epoch=0, learning_rate=0.1)
    steps.evaluation({"val_loss": 0.5}, split="val", epoch=0)
    steps.close()
    return steps.run_id
