"""Optional libraries: is one there, and which extra of this package brings it."""

from __future__ import annotations

from importlib.util import find_spec


def require(library: str, *, extra: str) -> None:
    """Refuse to go on without a library.

    Args:
        library: name that it is imported by.
        extra: extra of this package that installs it.

    Raises:
        ImportError: naming both.

    Example:
        >>> require("no_such_library", extra="open-clip")
        Traceback (most recent call last):
        ImportError: no_such_library is not installed; install it with: pip install "uwml-lens[open-clip]"
    """
    if find_spec(library) is None:
        raise ImportError(
            f'{library} is not installed; install it with: pip install "uwml-lens[{extra}]"', name=library
        )
