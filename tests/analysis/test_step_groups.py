import numpy as np
import pytest

from uwml_core.analysis.step_groups import group_rows


def nested_relative(weight, keys, max_weight):
    result = np.empty(len(weight))
    for i, key in enumerate(keys):
        mine = [weight[j] for j, other in enumerate(keys) if other == key]
        result[i] = min(weight[i] / (sum(mine) / len(mine)), max_weight)
    return result


@pytest.mark.parametrize("sizes", [[3], [4, 4, 4], [1, 2, 3, 4, 5, 6, 7], [1, 100, 1], [64, 64, 17]])
def test_relative_weights_equal_a_nested_loop_for_any_sizes(sizes):
    step = np.repeat(np.arange(len(sizes)), sizes)
    weight = np.random.default_rng(0).uniform(0.01, 1.0, len(step))
    groups, order = group_rows(step, np.zeros(len(step), np.int64))
    assert order is None
    assert groups.counts.tolist() == sizes
    assert groups.relative_weight(weight, 1.5) == pytest.approx(nested_relative(weight, step, 1.5), rel=1e-12)
    expected = [weight[step == s].sum() ** 2 / (weight[step == s] ** 2).sum() for s in range(len(sizes))]
    assert groups.effective_sample_size(weight) == pytest.approx(expected, rel=1e-12)
    l2 = [np.sqrt(n * (weight[step == s] ** 2).sum()) for s, n in enumerate(sizes)]
    assert groups.loss_denominator(weight, "l2") == pytest.approx(l2, rel=1e-12)
    assert groups.sum(weight) == pytest.approx([weight[step == s].sum() for s in range(len(sizes))])


def test_rows_out_of_order_are_put_together():
    step, direction = np.array([5, 2, 5, 2, 5]), np.array([0, 1, 1, 1, 0])
    groups, order = group_rows(step, direction)
    assert groups.step.tolist() == [2, 5, 5]
    assert groups.direction.tolist() == [1, 0, 1]
    assert groups.counts.tolist() == [2, 2, 1]
    assert order.tolist() == [1, 3, 0, 4, 2]


def test_no_rows_make_no_groups():
    groups, order = group_rows(np.empty(0, np.int64), np.empty(0, np.int64))
    assert order is None
    assert len(groups.counts) == 0
    assert len(groups.sum(np.empty(0))) == 0
    assert len(groups.relative_weight(np.empty(0), 2.0)) == 0
