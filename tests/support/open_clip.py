"""Small models of open_clip with random weights, its parsed arguments, and batches for its training loop."""

from __future__ import annotations

import copy
import json
import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

import torch

from tests.support.vision_operators import declare_missing_operators

declare_missing_operators()

from open_clip.coca_model import CoCa  # noqa: E402
from open_clip.model import CLIP  # noqa: E402
from open_clip_train.params import parse_args  # noqa: E402
from open_clip_train.train import train_one_epoch  # noqa: E402

from uwml_core.integrations.open_clip import create_loss  # noqa: E402

VISION = {"image_size": 32, "patch_size": 16, "width": 32, "layers": 1, "head_width": 16}
TEXT = {"context_length": 8, "vocab_size": 64, "width": 32, "heads": 2, "layers": 1}

# a direction weight that leaves a half at once
WEIGHTED = {"total_steps": 4, "update_every": 1, "smoothing": 0.5}


def clip(**changes: Any) -> CLIP:
    """A CLIP of 60,000 weights in float64."""
    torch.manual_seed(0)
    return CLIP(16, VISION, TEXT, output_dict=True, **changes).double()


def coca() -> CoCa:
    """A CoCa as small; its decoder is as wide as its embeddings."""
    torch.manual_seed(0)
    # pooling by attention makes the picture tokens that its decoder reads
    vision = {**VISION, "attentional_pool": True, "attn_pooler_heads": 2, "output_tokens": True}
    text = {**TEXT, "embed_cls": True, "output_tokens": True}
    decoder = {**TEXT, "attn_pooler_heads": 2}
    model = CoCa(TEXT["width"], decoder, text, vision)
    # left uninitialized, as its weights are to come from a checkpoint
    torch.nn.init.normal_(model.text_decoder.text_projection, std=0.1)
    return model.double()


def arguments(*words: str, **changes: Any) -> Namespace:
    """What open_clip's training script has parsed, and set itself, when it makes the loss."""
    args = parse_args(["--model", "small", "--device", "cpu", "--precision", "fp32", *words])
    # a precision that their loop does not know leaves float64 as it is
    args.precision, args.skip_scheduler = "fp64", True
    args.distill, args.rank, args.world_size, args.wandb = False, 0, 1, False
    vars(args).update(changes)
    return args


class Loader:
    """Random pictures and texts under the attributes that open_clip's loaders have."""

    def __init__(self, batches: int, size: int, *, with_ids: bool = False, half: int | None = None) -> None:
        random = torch.Generator().manual_seed(1)
        pairs = batches * size
        pictures = torch.randn(pairs, 3, 32, 32, dtype=torch.float64, generator=random)
        texts = torch.randint(1, TEXT["vocab_size"], (pairs, TEXT["context_length"]), generator=random)
        columns = (pictures, texts, torch.arange(pairs) + 100) if with_ids else (pictures, texts)
        self._batches = list(zip(*(column.split(size) for column in columns), strict=True))
        if half is not None:
            self._batches = [tuple(column.chunk(2)[half] for column in batch) for batch in self._batches]
        self.num_batches, self.num_samples = batches, pairs

    def __iter__(self) -> Any:
        return iter(self._batches)


def train(
    model: torch.nn.Module, loss: torch.nn.Module, loader: Any, args: Namespace, epochs: int = 1
) -> torch.nn.Module:
    """A copy of a model after open_clip's own epochs with plain SGD."""
    model = copy.deepcopy(model)
    train_in_place(model, loss, loader, args, epochs)
    return model


def train_in_place(
    model: torch.nn.Module, loss: torch.nn.Module, loader: Any, args: Namespace, epochs: int = 1
) -> None:
    """The same with the model itself."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    data = {"train": Namespace(dataloader=loader, set_epoch=lambda epoch: None)}
    for epoch in range(epochs):
        train_one_epoch(model, data, loss, epoch, optimizer, None, None, None, args)


def weights_of_one_of_two(*accumulated: str) -> list[dict[str, torch.Tensor]]:
    """What their loop ends at in one of two processes, with half of each batch of 16, by --accum-freq."""
    rank, found = torch.distributed.get_rank(), []
    for number in accumulated:
        args = arguments("--accum-freq", number, rank=rank, world_size=2)
        model = torch.nn.parallel.DistributedDataParallel(clip())
        train_in_place(model, create_loss(args, **WEIGHTED), Loader(4, 16, half=rank), args)
        found.append(model.module.state_dict())
    return found


def run_script(folder: str, words: list[str]) -> None:
    """open_clip's own script on its synthetic data, with the weighted loss; prints how far that came."""
    from open_clip import add_model_config
    from open_clip_train import main

    text = {**TEXT, "vocab_size": 49408, "context_length": 77}
    described = {"embed_dim": 16, "vision_cfg": VISION, "text_cfg": text}
    (Path(folder) / "small.json").write_text(json.dumps(described), encoding="utf-8")
    add_model_config(folder)
    made = []
    main.create_loss = lambda args: made.append(create_loss(args)) or made[0]
    fixed = "--model small --dataset-type synthetic --train-num-samples 12 --batch-size 4 --workers 0"
    main.main([*fixed.split(), "--device", "cpu", "--precision", "fp32", "--logs", folder, *words])
    (loss,) = made
    print(loss.step, loss.config.total_steps, loss.last.progress)


if __name__ == "__main__":
    # each an attempt, the words of which are one argument
    for attempt in sys.argv[2:]:
        run_script(sys.argv[1], attempt.split())
