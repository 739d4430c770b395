"""What data sets call their parts, and what we call them."""

from __future__ import annotations

_NAMES = {
    "train": "train",
    "training": "train",
    "val": "val",
    "valid": "val",
    "validate": "val",
    "validation": "val",
    "dev": "val",
    "test": "test",
}


def split_of(name: str) -> str:
    """Our name of a part; another name stays as it is.

    Example:
        >>> split_of("validation"), split_of("restval")
        ('val', 'restval')
    """
    return _NAMES.get(name.strip().lower(), name)


def split_in(name: str) -> str | None:
    """The part that a file's name begins with, None where it names none.

    Example:
        >>> split_in("train-00001"), split_in("00001"), split_in("valley")
        ('train', None, None)
    """
    for known, split in _NAMES.items():
        rest = name.lower().removeprefix(known)
        if rest != name.lower() and not rest[:1].isalpha():
            return split
    return None
