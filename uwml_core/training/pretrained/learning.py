"""Named encoders that learn on: a corpus of what they take, and the encoders themselves."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch.nn import functional as F

from uwml_core.data import PairDataset
from uwml_core.data.pictures import decode
from uwml_core.data.streamed import StreamedPictures
from uwml_core.training.batches import Corpus
from uwml_core.training.fine_tuned import Backbone
from uwml_core.training.pretrained import images, texts
from uwml_core.training.pretrained.features import loaded
from uwml_core.training.pretrained.images import ImageEncoder
from uwml_core.training.pretrained.names import IMAGE_LIBRARIES, TEXT_LIBRARIES, check_encoder
from uwml_core.training.pretrained.texts import TextEncoder, Tokens
from uwml_core.training.text import TokenTable

_CHUNK = 1024

Ints = npt.NDArray[np.int64]
_FIRST: Ints = np.zeros(1, np.int64)


def fine_tuned_corpus(dataset: PairDataset, image_encoder: str | None, text_encoder: str | None) -> Corpus:
    """Pictures as an encoder wants them, decoded for each batch, and texts as tokens.

    Args:
        dataset: the data.
        image_encoder, text_encoder: names for ``check_encoder``; None leaves that side as it is.

    Raises:
        ValueError: for an unknown name, data without pictures, or an encoder that cannot be loaded.
    """
    corpus, backbones = Corpus(dataset), [None, None]  # type: tuple[Corpus, list[Backbone | None]]
    if image_encoder is not None:
        named = check_encoder(image_encoder, IMAGE_LIBRARIES, "model.image_encoder")
        if dataset.encoded is None:
            raise ValueError(
                f"model.image_encoder={image_encoder!r} needs pictures; {dataset.name} has features alone"
            )
        seeing: ImageEncoder = loaded(images.load, *named, image_encoder)
        prepare = _preparing(dataset, dataset.encoded, seeing)
        corpus = corpus.prepared(prepare)
        backbones[0] = Backbone(module=seeing.module, embed=seeing.embed, example=(prepare(_FIRST),))
    if text_encoder is not None:
        named = check_encoder(text_encoder, TEXT_LIBRARIES, "model.text_encoder")
        reading: TextEncoder = loaded(texts.load, *named, text_encoder)
        table = TokenTable(_tokens(reading, corpus.distinct_texts))
        corpus = corpus.with_texts(table)
        backbones[1] = Backbone(module=reading.module, embed=reading.embed, example=table.take(_FIRST))
    corpus.backbones = (backbones[0], backbones[1])
    return corpus


def _preparing(
    dataset: PairDataset, encoded: Sequence[Sequence[bytes]], encoder: ImageEncoder
) -> Callable[[Ints], torch.Tensor]:
    stream = StreamedPictures(dataset.name, dataset.item_keys, encoded, clips=True)

    def prepared(frames: Sequence[bytes]) -> torch.Tensor:
        return torch.stack([encoder.prepare(decode(frame)) for frame in frames])

    def prepare(rows: Ints) -> torch.Tensor:
        pixels = torch.stack(stream.each(rows, prepared))
        return pixels if dataset.modality == "video" else pixels[:, 0]

    return prepare


def _tokens(encoder: TextEncoder, captions: Sequence[str]) -> Tokens:
    """Tokens of all texts, padded with 0 to the longest."""
    parts = [encoder.tokenize(captions[start : start + _CHUNK]) for start in range(0, len(captions), _CHUNK)]
    longest = max(part[0].shape[1] for part in parts)
    padded = ([F.pad(values, (0, longest - values.shape[1])) for values in part] for part in parts)
    return tuple(torch.cat(columns) for columns in zip(*padded, strict=True))
