"""Section: what the model confuses."""

from __future__ import annotations

import pandas as pd

from uwml_core.analysis.hard_negatives import persistent, wrong_pairs
from uwml_core.analysis.hard_negatives.confusions import confusions
from uwml_core.analysis.hard_negatives.false_negatives import (
    false_negatives_headline,
    suspected_false_negatives,
)
from uwml_core.analysis.hard_negatives.hardest import hardest_headline
from uwml_core.i18n import _
from uwml_core.report.content import Block, Section
from uwml_core.report.gallery import gallery
from uwml_core.report.markup import notes, tag
from uwml_core.report.source import Source


def hard_negatives_section(source: Source) -> Section:
    """The questions of the page Hard negatives that the run can answer, the newest epoch for the first."""
    found: list[tuple[str, str, pd.DataFrame, str, str]] = []
    if not source.lacks("pairs"):
        found += _from_pairs(source)
    if not source.lacks("neighbors"):
        found.insert(1, _persistent(source))
    blocks: list[Block] = []
    for title, sentence, frame, order, note in found:
        blocks += [tag("h3", title), *([tag("p", sentence)] if blocks else [])]
        blocks += [gallery(source, frame, order)] if len(frame) else []
        blocks += [notes(note)] if note else []
    if not source.pictures:
        blocks.append(
            notes(_("Pictures were left out of this report; captions and names of items were not."))
        )
    return Section(
        key="hard_negatives",
        title=_("Hard negatives"),
        question=_("What does the model confuse, and is it right to?"),
        headline=found[0][1] if found else _("This run has no {table} table.").format(table="pairs"),
        blocks=blocks,
    )


def _from_pairs(source: Source) -> list[tuple[str, str, pd.DataFrame, str, str]]:
    logged = source.steps["epoch"].dropna()
    epoch = int(logged.max()) if len(logged) else None
    pairs, note = source.encounters(epoch, until=False)
    newest = confusions(pairs, source.directions)
    alike = suspected_false_negatives(newest, source.catalogue)
    history, note_of_all = source.encounters(None, until=True)
    everything = confusions(history, source.directions)
    below = wrong_pairs.suspected_wrong_pairs(everything)
    when = _("all epochs") if epoch is None else _("epoch {epoch}").format(epoch=epoch)
    return [
        (_("Hardest now"), hardest_headline(newest, source.directions, when), newest, "margin", note),
        (
            _("Suspected false negatives"),
            false_negatives_headline(newest, alike, when),
            alike,
            "likeness",
            note,
        ),
        (
            _("Suspected wrong pairs"),
            wrong_pairs.wrong_pairs_headline(everything, below),
            below,
            "margin",
            note_of_all,
        ),
    ]


def _persistent(source: Source) -> tuple[str, str, pd.DataFrame, str, str]:
    rows = source.neighbors
    found = persistent.persistent(rows)
    note = persistent.persistent_note(rows)
    return _("Persistent"), persistent.persistent_headline(rows, found), found, "often", note
