"""open_clip: the weighted loss where its training script makes its own.

``create_loss`` takes the place of ``open_clip.create_loss``; what it returns is called as the losses of
open_clip are, by its unchanged ``train_one_epoch``. That loop has no callbacks, and its batches carry no ids:
a loader of ``(images, texts, item_ids)`` wrapped in ``LoggedBatches`` gives it a run log.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch import distributed, nn

from uwml_core.integrations.extras import require
from uwml_core.losses import StepDiagnostics, UWMLLoss

require("open_clip", extra="open-clip")


def create_loss(args: Any, **overrides: Any) -> UWMLLoss | CoCaUWMLLoss:
    """The weighted loss for a parsed command line of open_clip.

    ``--siglip`` takes the sigmoid loss as base. A CoCa model keeps its captioning loss beside the weighted
    one. ``--accum-freq k`` makes k calls one step. Embeddings of all processes are gathered with gradient,
    whatever ``--local-loss`` and ``--gather-with-grad`` say.

    open_clip's checkpoints do not hold its loss: with ``--resume`` the schedule goes on at the epoch of the
    checkpoint, and the direction weights start at a half again.

    Args:
        args: what ``open_clip_train.params.parse_args`` gives.
        **overrides: fields of ``UWMLConfig``. ``total_steps`` follows from ``--train-num-samples`` where
            that is given, up to the loader's rounding.

    Raises:
        ValueError: for distillation, Horovod, or several processes without ``torch.distributed``.
    """
    _refuse_the_impossible(args)
    settings = {"accumulate_batches": args.accum_freq, "total_steps": _planned_steps(args)}
    if args.siglip:
        settings["base"] = "sigmoid"
    loss = UWMLLoss(**{**settings, **overrides})
    _continue_schedule(loss, args)
    if "coca" not in args.model.lower():
        return loss
    return CoCaUWMLLoss(
        loss,
        caption_loss_weight=args.coca_caption_loss_weight,
        clip_loss_weight=args.coca_contrastive_loss_weight,
    )


def _refuse_the_impossible(args: Any) -> None:
    if args.distill:
        raise ValueError(
            "args.distill=True cannot be combined with the weighted loss; expected a run without "
            "distill_model and distill_pretrained"
        )
    if args.horovod:
        raise ValueError("args.horovod=True is not supported; expected torch.distributed, as under torchrun")
    started = distributed.is_available() and distributed.is_initialized()
    if args.world_size > 1 and not started:
        raise ValueError(
            f"args.world_size={args.world_size} but torch.distributed is not initialized; expected "
            "init_distributed_device(args) before the loss is made"
        )


def _planned_steps(args: Any) -> int | None:
    if not args.train_num_samples:
        return None
    per_step: int = args.batch_size * args.world_size * args.accum_freq
    per_epoch: int = args.train_num_samples // per_step
    return max(1, per_epoch * int(args.epochs))


def _continue_schedule(loss: UWMLLoss, args: Any) -> None:
    total = loss.config.total_steps
    if args.resume is None or total is None:
        return
    from open_clip_train.file_utils import pt_load

    # a file of weights alone is a new training; no tensor is needed to tell
    epochs = pt_load(args.resume, map_location="meta").get("epoch", 0)
    loss.set_extra_state({**loss.get_extra_state(), "step": total * epochs // args.epochs})


class CoCaUWMLLoss(nn.Module):
    """CoCa's captioning loss as it is, with the weighted loss in place of its contrastive one.

    Args:
        contrastive: the weighted loss.
        caption_loss_weight, clip_loss_weight: factors of the two.
        pad_id: token that the captioning loss skips.

    Reference:
        J. Yu et al., CoCa: Contrastive Captioners are Image-Text Foundation Models, TMLR 2022.
    """

    def __init__(
        self, contrastive: UWMLLoss, *, caption_loss_weight: float, clip_loss_weight: float, pad_id: int = 0
    ) -> None:
        from open_clip import CoCaLoss

        super().__init__()
        self.contrastive, self.clip_loss_weight = contrastive, clip_loss_weight
        self.captioning = CoCaLoss(caption_loss_weight, clip_loss_weight=0, pad_id=pad_id)

    @property
    def last(self) -> StepDiagnostics | None:
        """Diagnostics of the weighted loss."""
        return self.contrastive.last

    def forward(  # noqa: PLR0917  (the order of CoCaLoss)
        self,
        image_features: torch.Tensor,
        text_features: torch.Tensor,
        logits: torch.Tensor,
        labels: torch.Tensor,
        logit_scale: torch.Tensor,
        output_dict: bool = False,
    ) -> tuple[torch.Tensor, torch.Tensor] | dict[str, torch.Tensor]:
        """Both losses of a batch.

        Args:
            image_features, text_features: ``[batch, dim]``.
            logits: ``[batch, length, words]`` of the decoder.
            labels: ``[batch, length]`` tokens that it was to predict.
            logit_scale: 1 / temperature.
            output_dict: return them by name.

        Returns:
            Contrastive and captioning loss, or ``{"contrastive_loss": ..., "caption_loss": ...}``.
        """
        losses = self.captioning(image_features, text_features, logits, labels, logit_scale, output_dict=True)
        contrastive = self.contrastive(image_features, text_features, logit_scale)
        losses["contrastive_loss"] = self.clip_loss_weight * contrastive
        return losses if output_dict else (losses["contrastive_loss"], losses["caption_loss"])


class LoggedBatches:
    """Batches for open_clip's loop, which gets images and texts; their ids go to the loss and the run log.

    One row of ``steps`` per optimizer step, whatever ``accum_freq`` is; put it in place of
    ``data["train"].dataloader``.

    Args:
        dataloader: yields ``(images, texts, item_ids)``, ids as int64 ``[batch]``; has ``num_batches`` and
            ``num_samples``, as open_clip's loaders have.
        loss: made by ``create_loss``; of a CoCa loss its ``contrastive``.
        log: a ``RunLogger``.
    """

    def __init__(self, dataloader: Any, loss: UWMLLoss, log: Any) -> None:
        self.num_batches: int = dataloader.num_batches
        self.num_samples: int = dataloader.num_samples
        self._dataloader: Iterable[Any] = dataloader
        self._log, self._step = log, loss.step
        self._item_ids: list[torch.Tensor] = []
        loss.register_forward_pre_hook(self._give_ids, with_kwargs=True)
        loss.register_forward_hook(self._log_step)

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        # what did not fill an optimizer step at the end of an epoch is dropped, as the loop does
        self._item_ids.clear()
        for images, texts, item_ids in self._dataloader:
            self._item_ids.append(item_ids)
            yield images, texts

    def _give_ids(self, loss: UWMLLoss, args: Any, kwargs: Any) -> tuple[Any, Any]:
        return args, {**kwargs, "item_ids": torch.cat(self._item_ids)}

    def _log_step(self, loss: UWMLLoss, args: Any, output: Any) -> None:
        if loss.step == self._step:
            return
        done, self._step = self._step, loss.step
        epoch = done // max(1, self.num_batches // loss.config.accumulate_batches)
        self._log.log_step(loss.last, item_ids=torch.cat(self._item_ids), step=done, epoch=epoch)
        self._item_ids.clear()
