"""Queries that one method answers and the other does not, as contact sheets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

import pandas as pd
import streamlit as st

from uwml_core.analysis.compare.comparison import Comparison
from uwml_core.analysis.compare.wins import won_queries
from uwml_core.analysis.text import fixed
from uwml_core.figures.theme import Theme
from uwml_core.i18n import _, ngettext
from uwml_core.runlog.reader import Run
from uwml_core.ui.card import to_csv
from uwml_core.ui.choice import choice
from uwml_core.ui.compare_choice import CompareChoice
from uwml_core.ui.compare_read import kept_for
from uwml_core.ui.gallery import Entry, sheet_html
from uwml_core.ui.hard_read import pictured
from uwml_core.ui.hard_sheet import item_tile
from uwml_core.ui.point_card import ITEM
from uwml_core.ui.text import element, note, section

SHOWN = 6
_EVERY = "both"


def wins_card(chosen: CompareChoice, found: Comparison, place: int, theme: Theme) -> None:
    """Draw queries that a method gained, and those that it lost.

    Args:
        chosen: what is compared.
        found: what came out.
        place: of the method in ``found.methods``.
        theme: colours.
    """
    with st.container(border=True, key="card-wins", gap="xsmall"):
        section(_("Queries won and lost"))
        directions = _direction_choice(found)
        baseline, other = found.methods[0], found.methods[place]
        key = ("wins", place, directions)
        rows = kept_for(
            chosen, key, lambda: won_queries(found.outcomes[0], found.outcomes[place], directions)
        )
        run = next(run for run in chosen.runs if run.run_id == other.members[0].run_id)
        if rows.empty:
            note(_("Both methods answer the same queries."))
            return
        for column, side, name, mine in zip(
            st.columns(2, gap="small"),
            ("won", "lost"),
            (other.name, baseline.name),
            (rows[rows["change"] > 0], rows[rows["change"] < 0]),
            strict=True,
        ):
            with column:
                _sheet(run, name, mine, theme, side)
        note(_("Found means the right answer comes first. A click shows the item's hardest negatives."))


def _direction_choice(found: Comparison) -> tuple[str, ...]:
    names = {_EVERY: _("Both"), **{direction: direction for direction in found.directions}}
    with st.container(width=140):
        direction = choice(_("Direction"), "won", list(names), _EVERY, names.__getitem__)
    return found.directions if direction == _EVERY else (direction,)


def _sheet(run: Run, name: str, rows: pd.DataFrame, theme: Theme, side: str) -> None:
    row = st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="center")
    text = ngettext("{n} query found by {name} only", "{n} queries found by {name} only", len(rows))
    row.html(element("h3", text.format(n=f"{len(rows):,}", name=name), "uw-near-title"), width="content")
    row.download_button(
        "CSV", lambda: to_csv(rows), file_name=f"queries-{side}.csv", mime="text/csv", key=f"csv-{side}",
        type="tertiary", icon=":material/download:", on_click="ignore", disabled=rows.empty,
        help=_("Download all of these queries with both ranks"),
    )  # fmt: skip
    if rows.empty:
        return
    shown = rows.head(SHOWN)
    items = pictured(run, shown["item_id"])
    entries = [_entry(run, items, dict(row), theme) for _index, row in shown.iterrows()]
    st.html(sheet_html(entries, _history_of(run), clips="video" in run.modalities))


def _entry(run: Run, items: pd.DataFrame, row: dict[Any, Any], theme: Theme) -> Entry:
    direction = str(row["direction"])
    fact = _("rank {before} → {after}").format(
        before=_rank(row["rank_before"]), after=_rank(row["rank_after"])
    )
    return Entry(
        direction=direction,
        color=theme.direction(direction, run.directions),
        fact=fact,
        own=item_tile(items, int(row["item_id"]), max(int(row["caption"]), 0)),
        wrong=(),
        more=0,
        asks_in_words=run.modalities[run.directions.index(direction)] == "text",
    )


def _rank(rank: float) -> str:
    return fixed(rank, 0 if float(rank).is_integer() else 1)


def _history_of(run: Run) -> Callable[[int | None], str]:
    def link(item_id: int | None) -> str:
        return "hard_negatives?" + urlencode({"run": run.run_id, ITEM: item_id})

    return link
