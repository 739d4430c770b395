"""Choices that live in the address: checked on the way in, language-free on the way out.

Widgets whose options read the same in every language bind to the address by themselves
(``bind="query-params"``); these functions serve the others, whose address must carry the option and not
its translated label.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import streamlit as st

from uwml_core.i18n import language


def adopt(key: str, allowed: Sequence[str], default: str) -> str | None:
    """Take the address's choice into the session state before its widget is drawn.

    Args:
        key: name of the widget and of the query parameter.
        allowed: valid options; anything else is replaced by the default.
        default: option to use when neither the address nor the session knows a valid one.

    Returns:
        What the address asked for in vain, None when it asked for nothing or was followed.
    """
    state, asked, seen = st.session_state, st.query_params.get(key), f"_{key}_in_address"
    # A widget that was not drawn for a while has lost its state; what the address says then is new again.
    new = asked is not None and (key not in state or asked != state.get(seen))
    if new and asked in allowed:
        state[key] = asked
    if state.get(key) not in allowed:
        # what stands there may be the option's name in another language, see _rename
        before = state.get(seen) if key in state else None
        state[key] = before if before in allowed else default
    _rename(key)
    return asked if new and asked not in allowed else None


def _rename(key: str) -> None:
    """Hand the choice to the browser anew after a change of language.

    The browser knows an option by its label. Until it has drawn the widget in the new language it may, on a
    live page, send the label in the language before, which is none of the options any more; ``adopt`` then
    keeps what was chosen.
    """
    spoken = f"_{key}_in_language"
    if st.session_state.get(spoken) not in (None, language()):
        st.session_state[key] = st.session_state[key]
    st.session_state[spoken] = language()


def publish(key: str, default: str | None = None) -> str:
    """Write the choice back to the address, leaving the default out; returns the choice."""
    value = str(st.session_state[key])
    st.session_state[f"_{key}_in_address"] = value
    if value == default:
        if key in st.query_params:
            del st.query_params[key]
    elif st.query_params.get(key) != value:
        st.query_params[key] = value
    return value


def choice(label: str, key: str, options: Sequence[str], default: str, name: Callable[[str], str]) -> str:
    """Select one option, remembered in the address.

    Args:
        label: what the choice is about.
        key: name of the query parameter.
        options: at least one; language-free names.
        default: one of the options, left out of the address.
        name: what an option is called on the screen.

    Returns:
        The chosen option.
    """
    adopt(key, options, default)
    # named now: whatever asks for a name later may do so in a thread that speaks another language
    names = {option: name(option) for option in options}
    st.selectbox(label, options, format_func=lambda option: names.get(option, option), key=key)
    return publish(key, default)
