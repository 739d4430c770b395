"""Captions as bags of hashed words and character n-grams."""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import torch

BUCKETS = 2**14
_NGRAMS = (3, 4)
_TOKEN = re.compile(r"\w+|[^\w\s]+")


def hashed_features(text: str) -> list[int]:
    """Buckets of the words of a text and of their character n-grams (words marked ``<word>``).

    The hash is CRC-32 of UTF-8, the same in every process and on every machine. Case is folded; a text
    without any word or sign is one empty word.

    Example:
        >>> hashed_features("Red Heart") == hashed_features("red  heart")
        True
    """
    words = _TOKEN.findall(text.casefold()) or [""]
    return [bucket for word in words for bucket in _word_features(word)]


@lru_cache(maxsize=100_000)
def _word_features(word: str) -> tuple[int, ...]:
    marked = f"<{word}>"
    grams = [marked[k : k + n] for n in _NGRAMS for k in range(len(marked) - n + 1)]
    # The prefix keeps a whole word apart from an n-gram of the same letters.
    return tuple(
        zlib.crc32(part.encode("utf-8", "surrogatepass")) % BUCKETS for part in ["w:" + word, *grams]
    )


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
