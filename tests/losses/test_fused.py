"""The fused path against the plain one, and both against what PyTorch says."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from uwml_core.losses import UWMLLoss, weighted_loss
from uwml_core.losses.candidates import both_directions
from uwml_core.losses.functional import base_terms
from uwml_core.losses.fused import fused_infonce_terms
from uwml_core.losses.search import max_with_index
from uwml_core.losses.similarity import same_label_mask, unit_rows
from uwml_core.weighting import UWMLConfig


def features(batch: int, dim: int = 6, seed: int = 0) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [
        torch.randn(batch, dim, dtype=torch.float64, generator=generator).requires_grad_() for _ in range(2)
    ]


def plain(image, text, same, scale):
    config = UWMLConfig()
    sides = both_directions(unit_rows(image) @ unit_rows(text).T, same, config)
    return base_terms(sides, config, scale)


@pytest.mark.parametrize("temperature", [1.0, 0.07, 0.025, 0.01, 0.001])
@pytest.mark.parametrize("batch", [2, 3, 17, 130, 520])
@pytest.mark.parametrize("labelled", [False, True])
def test_fused_terms_and_gradients_are_the_plain_ones(temperature: float, batch: int, labelled: bool) -> None:
    image, text = features(batch)
    labels = torch.arange(batch) % max(2, batch - 2) if labelled else torch.arange(batch)
    same = same_label_mask(labels)
    weights = torch.rand(2, batch, dtype=torch.float64)

    want = plain(image, text, same, 1 / temperature)
    got, norms = fused_infonce_terms(image, text, same if labelled else None, 1 / temperature)

    for name in ("pair_loss", "positive", "negative", "negative_index", "gradient_mass"):
        a, b = getattr(got, name), getattr(want, name)
        torch.testing.assert_close(a, b.detach(), rtol=1e-12, atol=1e-12, msg=lambda m, n=name: f"{n}: {m}")
    torch.testing.assert_close(norms[1], text.detach().norm(dim=1))
    for a, b in zip(
        torch.autograd.grad((got.pair_loss * weights).sum(), (image, text)),
        torch.autograd.grad((want.pair_loss * weights).sum(), (image, text)),
        strict=True,
    ):
        torch.testing.assert_close(a, b, rtol=1e-11, atol=max(1e-12, 1e-14 / temperature))


@pytest.mark.parametrize("scale", [0.5, 14.0, 100.0])
def test_gradient_of_a_scale_tensor_is_the_plain_one(scale: float) -> None:
    image, text = features(9)
    same = same_label_mask(torch.tensor([0, 1, 2, 3, 0, 1, 4, 5, 6]))
    weights = torch.rand(2, 9, dtype=torch.float64)
    gradients = []
    for form in (plain, lambda *a: fused_infonce_terms(*a)[0]):
        factor = torch.tensor(scale, dtype=torch.float64, requires_grad=True)
        loss = (form(image, text, same, factor).pair_loss * weights).sum()
        gradients.append(torch.autograd.grad(loss, (factor, image, text)))
    for a, b in zip(*gradients, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("as_tensor", [False, True])
def test_hand_written_backward_passes_gradcheck(as_tensor: bool) -> None:
    image, text = features(4, 3)
    same = same_label_mask(torch.tensor([0, 1, 1, 2]))
    if as_tensor:
        factor = torch.tensor(7.0, dtype=torch.float64, requires_grad=True)
        assert torch.autograd.gradcheck(
            lambda a, b, s: fused_infonce_terms(a, b, same, s)[0].pair_loss, (image, text, factor)
        )
    else:
        assert torch.autograd.gradcheck(
            lambda a, b: fused_infonce_terms(a, b, same, 7.0)[0].pair_loss, (image, text)
        )


def test_backward_twice_over_a_kept_graph_gives_the_same_gradient() -> None:
    for scale in (10.0, 90.0):
        image, text = features(5)
        loss = fused_infonce_terms(image, text, None, scale)[0].pair_loss.sum()
        first = torch.autograd.grad(loss, image, retain_graph=True)[0]
        assert torch.equal(first, torch.autograd.grad(loss, image)[0])


@pytest.mark.parametrize("scale", [10.0, 90.0, torch.tensor(10.0)])
def test_a_gradient_of_the_gradient_is_refused_not_left_out(scale: float | torch.Tensor) -> None:
    image, text = features(5)
    loss = UWMLLoss(total_steps=9)(image, text, scale)
    with pytest.raises(
        RuntimeError, match=r'second-order .*negative_statistic="topk_mean", topk=1\), the same'
    ):
        torch.autograd.grad(loss, image, create_graph=True)


def test_what_the_refusal_names_is_the_same_loss_and_has_second_order_gradients() -> None:
    image, text = features(5)
    fused, other = UWMLLoss(total_steps=9), UWMLLoss(total_steps=9, negative_statistic="topk_mean", topk=1)
    loss = other(image, text, progress=0.5)
    torch.testing.assert_close(loss, fused(image, text, progress=0.5), rtol=1e-12, atol=0.0)
    first = torch.autograd.grad(loss, image, create_graph=True)[0]
    torch.autograd.grad((first**2).sum(), image)
    weights, same = torch.tensor([0.5, 0.5], dtype=torch.float64), torch.eye(5, dtype=torch.bool)

    def pure(image: torch.Tensor) -> torch.Tensor:
        # equal weights, so that the differences see nothing that the gradient leaves out
        config = UWMLConfig(curve="uniform")
        return weighted_loss(
            unit_rows(image) @ unit_rows(text).T, same, 1.0, weights, config=config, scale=9.0
        )

    assert torch.autograd.gradgradcheck(pure, (image,))


def test_small_losses_keep_their_digits_where_p_rounds_to_one() -> None:
    image = torch.tensor([[1.0, 0.0], [-1.0, 0.0]])
    terms, _ = fused_infonce_terms(image, image.clone(), None, 1 / 0.05)
    # similarity 1 to the positive, -1 to the negative: log1p(exp(-40))
    torch.testing.assert_close(terms.pair_loss, torch.full((2, 2), 4.248354e-18), rtol=1e-5, atol=0.0)
    torch.testing.assert_close(terms.gradient_mass, torch.full((2, 2), 4.248354e-18), rtol=1e-5, atol=0.0)


def test_float32_at_temperature_001_is_the_float64_result() -> None:
    image, text = features(64, 8)
    want = plain(image, text, torch.eye(64, dtype=torch.bool), 100.0).pair_loss
    got = fused_infonce_terms(image.float(), text.float(), None, 100.0)[0].pair_loss
    torch.testing.assert_close(got.double(), want, rtol=1e-5, atol=2e-5)


def test_cross_entropy_of_pytorch_agrees() -> None:
    image, text = features(12)
    logits = F.normalize(image) @ F.normalize(text).T / 0.07
    target = torch.arange(12)
    got = fused_infonce_terms(image, text, None, 1 / 0.07)[0].pair_loss
    torch.testing.assert_close(got[0], F.cross_entropy(logits, target, reduction="none"))
    torch.testing.assert_close(got[1], F.cross_entropy(logits.T, target, reduction="none"))


@pytest.mark.parametrize("shape", [(1, 1), (3, 700), (700, 3), (512, 512), (513, 640), (1000, 1000)])
@pytest.mark.parametrize("dim", [0, 1])
def test_blocked_search_finds_the_maximum_of_torch(shape: tuple[int, int], dim: int) -> None:
    values = torch.randn(shape, generator=torch.Generator().manual_seed(3))
    values[0, :] = -torch.inf
    best, index = max_with_index(values, dim)
    want = values.max(dim)
    assert torch.equal(best, want.values)
    assert torch.equal(values.gather(dim, index.unsqueeze(dim)).squeeze(dim), want.values)
    finite = torch.isfinite(want.values)
    assert torch.equal(index[finite], want.indices[finite])


def test_blocked_search_survives_ties() -> None:
    values = torch.zeros(600, 600)
    for dim in (0, 1):
        best, index = max_with_index(values, dim)
        assert torch.equal(best, torch.zeros(600))
        assert int(index.min()) >= 0
        assert int(index.max()) < 600
