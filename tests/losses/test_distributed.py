"""Several processes give what one process with the whole batch gives, and fail together."""

from __future__ import annotations

import dataclasses
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from tests.support.processes import run_in_processes
from uwml_core.losses import StepDiagnostics, UWMLLoss, cached_backward

pytestmark = pytest.mark.slow

BATCH, DIM, STEPS = 12, 5, 3
LABELS = [0, 1, 2, 3, 0, 4, 5, 6, 1, 7, 8, 0]
SIGMOID = {"base": "sigmoid", "margin_scale": "negative_std"}

# settings of the loss; "labels", "scale" and "chunks" are about the call
CASES: dict[str, dict[str, Any]] = {
    "defaults": {},
    "unlabelled": {"labels": None},
    "sum": {"normalization": "sum", "max_weight": 1.2},
    "rss": {"normalization": "rss"},
    "none": {"normalization": "none", "curve": "uniform", "direction_mode": "off"},
    "add": {"combination": "add", "curve": "hard"},
    "topk_mean": {"negative_statistic": "topk_mean", "topk": 3, "margin_scale": "negative_std"},
    "quantile": {"negative_statistic": "quantile", "quantile": 0.7},
    "false_negative_margin": {"false_negative_margin": -0.1},
    "memory": {"memory_batches": 2},
    "memory, unlabelled, text": {"memory_batches": 1, "memory_modalities": "text", "labels": None},
    "triplet": {"base": "triplet", "triplet_margin": 0.5},
    "triplet sum": {"base": "triplet", "over_negatives": "sum", "combination": "add"},
    "sigmoid": SIGMOID,
    "sigmoid, memory": {"base": "sigmoid", "memory_batches": 1, "steepness_start": 4.0},
    "dcl": {"base": "dcl"},
    "hn_nce": {"base": "hn_nce"},
    "wei2020_max": {"base": "wei2020_max"},
    "wei2020_calibrated": {"base": "wei2020_calibrated", "triplet_margin": 0.4},
    "learnable_temperature": {"learnable_temperature": True},
    "given scale": {"scale": 1.5, "temperature": 0.2},
    "weights in the graph": {"detach_weights": False, "margin_scale": "negative_std"},
    "cached": {"chunks": 2, "learnable_temperature": True, "memory_batches": 1},
}
# compared by the items they name, not as they are, and names of the directions
NAMED = {"directions", "negative_index", "false_negatives", "further_item_ids"}


def diagnostics(last: StepDiagnostics) -> dict[str, Any]:
    names = [field.name for field in dataclasses.fields(last)]
    return {name: getattr(last, name) for name in names if name not in NAMED}


class Towers(nn.Module):
    """A shared linear encoder, and a scale where the model has one."""

    def __init__(self, scale: float | None) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.linear = nn.Linear(DIM, 4).double()
        self.scale = None if scale is None else nn.Parameter(torch.tensor(scale, dtype=torch.float64))

    def forward(self, image: torch.Tensor, text: torch.Tensor) -> tuple[torch.Tensor, ...]:
        scale = () if self.scale is None else (self.scale.exp(),)
        return (self.linear(image), self.linear(text), *scale)


def batch(step: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(step)
    image = torch.randn(BATCH, DIM, generator=generator, dtype=torch.float64)
    return image, image + 0.8 * torch.randn(BATCH, DIM, generator=generator, dtype=torch.float64)


def place() -> tuple[int, int]:
    return (dist.get_rank(), dist.get_world_size()) if dist.is_initialized() else (0, 1)


def own(values: Any) -> Any:
    """This process's slice of a whole batch."""
    rank, size = place()
    return values[rank * len(values) // size : (rank + 1) * len(values) // size]


def train(settings: dict[str, Any]) -> list[dict[str, Any]]:
    """What each of a few steps gives in this process."""
    settings = {"labels": LABELS, "scale": None, "chunks": 1, **settings}
    labels, scale, chunks = (settings.pop(name) for name in ("labels", "scale", "chunks"))
    mode = {} if settings.get("base", "").startswith("wei") or "direction_mode" in settings else {"window": 2}
    loss = UWMLLoss(**{"total_steps": STEPS, "update_every": 1, "smoothing": 0.2, **mode, **settings})
    loss.double()
    model = Towers(scale)
    module = DistributedDataParallel(model) if dist.is_initialized() else model
    kept = []
    for step in range(STEPS):
        inputs = [own(x).clone().requires_grad_() for x in batch(step)]
        ids = own([100 * step + i for i in range(BATCH)])
        arguments = {"labels": None if labels is None else own(labels), "item_ids": ids}
        for parameter in (*model.parameters(), *loss.parameters()):
            parameter.grad = None
        if chunks > 1:
            parts = list(zip(*(x.chunk(chunks) for x in inputs), strict=True))
            no_sync = module.no_sync if dist.is_initialized() else None
            value = cached_backward(loss, lambda part: module(*part), parts, no_sync=no_sync, **arguments)
        else:
            value = loss(*module(*inputs), **arguments)
            value.backward()
        last = loss.last
        candidates = [*ids, *last.further_item_ids, None]
        kept.append(
            {
                "value": value.detach(),
                "inputs": [x.grad for x in inputs],
                "parameters": [p.grad for p in (*model.parameters(), *loss.parameters())],
                "last": diagnostics(last),
                "negatives": [[candidates[i] for i in row] for row in last.negative_index.tolist()],
                "false": None
                if last.false_negatives is None
                else [(d, ids[i], candidates[j]) for d, i, j in last.false_negatives.tolist()],
            }
        )
    kept[-1]["state"] = loss.get_extra_state()
    return kept


def refusal(call: Callable[[], Any]) -> str:
    try:
        call()
    except ValueError as error:
        return str(error)
    return ""


def misuse() -> dict[str, Any]:
    """What happens to calls that processes do not make alike, and to those that gather nothing."""
    rank, _ = place()
    loss = UWMLLoss(total_steps=9)
    image, text = (own(x) for x in batch(0))
    bad = image.clone()
    bad[1, 0] = torch.nan
    labels = own(LABELS)
    found = {
        "sizes": refusal(lambda: loss(image[rank:], text[rank:])),
        "dtypes": refusal(lambda: loss(*((x.float() if rank else x) for x in (image, text)))),
        "labels": refusal(lambda: loss(image, text, labels=None if rank else labels)),
        "not finite": refusal(lambda: loss(bad if rank else image, text)),
        "shape": refusal(lambda: loss(image[0] if rank else image, text)),
        "one label": refusal(lambda: loss(image, text, labels=[7] * len(image))),
        "step": loss.step,
    }
    # lengths out of float32's range in one process only
    found["long"] = loss((1e25 * image if rank else image).float(), text.float()).item()
    leaf = image.clone().requires_grad_()
    try:
        torch.autograd.grad(loss(leaf, text), leaf, create_graph=True)
    except RuntimeError as error:
        found["second order"] = str(error)
    # one process alone may call a loss in eval mode, or one that does not share
    apart = UWMLLoss(total_steps=9, distributed=False)
    if rank == 0:
        loss.eval()
        found["eval"] = loss(image, text).item()
        found["apart"] = apart(image, text).item()
        found["last"] = (loss.last.batch_size, apart.last.further_item_ids)
    return found


def resumed() -> bool:
    """Whether a loss goes on bit for bit from a checkpoint in every process."""

    def fresh() -> UWMLLoss:
        return UWMLLoss(total_steps=9, memory_batches=2, update_every=1, accumulate_batches=2)

    whole, half = fresh(), fresh()
    features = [[own(x) for x in batch(step)] for step in range(4)]
    for call in range(5):
        for loss in (whole, half):
            loss(*features[call // 2])
    stream = io.BytesIO()
    torch.save(half.state_dict(), stream)
    stream.seek(0)
    other = fresh()
    other.load_state_dict(torch.load(stream, weights_only=True))
    return all(torch.equal(whole(*features[call // 2]), other(*features[call // 2])) for call in range(5, 8))


def everything() -> dict[str, Any]:
    cases = {name: train(settings) for name, settings in CASES.items()}
    return {"cases": cases, "misuse": misuse(), "resumed": resumed()}


@pytest.fixture(scope="module", params=[2, 3], ids=["two", "three"])
def ranks(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    folder: Path = tmp_path_factory.mktemp("processes")
    return run_in_processes(everything, request.param, folder)


def close(got: Any, want: Any, what: str, *, missing: bool = False) -> None:
    """Compare; only where a field says ``missing`` may NaN stand on both sides: no negative, no number."""
    torch.testing.assert_close(
        got, want, rtol=1e-10, atol=1e-13, equal_nan=missing, msg=lambda text: f"{what}: {text}"
    )


@pytest.mark.parametrize("name", CASES)
def test_processes_give_what_one_with_the_whole_batch_gives(name: str, ranks: list[dict[str, Any]]) -> None:
    size, alone = len(ranks), train(CASES[name])
    for step, want in enumerate(alone):
        parts = [rank["cases"][name][step] for rank in ranks]
        for number in range(2):
            gathered = torch.cat([part["inputs"][number] for part in parts]) / size
            close(gathered, want["inputs"][number], f"gradient of input {number}")
            assert gathered.abs().sum() > 0
        for part in parts:
            close(part["value"], want["value"], "value")
            close(part["parameters"], want["parameters"], "gradients of parameters")
        for field, value in want["last"].items():
            values = [part["last"][field] for part in parts]
            if isinstance(value, torch.Tensor) and value.ndim == 2:
                close(torch.cat(values, 1), value, field, missing=True)
            else:
                close(values, [value] * size, field, missing=True)
        for d in range(2):
            assert [i for part in parts for i in part["negatives"][d]] == want["negatives"][d]
        if want["false"] is not None:
            assert sorted(row for part in parts for row in part["false"]) == sorted(want["false"])
    assert len(alone) == STEPS


@pytest.mark.parametrize("name", CASES)
def test_every_process_carries_the_same_state(name: str, ranks: list[dict[str, Any]]) -> None:
    want = train(CASES[name])[-1]["state"]
    first, *others = (rank["cases"][name][-1]["state"] for rank in ranks)
    memory, of_one = first.pop("memory"), want.pop("memory")
    for other in others:
        for batch_of_first, batch_of_other in zip(memory, other.pop("memory"), strict=True):
            close(batch_of_other, batch_of_first, "memory")
            assert torch.equal(batch_of_other["text"], batch_of_first["text"])
        assert other == first
    close(memory, of_one, "memory")
    close(first.pop("controller")["gaps"], want.pop("controller")["gaps"], "gaps")
    assert first == want


def test_the_cases_reach_what_they_are_for(ranks: list[dict[str, Any]]) -> None:
    last = {name: steps[-1]["last"] for name, steps in ranks[0]["cases"].items()}
    assert last["defaults"]["direction_weight"][0] != 0.5
    assert last["sum"]["clamped_share"].max() > 0
    assert last["false_negative_margin"]["masked_false_negatives"] > 0
    assert last["memory"]["negatives_per_anchor"] > last["defaults"]["negatives_per_anchor"]
    beyond = {i for part in ranks for i in part["cases"]["memory"][-1]["negatives"][0]}
    assert {i // 100 for i in beyond} > {STEPS - 1}


def test_batches_that_differ_are_refused_in_every_process(ranks: list[dict[str, Any]]) -> None:
    size = len(ranks)
    per_process = BATCH // size
    for found in (rank["misuse"] for rank in ranks):
        shapes = ", ".join(f"({per_process - rank}, {DIM})" for rank in range(size))
        assert found["sizes"].startswith(
            f"image_features has shape {shapes} in processes 0 to {size - 1}; expected the same in all"
        )
        assert "image_features has dtype torch.float64, torch.float32" in found["dtypes"]
        assert "drops the last" in found["sizes"]
        assert "drops the last" not in found["dtypes"] + found["labels"]
        assert found["labels"].startswith("labels is None: False, True")
        assert found["one label"].startswith(f"labels are all 7 in rows 0 to {BATCH - 1}, so no anchor has")
        assert found["step"] == 0


def test_a_fault_in_one_process_is_raised_in_all(ranks: list[dict[str, Any]]) -> None:
    first, second = (rank["misuse"] for rank in ranks[:2])
    for what, message in (
        ("not finite", "image_features is not finite in row 1; expected finite numbers only"),
        ("shape", f"image_features has shape ({DIM},); expected [batch, dim], both at least 1"),
    ):
        assert second[what] == message
        assert first[what] == f"process 1 of {len(ranks)} refuses its batch: {message}"


def test_a_gradient_of_the_gradient_is_refused(ranks: list[dict[str, Any]]) -> None:
    for rank in ranks:
        assert (
            "no second-order gradients here; use UWMLLoss(distributed=False)"
            in rank["misuse"]["second order"]
        )


def test_rows_of_any_length_in_one_process_are_fine(ranks: list[dict[str, Any]]) -> None:
    want = UWMLLoss(total_steps=9)(*(x.float() for x in batch(0))).item()
    for rank in ranks:
        assert rank["misuse"]["long"] == pytest.approx(want, rel=1e-5)


def test_slices_on_their_own_give_other_gradients(ranks: list[dict[str, Any]]) -> None:
    size = len(ranks)
    inputs = [x.clone().requires_grad_() for x in batch(0)]
    for part in zip(*(x.chunk(size) for x in inputs), strict=True):
        (UWMLLoss(total_steps=9)(*Towers(None)(*part)) / size).backward()
    together = torch.cat([rank["cases"]["unlabelled"][0]["inputs"][0] for rank in ranks]) / size
    assert (inputs[0].grad - together).abs().max() > 0.1 * together.abs().max()


def test_eval_and_a_loss_apart_gather_nothing(ranks: list[dict[str, Any]]) -> None:
    found, size = ranks[0]["misuse"], BATCH // len(ranks)
    want = UWMLLoss(total_steps=9)(*(x[:size] for x in batch(0))).item()
    assert found["apart"] == pytest.approx(want, rel=1e-12)
    assert found["last"] == (size, ())
    assert found["eval"] > 0


def test_resume_is_bit_exact_in_every_process(ranks: list[dict[str, Any]]) -> None:
    assert [rank["resumed"] for rank in ranks] == [True] * len(ranks)
