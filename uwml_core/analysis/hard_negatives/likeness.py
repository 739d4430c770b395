"""How alike two captions or two pictures are."""

from __future__ import annotations

import io
from functools import lru_cache

import numpy as np
from PIL import Image

GRAM = 3
# Side of the reduced picture that is compared; small enough to forgive another scaling or compression.
SIDE = 12


def text_likeness(first: str, second: str) -> float:
    """Dice coefficient of the character trigrams of two texts, large and small letters alike.

    Returns:
        1 for equal texts, 0 without a common trigram; 0 where one of them is empty.

    Reference:
        L. R. Dice, Measures of the amount of ecologic association between species, 1945.

    Example:
        >>> text_likeness("Red heart", "red  heart"), text_likeness("red", "blue")
        (1.0, 0.0)
    """
    one, two = _grams(first), _grams(second)
    if not one or not two:
        return 0.0
    return 2.0 * len(one & two) / (len(one) + len(two))


@lru_cache(maxsize=50_000)
def _grams(text: str) -> frozenset[str]:
    plain = " ".join(text.split()).casefold()
    padded = f"  {plain} " if plain else ""
    return frozenset(padded[k : k + GRAM] for k in range(len(padded) - GRAM + 1))


def picture_likeness(first: bytes | None, second: bytes | None) -> float:
    """1 minus the mean absolute difference of two reduced pictures on white, scaled to [0, 1].

    Args:
        first, second: encoded pictures; a clip's strip of frames counts as one picture.

    Returns:
        1 for equal pictures; NaN where one is missing or cannot be decoded.
    """
    one, two = _reduced(first), _reduced(second)
    if one is None or two is None:
        return float("nan")
    return 1.0 - float(np.abs(one.astype(np.int16) - two).mean()) / 255.0


@lru_cache(maxsize=20_000)
def _reduced(encoded: bytes | None) -> np.ndarray | None:
    if not encoded:
        return None
    try:
        with Image.open(io.BytesIO(encoded), formats=("WEBP", "PNG", "JPEG")) as picture:
            whole = picture.convert("RGBA")
            on_white = Image.alpha_composite(Image.new("RGBA", whole.size, "white"), whole).convert("RGB")
            return np.asarray(on_white.resize((SIDE, SIDE), Image.Resampling.BOX))
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError):
        return None
