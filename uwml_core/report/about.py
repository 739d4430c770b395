"""Sections about the run itself: facts, configuration, files that were skipped, pinned notes."""

from __future__ import annotations

import copy
from typing import Any

import pandas as pd
import yaml

from uwml_core.analysis.loss_settings import loss_kind
from uwml_core.analysis.run_words import status_label
from uwml_core.i18n import _, ngettext
from uwml_core.report.content import Section
from uwml_core.report.markup import Html, notes, table, tag
from uwml_core.report.source import Source
from uwml_core.runlog.notes import Note, read_notes
from uwml_core.runlog.reader import HealthIssue
from uwml_core.runlog.schema import TABLES

_MOST_ISSUES = 50


def facts(source: Source) -> Html:
    """What the run is, as a list of terms."""
    run, info = source.run, source.run.info
    last = source.steps["step"].iloc[-1] if len(source.steps) else None
    packages = info.get("packages")
    versions = packages if isinstance(packages, dict) else {}
    rows = [
        (_("Run"), run.run_id),
        (_("Status"), status_label(run.status)),
        (_("Started, UTC"), f"{run.created_at:%Y-%m-%d %H:%M}"),
        (_("Steps"), "" if last is None else f"{int(last) + 1:,}"),
        (_("Loss"), loss_kind(run.config)),
        (_("Directions"), ", ".join(run.directions)),
        (_("Seed"), _plain(info.get("seed"))),
        (_("Code revision"), _plain(info.get("code_revision"))),
        (_("Parent run"), _plain(info.get("parent"))),
        (_("Packages"), ", ".join(f"{name} {version}" for name, version in versions.items())),
    ]
    shown = [tag("div", tag("dt", term), tag("dd", text)) for term, text in rows if text]
    return tag("dl", *shown, class_="facts")


def _plain(value: Any) -> str:
    return "" if value is None or value == {} else str(value)


def configuration_section(source: Source) -> Section:
    """The configuration as YAML; where the run was written is left out."""
    config = copy.deepcopy(source.run.config)
    config.pop("run", None)
    text = yaml.safe_dump(config, sort_keys=False, allow_unicode=True) if config else ""
    blocks = [tag("pre", text, tabindex="0")] if text else [notes(_("The run logged no configuration."))]
    return Section(key="configuration", title=_("Configuration"), blocks=blocks)


def health_section(source: Source) -> Section:
    """Rows per table, files that were skipped with the reason, and what could not be written."""
    run, issues = source.run, source.run.health()
    skipped = [issue for issue in issues if issue.steps is None]
    lost = [issue for issue in issues if issue.steps is not None]
    parts = {name: run.parts(name) for name in TABLES}
    rows = [[_("Table"), _("Files"), _("Bytes")]]
    rows += [
        [name, f"{len(found):,}", f"{sum(part.size for part in found):,}"]
        for name, found in parts.items()
        if found
    ]
    head = ngettext("{n} file was skipped:", "{n} files were skipped:", len(skipped)).format(n=len(skipped))
    told = _listed(head, skipped) if skipped else [tag("p", _("Every file could be read."))]
    told += _listed(_("The log could not write everything:"), lost)
    return Section(key="health", title=_("Files of the run"), blocks=[*told, table(rows)])


def _listed(head: str, issues: list[HealthIssue]) -> list[Html]:
    lines = [tag("li", issue.message) for issue in issues[:_MOST_ISSUES]]
    return [tag("p", head), tag("ul", *lines)] if lines else []


def notes_section(source: Source, titles: dict[str, str]) -> Section | None:
    """Pinned notes, oldest first; None without any.

    Args:
        source: the run.
        titles: what the pages are called, by key.
    """
    found = read_notes(source.run).notes
    if not found:
        return None
    listed = [_note(note, titles) for note in found]
    return Section(key="notes", title=_("Pinned notes"), blocks=[tag("ul", *listed, class_="pinned")])


def _note(note: Note, titles: dict[str, str]) -> Html:
    when = pd.Timestamp(note.created_at).strftime("%Y-%m-%d %H:%M")
    where = f"{titles.get(note.page, note.page)} · {anchor_text(note)} · {when} UTC"
    return tag("li", tag("small", where), tag("p", note.text, dir="auto"))


def anchor_text(note: Note) -> str:
    """What a note is pinned at, in the reader's language."""
    names = {"step": _("step {value}"), "item": _("item {value}"), "chart": _("chart {value}")}
    return names[note.anchor.kind].format(value=note.anchor.value)
