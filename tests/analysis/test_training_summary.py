import numpy as np
import pandas as pd

from uwml_core.analysis.training_summary import training_headline, training_summary

DIRECTIONS = ("i2t", "t2i")
EVAL_COLUMNS = ["step", "epoch", "split", "direction", "metric", "value", "n", "tied_share"]
NO_EVALS = pd.DataFrame({name: [] for name in EVAL_COLUMNS}).astype({"metric": str, "split": str})


def steps(loss, **columns):
    n = len(loss)
    base = {"step": np.arange(n), "epoch": 0, "batch_size": 10, "step_time_ms": 5.0, "loss": loss}
    return pd.DataFrame(base | columns)


def recall(*rows):
    return pd.DataFrame(
        [(s, s // 10, "val", d, m, v, n, 0.0) for s, d, m, v, n in rows], columns=EVAL_COLUMNS
    )


def test_summary_of_nothing_is_defined(empty_frames):
    summary = training_summary(empty_frames[0], empty_frames[1], DIRECTIONS)
    assert (summary.last_step, summary.last_epoch, summary.loss_n, summary.pairs_per_s_n) == (
        None,
        None,
        0,
        0,
    )
    assert np.isnan([summary.last_loss, summary.loss_mean, summary.loss_sd, summary.pairs_per_s]).all()
    assert np.isnan(summary.best_value("i2t", "R@1"))
    assert summary.best_n("i2t", "R@1") == 0


def test_summary_of_one_step_has_no_spread():
    summary = training_summary(steps([2.5]), NO_EVALS, DIRECTIONS)
    assert (summary.last_loss, summary.loss_mean, summary.loss_n) == (2.5, 2.5, 1)
    assert np.isnan(summary.loss_sd)
    assert summary.pairs_per_s == 2000.0


def test_recent_loss_leaves_out_what_is_not_finite_and_counts_it():
    loss = np.concatenate([np.full(50, 9.0), np.tile([1.0, 3.0], 49), [np.nan, np.inf]])
    summary = training_summary(steps(loss), NO_EVALS, DIRECTIONS)
    assert (summary.loss_mean, summary.loss_n, summary.nonfinite_loss) == (2.0, 98, 2)
    assert summary.last_loss == np.inf
    assert summary.last_nonfinite_step == 149


def test_throughput_is_pairs_over_time_not_a_mean_of_ratios():
    summary = training_summary(steps([1.0, 1.0, 1.0], step_time_ms=[5.0, 15.0, np.nan]), NO_EVALS, DIRECTIONS)
    assert summary.pairs_per_s == 1000.0
    assert summary.pairs_per_s_n == 2


def test_best_is_the_highest_value_and_of_ties_the_first():
    evals = recall((9, "i2t", "R@1", 20.0, 7), (19, "i2t", "R@1", 25.0, 8), (29, "i2t", "R@1", 25.0, 9))
    summary = training_summary(steps([1.0]), evals, DIRECTIONS)
    assert summary.best.values.tolist() == [["i2t", "R@1", 25.0, 8, 1, 19]]


def test_headline_without_steps():
    assert (
        training_headline(steps([]), NO_EVALS, DIRECTIONS) == "Too little data yet: no step has been logged."
    )


def test_headline_with_one_step_says_what_is_missing():
    text = training_headline(steps([1.0]), NO_EVALS, DIRECTIONS)
    assert text == "Too little data yet: 1 step logged, 40 needed for a trend. No evaluation on val yet."


def test_headline_tells_a_falling_loss_with_its_interval_and_the_best_recall():
    loss = np.linspace(4.0, 2.0, 400) + 0.01 * np.random.default_rng(0).standard_normal(400)
    evals = recall((9, "i2t", "R@1", 27.4, 365), (9, "t2i", "R@1", 25.1, 1640))
    text = training_headline(steps(loss), evals, DIRECTIONS)
    assert text.startswith("The loss fell by 1.80")
    assert " ± 0.0" in text
    assert text.endswith("Best val R@1: 27.4 % i2t (n = 365), 25.1 % t2i (n = 1,640).")


def test_headline_tells_rising_and_flat_loss_apart():
    noise = np.random.default_rng(1).standard_normal(200)
    assert "The loss rose by 3.000 ± 0.000" in training_headline(
        steps(np.repeat([1.0, 4.0], 100)), NO_EVALS, DIRECTIONS
    )
    assert "has not moved beyond its noise" in training_headline(steps(noise), NO_EVALS, DIRECTIONS)


def test_headline_puts_a_broken_loss_first():
    now = training_headline(steps(np.append(np.ones(99), np.nan)), NO_EVALS, DIRECTIONS)
    assert now.startswith("The loss is not finite at the newest step (1 of 100 steps).")
    past = training_headline(steps(np.insert(np.ones(99), 3, np.inf)), NO_EVALS, DIRECTIONS)
    assert past.startswith("The loss was not finite at 1 of 100 steps, last at step 3.")


def test_headline_of_nothing_but_nan_has_no_trend():
    text = training_headline(steps(np.full(100, np.nan)), NO_EVALS, DIRECTIONS)
    assert text == ("The loss is not finite at the newest step (100 of 100 steps). No evaluation on val yet.")


def test_headline_of_a_single_broken_step_counts_one_step():
    text = training_headline(steps([np.nan]), NO_EVALS, DIRECTIONS)
    assert text.startswith("The loss is not finite at the newest step (1 of 1 step).")


def test_headline_with_one_direction_evaluated_names_only_that():
    evals = recall((9, "t2i", "R@1", 5.0, 3))
    assert training_headline(steps([1.0]), evals, DIRECTIONS).endswith("Best val R@1: 5.0 % t2i (n = 3).")
