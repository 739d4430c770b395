"""The direction controller: order of events, clipping, skipped steps, replay and state."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from uwml_core.weighting import (
    DirectionController,
    LoggedGaps,
    UWMLConfig,
    direction_names,
    replay_controller,
)
from uwml_core.weighting.exact import RunningSums

NAMES = ("i2t", "t2i")
gaps = st.lists(st.tuples(st.floats(-2, 2), st.floats(-2, 2)), min_size=1, max_size=60)
parameters = st.fixed_dictionaries(
    {
        "window": st.integers(1, 20),
        "update_every": st.integers(1, 7),
        "smoothing": st.floats(0, 0.99),
        "sensitivity": st.floats(1e-3, 5),
        "min_weight": st.floats(0, 0.49),
    }
)


def feed(controller: DirectionController, rows) -> list[tuple[float, float]]:
    done = [controller.update(dict(zip(NAMES, row, strict=True))) for row in rows]
    return [(row["i2t"], row["t2i"]) for row in done]


def replay(rows, **changed) -> np.ndarray:
    return replay_controller(np.array(rows, dtype=float).reshape(-1, 2), UWMLConfig(**changed))


def by_hand(rows, window, update_every, smoothing, sensitivity, min_weight):
    """The rule as printed, over the whole history at every step."""
    seen, weights, out = [], [0.5, 0.5], []
    for row in rows:
        if all(math.isfinite(gap) for gap in row):
            seen.append(row)
            if len(seen) % update_every == 0:
                recent = seen[-window:]
                mean = [sum(r[d] for r in recent) / len(recent) for d in (0, 1)]
                target = 1 / (1 + math.exp(max(-700, min(700, (mean[0] - mean[1]) / sensitivity))))
                moved = [
                    smoothing * w + (1 - smoothing) * t
                    for w, t in zip(weights, (target, 1 - target), strict=True)
                ]
                clipped = [min(max(w, min_weight), 1 - min_weight) for w in moved]
                weights = [w / sum(clipped) for w in clipped]
        out.append(tuple(weights))
    return out


@given(gaps, parameters)
def test_weights_are_those_of_the_printed_rule(rows, kwargs) -> None:
    for got, want in zip(feed(DirectionController(**kwargs), rows), by_hand(rows, **kwargs), strict=True):
        assert got == pytest.approx(want, abs=1e-9)


@given(gaps, parameters)
def test_weights_sum_to_one_and_respect_the_smallest(rows, kwargs) -> None:
    for first, second in feed(DirectionController(**kwargs), rows):
        assert first + second == pytest.approx(1.0)
        assert min(first, second) >= kwargs["min_weight"] - 1e-12


finite = st.floats(-1e150, 1e150)
awkward = st.one_of(finite, st.sampled_from([math.nan, math.inf, -math.inf, 5e-324, -0.0]))
awkward_gaps = st.lists(st.tuples(awkward, awkward), max_size=60)


@given(st.one_of(gaps, awkward_gaps), parameters)
def test_replay_equals_the_live_controller_bit_for_bit(rows, kwargs) -> None:
    replayed = replay(rows, **kwargs)
    assert replayed.tolist() == [list(row) for row in feed(DirectionController(**kwargs), rows)]


@given(st.one_of(gaps, awkward_gaps), parameters, st.integers(0, 60), st.integers(1, 20))
def test_many_steps_at_once_leave_the_same_state_as_one_by_one(rows, kwargs, cut: int, after: int) -> None:
    one_by_one, at_once = DirectionController(**kwargs), DirectionController(**kwargs)
    want = feed(one_by_one, rows)
    parts = [at_once.update_many(np.array(part).reshape(-1, 2)) for part in (rows[:cut], rows[cut:])]
    assert np.concatenate(parts).tolist() == [list(row) for row in want]
    more = [(0.1 * k, 0.3) for k in range(after)]
    assert feed(at_once, more) == feed(one_by_one, more)


@given(st.one_of(gaps, awkward_gaps), st.lists(parameters, min_size=2, max_size=4))
def test_gaps_are_looked_through_once_for_any_number_of_replays(rows, tried) -> None:
    array = np.array(rows, dtype=float).reshape(-1, 2)
    logged = LoggedGaps.of(array)
    for kwargs in tried:
        controllers = DirectionController(**kwargs), DirectionController(**kwargs)
        replayed, want = (c.update_many(g) for c, g in zip(controllers, (logged, array), strict=True))
        np.testing.assert_array_equal(replayed, want)
        assert controllers[0].state_dict() == controllers[1].state_dict()


@pytest.mark.parametrize("window", [1, 7, 200, 20_000])
@pytest.mark.parametrize("update_every", [1, 3, 10])
def test_long_replay_equals_the_live_controller_bit_for_bit(window: int, update_every: int) -> None:
    random = np.random.default_rng(window)
    rows = random.normal(0.1, 0.05, (1500, 2)) * 10.0 ** random.integers(-9, 1, (1500, 1))
    rows[random.integers(0, 1500, 40), random.integers(0, 2, 40)] = np.nan
    kwargs = {"window": window, "update_every": update_every, "smoothing": 0.7, "min_weight": 0.0}
    live = feed(DirectionController(**kwargs), rows.tolist())
    assert replay(rows, **kwargs).tolist() == [list(row) for row in live]


@pytest.mark.parametrize(("mode", "want"), [("fixed", [0.8, 0.2]), ("off", [0.5, 0.5])], ids=["fixed", "off"])
def test_replay_of_other_modes_is_constant(mode: str, want: list[float]) -> None:
    replayed = replay([(0.9, 0.0)] * 25, direction_mode=mode, direction_fixed=0.8)
    np.testing.assert_allclose(replayed, [want] * 25)


@given(st.one_of(gaps, awkward_gaps), parameters)
def test_update_rows_are_those_at_which_the_live_controller_updates(rows, kwargs) -> None:
    controller, usable = DirectionController(**kwargs), 0
    want = []
    for row, (first, second) in enumerate(rows):
        usable += math.isfinite(first) and math.isfinite(second)
        if math.isfinite(first) and math.isfinite(second) and usable % kwargs["update_every"] == 0:
            want.append(row)
    assert controller.update_rows(np.array(rows).reshape(-1, 2)).tolist() == want


def test_replay_of_no_step_is_empty() -> None:
    assert replay([]).shape == (0, 2)


@given(
    st.lists(st.floats(allow_nan=False, allow_infinity=False, min_value=-1e150, max_value=1e150)), st.data()
)
def test_running_sums_round_once_as_fsum_does(values: list[float], data) -> None:
    start = data.draw(st.integers(0, len(values)))
    stop = data.draw(st.integers(start, len(values)))
    assert RunningSums(np.array(values)).over(start, stop) == math.fsum(values[start:stop])


@given(
    st.lists(st.integers(-(2**53), 2**53), min_size=1, max_size=80),
    st.integers(0, 45),
    st.integers(-700, 700),
    st.data(),
)
def test_running_sums_of_numbers_of_similar_size_round_once_too(whole, spread: int, scale: int, data) -> None:
    values = [math.ldexp(w, scale + data.draw(st.integers(0, spread))) for w in whole]
    bounds = [sorted(data.draw(st.tuples(*[st.integers(0, len(values))] * 2))) for _ in range(5)]
    starts, stops = zip(*bounds, strict=True)
    want = [math.fsum(values[a:b]) for a, b in bounds]
    assert RunningSums(np.array(values)).over(starts, stops).tolist() == want


@given(gaps, parameters, st.integers(0, 60))
def test_state_goes_through_json_and_continues_bit_for_bit(rows, kwargs, cut: int) -> None:
    whole, half, resumed = (DirectionController(**kwargs) for _ in range(3))
    want = feed(whole, rows)
    first = feed(half, rows[:cut])
    resumed.load_state_dict(json.loads(json.dumps(half.state_dict())))
    assert first + feed(resumed, rows[cut:]) == want
    assert resumed.window_means() == pytest.approx(whole.window_means(), nan_ok=True)


def test_gap_enters_before_the_weights_of_the_same_step() -> None:
    controller = DirectionController(window=5, update_every=1, smoothing=0.0, sensitivity=0.1, min_weight=0.0)
    first, second = feed(controller, [(0.2, 0.1)])[0]
    assert first == pytest.approx(1 / (1 + math.e))
    assert second == pytest.approx(math.e / (1 + math.e))


def test_window_of_one_sees_the_latest_gap_only() -> None:
    rows = [(0.9, 0.0), (0.0, 0.9), (0.3, 0.3)]
    weights = feed(DirectionController(window=1, update_every=1, smoothing=0.0), rows)
    assert weights[0][0] < 0.5 < weights[1][0]
    assert weights[2] == (0.5, 0.5)


def test_weights_move_at_every_tenth_gap_only() -> None:
    weights = feed(DirectionController(), [(0.3, 0.1)] * 20)
    assert weights[:9] == [(0.5, 0.5)] * 9
    assert len(set(weights[9:19])) == 1
    assert weights[19] != weights[18] != weights[8]


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_gap_that_is_not_finite_skips_the_step(bad: float) -> None:
    kwargs = {"window": 3, "update_every": 2, "smoothing": 0.5}
    clean = [(0.3, 0.1), (0.2, 0.1), (0.4, 0.0), (0.1, 0.5)]
    dirty = [clean[0], (bad, 0.1), clean[1], (0.1, bad), clean[2], (bad, bad), clean[3]]
    weights = feed(DirectionController(**kwargs), dirty)
    assert weights[::2] == feed(DirectionController(**kwargs), clean)
    assert weights[1] == weights[0]


def test_smallest_weight_is_reached_and_kept() -> None:
    controller = DirectionController(update_every=1, smoothing=0.0, sensitivity=1e-6, min_weight=0.2)
    assert feed(controller, [(0.9, 0.0)] * 3)[-1] == pytest.approx((0.2, 0.8))


def test_tiny_sensitivity_does_not_overflow() -> None:
    controller = DirectionController(update_every=1, smoothing=0.0, sensitivity=1e-300, min_weight=0.0)
    assert feed(controller, [(-2.0, 2.0)])[0] == (1.0, 0.0)


@pytest.mark.parametrize(("mode", "want"), [("fixed", (0.8, 0.2)), ("off", (0.5, 0.5))], ids=["fixed", "off"])
def test_other_modes_ignore_the_gaps(mode: str, want: tuple[float, float]) -> None:
    controller = DirectionController(mode=mode, fixed=0.8, update_every=1)
    assert feed(controller, [(0.9, 0.0)] * 5)[-1] == pytest.approx(want)
    assert controller.window_means() == pytest.approx((0.9, 0.0))


def test_window_means_before_the_first_gap_are_nan() -> None:
    assert all(math.isnan(mean) for mean in DirectionController().window_means())


def test_directions_may_not_change_between_calls() -> None:
    controller = DirectionController()
    feed(controller, [(0.1, 0.2)])
    with pytest.raises(ValueError, match=r"gaps has directions \('v2t', 't2v'\); expected \('i2t', 't2i'\)"):
        controller.update({"v2t": 0.1, "t2v": 0.2})
    with pytest.raises(ValueError, match="expected two directions"):
        DirectionController().update({"i2t": 0.1})


def test_unknown_mode_is_named() -> None:
    with pytest.raises(ValueError, match="mode='auto' is unknown; choose one of adaptive, fixed, off"):
        DirectionController(mode="auto")


NO_PAIR: list[object] = [5, None, (1, 2), "it", {"image": 0, "text": 1}, ("image", None)]


def test_direction_names() -> None:
    assert direction_names(("Image", "text")) == ("i2t", "t2i")
    for bad in (("text", "thermal"), ("text",), ("", "text"), ("a", "b", "c"), *NO_PAIR):
        with pytest.raises(ValueError, match="modalities="):
            direction_names(bad)
