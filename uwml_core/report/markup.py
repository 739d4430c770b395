"""Markup in which every text is escaped unless it was built here."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

_VOID = frozenset({"img", "input", "link", "meta"})


class Html(str):
    """Markup that is ready; any other text is escaped where it is put into an element."""


def tag(name: str, /, *children: str, **attributes: str | float | bool | None) -> Html:
    """An element.

    Args:
        name: of the element.
        *children: texts, which are escaped, and ready markup.
        **attributes: their names with ``_`` for ``-`` and without one at the end; True writes the name alone,
            None and False leave it out.

    Example:
        >>> tag("p", "<b>", tag("i", "x"), class_="note", aria_label='"')
        '<p class="note" aria-label="&quot;">&lt;b&gt;<i>x</i></p>'
    """
    parts = [name]
    for key, value in attributes.items():
        shown = key.rstrip("_").replace("_", "-")
        if value is True:
            parts.append(shown)
        elif value is not None and value is not False:
            parts.append(f'{shown}="{html.escape(str(value))}"')
    start = f"<{' '.join(parts)}>"
    return Html(start) if name in _VOID else Html(f"{start}{joined(children)}</{name}>")


def joined(children: Iterable[str]) -> Html:
    """Markup one after the other, texts escaped.

    Example:
        >>> joined(["<", Html("<br>")])
        '&lt;<br>'
    """
    return Html("".join(part if isinstance(part, Html) else html.escape(part) for part in children))


def table(rows: Sequence[Sequence[str]]) -> Html:
    """A table of texts or ready markup, the first row being the heading.

    Example:
        >>> table([["a"], ["<b>"]])
        '<table><tr><th scope="col">a</th></tr><tr><th scope="row">&lt;b&gt;</th></tr></table>'
    """
    head = tag("tr", *(tag("th", text, scope="col") for text in rows[0]))
    body = [
        tag("tr", tag("th", row[0], scope="row"), *(tag("td", text) for text in row[1:])) for row in rows[1:]
    ]
    return tag("table", head, *body)


def notes(*texts: str) -> Html:
    """Small print as one line; empty texts are left out, only the last one keeps its full stop."""
    told = [text for text in texts if text]
    line = " · ".join([*(text.rstrip(".。") for text in told[:-1]), *told[-1:]])
    return tag("p", line, class_="note") if line else Html("")
