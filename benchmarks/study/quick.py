"""A reduced study that takes a minute: from scratch on a few pictures, for what is far beyond noise."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

from benchmarks.study.configuration import Configuration
from benchmarks.study.methods import Settings, weighted
from benchmarks.study.training import train
from uwml_core.analysis.controller_log import controller_log
from uwml_core.analysis.replay_validity import replay_validity
from uwml_core.analysis.validity import validity
from uwml_core.runlog.reader import open_run
from uwml_core.training.run import run_training
from uwml_core.training.sick.kinds import SickKind
from uwml_core.training.sick.run import Sickness, sick_config
from uwml_core.weighting import UWMLConfig

NOISE = 0.6
STEEP = weighted(0.3, 12.0, 20.0)
_BASE: Settings = {"data.batch_size": 64, "model.dim": 64, "train.epochs": 6}


class Check(NamedTuple):
    """Something that holds whatever the seed.

    Attributes:
        name: what holds.
        seen: what was measured.
        holds: whether it does; a value that is no number never holds.
    """

    name: str
    seen: str
    holds: bool


def quick() -> int:
    """Print all checks.

    Returns:
        How many do not hold.
    """
    failed = 0
    for check in checks():
        failed += not check.holds
        print(f"{'holds' if check.holds else 'FAILS'}: {check.name} ({check.seen})", flush=True)
    return failed


def checks() -> Iterator[Check]:
    """Train a little, and look."""
    yield collapse()
    yield harm()
    yield unequal()
    yield replay()


def collapse() -> Check:
    """A hinge over the hardest negatives from the first step on finds next to nothing."""
    hinge, infonce = (_trained(preset)["val_rsum"] for preset in ("vsepp", "infonce"))
    seen = f"rsum {hinge:.0f} against {infonce:.0f} of InfoNCE"
    return Check("max of hinges from scratch collapses", seen, hinge < infonce / 2)


def harm() -> Check:
    """Wrong pairs cost recall."""
    clean, noisy = (_trained("infonce", noise=noise)["val_rsum"] for noise in (0.0, NOISE))
    seen = f"rsum {noisy:.0f} with {NOISE:.0%} of the captions swapped, {clean:.0f} without"
    return Check("wrong pairs hurt", seen, noisy < clean / 1.5)


def unequal() -> Check:
    """A steep bell leaves few pairs their weight, wrong ones the least."""
    steep, equal = _trained("uwml", steep=True, noise=NOISE), _trained("infonce", noise=NOISE)
    share, wrong = steep["ess_share"], steep["wrong_weight"]
    holds = share < 0.9 and wrong < 0.9 and equal["ess_share"] > 0.999
    seen = f"ESS/n {share:.2f}, weight of wrong pairs {wrong:.2f} of the mean"
    return Check("steep weights are not uniform", seen, holds)


def replay() -> Check:
    """The app's functions give back the weights of a logged run."""
    kind = SickKind(title="nothing", settings={**STEEP, "train.epochs": 2})
    with tempfile.TemporaryDirectory() as root:
        config = sick_config(kind, root=root, seed=0, name="quick")
        run = open_run(run_training(config, progress=False, intervention=Sickness(kind, 0)))
        loss = UWMLConfig.from_dict(run.config["loss"])
        steps = run.frame("steps")
        pairs = validity(run.table("pairs"), steps, loss, run.directions)
        controller = replay_validity(controller_log(steps, run.directions), loss)
    holds = bool(pairs.ok and controller.ok and pairs.n > 0)
    return Check("a replay gives the logged weights", f"{pairs.reason} {controller.reason}", holds)


@cache
def _trained(preset: str, *, noise: float = 0.0, steep: bool = False) -> dict[str, Any]:
    settings = {**_BASE, **(STEEP if steep else {})}
    return train(
        Configuration(
            modality="image",
            encoder="tiny",
            method=preset,
            preset=preset,
            noise=noise,
            settings=settings,
            purpose="tune",
        ),
        seed=0,
    )
