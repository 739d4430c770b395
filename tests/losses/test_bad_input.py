"""Every documented refusal: one sentence with the argument, the rows and what was expected."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch

from uwml_core.losses import UWMLLoss


def good() -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    return torch.randn(9, 4), torch.randn(9, 4)


def call(image=None, text=None, *, loss: UWMLLoss | None = None, **given):
    first, second = good()
    loss = loss or UWMLLoss(total_steps=10)
    return loss(first if image is None else image, second if text is None else text, **given)


def with_rows(value: float, rows: list[int]) -> torch.Tensor:
    features = good()[0].clone()
    features[rows, 1 if value else slice(None)] = value
    return features


@pytest.mark.parametrize("which", ["image", "text"])
@pytest.mark.parametrize("bad", [torch.nan, torch.inf, -torch.inf])
@pytest.mark.parametrize("base", ["infonce", "triplet"])
def test_non_finite_rows_are_named_the_first_five(which: str, bad: float, base: str) -> None:
    features = with_rows(bad, [0, 2, 3, 5, 6, 8])
    message = f"{which}_features is not finite in rows 0, 2, 3, 5, 6 and 1 more; expected finite numbers"
    with pytest.raises(ValueError, match=re.escape(message)):
        call(**{which: features}, loss=UWMLLoss(base=base, total_steps=10))


def test_non_finite_features_of_low_precision_are_found() -> None:
    image, text = (features.half() for features in good())
    image[4] = torch.inf
    with pytest.raises(ValueError, match=r"image_features is not finite in row 4; expected finite numbers"):
        call(image, text)


@pytest.mark.parametrize("which", ["image", "text"])
def test_zero_rows_are_named(which: str) -> None:
    message = f"{which}_features is all zero in rows 1, 7; expected rows with a direction"
    with pytest.raises(ValueError, match=message):
        call(**{which: with_rows(0.0, [1, 7])})


@pytest.mark.parametrize(
    ("image", "text", "message"),
    [
        (torch.ones(4), None, r"image_features has shape \(4,\); expected \[batch, dim\]"),
        (torch.ones(0, 4), None, r"image_features has shape \(0, 4\)"),
        (torch.ones(4, 0), None, r"image_features has shape \(4, 0\)"),
        (None, torch.ones(9, 5), r"text_features has shape \(9, 5\) but image_features has \(9, 4\)"),
        (None, torch.ones(8, 4), r"text_features has shape \(8, 4\) but image_features has \(9, 4\)"),
        (None, torch.ones(9, 4).double(), r"text_features has dtype torch.float64 but image_features has"),
        (torch.ones(9, 4).long(), None, r"image_features has dtype torch.int64; expected a floating dtype"),
        (None, [[1.0]], r"text_features is a list; expected a tensor \[batch, dim\]"),
    ],
)
def test_shape_and_dtype_mismatch(image, text, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call(image, text)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (torch.arange(8), r"labels has shape \(8,\); expected \(9,\), one label per pair"),
        (torch.zeros(9, 1).long(), r"labels has shape \(9, 1\)"),
        (torch.zeros(9), r"labels has dtype torch.float32; expected whole numbers"),
        (torch.zeros(9).bool(), r"labels has dtype torch.bool"),
        (
            [1, None, *range(7)],
            r"labels=\[1, None, 0, 1, 2, 3, \.\.\.\] cannot be read as int64; expected whole",
        ),
        (
            list("abcdefghi"),
            r"labels=\['a', 'b', .* cannot be read as int64; expected whole numbers, one per",
        ),
        ([2**70] * 9, r"labels=\[1180591620717411303424, .* cannot be read as int64; expected whole numbers"),
        ([3] * 9, r"labels are all 3 in rows 0 to 8, so no anchor has a negative; expected at least two"),
    ],
)
def test_labels_of_the_wrong_kind(labels, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call(labels=labels)


def test_one_pair_has_no_negative() -> None:
    with pytest.raises(ValueError, match="image_features has 1 row, so no anchor has a negative"):
        call(torch.ones(1, 4), torch.ones(1, 4))


def test_false_negative_margin_that_leaves_nothing() -> None:
    loss = UWMLLoss(false_negative_margin=-2.0, total_steps=10)
    message = r"false_negative_margin=-2.0 leaves no anchor of this batch a negative; expected a larger one"
    with pytest.raises(ValueError, match=message):
        call(loss=loss)
    assert loss.step == 0


def test_item_ids_of_the_wrong_length() -> None:
    with pytest.raises(ValueError, match="item_ids has length 3; expected 9, one id per pair"):
        call(item_ids=[1, 2, 3])


@pytest.mark.parametrize("progress", [-0.1, 1.01, float("nan")])
def test_progress_out_of_range(progress: float) -> None:
    with pytest.raises(
        ValueError, match=r"progress=.* is out of range; expected optimizer steps done / total"
    ):
        call(progress=progress)


@pytest.mark.parametrize("progress", ["x", [0.5, 0.6], torch.ones(2), 10**400])
def test_progress_that_is_no_number(progress: object) -> None:
    with pytest.raises(
        ValueError, match=r"^progress=.* is not a number; expected optimizer steps done / total"
    ):
        call(progress=progress)


def test_item_ids_without_a_length() -> None:
    with pytest.raises(ValueError, match="item_ids=5 has no length; expected 9, one id per pair"):
        call(item_ids=5)


@pytest.mark.parametrize("value", [0.0, -1.0, float("inf"), float("nan")])
@pytest.mark.parametrize("as_tensor", [False, True])
def test_logit_scale_must_be_positive_and_finite(value: float, as_tensor: bool) -> None:
    scale = torch.tensor(value) if as_tensor else value
    with pytest.raises(ValueError, match=r"logit_scale=.* is out of range; expected 1 / temperature"):
        call(logit_scale=scale)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"logit_scale": torch.ones(2)}, r"logit_scale has shape \(2,\)"),
        ({"logit_scale": "14"}, r"logit_scale='14' is a str; expected a number"),
        ({"logit_bias": float("nan")}, r"logit_bias=nan is not finite"),
        ({"logit_bias": torch.tensor(3)}, r"logit_bias has shape \(\) and dtype torch.int64"),
    ],
)
def test_logits_of_the_wrong_kind(given: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call(**given)


@pytest.mark.parametrize("kind", [int, np.float32, np.float64, np.int64])
def test_a_number_of_any_library_is_a_scale(kind: type) -> None:
    loss = UWMLLoss(total_steps=10)
    assert call(loss=loss, logit_scale=kind(10)) == call(logit_scale=10.0)
    assert loss.last.temperature == 0.1


def sparse(values: torch.Tensor) -> torch.Tensor:
    return values.to_sparse()


def meta(values: torch.Tensor) -> torch.Tensor:
    return values.to("meta")


@pytest.mark.parametrize("form", [sparse, meta])
@pytest.mark.parametrize("name", ["image_features", "text_features", "labels", "logit_scale", "logit_bias"])
def test_a_tensor_without_dense_values_is_named(form, name: str) -> None:
    values = {"image_features": good()[0], "text_features": good()[1], "labels": torch.arange(9)}
    given = {name: form(values.get(name, torch.ones(1)))}
    with pytest.raises(ValueError, match=rf"^{name} is a tensor .*; expected a dense one with values"):
        UWMLLoss(total_steps=10)(**{**values, **given})


def test_logit_bias_tensor_of_the_sigmoid_must_be_finite() -> None:
    with pytest.raises(ValueError, match=r"logit_bias=nan is not finite; expected a finite number"):
        call(loss=UWMLLoss(base="sigmoid", total_steps=10), logit_bias=torch.tensor(torch.nan))


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"base": "wei2020_max", "curve": "hard"}, r"curve='hard' is impossible with base='wei2020_max'"),
        ({"over_negatives": "sum"}, r"over_negatives='sum' has no effect with base='infonce'"),
        ({"temperature": 0.0}, r"temperature=0.0 is out of range; expected > 0"),
        ({"temperature": -0.1}, r"temperature=-0.1 is out of range; expected > 0"),
        ({"centre": 0.1}, r"loss.centre is not a known setting; did you mean loss.center\?"),
        ({"base": "triplet", "learnable_temperature": True}, r"has no effect with base='triplet'"),
        ({"modalities": ("text", "thermal")}, r"begin with the same letter"),
    ],
)
def test_configuration_is_refused_at_construction(overrides: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        UWMLLoss(**overrides)
    with pytest.raises(ValueError, match=message):
        UWMLLoss({**overrides})


@pytest.mark.parametrize("config", [5, [1, 2], "abc", "", [("center", 0.1)]])
def test_a_configuration_that_is_no_mapping_is_named(config: object) -> None:
    with pytest.raises(
        ValueError, match=r"^config=.* is a (int|list|str); expected a UWMLConfig, a mapping or"
    ):
        UWMLLoss(config)


def test_a_refused_batch_advances_nothing_and_leaves_the_last_step() -> None:
    loss = UWMLLoss(total_steps=10, update_every=1)
    call(loss=loss)
    before, last = loss.get_extra_state(), loss.last
    for bad in ({"image": with_rows(torch.nan, [1])}, {"labels": [1] * 9}, {"progress": 2.0}):
        with pytest.raises(ValueError, match="expected"):
            call(loss=loss, **bad)
    assert loss.get_extra_state() == before
    assert loss.last is last


def test_validate_false_lets_bad_values_pass_but_not_bad_shapes() -> None:
    loss = UWMLLoss(total_steps=10, validate=False)
    assert torch.isnan(call(with_rows(torch.nan, [3]), loss=loss))
    assert torch.isfinite(call(with_rows(0.0, [3]), loss=loss))
    with pytest.raises(ValueError, match="text_features has shape"):
        call(text=torch.ones(2, 4), loss=loss)
