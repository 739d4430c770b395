"""Time of the weighted loss against plain symmetric InfoNCE, forward and backward, one thread.

Both start from the same unnormalised features and use one matrix product; the weighted loss also makes its
diagnostics. The two alternate within one run, so that a busy machine slows both alike, and each ratio is of
neighbours in time.

    python benchmarks/loss.py --sizes 512 1024 2048
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import torch
import torch.nn.functional as F

from uwml_core.losses import UWMLLoss

Loss = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def plain_infonce(temperature: float) -> Loss:
    """Symmetric InfoNCE as CLIP's code writes it: one matrix product, the scale on the features."""

    def loss(image: torch.Tensor, text: torch.Tensor) -> torch.Tensor:
        logits = (1 / temperature) * F.normalize(image, dim=1) @ F.normalize(text, dim=1).T
        target = torch.arange(len(logits))
        return (F.cross_entropy(logits, target) + F.cross_entropy(logits.T, target)) / 2

    return loss


def seconds(loss: Loss, image: torch.Tensor, text: torch.Tensor) -> float:
    """One forward and backward."""
    image.grad = text.grad = None
    start = time.perf_counter()
    loss(image, text).backward()
    return time.perf_counter() - start


def compare(batch: int, dim: int, temperature: float, budget_s: float, labels: bool) -> str:
    """One line: both medians, and the median and quartiles of the ratio of neighbouring runs."""
    torch.manual_seed(0)
    image = torch.randn(batch, dim, requires_grad=True)
    text = (image.detach() + 2.0 * torch.randn(batch, dim)).requires_grad_()
    module = UWMLLoss(temperature=temperature, total_steps=10_000)
    given = torch.arange(batch) if labels else None

    def weighted(image: torch.Tensor, text: torch.Tensor) -> torch.Tensor:
        return module(image, text, labels=given)

    plain = plain_infonce(temperature)
    for loss in (weighted, plain):
        seconds(loss, image, text)
    pairs: list[tuple[float, float]] = []
    stop = time.perf_counter() + budget_s
    while time.perf_counter() < stop or len(pairs) < 9:
        order = (weighted, plain) if len(pairs) % 2 else (plain, weighted)
        times = {loss: seconds(loss, image, text) for loss in order}
        pairs.append((times[weighted], times[plain]))
    low, middle, high = statistics.quantiles([ours / other for ours, other in pairs], n=4)
    ours, other = (1e3 * statistics.median(column) for column in zip(*pairs, strict=True))
    return (
        f"{batch:6d} {temperature:6.3f} {'given' if labels else 'none':>6s} {ours:10.2f} {other:10.2f}"
        f" {middle:7.3f} {low:7.3f} {high:7.3f} {len(pairs):5d}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[128, 512, 1024, 2048, 4096])
    parser.add_argument("--temperatures", type=float, nargs="+", default=[0.07, 0.01])
    parser.add_argument("--dim", type=int, default=512)
    parser.add_argument("--seconds", type=float, default=6.0, help="per line")
    parser.add_argument("--labels", action="store_true", help="give labels, so that a mask is needed")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    print(" batch    tau labels    ours ms   plain ms   ratio     q25     q75  runs")
    for temperature in arguments.temperatures:
        for batch in arguments.sizes:
            print(compare(batch, arguments.dim, temperature, arguments.seconds, arguments.labels), flush=True)


if __name__ == "__main__":
    main()
