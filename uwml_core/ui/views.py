"""The views that a visitor has had in this session: what a page showed, as an address."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlencode, urlsplit, urlunsplit

import streamlit as st

from uwml_core.analysis.text import is_number
from uwml_core.ui.frame import LANGUAGE, LIVE, RUN

# Of the address, what belongs to the visitor and not to the view.
_OWN = (RUN, LANGUAGE, LIVE)
_VIEWS = "_views"


def remember_view() -> None:
    """Keep what the page shows now; pages call it through ``follow`` each time they have drawn themselves."""
    page = current_page()
    if page:
        views: dict[str, dict[str, str]] = st.session_state.setdefault(_VIEWS, {})
        views.pop(page, None)
        # the newest last
        views[page] = {
            name: _current(name, value)
            for name, value in st.query_params.to_dict().items()
            if name not in _OWN
        }


def _current(name: str, value: str) -> str:
    """A choice as the address says it; a number as its slider has it."""
    now = st.session_state.get(name)
    if isinstance(now, bool) or not isinstance(now, int | float) or not is_number(value):
        return value
    # moves that come faster than the page is drawn are drawn as one, whose address is that of the first
    return value if float(value) == now else str(now)


def views() -> dict[str, dict[str, str]]:
    """Choices in the address by page, the page seen last first."""
    known: dict[str, dict[str, str]] = st.session_state.get(_VIEWS, {})
    return dict(reversed(known.items()))


def current_page() -> str:
    """Last part of the page's address, such as ``training``; empty where the browser has not said it."""
    return urlsplit(st.context.url or "").path.rstrip("/").rpartition("/")[2]


def address(page: str, run_id: str, view: Mapping[str, str]) -> str:
    """Address of a view, complete where the browser has told its own.

    Args:
        page: last part of the page's address.
        run_id: the run that it shows.
        view: choices in the address.
    """
    here = urlsplit(st.context.url or "")
    path = here.path.rstrip("/").rpartition("/")[0]
    return urlunsplit((here.scheme, here.netloc, f"{path}/{page}", urlencode({RUN: run_id, **view}), ""))
