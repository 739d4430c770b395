"""sentence-transformers: the weighted loss as one of its losses, for text with text or image with text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import nn

from uwml_core.integrations.extras import require
from uwml_core.integrations.pairs import unpack_pairs
from uwml_core.losses import UWMLLoss
from uwml_core.weighting import UWMLConfig

require("sentence_transformers", extra="sentence-transformers")

_CITATION = """
@inproceedings{wei2020universal,
      title={Universal Weighting Metric Learning for Cross-Modal Matching},
      author={Wei, Jiwei and Xu, Xing and Yang, Yang and Ji, Yanli and Wang, Zheng and Shen, Heng Tao},
      booktitle={IEEE/CVF Conference on Computer Vision and Pattern Recognition},
      year={2020},
}
"""


class UWMLSentenceLoss(nn.Module):
    """``UWMLLoss`` over the embeddings of two columns, for ``SentenceTransformerTrainer``.

    With ``curve="uniform"`` and ``direction_mode="off"`` it is ``MultipleNegativesRankingLoss`` with
    ``directions=("query_to_doc", "doc_to_query")``, ``partition_mode="per_direction"`` and
    ``scale=1 / temperature``. It uses labels, which that loss ignores: pairs of equal label are no negatives
    of each other, so a column that says 1 for "similar" has to go. ``pack_pairs`` makes a label column that
    carries item ids, too.

    The schedule follows the trainer where its callbacks hold a ``UWMLCallback`` (of
    ``uwml_core.integrations.transformers``); without one give ``total_steps``, calls of the loss. Gradient
    accumulation gives no further negatives: each of its batches is a step of the loss by itself.

    Args:
        model: the ``SentenceTransformer``.
        config: a ``UWMLConfig`` or a mapping of its fields.
        **overrides: fields of ``UWMLConfig``; ``modalities`` are ``("query", "passage")`` unless given, so
            the directions are q2p and p2q.

    Attributes:
        model: the model, which the trainer replaces by its wrapped one.
        loss: the ``UWMLLoss``.

    Raises:
        ValueError: as ``UWMLLoss``.
    """

    def __init__(
        self,
        model: nn.Module,
        config: UWMLConfig | Mapping[str, Any] | None = None,
        **overrides: Any,
    ) -> None:
        super().__init__()
        self.model = model
        given = config.to_dict() if isinstance(config, UWMLConfig) else dict(config or {})
        self.loss = UWMLLoss({"modalities": ("query", "passage"), **given}, **overrides)

    def forward(
        self, sentence_features: Iterable[dict[str, torch.Tensor]], labels: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Loss of one batch.

        Args:
            sentence_features: model inputs of the two columns, row k of both being one true pair.
            labels: ``[batch]`` whole numbers, ``[batch, 3]`` from ``pack_pairs``, or None.

        Returns:
            The loss, a scalar.

        Raises:
            ValueError: for another number of columns, and as ``UWMLLoss``.
        """
        columns = list(sentence_features)
        if len(columns) != 2:
            raise ValueError(
                f"sentence_features has {len(columns)} columns; expected two, (anchor, positive): drop other "
                "columns, the rest of the batch already gives negatives"
            )
        first, second = (self.model(features)["sentence_embedding"] for features in columns)
        # the trainer switches its model to eval(), not its loss
        self.loss.train(self.model.training)
        value: torch.Tensor = self.loss(first, second, **unpack_pairs(labels)._asdict())
        return value

    def get_config_dict(self) -> dict[str, Any]:
        """Fields of the loss for the model card."""
        return self.loss.config.to_dict()

    @property
    def citation(self) -> str:
        """BibTeX entry for the model card."""
        return _CITATION
