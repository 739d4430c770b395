"""Captions as bags of hashed words and character n-grams."""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

BUCKETS = 2**14
_NGRAMS = (3, 4)
# Han and kana: scripts that put no spaces between words.
_SPACELESS = (
    "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
_TOKEN = re.compile(rf"(?P<spaceless>[{_SPACELESS}]+)|[^\W{_SPACELESS}]+|[^\w\s]+")


def hashed_features(text: str) -> list[int]:
    """Buckets of the words of a text and of their character n-grams (words marked ``<word>``).

    A phrase in Han or kana, where one or two signs are a word, gives its signs and pairs of signs instead.
    The hash is CRC-32 of UTF-8, the same in every process and on every machine. Case is folded; a text
    without any word or sign is one empty word.

    Example:
        >>> hashed_features("Red Heart") == hashed_features("red  heart")
        True
    """
    tokens = [(match["spaceless"] is not None, match[0]) for match in _TOKEN.finditer(text.casefold())]
    return [
        bucket
        for spaceless, token in tokens or [(False, "")]
        for bucket in (_phrase_features(token) if spaceless else _word_features(token))
    ]


@lru_cache(maxsize=100_000)
def _word_features(word: str) -> tuple[int, ...]:
    marked = f"<{word}>"
    grams = [marked[k : k + n] for n in _NGRAMS for k in range(len(marked) - n + 1)]
    # The prefix keeps a whole word apart from an n-gram of the same letters.
    return tuple(map(_bucket, ["w:" + word, *grams]))


@lru_cache(maxsize=100_000)
def _phrase_features(phrase: str) -> tuple[int, ...]:
    return tuple(map(_bucket, [*phrase, *map("".join, pairwise(phrase))]))


def _bucket(part: str) -> int:
    return zlib.crc32(part.encode("utf-8", "surrogatepass")) % BUCKETS


Texts = tuple[torch.Tensor, ...]


def part_of(texts: Texts, part: slice) -> Texts:
    """Some of the texts that a table gave: ragged buckets with their offsets, or rows of other tensors."""
    if texts[0].ndim > 1:
        return tuple(values[part] for values in texts)
    buckets, offsets = texts
    ends = torch.cat([offsets, offsets.new_tensor([len(buckets)])])
    first = ends[part.start]
    return buckets[first : ends[part.stop]], offsets[part] - first


class FeatureTable:
    """Precomputed features of many texts, taken by number.

    Args:
        features: float32 ``[texts, D]``.
    """

    def __init__(self, features: npt.NDArray[np.floating[Any]]) -> None:
        self._features = features

    def __len__(self) -> int:
        return len(self._features)

    @property
    def size(self) -> int:
        """Numbers of a feature, D."""
        return int(self._features.shape[1])

    def take(self, numbers: npt.NDArray[np.int64]) -> Texts:
        """Features of some texts, float32 ``[n, D]``."""
        return (torch.from_numpy(self._features[numbers].astype(np.float32, copy=False)),)


class TokenTable:
    """Tokens of many texts, as a tokenizer of another library gives them.

    Args:
        tokens: tensors ``[texts, L]``; of a second one, a mask, columns that are 0 throughout are left out.
    """

    def __init__(self, tokens: Texts) -> None:
        self._tokens = tokens

    def __len__(self) -> int:
        return len(self._tokens[0])

    def take(self, numbers: npt.NDArray[np.int64]) -> Texts:
        """Tokens of some texts, each tensor ``[n, longest]``."""
        taken = tuple(values[torch.from_numpy(numbers)] for values in self._tokens)
        if len(taken) == 1:
            return taken
        longest = int(taken[1].any(dim=0).nonzero().max()) + 1
        return tuple(values[:, :longest] for values in taken)


class TextTable:
    """Features of many texts, ragged, ready to be taken by number.

    Args:
        texts: the texts, at least one.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        features = [hashed_features(text) for text in texts]
        self._flat = np.fromiter((bucket for bag in features for bucket in bag), dtype=np.int64)
        self._lengths = np.array([len(bag) for bag in features], dtype=np.int64)
        self._starts = np.cumsum(self._lengths) - self._lengths

    def __len__(self) -> int:
        return len(self._lengths)

    def take(self, numbers: npt.NDArray[np.int64]) -> tuple[torch.Tensor, torch.Tensor]:
        """Features of some texts as ``EmbeddingBag`` wants them.

        Args:
            numbers: int64 [n], which texts.

        Returns:
            Buckets, int64 [total], and where each text's begin, int64 [n].
        """
        lengths = self._lengths[numbers]
        offsets = np.cumsum(lengths) - lengths
        places = np.arange(lengths.sum()) + np.repeat(self._starts[numbers] - offsets, lengths)
        return torch.from_numpy(self._flat[places]), torch.from_numpy(offsets)
