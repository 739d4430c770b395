"""Contact sheets: pictures and captions as one HTML grid, every text escaped."""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

import streamlit as st

from uwml_core.ui.point_card import ITEM, picture
from uwml_core.ui.text import element

_LONGEST_HOVER = 300

Link = Callable[[int | None], str]


@dataclass(frozen=True, kw_only=True)
class Tile:
    """One item on a sheet.

    Attributes:
        item_id: whose history a click opens.
        caption: text that is shown or read out.
        thumbnail: WebP bytes; None draws an empty frame.
        number: short number beside it.
        hover: facts, a line each.
    """

    item_id: int
    caption: str
    thumbnail: bytes | None
    number: str = ""
    hover: Sequence[str] = ()


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A query with its right answer and wrong ones.

    Attributes:
        direction: its name.
        color: of the direction.
        fact: what was found.
        own: picture and caption that belong together.
        wrong: wrong candidates, the worst first.
        more: how many more there are.
        asks_in_words: whether the caption is the query and pictures are the answers.
    """

    direction: str
    color: str
    fact: str
    own: Tile
    wrong: Sequence[Tile]
    more: int
    asks_in_words: bool


def contact_sheet(entries: Sequence[Entry], *, clips: bool = False) -> None:
    """Draw entries as a grid, as many side by side as fit.

    Args:
        entries: what to show; only these are sent.
        clips: whether pictures are strips of frames, which need more width.
    """
    st.html(sheet_html(entries, item_links(), clips=clips))


def address_with(item_id: int | None) -> str:
    """The page's address with one item chosen, or with none."""
    return item_links()(item_id)


def item_links() -> Link:
    """Gives the page's address with an item chosen, or with none; everything else stays."""
    rest = urlencode([(name, value) for name, value in st.query_params.to_dict().items() if name != ITEM])

    def link(item_id: int | None) -> str:
        chosen = "" if item_id is None else urlencode({ITEM: item_id})
        return "?" + "&".join(part for part in (rest, chosen) if part)

    return link


def sheet_html(entries: Sequence[Entry], link: Link, *, clips: bool = False) -> str:
    """The grid as HTML.

    Args:
        entries: what to show.
        link: gives the address of an item's history.
        clips: as for ``contact_sheet``.
    """
    cells = "".join(_entry(entry, link) for entry in entries)
    return f'<div class="uw-sheet{" clips" if clips else ""}">{cells}</div>'


def rows_html(
    rows: Sequence[tuple[str, Sequence[Tile]]],
    link: Link,
    *,
    least: int = 0,
    words: bool = False,
    clips: bool = False,
) -> str:
    """Rows of pictures with a heading each, as a table; shorter rows are filled up.

    Args:
        rows: heading and pictures, row by row.
        link: as for ``sheet_html``.
        least: columns that there are at least.
        words: whether the captions are written under the pictures.
        clips: as for ``contact_sheet``.
    """
    lines, width = [], max((len(tiles) for _heading, tiles in rows), default=0)
    for heading, tiles in rows:
        cells = "".join(f"<td>{_figure(tile, link, words=words)}</td>" for tile in tiles)
        cells += "<td></td>" * (max(width, least) - len(tiles))
        lines.append(f'<tr><th scope="row">{html.escape(heading)}</th>{cells}</tr>')
    return f'<table class="uw-rows{" clips" if clips else ""}">{"".join(lines)}</table>'


def _entry(entry: Entry, link: Link) -> str:
    name = html.escape(entry.direction)
    mark = f'<b style="--uw-direction:{html.escape(entry.color)}">{name}</b>'
    head = f"<header>{mark}{element('span', entry.fact, 'uw-muted')}</header>"
    body = _asked_in_words(entry, link) if entry.asks_in_words else _asked_with_picture(entry, link)
    return f'<article class="uw-entry">{head}{body}</article>'


def _asked_with_picture(entry: Entry, link: Link) -> str:
    own = f'<li class="right">{_words(entry.own)}</li>'
    wrong = "".join(
        f"<li>{_open(tile, link)}{picture(tile.thumbnail, '')}{_words(tile)}</a>{_number(tile)}</li>"
        for tile in entry.wrong
    )
    wrong += "".join(_more(entry))
    query = f"{_open(entry.own, link)}{picture(entry.own.thumbnail, entry.own.caption)}</a>"
    return f'<div class="uw-asked">{query}<ul>{own}{wrong}</ul></div>'


def _asked_in_words(entry: Entry, link: Link) -> str:
    caption = _escaped(entry.own.caption)
    query = f'{_open(entry.own, link)}<q class="uw-query uw-lines" dir="auto">{caption}</q></a>'
    figures = [f'<li class="right">{_figure(entry.own, link)}</li>']
    figures += [f"<li>{_figure(tile, link)}</li>" for tile in entry.wrong]
    figures += _more(entry)
    return f'{query}<ul class="uw-answers">{"".join(figures)}</ul>'


def _more(entry: Entry) -> list[str]:
    return [f'<li class="uw-muted">+{entry.more}</li>'] if entry.more else []


def _figure(tile: Tile, link: Link, *, words: bool = False) -> str:
    words = words or not tile.thumbnail
    caption = f'<span class="uw-cut" dir="auto">{_escaped(tile.caption)}</span>' if words else ""
    shown = picture(tile.thumbnail, "" if words else tile.caption)
    return f"{_open(tile, link)}{shown}{caption}{_number(tile)}</a>"


def _words(tile: Tile) -> str:
    return f'<span class="uw-lines" dir="auto">{_escaped(tile.caption)}</span>'


def _number(tile: Tile) -> str:
    return element("span", tile.number, "uw-cosine") if tile.number else ""


def _open(tile: Tile, link: Link) -> str:
    caption = " ".join(tile.caption.split())
    if len(caption) > _LONGEST_HOVER:
        caption = caption[: _LONGEST_HOVER - 1] + "…"
    hover = html.escape("\n".join([caption, *tile.hover]))
    return f'<a href="{html.escape(link(tile.item_id))}" target="_self" title="{hover}">'


def _escaped(text: str) -> str:
    return html.escape(" ".join(text.split()))
