"""A run from a model that is trained already: what its embeddings, or its similarities alone, can tell.

Shapes: P pictures, C captions, D dimensions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch

from uwml_core.data.arrays import read_embeddings, read_similarities
from uwml_core.data.embedded import EmbeddedPairs
from uwml_core.runlog.writer import RunLogger
from uwml_core.training.evaluation import CaptionCandidates, Metric, Retrieval, caption_candidates, rank_both
from uwml_core.training.neighbors import NeighborSearch
from uwml_core.training.probes import probe_rows
from uwml_core.training.retrieval_log import RetrievalLog
from uwml_core.weighting import direction_names

# Nothing is embedded here, so the pool may be larger than while training.
POOL = 10_000

Ints = npt.NDArray[np.int64]


class Similarities(Protocol):
    """Similarities of rows of both arrays, computed or looked up."""

    def between(self, images: Ints, texts: Ints) -> torch.Tensor:
        """Similarity of each of these image rows to each of these text rows, [P, C]."""


@dataclass(frozen=True, eq=False)
class Embeddings:
    """Unit-norm embeddings ``[images, D]`` and ``[texts, D]`` of a finished model."""

    images: torch.Tensor
    texts: torch.Tensor

    def between(self, images: Ints, texts: Ints) -> torch.Tensor:
        """Cosine similarities."""
        return self.images[images] @ self.texts[texts].T


@dataclass(frozen=True, eq=False)
class SimilarityMatrix:
    """Similarities ``[images, texts]`` that another program computed, on disk."""

    values: npt.NDArray[np.floating[Any]]

    def between(self, images: Ints, texts: Ints) -> torch.Tensor:
        """What the matrix holds, as float32, float64 for float64."""
        part = self.values[images[:, None], texts[None, :]]
        return torch.from_numpy(part.astype(np.float64 if part.dtype.itemsize == 8 else np.float32))


def read_model(
    images: Path | None, texts: Path | None, similarities: Path | None
) -> tuple[Embeddings | SimilarityMatrix, tuple[int, int]]:
    """Read what a finished model left: two .npy of embeddings, or one of similarities.

    Returns:
        The model, and how many images and texts there are.

    Raises:
        ValueError: unless one or the other is given, the files are sound and the embeddings of one space.
    """
    if images is not None and texts is not None and similarities is None:
        return _embeddings(images, texts)
    if similarities is not None and images is None and texts is None:
        matrix = read_similarities(similarities)
        return SimilarityMatrix(matrix), (matrix.shape[0], matrix.shape[1])
    raise ValueError("unclear what to diagnose; expected --images and --texts, or --similarities alone")


def _embeddings(images: Path, texts: Path) -> tuple[Embeddings, tuple[int, int]]:
    first, second = read_embeddings(images), read_embeddings(texts)
    dims = first.shape[1], second.shape[1]
    if dims[0] != dims[1]:
        raise ValueError(
            f"{texts.name} has dim {dims[1]} and {images.name} {dims[0]}; expected embeddings of one space"
        )
    dtype = np.promote_types(first.dtype, second.dtype)
    both = (torch.from_numpy(part.astype(dtype, copy=False)) for part in (first, second))
    return Embeddings(*both), (len(first), len(second))


@dataclass(frozen=True, kw_only=True)
class Diagnosis:
    """A run that was made: its folder, and the metrics of each split."""

    path: Path
    metrics: Mapping[str, list[Metric]]


def diagnose(
    model: Similarities,
    pairs: EmbeddedPairs,
    *,
    root: Path,
    run_id: str | None = None,
    name: str | None = None,
    modalities: tuple[str, str] = ("image", "text"),
    thumbnails: list[bytes | None] | None = None,
    described: Mapping[str, Any] | None = None,
) -> Diagnosis:
    """Write a run with one snapshot: items, retrieval of each split, nearest wrong candidates, embeddings.

    Everything is exact; the similarities are looked at in blocks of some queries by all candidates.

    Args:
        model: ``Embeddings``, or a ``SimilarityMatrix``, which gives no snapshot, so no map.
        pairs: what belongs to what.
        root: logs folder.
        run_id, name, modalities: as for ``RunLogger``.
        thumbnails: of each image, if pictures are known.
        described: where the arrays come from, for run.json.

    Raises:
        ValueError: for a taken run id or equal direction names.
        TelemetryError: if the run cannot be written.
    """
    direction_names(modalities)  # equal names end here, before there is a folder
    config = {"finished_model": dict(described or {})}
    with RunLogger(root, run_id, name=name, modalities=modalities, config=config, strict=True) as logger:
        _log_items(logger, pairs, thumbnails)
        log = RetrievalLog(logger=logger, dataset=pairs, step=0, epoch=0)
        metrics = {split: _evaluate(log, model, pairs, split) for split in _evaluated(pairs)}
        _log_probes(log, model, pairs, modalities)
        return Diagnosis(path=logger.path, metrics=metrics)


def _log_items(logger: RunLogger, pairs: EmbeddedPairs, thumbnails: list[bytes | None] | None) -> None:
    logger.log_items(
        item_ids=pairs.item_ids.tolist(),
        item_keys=pairs.item_keys,
        labels=pairs.labels.tolist(),
        captions=pairs.captions if pairs.worded else [[]] * len(pairs.captions),
        groups=pairs.groups,
        splits=pairs.splits,
        thumbnails=thumbnails,
        paths=pairs.pictures,
    )
    logger.log_event("finished_model", f"made from a finished model, {len(pairs.item_ids)} images")


def _splits(pairs: EmbeddedPairs) -> list[str]:
    return list(dict.fromkeys(pairs.splits))


def _evaluated(pairs: EmbeddedPairs) -> list[str]:
    # what the model was trained on is large and says little, unless there is nothing else
    splits = _splits(pairs)
    return [split for split in splits if split != "train"] or splits


def _evaluate(log: RetrievalLog, model: Similarities, pairs: EmbeddedPairs, split: str) -> list[Metric]:
    rows = pairs.rows(split)
    candidates = caption_candidates(pairs, rows)
    return log.retrieval(split, rows, candidates, _ranks(model, pairs, rows, candidates))


def _ranks(
    model: Similarities, pairs: EmbeddedPairs, rows: Ints, candidates: CaptionCandidates
) -> tuple[Retrieval, Retrieval]:
    texts = pairs.texts_of(candidates.rows, candidates.captions)
    return rank_both(
        lambda part: model.between(rows[part], texts),
        lambda part: model.between(rows, texts[part]).T,
        pairs.labels[rows],
        candidates,
    )


def _log_probes(
    log: RetrievalLog, model: Similarities, pairs: EmbeddedPairs, modalities: tuple[str, str]
) -> None:
    chosen = {split: probe_rows(pairs, pairs.rows(split)) for split in _splits(pairs)}
    probes = np.concatenate(list(chosen.values()))
    splits = [split for split, rows in chosen.items() for _ in rows]
    search = NeighborSearch(pairs, probes, pairs.item_ids, POOL)
    images, texts = search.pool, pairs.texts_of(search.pool, np.zeros_like(search.pool))
    own = [model.between(images[k : k + 1], texts[k : k + 1])[0, 0] for k in range(len(probes))]
    n = len(probes)
    nearest = search.find(
        lambda part, places: model.between(images[:n][part], texts[places.numpy()]),
        lambda part, places: model.between(images[places.numpy()], texts[:n][part]).T,
        torch.stack(own),
    )
    log.neighbors(probes, splits, nearest)
    if isinstance(model, Embeddings):
        log.snapshot(probes, splits, modalities, model.images[probes], model.texts[texts[:n]])
