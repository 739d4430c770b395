"""Numbers in sentences: fixed decimals, a dash where there is no number."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import reduce

from uwml_core.i18n import _

MISSING = "–"


def fixed(value: float, decimals: int = 1) -> str:
    """A number with fixed decimals and thousands separators; a dash for NaN, words for infinities.

    Args:
        value: the number.
        decimals: digits after the point.

    Example:
        >>> fixed(1234.5), fixed(float("nan")), fixed(-0.04)
        ('1,234.5', '–', '0.0')
    """
    if math.isnan(value):
        return MISSING
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    text = f"{value:,.{decimals}f}"
    is_zero = not text.strip("-0.,")
    return text.lstrip("-") if is_zero else text.replace("-", "−")


def percent(share: float, decimals: int = 0) -> str:
    """A share as a percentage.

    Example:
        >>> percent(0.734), percent(float("nan"))
        ('73 %', '–')
    """
    return MISSING if math.isnan(share) else f"{fixed(100.0 * share, decimals)} %"


def signed(value: float, decimals: int = 1) -> str:
    """A change, always with its sign.

    Example:
        >>> signed(0.5), signed(-0.5), signed(0.0)
        ('+0.5', '−0.5', '0.0')
    """
    text = fixed(value, decimals)
    return f"+{text}" if value > 0 and text.strip("0.,") else text


def modality_name(modality: str) -> str:
    """What a modality is called in the visitor's language; its own name where it is not a usual one.

    Example:
        >>> modality_name("image"), modality_name("depth")
        ('image', 'depth')
    """
    names = {"image": _("image"), "video": _("video"), "text": _("text")}
    return names.get(modality, modality)


def sentences(parts: Iterable[str]) -> str:
    """Whole sentences one after the other; empty ones are left out.

    Example:
        >>> sentences(["It learns.", "", "It is fast."])
        'It learns. It is fast.'
    """
    return reduce(_after, [part for part in parts if part] or [""])


def _after(first: str, second: str) -> str:
    return _("{sentence} {next_sentence}").format(sentence=first, next_sentence=second)


def listed(parts: Iterable[str]) -> str:
    """Parts of a sentence with commas between them.

    Example:
        >>> listed(["one", "two"])
        'one, two'
    """
    return _(", ").join(parts)


def clauses(parts: Iterable[str]) -> str:
    """Parts of a sentence that hold commas themselves; empty ones are left out.

    Example:
        >>> clauses(["1 of 2 points", "", "1 is not finite, marked"])
        '1 of 2 points; 1 is not finite, marked'
    """
    return _("; ").join(part for part in parts if part)


def is_number(text: str) -> bool:
    """Whether a text is read as a number.

    Example:
        >>> is_number("-1e3"), is_number("1 + 1")
        (True, False)
    """
    try:
        float(text)
    except ValueError:
        return False
    return True
