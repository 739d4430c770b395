"""What the benchmarks measure with, where it can be told exactly; no times."""

from __future__ import annotations

import pytest
import torch

from benchmarks.backbones import BACKBONES
from benchmarks.epoch import LoggedEpochs, Pairs, PlainEpochs, Task
from benchmarks.loss import Contest, run
from benchmarks.measure import Ratio, alternate, peak_bytes
from benchmarks.peers import ATTACHED, CLIP, LABELLED, NTXENT, OURS, PLAIN, Setting, largest_disagreement
from uwml_core.runlog.reader import open_run
from uwml_core.runlog.writer import RunLogger
from uwml_core.training.encoders import TwoTower

CPU = torch.device("cpu")


def test_all_losses_have_the_same_value_at_equal_weights() -> None:
    assert largest_disagreement(CPU) < 1e-6


@pytest.mark.parametrize(
    ("setting", "names"),
    [
        (Setting(), {OURS, LABELLED, PLAIN, CLIP}),
        (Setting(dtype=torch.bfloat16), {OURS, LABELLED, PLAIN, CLIP}),
        (Setting(learned_scale=True), {OURS, LABELLED, PLAIN, CLIP}),
        (Setting(attached=True), {OURS, LABELLED, PLAIN, CLIP, ATTACHED}),
        (Setting(cubic=True), {OURS, NTXENT}),
    ],
    # without the sets, whose order differs between processes
    ids=lambda value: str(value) if isinstance(value, Setting) else "",
)
def test_every_setting_times_its_losses_and_their_peaks(setting: Setting, names: set[str]) -> None:
    result = run(Contest(8, 4, setting, CPU), budget_s=0.0, rounds=2)
    assert set(result.times) == set(result.peaks) == names
    assert all(len(times) == 2 for times in result.times.values())
    # both gradients at least
    assert all(peak >= 2 * 8 * 4 * setting.dtype.itemsize for peak in result.peaks.values())
    assert len(result.lines()) == len(names)


def test_peak_is_what_was_alive_at_once_and_not_the_sum() -> None:
    def work() -> None:
        first = torch.zeros(1 << 20, dtype=torch.uint8)
        second = torch.zeros(3 << 20, dtype=torch.uint8)
        del first, second
        torch.zeros(2 << 20, dtype=torch.uint8)

    assert peak_bytes(work, CPU) == 4 << 20


def test_ratio_is_the_median_over_neighbours() -> None:
    assert Ratio.of([2.0, 30.0, 4.0], [1.0, 10.0, 1.0]) == (3.0, 2.0, 4.0, 3)


def test_everyone_takes_part_in_every_round() -> None:
    order: list[str] = []
    times = alternate({name: lambda n=name: order.append(n) for name in "abc"}, CPU, rounds=6)
    assert {name: len(values) for name, values in times.items()} == {"a": 6, "b": 6, "c": 6}
    assert all(set(order[i : i + 3]) == set("abc") for i in range(0, 18, 3))
    assert set(order[::3]) == set("abc")


@pytest.mark.parametrize(("name", "millions"), [("vit_small", 21.67), ("resnet50", 23.51)])
def test_backbones_have_the_published_sizes(name: str, millions: float) -> None:
    with torch.device("meta"):
        model = BACKBONES[name]()
    assert sum(p.numel() for p in model.parameters()) / 1e6 == pytest.approx(millions, abs=0.01)


def test_logged_epochs_log_every_step_and_start_from_the_plain_ones_weights(tmp_path) -> None:
    inputs = torch.randint(0, 255, (4, 3, 32, 32), dtype=torch.uint8), torch.arange(8), torch.arange(0, 8, 2)
    pairs = Pairs(inputs, [3, 1, 2, 7], labels=torch.arange(4))
    task = Task(
        title="", build=lambda: TwoTower(8), pairs=lambda step: pairs, steps_per_epoch=3, batch=4, dim=8
    )
    with RunLogger(tmp_path, "bench") as log:
        plain, logged = PlainEpochs(task), LoggedEpochs(task, log)
        for a, b in zip(plain.model.parameters(), logged.model.parameters(), strict=True):
            assert torch.equal(a, b)
        plain()
        logged()
    assert plain.step == logged.step == 3
    assert open_run(tmp_path / "bench").table("steps", columns=["step"]).num_rows == 3
