"""pytorch-metric-learning: the weighted loss as one of its losses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from uwml_core.integrations.extras import require
from uwml_core.losses import StepDiagnostics, UWMLLoss
from uwml_core.losses.checks import rows_text
from uwml_core.weighting import UWMLConfig

require("pytorch_metric_learning", extra="pytorch-metric-learning")

from pytorch_metric_learning.distances import CosineSimilarity  # noqa: E402
from pytorch_metric_learning.losses import BaseMetricLossFunction  # noqa: E402

_STATS = ("gap", "direction_weight", "ess", "clamped_share", "accuracy")


class UWMLMetricLoss(BaseMetricLossFunction):  # type: ignore[misc]
    """``UWMLLoss`` between two modalities under the library's call, reducers and recorded statistics.

    Row k of ``embeddings`` and row k of ``ref_emb`` are one pair, so both labels of it are the same. Without
    ``ref_emb`` the rows of ``embeddings`` are one modality and then, in the same order, the other, as
    ``TwoStreamMetricLoss`` stacks them.

    Labels mean something else than elsewhere in the library: the positive of an anchor is its own partner
    alone; other rows of its label are neither positives nor negatives. Where all labels differ, a uniform
    curve without direction weights is the mean of ``NTXentLoss`` over both ways round.

    The weights already normalize over the batch, so a reducer gets one finished number. The library's
    ``CrossBatchMemory`` and ``SelfSupervisedLoss`` take none but their own losses; ``memory_batches`` and
    ``ref_emb`` do the same here. ``DistributedLossWrapper`` works, with ``ref_emb``.

    Args:
        config: a ``UWMLConfig``, a mapping of its fields, or None for the defaults.
        ignore_indices_tuple: take no notice of mined tuples, which are refused otherwise: this loss weighs
            all pairs of the batch. ``TwoStreamMetricLoss`` makes tuples even without a miner.
        reducer, collect_stats, embedding_regularizer, embedding_reg_weight: as for every loss there.
        **overrides: fields of ``UWMLConfig`` that replace those of ``config``.

    Example:
        >>> loss = UWMLMetricLoss(total_steps=100)
        >>> images, texts, labels = torch.eye(4), torch.eye(4), torch.arange(4)
        >>> value = loss(images, labels, ref_emb=texts, ref_labels=labels)
        >>> loss.last.gap.tolist()
        [1.0, 1.0]
    """

    def __init__(
        self,
        config: UWMLConfig | Mapping[str, Any] | None = None,
        *,
        ignore_indices_tuple: bool = False,
        reducer: Any = None,
        collect_stats: bool | None = None,
        embedding_regularizer: Any = None,
        embedding_reg_weight: float = 1.0,
        **overrides: Any,
    ) -> None:
        super().__init__(
            reducer=reducer,
            collect_stats=collect_stats,
            embedding_regularizer=embedding_regularizer,
            embedding_reg_weight=embedding_reg_weight,
        )
        # several processes are the business of DistributedLossWrapper, as with every loss there
        self.uwml = UWMLLoss(config, distributed=False, **overrides)
        self.ignore_indices_tuple = ignore_indices_tuple
        stats = [f"{name}_{direction}" for name in _STATS for direction in self.uwml.directions]
        self.add_to_recordable_attributes(list_of_names=["loss", *stats], is_stat=True)

    @property
    def last(self) -> StepDiagnostics | None:
        """Diagnostics of the latest call, None before the first."""
        return self.uwml.last

    def get_default_distance(self) -> CosineSimilarity:
        """The similarity that the loss computes."""
        return CosineSimilarity()

    def compute_loss(
        self,
        embeddings: torch.Tensor,
        labels: torch.Tensor | None,
        indices_tuple: Any,
        ref_emb: torch.Tensor,
        ref_labels: torch.Tensor | None,
    ) -> dict[str, dict[str, Any]]:
        """The loss of one batch, as the library's ``forward`` asks for it.

        Raises:
            ValueError: for tuples, for partners that do not fit in number or label, and what ``UWMLLoss``
                refuses; ``image_features`` is then ``embeddings`` and ``text_features`` is ``ref_emb``.
        """
        if indices_tuple is not None and not self.ignore_indices_tuple:
            raise ValueError(
                "indices_tuple was given, but this loss weighs all pairs of the batch; expected None, or "
                "ignore_indices_tuple=True"
            )
        if ref_emb is embeddings:
            embeddings, labels, ref_emb, ref_labels = _halves(embeddings, labels)
        _check_partners(embeddings, labels, ref_emb, ref_labels)
        loss = self.uwml(embeddings, ref_emb, labels=labels)
        if self.collect_stats:
            for name, value in self.uwml.last_logs.items():
                if name in self._record_these_stats:
                    setattr(self, name, value)
        return {"loss": {"losses": loss, "indices": None, "reduction_type": "already_reduced"}}


def _halves(
    embeddings: torch.Tensor, labels: torch.Tensor | None
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    if labels is None or len(embeddings) % 2:
        raise ValueError(
            f"ref_emb is missing, and embeddings has {len(embeddings)} rows; expected the other modality as "
            "ref_emb, or labels and an even number of rows, first one modality, then the other"
        )
    first, second = embeddings.chunk(2)
    return first, labels[: len(first)], second, labels[len(first) :]


def _check_partners(
    embeddings: torch.Tensor,
    labels: torch.Tensor | None,
    ref_emb: torch.Tensor,
    ref_labels: torch.Tensor | None,
) -> None:
    if ref_emb.shape != embeddings.shape:
        raise ValueError(
            f"ref_emb has shape {tuple(ref_emb.shape)} but embeddings has {tuple(embeddings.shape)}; "
            "expected the same shape, row k of both being one pair"
        )
    if labels is None or ref_labels is None or ref_labels is labels:
        return
    different = labels != ref_labels
    if different.any():
        raise ValueError(
            f"ref_labels differs from labels in {rows_text(different)}; expected the same label for row k of "
            "both, which are one pair"
        )
