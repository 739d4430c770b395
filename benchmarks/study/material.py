"""What the study trains on: both sample sets, from scratch or after frozen encoders, wrong pairs or none."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from uwml_core.data import PairDataset, open_data, swap_captions
from uwml_core.data.features import FeatureRows
from uwml_core.training.batches import Corpus
from uwml_core.training.evaluation import CaptionCandidates, caption_candidates
from uwml_core.training.pretrained.features import picture_features, text_features
from uwml_core.training.sick.data import small

# The rows of each set: of the pictures one style, so that a training takes seconds.
SETS = {"image": ("emoji_pairs", "source=noto"), "video": ("animated_emoji_pairs", None)}
ENCODERS = ("frozen", "scratch", "tiny")
IMAGE_ENCODER, TEXT_ENCODER = "efficientnet-lite0", "minilm"

Floats = npt.NDArray[np.floating[Any]]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Material:
    """One set with one sort of encoders.

    Attributes:
        dataset: the clean pairs; features stand for the pictures where the encoder is frozen.
        encode_texts: features of texts that occur in it; None where the encoder takes the words.
    """

    dataset: PairDataset
    encode_texts: Callable[[Sequence[str]], Floats] | None = None

    def corpus(self, noise: float, seed: int) -> Corpus:
        """The pairs with this share of the training captions swapped, the same ones for every method."""
        changed = swap_captions(self.dataset, noise, seed)
        return Corpus(changed, self.encode_texts)

    def wrong(self, corpus: Corpus) -> Ints:
        """Item ids of the rows that have captions which are not theirs, int64."""
        pairs = zip(corpus.dataset.captions, self.dataset.captions, strict=True)
        return self.dataset.item_ids[[not set(now) <= set(before) for now, before in pairs]]

    @cached_property
    def clean(self) -> Corpus:
        """The pairs as they are, which every evaluation uses."""
        return self.corpus(0.0, 0)

    @cached_property
    def candidates(self) -> dict[str, CaptionCandidates]:
        """The captions to rank, by split."""
        return {
            split: caption_candidates(self.dataset, self.dataset.rows(split)) for split in ("val", "test")
        }


@cache
def material(modality: str, encoder: str) -> Material:
    """Load a set; features of frozen encoders come from the cache folder once they were computed.

    Args:
        modality: a key of ``SETS``.
        encoder: one of ``ENCODERS``; ``tiny`` is from scratch on a few pictures of 16 pixels.
    """
    name, only = SETS[modality]
    dataset = open_data(name, only=only)
    if encoder == "scratch":
        return Material(dataset=dataset)
    if encoder == "tiny":
        return Material(dataset=_with_test(small(dataset)))
    # of the whole file, whose rows the item ids are
    features = np.array(picture_features(open_data(name), IMAGE_ENCODER))
    dataset = dataclasses.replace(dataset, features=FeatureRows([features], dataset.item_ids))
    return Material(dataset=dataset, encode_texts=_text_lookup())


@cache
def _text_lookup() -> Callable[[Sequence[str]], Floats]:
    # the captions of the pictures hold those of the clips; their order does not change with what is swapped
    captions = open_data("emoji_pairs").captions
    texts = list(dict.fromkeys(text for row in captions for text in row))
    places = {text: place for place, text in enumerate(texts)}
    values = np.array(text_features(texts, TEXT_ENCODER))
    return lambda wanted: values[[places[text] for text in wanted]]


def _with_test(dataset: PairDataset) -> PairDataset:
    """Half of the validation rows, named test."""
    splits = list(dataset.splits)
    for row in dataset.rows("val")[1::2]:
        splits[row] = "test"
    return dataclasses.replace(dataset, splits=splits)
