"""What each tab of hard negatives asks, what it needs, and its answer for a run."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass

import pandas as pd
import streamlit as st

from uwml_core.analysis.finished import is_finished_model
from uwml_core.analysis.hard_negatives import memorised, persistent, wrong_pairs
from uwml_core.analysis.hard_negatives.false_negatives import MOST_COMPARED, false_negatives_headline
from uwml_core.analysis.hard_negatives.hardest import hardest_headline
from uwml_core.analysis.text import clauses
from uwml_core.i18n import _, language
from uwml_core.runlog.reader import Run
from uwml_core.ui import hard_read as read
from uwml_core.ui.choice import adopt, publish
from uwml_core.ui.read import evals
from uwml_core.ui.shared import shared

# Tables that each question is answered from.
QUESTIONS: Mapping[str, tuple[str, ...]] = {
    "hardest": ("pairs",),
    "persistent": ("neighbors",),
    "false-negatives": ("pairs",),
    "wrong-pairs": ("pairs",),
    "memorised": ("neighbors", "evals"),
}
# Questions about a history: earlier epochs belong to the answer.
UP_TO_THE_EPOCH = ("persistent", "wrong-pairs", "memorised")
# Orders that make sense for each question, what it begins with first.
ORDERS_OF: Mapping[str, tuple[str, ...]] = {
    "hardest": ("margin", "weight", "often", "newest"),
    "persistent": ("often", "margin"),
    "false-negatives": ("likeness", "margin", "weight", "newest"),
    "wrong-pairs": ("margin", "often", "newest"),
    "memorised": ("growth", "margin"),
}
_TAB = "tab"


@dataclass(frozen=True, kw_only=True, eq=False)
class Findings:
    """Answer to a question.

    Attributes:
        question: its name.
        headline: one sentence.
        confusions: what was found; None where a table is missing.
        note: what was read.
        missing: the table that was not logged; empty when it was.
        epoch: what was asked about; None for all.
    """

    question: str
    headline: str = ""
    confusions: pd.DataFrame | None = None
    note: str = ""
    missing: str = ""
    epoch: int | None = None


def question_choice() -> str:
    """Draw the tabs; the address carries the question's own name."""
    names = {
        "hardest": _("Hardest now"),
        "persistent": _("Persistent"),
        "false-negatives": _("Suspected false negatives"),
        "wrong-pairs": _("Suspected wrong pairs"),
        "memorised": _("Memorized"),
    }
    options = list(QUESTIONS)
    adopt(_TAB, options, options[0])
    st.segmented_control(
        _("Question"), options, format_func=names.__getitem__, key=_TAB, required=True,
        label_visibility="collapsed",
    )  # fmt: skip
    return publish(_TAB, options[0])


def findings(run: Run, question: str, epoch: int | None) -> Findings:
    """Answer a question for a run.

    Args:
        run: the run.
        question: one of ``QUESTIONS``.
        epoch: the epoch to look at, or up to which to look; None for all.
    """
    # where nothing was trained, the probes stand in for pairs
    probed = ("pairs",) if is_finished_model(run.config) and run.has("neighbors") else ()
    missing = next((table for table in QUESTIONS[question] if not run.has(table) and table not in probed), "")
    if missing:
        return Findings(question=question, missing=missing)
    tables = ("pairs", "neighbors", "evals", "steps")
    version = tuple(part.key for table in tables for part in run.parts(table))
    return _answer(str(run.path), (version, run.has("items")), language(), question, epoch, _run=run)


@shared
def _answer(
    path: str, version: Hashable, language: str, question: str, epoch: int | None, *, _run: Run
) -> Findings:
    return _ANSWERS[question](_run, epoch)


def _when(run: Run, epoch: int | None) -> str:
    if is_finished_model(run.config):
        return _("the finished model")
    return _("all epochs") if epoch is None else _("epoch {epoch}").format(epoch=epoch)


def _hardest(run: Run, epoch: int | None) -> Findings:
    frame, note = read.confusions(run, epoch, until=False)
    sentence = hardest_headline(frame, run.directions, _when(run, epoch))
    return Findings(question="hardest", headline=sentence, confusions=frame, note=note, epoch=epoch)


def _persistent(run: Run, epoch: int | None) -> Findings:
    rows = persistent.until(read.neighbors(run), epoch)
    found = persistent.persistent(rows)
    note = persistent.persistent_note(rows)
    return Findings(
        question="persistent",
        headline=persistent.persistent_headline(rows, found),
        confusions=found,
        note=note,
        epoch=epoch,
    )


def _false_negatives(run: Run, epoch: int | None) -> Findings:
    frame, note = read.confusions(run, epoch, until=False)
    found = read.false_negatives(run, epoch)
    above = int((frame["margin"] < 0).sum())
    if above > MOST_COMPARED:
        compared = _("the newest {n} of {total} were compared")
        note = clauses([note, compared.format(n=f"{MOST_COMPARED:,}", total=f"{above:,}")])
    sentence = false_negatives_headline(frame, found, _when(run, epoch))
    return Findings(question="false-negatives", headline=sentence, confusions=found, note=note, epoch=epoch)


def _wrong_pairs(run: Run, epoch: int | None) -> Findings:
    if (told := read.item_statistics(run, epoch)) is not None:
        statistics, newest = told
        told_by = _("From statistics of the items in windows of ten epochs; candidates of the newest epoch")
        return Findings(
            question="wrong-pairs",
            headline=wrong_pairs.statistics_headline(statistics),
            confusions=wrong_pairs.with_statistics(newest, statistics),
            note=clauses([told_by, _judged_otherwise()]),
            epoch=epoch,
        )
    frame, note = read.confusions(run, epoch, until=True)
    found = wrong_pairs.suspected_wrong_pairs(frame)
    sentence = wrong_pairs.wrong_pairs_headline(frame, found)
    note = clauses([note, _judged_otherwise()])
    return Findings(question="wrong-pairs", headline=sentence, confusions=found, note=note, epoch=epoch)


def _judged_otherwise() -> str:
    return _("Diagnosis judges by the mean margin over the whole training, and counts others")


def _memorised(run: Run, epoch: int | None) -> Findings:
    falls = [memorised.recall_fall(evals(run), direction, epoch) for direction in run.directions]
    found = memorised.memorised(persistent.until(read.neighbors(run), epoch), falls)
    return Findings(
        question="memorised",
        headline=memorised.memorised_headline(found, falls),
        confusions=found,
        epoch=epoch,
    )


_ANSWERS = {
    "hardest": _hardest,
    "persistent": _persistent,
    "false-negatives": _false_negatives,
    "wrong-pairs": _wrong_pairs,
    "memorised": _memorised,
}
