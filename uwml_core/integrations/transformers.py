"""Hugging Face Trainer: the weighted loss for dual encoders, its schedule and its run log.

Gradient accumulation of the Trainer is plain accumulation: it adds no negatives, each of its batches is a
step of the loss's controller and memory, and the log shows the last of them. Batches need two pairs or more:
set ``dataloader_drop_last``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import nn

from uwml_core.integrations.extras import require
from uwml_core.integrations.pairs import pack_pairs, unpack_pairs
from uwml_core.losses import UWMLLoss

require("transformers", extra="transformers")

from transformers import TrainerCallback, default_data_collator  # noqa: E402

from uwml_core.integrations.trainer_callback import UWMLCallback, progress_of  # noqa: E402

__all__ = ["PairCollator", "UWMLCallback", "UWMLTrainerMixin", "compute_loss_func", "dual_encoder_loss"]


class PairCollator:
    """Carries item ids, labels and captions of a batch through the Trainer, as its ``labels``.

    Outside ``UWMLTrainerMixin`` set ``remove_unused_columns=False``, or the Trainer drops the columns.

    Args:
        collate: makes a batch of the other columns.
        item_id: column of the item ids, whole numbers.
        label: column of the labels; rows without it are labelled by their item.
        caption: column of the captions' indices; rows may lack it.

    Example:
        >>> rows = [{"item_id": item, "pixel_values": torch.zeros(3)} for item in (7, 8)]
        >>> PairCollator()(rows)["labels"].tolist()
        [[7, 7, -1], [8, 8, -1]]
    """

    def __init__(
        self,
        collate: Callable[[list[dict[str, Any]]], Mapping[str, Any]] = default_data_collator,
        *,
        item_id: str = "item_id",
        label: str = "label",
        caption: str = "caption",
    ) -> None:
        self._collate = collate
        self.columns = (item_id, label, caption)

    def __call__(self, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """One batch.

        Raises:
            ValueError: if a row has no item id.
        """
        item_id, label, caption = self.columns
        if missing := [k for k, row in enumerate(rows) if item_id not in row]:
            raise ValueError(
                f"row {missing[0]} has no {item_id!r}, only {', '.join(rows[missing[0]])}; expected it in "
                "each row, and remove_unused_columns=False in the training arguments"
            )
        ids = [row[item_id] for row in rows]
        labels = [row.get(label, row[item_id]) for row in rows]
        captions = [row.get(caption, -1) for row in rows]
        rest = [{name: row[name] for name in row if name not in self.columns} for row in rows]
        return {**self._collate(rest), "labels": pack_pairs(ids, labels, captions)}


def dual_encoder_loss(
    loss: UWMLLoss,
    outputs: Any,
    labels: Any,
    *,
    model: nn.Module | None = None,
    progress: float | None = None,
) -> torch.Tensor:
    """Loss of the outputs of a dual encoder.

    Args:
        loss: its modalities name the outputs: ``image_embeds`` and ``text_embeds`` for image and text.
        outputs: of the model, a mapping.
        labels: of ``PairCollator``, ``[batch]`` whole numbers, or None.
        model: its ``logit_scale`` and ``logit_bias``, as far as it has them, replace those of the loss.
        progress: optimizer steps done / total.

    Raises:
        ValueError: if an output is missing, and as ``UWMLLoss``.
    """
    names = [f"{modality}_embeds" for modality in loss.config.modalities]
    for name in names:
        if outputs.get(name) is None:
            raise ValueError(
                f"outputs has no {name}, only {', '.join(outputs)}; expected a dual encoder, and "
                "loss.modalities named as its outputs are"
            )
    scale, bias = (getattr(model, name, None) for name in ("logit_scale", "logit_bias"))
    value: torch.Tensor = loss(
        *(outputs[name] for name in names),
        None if scale is None else scale.exp(),
        bias,
        progress=progress,
        **unpack_pairs(labels)._asdict(),
    )
    return value


def compute_loss_func(loss: UWMLLoss, model: nn.Module | None = None) -> Callable[..., torch.Tensor]:
    """A function for ``Trainer(compute_loss_func=...)``, where the batches come from a ``PairCollator``.

    The Trainer leaves gradient accumulation to such a function: each batch counts by its share of the pairs
    of the optimizer step. It does not tell the function how far training is; a ``UWMLCallback`` does, or
    ``total_steps``, calls of the loss. Set ``label_names=["labels"]`` to get the loss in evaluations.

    Args:
        loss: without parameters of its own, as the Trainer's optimizer would not see them.
        model: as for ``dual_encoder_loss``.

    Raises:
        ValueError: if the loss has parameters; when called, for ``labels=None`` or ``nn.DataParallel``.
    """
    if any(True for _ in loss.parameters()):
        raise ValueError(
            "loss learns its own temperature, which this Trainer's optimizer does not see; expected one "
            "without parameters, or a Trainer with UWMLTrainerMixin"
        )

    def compute(outputs: Any, labels: Any, num_items_in_batch: Any = None) -> torch.Tensor:
        if labels is None or num_items_in_batch is None:
            raise ValueError("labels is None, so the step's pairs cannot be counted; expected a PairCollator")
        counted = torch.as_tensor(num_items_in_batch)
        if counted.numel() != 1:
            raise ValueError(
                f"num_items_in_batch has {counted.numel()} values; expected one process per GPU (torchrun), "
                "not nn.DataParallel"
            )
        loss.train(torch.is_grad_enabled())
        value = dual_encoder_loss(loss, outputs, labels, model=model)
        share: float = labels.numel() / counted.item()
        return value * share

    return compute


class UWMLTrainerMixin:
    """Makes a Trainer of dual encoders use the weighted loss: ``class MyTrainer(UWMLTrainerMixin, Trainer)``.

    The schedule follows the optimizer steps, evaluation uses the same loss, and each batch of an accumulated
    step counts the same. A ``UWMLCallback`` among the callbacks is closed as finished, stopped or failed.

    Args:
        *args: of the Trainer.
        uwml_loss: the loss; ``UWMLLoss()`` when None.
        model_scale: use the model's ``logit_scale`` and ``logit_bias``, as far as it has them, in place of
            the loss's temperature.
        **kwargs: of the Trainer.

    Raises:
        ValueError: for a ``compute_loss_func`` beside it, or a loss with parameters in several processes.
    """

    # a mean over the batch: the Trainer divides it by the number of batches of the step
    loss_is_scaled_for_ga = False

    def __init__(
        self, *args: Any, uwml_loss: UWMLLoss | None = None, model_scale: bool = True, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        trainer: Any = self
        if trainer.compute_loss_func is not None:
            raise ValueError("compute_loss_func has no effect beside UWMLTrainerMixin; expected one of them")
        self.uwml_loss = (UWMLLoss() if uwml_loss is None else uwml_loss).to(trainer.args.device)
        self._model_scale = model_scale
        # evaluation then asks for the loss, although the model has no labels
        trainer.can_return_loss = True
        if any(True for _ in self.uwml_loss.parameters()):
            if trainer.args.world_size > 1:
                raise ValueError(
                    "uwml_loss learns its own temperature, which several processes would not share; expected "
                    "one without parameters, and a model with logit_scale"
                )
            trainer.add_callback(_ZeroGradient(self.uwml_loss))

    def compute_loss(
        self, model: nn.Module, inputs: dict[str, Any], return_outputs: bool = False, **ignored: Any
    ) -> Any:
        """The loss of one batch, which the Trainer calls."""
        trainer: Any = self
        inputs = dict(inputs)
        labels = inputs.pop("labels", None)
        outputs = model(**inputs)
        self.uwml_loss.train(model.training)
        value = dual_encoder_loss(
            self.uwml_loss,
            outputs,
            labels,
            model=trainer.model if self._model_scale else None,
            progress=progress_of(trainer.state),
        )
        return (value, outputs) if return_outputs else value

    def create_optimizer(self, *args: Any, **kwargs: Any) -> Any:
        """The Trainer's optimizer, with the loss's own parameters where it has any."""
        base: Any = super()
        optimizer = base.create_optimizer(*args, **kwargs)
        known = {id(p) for group in optimizer.param_groups for p in group["params"]}
        if own := [p for p in self.uwml_loss.parameters() if id(p) not in known]:
            optimizer.add_param_group({"params": own, "weight_decay": 0.0})
        return optimizer

    def train(self, resume_from_checkpoint: str | bool | None = None, *args: Any, **kwargs: Any) -> Any:
        """Train, and close the run log of a ``UWMLCallback`` whatever happens."""
        base: Any = super()
        trainer: Any = self
        callbacks = [c for c in trainer.callback_handler.callbacks if isinstance(c, UWMLCallback)]
        for callback in callbacks:
            callback.resume_from = resume_from_checkpoint
        try:
            return base.train(resume_from_checkpoint, *args, **kwargs)
        except BaseException as error:
            for callback in callbacks:
                callback.steps.close(error)
            raise

    def _set_signature_columns_if_needed(self) -> None:
        base: Any = super()
        base._set_signature_columns_if_needed()
        trainer: Any = self
        kept = getattr(trainer.data_collator, "columns", ())
        trainer._signature_columns += [name for name in kept if name not in trainer._signature_columns]


class _ZeroGradient(TrainerCallback):  # type: ignore[misc]
    """The Trainer forgets the gradients of its model only."""

    def __init__(self, loss: UWMLLoss) -> None:
        self._loss = loss

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._loss.zero_grad()
