import dataclasses

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from uwml_core.analysis.loss_settings import loss_config
from uwml_core.analysis.replay import logged_pairs
from uwml_core.analysis.selection import PREVIEW_COLUMNS
from uwml_core.analysis.step_measures import MEASURES
from uwml_core.analysis.what_if import baseline, compare, preview, weight_curve_headline
from uwml_core.weighting import UWMLConfig

DIRECTIONS = ("i2t", "t2i")
FLAT = UWMLConfig(curve="uniform")


@pytest.fixture(scope="module")
def logged(run):
    pairs = run.table("pairs", columns=list(PREVIEW_COLUMNS))
    return pairs, run.frame("steps"), loss_config(run.config)


def bell(m, center, kappa, floor):
    s = 1 / (1 + np.exp(-kappa * (m - center)))
    value = 4 * s * (1 - s)
    return floor + (1 - floor) * value if m < center else value


def nested(pairs, steps, config):
    """Every number of the preview by loops over explicit pairs, in float64, formulas as printed."""
    rows = pairs.to_pandas()
    found = {}
    rows = rows[np.isfinite(rows["margin"]) & (rows["weight"] > 0)]
    for (direction, step), mine in rows.groupby(["direction", "step"], observed=True, sort=True):
        at = steps[steps["step"] == step].iloc[0]
        start, end = config.steepness_start, config.steepness_end
        kappa = start + (end - start) * (1 - np.cos(np.pi * at["progress"])) / 2
        raw = [max(1e-6, bell(m, config.center, kappa, config.hard_floor)) for m in mine["margin"]]
        after = [min(w / (sum(raw) / len(raw)), config.max_weight) for w in raw]
        before = mine["weight"].astype(float).tolist()
        result = {}
        for when, r in (("before", before), ("after", after)):
            result[f"ess_share_{when}"] = sum(r) ** 2 / sum(x * x for x in r) / len(r)
            result[f"loss_scale_{when}"] = sum(r) / np.sqrt(len(r) * sum(x * x for x in r))
            pull = [x * (1 - np.exp(-float(v))) for x, v in zip(r, mine["pair_loss"], strict=True)]
            hardest = [
                x * np.exp(-float(v) - float(m) / at["temperature"])
                for x, v, m in zip(r, mine["pair_loss"], mine["margin"], strict=True)
            ]
            result[f"hardest_share_{when}"] = sum(hardest) / sum(pull)
            share = [g * x / b for g, x, b in zip(mine["gradient_share"], r, before, strict=True)]
            edges = [(-9, 0), (0, 0.05), (0.05, 0.25), (0.25, 9)]
            for k, (low, high) in enumerate(edges):
                inside = [g for g, m in zip(share, mine["margin"], strict=True) if low <= m < high]
                result[f"band_{k}_{when}"] = sum(inside) / sum(share)
        found.setdefault(direction, []).append(result)
    return {d: pd.DataFrame(values).agg(["mean", "std"]) for d, values in found.items()}


def test_preview_equals_nested_loops(logged):
    pairs, steps, config = logged
    after = dataclasses.replace(config, center=0.05, steepness_end=30.0, hard_floor=0.1, max_weight=1.6)
    result, expected = preview(pairs, steps, config, after, DIRECTIONS), nested(pairs, steps, after)
    for row in result.summary.to_dict("records"):
        for name in ("ess_share", "loss_scale", "hardest_share"):
            for when in ("before", "after"):
                wanted = expected[row["direction"]][f"{name}_{when}"]
                assert row[f"{name}_{when}"] == pytest.approx(wanted["mean"], rel=2e-5), (name, when)
                assert row[f"{name}_{when}_sd"] == pytest.approx(wanted["std"], rel=2e-4, abs=1e-7), (
                    name,
                    when,
                )
    for row in result.bands.to_dict("records"):
        k = ["misaligned", "hard", "informative", "easy"].index(row["band"])
        for when in ("before", "after"):
            wanted = expected[row["direction"]][f"band_{k}_{when}"]["mean"]
            assert row[f"share_{when}"] == pytest.approx(wanted, abs=1e-5)


def test_unchanged_parameters_change_nothing(logged):
    pairs, steps, config = logged
    result = preview(pairs, steps, config, config, DIRECTIONS)
    for name in MEASURES:
        before, after = result.summary[f"{name}_before"], result.summary[f"{name}_after"]
        assert after.to_numpy() == pytest.approx(before.to_numpy(), abs=2e-6), name
    assert result.bands["share_after"].to_numpy() == pytest.approx(result.bands["share_before"], abs=2e-6)
    assert result.summary["ess_change"].abs().max() < 2e-6
    assert result.unchanged


def test_shares_of_the_bands_sum_to_one(logged):
    pairs, steps, config = logged
    after = dataclasses.replace(config, center=-0.2, steepness_end=60.0)
    bands = preview(pairs, steps, config, after, DIRECTIONS).bands
    for _, mine in bands.groupby("direction"):
        assert mine["share_before"].sum() == pytest.approx(1.0, abs=1e-9)
        assert mine["share_after"].sum() == pytest.approx(1.0, abs=1e-9)
        assert mine["n"].sum() == 90 * 24 - 2
        assert set(mine["steps"]) == {90}


def test_rows_without_weight_are_counted_and_left_out(logged):
    pairs, steps, config = logged
    summary = preview(pairs, steps, config, config, DIRECTIONS).summary
    assert summary["rows_without_weight"].tolist() == [2, 2]
    assert summary["rows"].tolist() == [90 * 24 - 2] * 2
    weight = pairs["weight"].to_pandas().mask(np.arange(pairs.num_rows) % 3 == 0)
    holed = pairs.set_column(
        pairs.column_names.index("weight"), "weight", pa.array(weight, pa.float32(), from_pandas=True)
    )
    summary = preview(holed, steps, config, config, DIRECTIONS).summary
    assert (summary["rows"] + summary["rows_without_weight"]).tolist() == [90 * 24] * 2
    assert summary["rows_without_weight"].min() > 600


def test_small_example_by_hand(pair_table, step_frame):
    result = preview(pair_table(), step_frame, UWMLConfig(), FLAT, DIRECTIONS)
    i2t = result.summary.iloc[0]
    ess = [(0.5 + 1.5) ** 2 / (0.25 + 2.25) / 2, (0.8 + 1.2) ** 2 / (0.64 + 1.44) / 2]
    assert i2t["ess_share_before"] == pytest.approx(np.mean(ess), rel=1e-6)
    assert i2t["ess_share_before_sd"] == pytest.approx(np.std(ess, ddof=1), rel=1e-5)
    assert i2t["ess_share_after"] == 1.0
    assert i2t["loss_scale_after"] == 1.0
    # under equal weights 0.4 : 0.6 of weights 0.5 : 1.5 become 0.8 : 0.4, and 0.5 : 0.5 become 0.625 : 0.417
    bands = result.bands[result.bands["direction"] == "i2t"].set_index("band")
    assert bands.loc["misaligned", "share_after"] == pytest.approx((0.8 / 1.2) / 2, rel=1e-6)
    assert bands.loc["hard", "share_after"] == pytest.approx(
        (0.5 / 0.8) / (0.5 / 0.8 + 0.5 / 1.2) / 2, rel=1e-6
    )
    assert bands["n"].tolist() == [1, 1, 2, 0]
    assert np.isnan(i2t["ess_change_low"])


def test_clamped_share_counts_anchors_at_the_clamp(pair_table, step_frame):
    before = UWMLConfig(max_weight=1.5)
    summary = preview(
        pair_table(), step_frame, before, dataclasses.replace(before, max_weight=8.0), DIRECTIONS
    )
    assert summary.summary["clamped_share_before"].tolist() == [0.25, 0.25]
    assert summary.summary["clamped_share_after"].tolist() == [0.0, 0.0]


def test_a_clamp_that_all_anchors_are_at_cut_none(pair_table, step_frame):
    flat = dataclasses.replace(FLAT, max_weight=1.0)
    summary = preview(pair_table(weight=[1.0] * 8), step_frame, flat, flat, DIRECTIONS).summary
    assert summary["clamped_share_before"].tolist() == [0.0, 0.0]
    assert summary["clamped_share_after"].tolist() == [0.0, 0.0]
    cut = dataclasses.replace(flat, curve="hard")
    assert (preview(pair_table(), step_frame, flat, cut, DIRECTIONS).summary["clamped_share_after"] > 0).all()


def test_loss_scale_follows_the_normalization(pair_table, step_frame):
    for name, expected in (("sum", 1.0), ("none", 1.0), ("rss", np.sqrt(2.0))):
        after = dataclasses.replace(FLAT, normalization=name)
        summary = preview(pair_table(), step_frame, UWMLConfig(), after, DIRECTIONS).summary
        assert summary["loss_scale_after"].tolist() == pytest.approx([expected] * 2)


def test_weights_histogram_has_fixed_edges_and_counts_every_row(pair_table, step_frame):
    weights = preview(pair_table(), step_frame, UWMLConfig(), FLAT, DIRECTIONS).weights
    assert (
        weights.groupby("direction")[["count_before", "count_after"]].sum().to_numpy().tolist()
        == [[4, 4]] * 2
    )
    i2t = weights[weights["direction"] == "i2t"]
    assert i2t.loc[i2t["count_before"] > 0, "bin"].tolist() == [10, 16, 24, 30]
    assert i2t.loc[i2t["count_after"] > 0, ["bin", "count_after"]].values.tolist() == [[20, 4]]
    assert i2t["right"].iloc[-1] == np.inf
    beyond = pair_table(weight=[50.0] * 8)
    last = preview(beyond, step_frame, UWMLConfig(), FLAT, DIRECTIONS).weights
    assert last.loc[last["bin"] == 100, "count_before"].tolist() == [4, 4]


def test_hardest_share_is_unknown_without_temperature_and_for_other_losses(pair_table, step_frame):
    without = step_frame.assign(temperature=np.nan)
    summary = preview(pair_table(), without, UWMLConfig(), FLAT, DIRECTIONS).summary
    assert summary[["hardest_share_before", "easy_rest_share_after"]].isna().all(axis=None)
    triplet = UWMLConfig(base="triplet")
    summary = preview(pair_table(), step_frame, triplet, triplet, DIRECTIONS).summary
    assert summary[["hardest_share_before", "easy_rest_share_after"]].isna().all(axis=None)
    assert summary["ess_share_before"].notna().all()


def test_a_step_without_gradient_is_left_out_of_the_shares(pair_table, step_frame):
    nan = float("nan")
    table = pair_table(
        gradient_share=[nan, nan, 0.7, 0.3, 0.5, 0.5, 0.9, 0.1], pair_loss=[0.0, 0.0] + [1.0] * 6
    )
    result = preview(table, step_frame, UWMLConfig(), UWMLConfig(), DIRECTIONS)
    i2t = result.bands[result.bands["direction"] == "i2t"]
    assert set(i2t["steps"]) == {1}
    assert i2t["share_before"].sum() == pytest.approx(1.0)
    assert np.isfinite(result.summary.loc[0, "hardest_share_before"])


def test_weights_of_unknown_parameters_stand_as_they_were_logged(pair_table, step_frame):
    logged = logged_pairs(pair_table(), step_frame, DIRECTIONS)
    unknown = baseline(logged, FLAT, DIRECTIONS, known=False)
    untouched, tried = (compare(unknown, config).summary for config in (FLAT, UWMLConfig(center=0.1)))
    assert untouched["ess_share_after"].tolist() == untouched["ess_share_before"].tolist()
    assert tried["ess_share_after"].tolist() != tried["ess_share_before"].tolist()
    # told by the run, the same parameters are replayed
    known = compare(baseline(logged, FLAT, DIRECTIONS), FLAT).summary
    assert known["ess_share_after"].tolist() == pytest.approx([1.0, 1.0])


def test_the_headline_says_that_no_weights_were_logged(pair_table, step_frame):
    table = pair_table(weight=[None] * 8)
    told = [
        weight_curve_headline(preview(table, step_frame, FLAT, c, DIRECTIONS)) for c in (FLAT, UWMLConfig())
    ]
    assert told[0] == "No weights were logged: all pairs count alike until other weights are tried."
    assert told[1].startswith("With these parameters")


def test_an_unstable_probability_never_exceeds_one(pair_table, step_frame):
    table = pair_table(margin=[-1.9] * 8, pair_loss=[1e-3] * 8)
    summary = preview(table, step_frame.assign(temperature=0.01), UWMLConfig(), FLAT, DIRECTIONS).summary
    assert summary["hardest_share_before"].tolist() == [1.0, 1.0]
    assert summary["easy_rest_share_before"].tolist() == [0.0, 0.0]


@pytest.mark.parametrize("case", ["no rows", "nan weights", "no steps", "other directions"])
def test_nothing_to_weigh_gives_nan_not_an_error(pair_table, step_frame, case):
    unweighed = pair_table(weight=[float("nan")] * 8)
    table = {"no rows": pair_table().slice(0, 0), "nan weights": unweighed}.get(case, pair_table())
    steps = step_frame.iloc[:0] if case == "no steps" else step_frame
    directions = ("v2t", "t2v") if case == "other directions" else DIRECTIONS
    result = preview(table, steps, UWMLConfig(), FLAT, directions)
    assert result.summary["direction"].tolist() == list(directions)
    assert result.summary["rows"].tolist() == [0, 0]
    assert result.summary["ess_share_before"].isna().all()
    assert result.bands["share_after"].isna().all()
    assert result.weights[["count_before", "count_after"]].to_numpy().sum() == 0
    without = 4 if case == "nan weights" else 0
    assert result.summary["rows_without_weight"].tolist() == [without, without]
    assert weight_curve_headline(result) == "Too little data yet: no pair with a logged weight."


def test_margins_of_another_loss_start_from_pairs_that_count_alike(pair_table, step_frame):
    nulls = {name: [None] * 8 for name in ("weight", "pair_loss", "gradient_share")}
    table, uniform = pair_table(**nulls), UWMLConfig(curve="uniform")
    ours = pair_table(weight=[1.0] * 8)
    for after in (uniform, UWMLConfig(), UWMLConfig(center=0.0, hard_floor=0.0)):
        foreign, known = (preview(rows, step_frame, uniform, after, DIRECTIONS) for rows in (table, ours))
        columns = ["rows", "ess_share_before", "ess_share_after", "clamped_share_after", "loss_scale_after"]
        pd.testing.assert_frame_equal(foreign.summary[columns], known.summary[columns])
        pd.testing.assert_frame_equal(foreign.weights, known.weights)
        assert foreign.summary["ess_share_before"].tolist() == [1.0, 1.0]
        assert foreign.bands["share_after"].isna().all()
    assert "no gradient share was logged" in weight_curve_headline(foreign)


def test_equal_margins_have_equal_weights(pair_table, step_frame):
    tied = pair_table(margin=[0.3] * 8, weight=[1.0] * 8)
    for kappa in (0.0, 200.0):
        after = UWMLConfig(steepness_start=kappa, steepness_end=kappa, hard_floor=0.0)
        summary = preview(tied, step_frame, UWMLConfig(), after, DIRECTIONS).summary
        assert summary["ess_share_after"].tolist() == pytest.approx([1.0, 1.0])


def test_row_order_does_not_matter(logged):
    pairs, steps, config = logged
    after = dataclasses.replace(config, center=0.0)
    shuffled = pairs.take(np.random.default_rng(0).permutation(pairs.num_rows))
    one = preview(pairs, steps, config, after, DIRECTIONS).summary
    other = preview(shuffled, steps.sample(frac=1, random_state=0), config, after, DIRECTIONS).summary
    pd.testing.assert_frame_equal(one, other, rtol=1e-5)


def test_headline_of_the_parameters_in_use(logged):
    pairs, steps, config = logged
    result = preview(pairs, steps, config, config, DIRECTIONS)
    share = result.bands.set_index(["direction", "band"])["share_before"] * 100
    ess = result.summary["ess_share_before"] * 100
    assert weight_curve_headline(result) == (
        f"Informative pairs hold {share['i2t', 'informative']:.0f} % (i2t) and "
        f"{share['t2i', 'informative']:.0f} % (t2i) of the gradient, easy pairs "
        f"{share['i2t', 'easy']:.0f} % (i2t) and {share['t2i', 'easy']:.0f} % (t2i); "
        f"the effective sample size is {ess[0]:.0f} % (i2t) and {ess[1]:.0f} % (t2i) of the pairs."
    )


def test_headline_of_a_change_has_an_interval(logged):
    pairs, steps, config = logged
    result = preview(pairs, steps, config, dataclasses.replace(config, steepness_end=40.0), DIRECTIONS)
    row = result.summary.iloc[0]
    half = 50 * (row["ess_change_high"] - row["ess_change_low"])
    text = weight_curve_headline(result)
    assert text.startswith("With these parameters informative pairs hold ")
    assert (
        f"{100 * row['ess_share_before']:.0f} % → {100 * row['ess_share_after']:.0f} %, "
        f"−{-100 * row['ess_change']:.1f} ± {half:.1f} (i2t)"
    ) in text
    assert row["ess_change_low"] < row["ess_change"] < row["ess_change_high"] < 0


def test_headline_of_few_steps_says_so(pair_table, step_frame):
    text = weight_curve_headline(preview(pair_table(), step_frame, UWMLConfig(), FLAT, DIRECTIONS))
    assert text.endswith("Too little data yet for an interval: 2 steps.")
    assert "±" not in text


def test_headline_without_gradient_says_so(pair_table, step_frame):
    table = pair_table(gradient_share=[None] * 8)
    text = weight_curve_headline(preview(table, step_frame, FLAT, FLAT, DIRECTIONS))
    assert text.startswith("The effective sample size is 88 % (i2t) and 87 % (t2i) of the pairs; no gradient")


def test_headline_of_one_direction_names_only_that(pair_table, step_frame):
    table = pair_table(weight=[0.5, 1.5, None, None, 0.8, 1.2, None, None])
    text = weight_curve_headline(preview(table, step_frame, FLAT, FLAT, DIRECTIONS))
    assert "(i2t)" in text
    assert "t2i" not in text
