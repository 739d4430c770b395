"""Whole epochs with the weighted loss and its full log, against plain InfoNCE without any log.

    python -m benchmarks.epoch                       demo set, ViT-S/16 and ResNet-50
    python -m benchmarks.epoch --models vit_small --pairs 3

Short epochs take turns, each of both sorts going on with a model of its own from the same initial weights.
Both clip gradients and take AdamW steps. The one with UWML also logs every step, and waits at the end of each
epoch until its log is on disk; evaluations and snapshots are in neither. The demo set trains the trainer's
small CNN on the shipped pairs and reads them as the trainer does. The large backbones get made-up pictures
of 224 pixels in small batches, a few steps an epoch: scaled down for a processor, where a step takes seconds.
A larger batch on a faster device makes steps of other lengths, so what is added per step is told too: what
the loss takes beyond InfoNCE (measured alone, in turns), the call of log_step, and the processor time of the
log's writer, which the flush after so few steps makes larger than it is in a training.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn

from benchmarks.backbones import BACKBONES, LENGTH, WORDS, LargeTower
from benchmarks.loss import Contest
from benchmarks.measure import Ratio, alternate, machine
from benchmarks.peers import LABELLED, OURS, PLAIN, TEMPERATURE, Loss, Setting, plain_infonce
from uwml_core.data import load_pairs
from uwml_core.losses import UWMLLoss
from uwml_core.runlog.writer import RunLogger
from uwml_core.training.batches import BatchSource, Corpus
from uwml_core.training.config import OptimizationConfig
from uwml_core.training.encoders import TwoTower
from uwml_core.training.loop import build_optimizer

DEMO = "demo"
# What UWML with full telemetry may add to an epoch of a large backbone.
MOST_ADDED = 0.02
OPTIMIZATION = OptimizationConfig(learning_rate=1e-4)
CPU = torch.device("cpu")


class Pairs(NamedTuple):
    """What one step trains on; captions and labels are None where there are none."""

    inputs: tuple[torch.Tensor, ...]
    item_ids: Any
    captions: Any = None
    labels: torch.Tensor | None = None


@dataclass(frozen=True, kw_only=True)
class Task:
    """A model's maker, and the pairs of each step."""

    title: str
    build: Callable[[], nn.Module]
    pairs: Callable[[int], Pairs]
    steps_per_epoch: int
    batch: int
    dim: int


def demo(dim: int = 128, batch: int = 128) -> Task:
    """The trainer's small CNN on the shipped pairs."""
    dataset = load_pairs("emoji_pairs")
    source = BatchSource(Corpus(dataset), dataset.rows("train"), batch_size=batch, seed=0)

    def pairs(step: int) -> Pairs:
        drawn = source.at(step)
        return Pairs((drawn.pictures, *drawn.texts), drawn.item_ids, drawn.captions, drawn.labels)

    return Task(
        title=f"demo set, small CNN, batch {batch}",
        build=lambda: TwoTower(dim),
        pairs=pairs,
        steps_per_epoch=source.steps_per_epoch,
        batch=batch,
        dim=dim,
    )


def large(backbone: str, *, batch: int, steps: int, dim: int = 512) -> Task:
    """A large backbone on made-up pictures and words."""
    pictures, words = torch.randn(batch, 3, 224, 224), torch.randint(0, WORDS, (batch, LENGTH))
    numbers = np.arange(batch)
    return Task(
        title=f"{backbone}, random weights, made-up pictures, batch {batch}, {steps} steps an epoch",
        build=lambda: LargeTower(backbone, dim),
        pairs=lambda step: Pairs((pictures, words), numbers),
        steps_per_epoch=steps,
        batch=batch,
        dim=dim,
    )


class PlainEpochs:
    """Epochs with plain InfoNCE and no log."""

    def __init__(self, task: Task) -> None:
        torch.manual_seed(0)
        self.task, self.step = task, 0
        self.model = task.build().train()
        self.loss = self.make_loss()
        self.optimizer = build_optimizer(self.model, self.loss, OPTIMIZATION)

    def make_loss(self) -> nn.Module:
        """The loss as a module."""
        return _Module(plain_infonce(lambda: 1 / TEMPERATURE))

    def forward(self, pairs: Pairs) -> torch.Tensor:
        """Loss of one step."""
        value: torch.Tensor = self.loss(*self.model(*pairs.inputs))
        return value

    def tell(self, pairs: Pairs, norm: torch.Tensor) -> None:
        """What follows a step: nothing."""

    def finish(self) -> None:
        """What ends an epoch: nothing."""

    def __call__(self) -> None:
        for _ in range(self.task.steps_per_epoch):
            pairs = self.task.pairs(self.step)
            value = self.forward(pairs)
            self.optimizer.zero_grad()
            value.backward()  # type: ignore[no-untyped-call]
            norm = nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.optimizer.step()
            self.tell(pairs, norm)
            self.step += 1
        self.finish()


class LoggedEpochs(PlainEpochs):
    """Epochs with the weighted loss, every step of which is logged."""

    def __init__(self, task: Task, log: RunLogger) -> None:
        super().__init__(task)
        self.log, self.log_s, self.writer_s = log, list[float](), 0.0

    def make_loss(self) -> nn.Module:
        return UWMLLoss(total_steps=100_000, temperature=TEMPERATURE)

    def forward(self, pairs: Pairs) -> torch.Tensor:
        value: torch.Tensor = self.loss(
            *self.model(*pairs.inputs), labels=pairs.labels, item_ids=pairs.item_ids
        )
        return value

    def tell(self, pairs: Pairs, norm: torch.Tensor) -> None:
        start = time.perf_counter()
        self.log.log_step(
            self.loss.last,
            item_ids=pairs.item_ids,
            captions=pairs.captions,
            step=self.step,
            epoch=self.step // self.task.steps_per_epoch,
            phase="train",
            learning_rate=OPTIMIZATION.learning_rate,
            gradient_norm=norm,
        )
        self.log_s.append(time.perf_counter() - start)

    def finish(self) -> None:
        self.log.flush()

    def __call__(self) -> None:
        # one thread computes, so what the process has beyond it is the log's writer
        began = time.process_time() - time.thread_time()
        super().__call__()
        self.writer_s += time.process_time() - time.thread_time() - began


class _Module(nn.Module):
    def __init__(self, loss: Loss) -> None:
        super().__init__()
        self.forward = loss  # type: ignore[assignment]


@dataclass(kw_only=True)
class Outcome:
    """Seconds of each epoch, and what UWML adds to each step in milliseconds."""

    plain: list[float]
    logged: list[float]
    steps: int
    added_ms: dict[str, float] = field(default_factory=dict)

    @property
    def step_ms(self) -> float:
        """A step of plain InfoNCE, in milliseconds."""
        return 1e3 * statistics.median(self.plain) / self.steps

    @property
    def added_share(self) -> float:
        """What UWML adds to a step over that step."""
        return sum(self.added_ms.values()) / self.step_ms

    def lines(self) -> Iterator[str]:
        """What is printed."""
        ratio = Ratio.of(self.logged, self.plain)
        added = sum(self.added_ms.values())
        telemetry = self.added_ms["log_step"] + self.added_ms["writer"]
        parts = ", ".join(f"{name} {value:.3f}" for name, value in self.added_ms.items())
        yield f"  epoch, UWML with log over InfoNCE without: {ratio}, n={ratio.count}"
        yield f"  step of InfoNCE {self.step_ms:.1f} ms; UWML adds {added:.3f} ms: {parts}"
        yield f"  {self.added_share:.2%} of a step, {telemetry / self.step_ms:.2%} being log_step and writer"
        yield f"  at this batch {MOST_ADDED:.0%} holds for steps of {added / MOST_ADDED:.0f} ms and more"


def measure(task: Task, pairs: int) -> Outcome:
    """Let epochs take turns."""
    with tempfile.TemporaryDirectory() as root, RunLogger(root, "bench") as log:
        plain, logged = PlainEpochs(task), LoggedEpochs(task, log)
        for epochs in (plain, logged):
            epochs()
        logged.log_s, logged.writer_s = [], 0.0
        times = alternate({"plain": plain, "logged": logged}, CPU, rounds=pairs)
    writer = 1e3 * logged.writer_s / (len(times["logged"]) * task.steps_per_epoch)
    added = {"loss": loss_ms(task), "log_step": 1e3 * statistics.median(logged.log_s), "writer": writer}
    return Outcome(plain=times["plain"], logged=times["logged"], steps=task.steps_per_epoch, added_ms=added)


def loss_ms(task: Task) -> float:
    """Milliseconds that forward and backward of the loss take beyond those of plain InfoNCE."""
    works = Contest(task.batch, task.dim, Setting(), CPU).works
    ours = OURS if task.pairs(0).labels is None else LABELLED
    times = alternate({name: works[name] for name in (ours, PLAIN)}, CPU, budget_s=2.0, rounds=20)
    return 1e3 * (statistics.median(times[ours]) - statistics.median(times[PLAIN]))


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n", maxsplit=1)[0])
    parser.add_argument("--models", nargs="+", choices=[DEMO, *BACKBONES], default=[DEMO, *BACKBONES])
    parser.add_argument("--pairs", type=int, default=5, help="epochs of each sort with a large backbone")
    parser.add_argument("--demo-pairs", type=int, default=20, help="epochs of each sort on the demo set")
    parser.add_argument("--batch", type=int, default=16, help="of a large backbone")
    parser.add_argument("--steps", type=int, default=3, help="an epoch of a large backbone")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    print(machine(CPU))
    for name in arguments.models:
        task = demo() if name == DEMO else large(name, batch=arguments.batch, steps=arguments.steps)
        size = sum(p.numel() for p in task.build().parameters()) / 1e6
        print(f"{task.title}; {size:.1f} million parameters")
        outcome = measure(task, arguments.demo_pairs if name == DEMO else arguments.pairs)
        print(*outcome.lines(), sep="\n", flush=True)
        if name != DEMO:
            kept = outcome.added_share <= MOST_ADDED
            print(f"  {'kept' if kept else 'MISSED'}: at most {MOST_ADDED:.0%}")
    print(machine(CPU))


if __name__ == "__main__":
    main()
