"""Finite in, finite out: every corner of the parameters and of the similarities."""

from __future__ import annotations

import itertools

import pytest
import torch

from uwml_core.losses import UWMLLoss

CORNERS = {
    "aligned": (torch.eye(4), torch.eye(4)),
    "opposed": (torch.eye(4), -torch.eye(4)),
    "all equal": (torch.ones(4, 4), torch.ones(4, 4)),
    "all opposite": (torch.ones(4, 4), -torch.ones(4, 4)),
    "two poles": (
        torch.tensor([[1.0, 0.0], [-1.0, 0.0]]).repeat(2, 1),
        torch.tensor([[-1.0, 0.0], [1.0, 0.0]]).repeat(2, 1),
    ),
    "batch of two": (torch.tensor([[1.0, 0.0], [0.0, 1.0]]), torch.tensor([[1.0, 1.0], [1.0, -1.0]])),
    "tiny": (torch.eye(4) * 1e-30, torch.eye(4) * 1e-38),
    "huge": (torch.eye(4) * 1e30, torch.ones(4, 4) * 3e38),
}
PARAMETERS = [
    {"steepness_end": 200.0, "hard_floor": 0.0},
    {"steepness_end": 0.0, "steepness_start": 0.0},
    {"temperature": 0.01},
    {"temperature": 0.025},
    {"temperature": 1e-4},
    {"temperature": 50.0},
    {"learnable_temperature": True},
    {"learnable_temperature": True, "temperature": 0.001},
    {"curve": "hard", "steepness_end": 200.0},
    {"max_weight": 1.0},
    {"center": -2.0, "steepness_end": 200.0, "hard_floor": 0.0},
    {"center": 2.0, "steepness_end": 200.0, "hard_floor": 0.0},
    {"normalization": "sum"},
    {"normalization": "rss"},
    {"normalization": "none"},
    *({"negative_statistic": name, "topk": 3} for name in ("topk_mean", "quantile", "mean")),
    {"margin_scale": "negative_std", "steepness_end": 200.0, "hard_floor": 0.0},
    {"combination": "add", "curve": "hard"},
    {"combination": "add", "steepness_start": 0.0, "steepness_end": 0.0},
    {"false_negative_margin": 2.0},
    {"base": "triplet"},
    {"base": "triplet", "triplet_margin": 0.0},
    {"base": "triplet", "over_negatives": "sum", "steepness_end": 200.0, "hard_floor": 0.0},
    {"base": "sigmoid"},
    {"base": "sigmoid", "steepness_end": 200.0, "hard_floor": 0.0, "margin_scale": "negative_std"},
    {"base": "sigmoid", "combination": "add"},
    {"memory_batches": 2},
    {"memory_batches": 1, "memory_modalities": "text", "base": "sigmoid"},
    {"base": "dcl"},
    {"base": "dcl", "temperature": 1e-4},
    {"base": "hn_nce"},
    {"base": "hn_nce", "hn_alpha": 0.0, "hn_beta": 3.0, "temperature": 0.01},
    {"base": "hn_nce", "hn_alpha": 1e-3, "learnable_temperature": True},
    {"base": "wei2020_max"},
    {"base": "wei2020_max", "triplet_margin": 3.0},
    {"base": "wei2020_calibrated"},
    {"sensitivity": 1e-9, "update_every": 1, "min_weight": 0.0, "smoothing": 0.0},
]


def run(loss: UWMLLoss, image: torch.Tensor, text: torch.Tensor, **given) -> torch.Tensor:
    image, text = image.clone().requires_grad_(), text.clone().requires_grad_()
    value = loss(image, text, progress=1.0, **given)
    value.backward()
    assert torch.isfinite(value)
    for gradient in (image.grad, text.grad):
        assert gradient.dtype == image.dtype
        assert torch.isfinite(gradient).all()
    for parameter in loss.parameters():
        assert torch.isfinite(parameter.grad).all()
    return value


@pytest.mark.parametrize("corner", CORNERS)
@pytest.mark.parametrize("parameters", PARAMETERS, ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_corner_gives_finite_loss_and_gradients(corner: str, parameters: dict, dtype: torch.dtype) -> None:
    image, text = (features.to(dtype) for features in CORNERS[corner])
    if corner == "tiny":
        image, text = image * 1e6, text * 1e20  # keep the gradient, 1 / norm, inside the dtype
    loss = UWMLLoss(**parameters)
    value = run(loss, image, text)
    assert value.dtype == dtype
    assert torch.isfinite(loss.last.pair_loss).all()
    if not loss.config.weighs_pairs:  # where no pair has a loss, an anchor shows no weight
        assert torch.isfinite(loss.last.weight).all()


@pytest.mark.parametrize("parameters", PARAMETERS, ids=str)
@pytest.mark.parametrize("labels", [[0, 0, 0, 1], [5, 5, 6, 6], [0, 1, 2, 3]])
def test_duplicate_labels_give_finite_gradients(parameters: dict, labels: list[int]) -> None:
    torch.manual_seed(0)
    run(UWMLLoss(**parameters), torch.randn(4, 3), torch.randn(4, 3), labels=labels)


def test_scale_of_the_features_changes_nothing_even_beyond_the_squares_of_float32() -> None:
    torch.manual_seed(0)
    image, text = torch.randn(6, 5), torch.randn(6, 5)
    want = UWMLLoss(total_steps=10)(image, text).item()
    for factor in (1e-30, 1e-12, 1e12, 1e30):
        assert UWMLLoss(total_steps=10)(image * factor, text).item() == pytest.approx(want, rel=1e-5)


@pytest.mark.parametrize("base", ["infonce", "triplet", "sigmoid", "wei2020_max", "wei2020_calibrated"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast_keeps_weights_in_float32_and_detached(dtype: torch.dtype, base: str) -> None:
    torch.manual_seed(0)
    layer = torch.nn.Linear(6, 8)
    source = torch.randn(10, 6)
    loss = UWMLLoss(base=base, total_steps=10)
    with torch.autocast("cpu", dtype=dtype):
        image, text = layer(source), layer(source.flip(1))
        value = loss(image, text)
        assert image.dtype == dtype
        value.backward()
    want = UWMLLoss(base=base, total_steps=10)(image.detach().float(), text.detach().float())
    assert value.dtype == torch.float32
    assert torch.equal(value.detach(), want)
    for field in ("margin", "pair_weight", "weight", "pair_loss", "gradient_share"):
        assert getattr(loss.last, field).dtype == torch.float32
        assert not getattr(loss.last, field).requires_grad
    assert torch.isfinite(layer.weight.grad).all()


def test_gradients_do_not_depend_on_autocast_around_backward() -> None:
    torch.manual_seed(0)
    gradients = []
    for enabled, temperature in itertools.product((False, True), (0.07, 0.01)):
        image = torch.linspace(-1, 2, 40).reshape(8, 5).sin().requires_grad_()
        text = torch.linspace(0, 3, 40).reshape(8, 5).cos()
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=enabled):
            UWMLLoss(temperature=temperature, total_steps=9)(image, text).backward()
        gradients.append(image.grad)
    assert torch.equal(gradients[0], gradients[2])
    assert torch.equal(gradients[1], gradients[3])


def test_no_active_hinge_keeps_the_graph_alive() -> None:
    image = torch.eye(3, requires_grad=True)
    loss = UWMLLoss(base="triplet", triplet_margin=0.2)
    value = loss(image, torch.eye(3), progress=0.0)
    value.backward()
    assert value.item() == 0.0
    assert torch.equal(image.grad, torch.zeros(3, 3))
    assert torch.isnan(loss.last.gradient_share).all()
