"""Text on the page. Whatever comes out of a log is shown as it is, never read as HTML or Markdown."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping

import streamlit as st

from uwml_core.i18n import _

_MARKDOWN = re.compile(r"([\\`*_{}\[\]()#+\-.!|~<>$:&])")


def escape_markdown(text: str) -> str:
    r"""Text that Streamlit's Markdown shows literally, directives and maths included.

    Example:
        >>> escape_markdown("*a* :red[b] $x$")
        '\\*a\\* \\:red\\[b\\] \\$x\\$'
    """
    return _MARKDOWN.sub(r"\\\1", " ".join(str(text).split()))


def element(tag: str, text: str, css_class: str) -> str:
    """One HTML element around escaped text.

    Example:
        >>> element("p", "<script>", "uw-note")
        '<p class="uw-note">&lt;script&gt;</p>'
    """
    return f'<{tag} class="{css_class}">{html.escape(str(text))}</{tag}>'


def unbroken(text: str) -> str:
    """Text whose numbers stay on the line of their percent sign.

    Example:
        >>> unbroken("holds 3 % of it") == "holds 3\N{NO-BREAK SPACE}% of it"
        True
    """
    return re.sub(r"(?<=\d) %", "\N{NO-BREAK SPACE}%", text)


def headline(text: str) -> None:
    """The one sentence that answers the page's question; comes from an analysis function."""
    st.html(element("p", unbroken(text), "uw-headline"))


def section(text: str) -> None:
    """Heading of a group of cards."""
    st.html(element("h2", text, "uw-section"))


def note(text: str) -> None:
    """Small print under a chart or a control; draws nothing for an empty text."""
    if text:
        st.html(element("p", unbroken(text), "uw-note"))


def notes(*texts: str) -> None:
    """Several notes as one line of small print; empty ones are left out.

    What separates them ends a sentence: only the last one keeps its full stop.
    """
    *rest, last = [text for text in texts if text] or [""]
    note(" · ".join([*(text.rstrip(".。") for text in rest), last]))


def guide(*paragraphs: str) -> None:
    """The page's foldable "how to read this"."""
    with st.expander(_("How to read this"), icon=":material/help:"):
        st.html("".join(element("p", paragraph, "uw-guide") for paragraph in paragraphs))


def guide_formulas(formulas: Mapping[str, str]) -> None:
    """Foldable list of what is measured and how."""
    lines = [f"<li><b>{html.escape(name)}</b>: {html.escape(text)}</li>" for name, text in formulas.items()]
    with st.expander(_("Formulas"), icon=":material/function:"):
        st.html(f'<ul class="uw-guide">{"".join(lines)}</ul>')
