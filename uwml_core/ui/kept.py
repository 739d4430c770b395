"""Keep what was computed or drawn from a run until the run changes."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from typing import Any, ParamSpec, TypeVar

import streamlit as st

from uwml_core.i18n import language
from uwml_core.runlog.cache import BoundedCache
from uwml_core.runlog.reader import Run
from uwml_core.ui.shared import shared

P = ParamSpec("P")
T = TypeVar("T")

# So long the version of a run is taken to be what it was.
_BELIEVED_S = 0.5


def kept(run: Run, key: Hashable, make: Callable[P, T], *args: P.args, **options: P.kwargs) -> T:
    """What ``make(*args, **options)`` gives, made once per version of a run, language and colour scheme.

    The result is shared between visitors and never copied: nobody may change it in place.

    Args:
        run: what all arguments come from.
        key: names the result among those of the run, and every choice that it depends on.
        make: computes or draws it.
        *args: passed on.
        **options: passed on.
    """
    return _looked_up(run, version_of(run), key, lambda: make(*args, **options))


def kept_of(
    run: Run, table: str, key: Hashable, make: Callable[P, T], *args: P.args, **options: P.kwargs
) -> T:
    """As ``kept``, of what comes from one table alone: while others grow it is not made again."""
    return _looked_up(run, table_version(run, table), key, lambda: make(*args, **options))


def _looked_up(run: Run, version: Hashable, key: Hashable, make: Callable[[], T]) -> T:
    scheme = st.context.theme.get("type")
    result: T = _kept(str(run.path), version, language(), scheme, key, _make=make)
    return result


def table_version(run: Run, table: str) -> Hashable:
    """What one table holds: its files, and which of their rows count; looked up twice a second at most."""
    return _table_version(str(run.path), table, version_of(run), _run=run)


def version_of(run: Run) -> Hashable:
    """The run's version; looked up twice a second at most, as many files may have to be listed for it."""
    key, now, known = str(run.path), time.monotonic(), _versions()
    found = known.get(key)
    if found is None or now - found[0] >= _BELIEVED_S:
        found = now, run.version()
        known.put(key, found)
    return found[1]


@shared
def _kept(
    path: str,
    version: Hashable,
    language: str,
    scheme: str | None,
    key: Hashable,
    *,
    _make: Callable[[], Any],
) -> Any:
    return _make()


@shared
def _table_version(path: str, table: str, version: Hashable, *, _run: Run) -> Hashable:
    # a resume leaves files as they are and replaces some of their rows
    return table, tuple(part.key for part in _run.parts(table)), repr(_run.info.get("segments"))


@st.cache_resource(show_spinner=False)
def _versions() -> BoundedCache[tuple[float, Hashable]]:
    # a page asks thirty times, for which Streamlit's own cache would write each key down anew
    return BoundedCache(2000)
