"""The synthetic runs that other tests build on are what they claim to be."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.support.synthetic import make_run
from uwml_core.runlog.reader import open_run
from uwml_core.weighting import UWMLConfig, difficulty_weight, relative_weight, replay_controller


def test_logged_weights_are_what_the_configuration_gives(tmp_path: Path) -> None:
    run = open_run(make_run(tmp_path, lonely_steps=(4,)))
    config = UWMLConfig.from_dict(run.config["loss"])
    pairs, steps = run.frame("pairs"), run.frame("steps").set_index("step")
    for (step, _), rows in pairs.groupby(["step", "direction"], observed=True):
        steepness = steps.loc[step, "steepness"]
        weight = difficulty_weight(
            rows["margin"].to_numpy(),
            center=config.center,
            steepness=np.float32(steepness),
            hard_floor=config.hard_floor,
        )
        np.testing.assert_allclose(rows["pair_weight"], weight, rtol=1e-6)
        np.testing.assert_allclose(rows["weight"], relative_weight(weight, config.max_weight), rtol=1e-6)
        assert rows["gradient_share"].sum() == pytest.approx(1.0, abs=1e-5)


def test_logged_direction_weights_are_those_of_the_controller(tmp_path: Path) -> None:
    run = open_run(make_run(tmp_path))
    steps = run.frame("steps")
    gaps = steps[["gap_i2t", "gap_t2i"]].to_numpy()
    replayed = replay_controller(gaps, UWMLConfig.from_dict(run.config["loss"]))
    np.testing.assert_allclose(
        steps[["direction_weight_i2t", "direction_weight_t2i"]], replayed, rtol=1e-12, atol=0
    )
    assert np.ptp(replayed[:, 0]) > 0.01


def test_same_seed_gives_the_same_run_and_a_resumed_one_too(tmp_path: Path) -> None:
    frames = [
        open_run(make_run(tmp_path, run_id=name, **options)).frame("pairs")
        for name, options in (("a", {}), ("b", {}), ("c", {"resume_at": 25}), ("d", {"seed": 1}))
    ]
    assert frames[0].equals(frames[1])
    assert frames[0].drop(columns="direction").equals(frames[2].drop(columns="direction"))
    assert not frames[0].equals(frames[3])
