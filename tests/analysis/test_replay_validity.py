"""The replay of logged parameters against logged weights: equal in every bit, or said why not."""

import dataclasses

import numpy as np
import pytest

from tests.support.parts import split_table
from tests.support.synthetic import make_run
from uwml_core.analysis.controller_log import balance_columns, controller_log
from uwml_core.analysis.loss_settings import loss_config
from uwml_core.analysis.replay_validity import replay_validity
from uwml_core.runlog.reader import open_run
from uwml_core.weighting import UWMLConfig

QUICK = UWMLConfig(window=7, update_every=3, smoothing=0.4, sensitivity=0.01, min_weight=0.2)


def checked(folder, config=None):
    run = open_run(folder)
    log = controller_log(run.frame("steps", columns=balance_columns(run.directions)), run.directions)
    return log, replay_validity(log, config or loss_config(run.config))


@pytest.mark.parametrize("config", [None, QUICK, UWMLConfig(direction_mode="fixed", direction_fixed=0.7)])
def test_logged_weights_are_reproduced_bit_for_bit(tmp_path, config):
    log, check = checked(make_run(tmp_path, steps=130, epochs=3, config=config))
    assert check.ok is True
    assert (check.n, check.wrong, check.max_error) == (130, 0, 0.0)
    assert check.reason.endswith("gives the logged direction weights bit for bit (130 steps).")
    moves = config is None or config.direction_mode == "adaptive"
    assert (len(np.unique(log.weight[:, 0])) > 5) == moves


def test_state_goes_on_across_a_resume(tmp_path):
    log, check = checked(make_run(tmp_path, steps=120, epochs=3, resume_at=55, config=QUICK))
    assert check.ok is True
    assert log.step.tolist() == list(range(120))


def test_one_changed_bit_is_found(tmp_path):
    log, _check = checked(make_run(tmp_path, steps=60, epochs=2, config=QUICK))
    log.weight[37, 1] = np.nextafter(log.weight[37, 1], 1.0)
    check = replay_validity(log, QUICK)
    assert check.ok is False
    assert (check.wrong, check.first_wrong) == (1, 37)
    assert 0 < check.max_error < 1e-15
    assert "1 of 60 steps, first step 37" in check.reason


def test_a_weight_that_is_not_a_number_fails(tmp_path):
    log, _check = checked(make_run(tmp_path, steps=60, epochs=2, config=QUICK))
    log.weight[5] = np.nan
    check = replay_validity(log, QUICK)
    assert check.ok is False
    assert np.isnan(check.max_error)


@pytest.mark.parametrize(
    "changed",
    [{"window": 8}, {"update_every": 4}, {"smoothing": 0.41}, {"sensitivity": 0.0101}, {"min_weight": 0.21}],
)
def test_another_parameter_does_not_reproduce_the_weights(tmp_path, changed):
    folder = make_run(tmp_path, steps=60, epochs=2, config=QUICK)
    assert checked(folder, dataclasses.replace(QUICK, **changed))[1].ok is False


def test_what_cannot_be_checked_is_said(tmp_path):
    log, _check = checked(make_run(tmp_path, steps=30, epochs=2))
    blank = np.full_like(log.gap, np.nan)
    cases = {
        "loss": (log, None),
        "gaps": (dataclasses.replace(log, gap=blank), UWMLConfig()),
        "weights": (dataclasses.replace(log, weight=blank), UWMLConfig()),
    }
    for obstacle, (changed, config) in cases.items():
        check = replay_validity(changed, config)
        assert (check.ok, check.obstacle, check.n) == (None, obstacle, 0)
        assert check.reason.endswith(".")


def test_missing_steps_are_counted(tmp_path):
    folder = make_run(tmp_path, steps=160, epochs=2)
    split_table(folder, "steps", 60, 90)[1].unlink()
    log, check = checked(folder)
    assert check.ok is None
    assert check.missing_steps == 160 - len(log.step) > 0
    assert f"{check.missing_steps} steps are missing" in check.reason
