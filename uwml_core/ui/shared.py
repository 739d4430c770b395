"""One store for what pages have read and computed, shared by all visitors and bounded by bytes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import streamlit as st

from uwml_core.runlog.cache import BoundedCache
from uwml_core.runlog.weight import bytes_of

P = ParamSpec("P")
T = TypeVar("T")

# Of a run of 25 million pairs the pages of one epoch take a third of it.
MOST_BYTES = 320 * 2**20


def shared(function: Callable[P, T]) -> Callable[P, T]:
    """Have a function called once per arguments, for all visitors, as long as the store has room.

    Its results are never copied: nobody may change them in place. A result that is None is kept, too.

    Args:
        function: of hashable positional arguments, which identify the result; keyword arguments must follow
            from them.
    """
    name = f"{function.__module__}.{function.__qualname__}"

    @functools.wraps(function)
    def looked_up(*args: P.args, **options: P.kwargs) -> T:
        result: T = store().get_or_make((name, *args), lambda: (function(*args, **options),))[0]
        return result

    return looked_up


@st.cache_resource(show_spinner=False)
def store() -> BoundedCache[tuple[Any]]:
    """Where the results are."""
    return BoundedCache(MOST_BYTES, bytes_of)
