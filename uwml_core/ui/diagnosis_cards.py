"""Findings as cards: what is wrong, the proof, the usual cause, what to try and where to look."""

from __future__ import annotations

import html
from collections.abc import Mapping
from typing import Any

import pandas as pd
import streamlit as st
import yaml

from uwml_core.analysis.diagnosis.examine import Examination
from uwml_core.analysis.diagnosis.finding import Change, Evidence, Finding
from uwml_core.analysis.diagnosis.headline import severity_name
from uwml_core.analysis.diagnosis.names import column_name, unit_name
from uwml_core.analysis.diagnosis.registry import Diagnosis
from uwml_core.analysis.diagnosis.rules import RULES
from uwml_core.analysis.text import fixed, percent
from uwml_core.figures.evidence import evidence_figure
from uwml_core.figures.theme import Theme
from uwml_core.i18n import _, ngettext, translate
from uwml_core.runlog.reader import Run
from uwml_core.ui.balance_controls import BALANCE_CONTROLS
from uwml_core.ui.card import card, table_card, table_html, to_csv
from uwml_core.ui.controls import CONTROLS
from uwml_core.ui.kept import kept
from uwml_core.ui.recipes import setting_words
from uwml_core.ui.text import element, note, section

_HEIGHT = 200
_MOST_ROWS = 8
# units of what is counted: no decimals
_COUNTED = ("items", "negatives", "pairs", "step", "steps")


def diagnosis(run: Run) -> Diagnosis:
    """What the rules say about a run, kept until it changes."""
    return kept(run, "diagnosis", _examination(str(run.path), _run=run).update)


@st.cache_resource(max_entries=50, show_spinner=False)
def _examination(path: str, *, _run: Run) -> Examination:
    # asks only those rules again whose tables have grown
    return Examination(_run)


def finding_card(run: Run, found: Finding, theme: Theme, place: int) -> None:
    """Draw one finding.

    Args:
        run: the chosen run.
        found: the finding.
        theme: colours of its chart.
        place: of the finding in the list, from 0.
    """
    key = f"{found.rule}-{place}"
    with st.container(border=True, key=f"card-finding-{key}", gap="small"):
        _head(found)
        left, right = st.columns([3, 2], gap="medium")
        with left:
            _evidence(run, found, theme, key)
        with right:
            _text(_("Usual cause"), found.cause)
            _text(_("What to do"), found.advice)
            _try_this(run, found.changes)
            _show_me(run, found)


def _head(found: Finding) -> None:
    sure = _("{share} sure").format(share=percent(found.confidence))
    badge = f'<span class="uw-severity {found.severity}">{html.escape(severity_name(found.severity))}</span>'
    st.html(
        f'<div class="uw-finding">{badge}{element("h2", found.title, "uw-finding-title")}'
        f"{element('span', sure, 'uw-muted')}</div>"
    )


def _text(title: str, text: str) -> None:
    st.html(element("p", title, "uw-muted") + element("p", text, "uw-guide"))


def _evidence(run: Run, found: Finding, theme: Theme, key: str) -> None:
    evidence = found.evidence
    numbers = [_measured(number.name, number.value, number.unit, number.n) for number in found.numbers]
    title = _evidence_title(evidence)
    if evidence.kind == "table":
        columns = [evidence.x, *evidence.y]
        shown = evidence.frame.loc[:, columns].head(_MOST_ROWS).astype(str).to_numpy().tolist()
        rows = [[column_name(column) for column in columns], *shown]
        total = len(evidence.frame)
        count = ngettext("{n} of {total} row", "{n} of {total} rows", total).format(n=len(shown), total=total)
        table_card(title, evidence.frame, rows, count, *numbers, key=f"evidence-{key}")
        return
    figure = kept(
        run,
        f"evidence {key}",
        evidence_figure,
        evidence,
        theme,
        directions=run.directions,
        height=_HEIGHT,
    )
    unit = "" if evidence.unit == "1" else unit_name(evidence.unit)
    card(title, figure, evidence.frame, *numbers, key=f"evidence-{key}", unit=unit, height=_HEIGHT)


def _evidence_title(evidence: Evidence) -> str:
    column = evidence.y[0] if evidence.y else evidence.x
    shared = column.rpartition("_")[0]
    # one quantity of both directions, which the legend tells apart
    if len(evidence.y) > 1 and shared and all(each.rpartition("_")[0] == shared for each in evidence.y):
        column = shared
    axis = column_name(evidence.x).lower()
    return _("{quantity} by {axis}").format(quantity=column_name(column), axis=axis)


def _measured(name: str, value: float, unit: str, n: int) -> str:
    number = fixed(value, 0 if unit in _COUNTED else 3)
    text = percent(value, 1) if unit == "1" else f"{number} {unit_name(unit)}".strip()
    return _("{name} {value} (n = {n})").format(name=column_name(name), value=text, n=f"{n:,}")


def _try_this(run: Run, changes: tuple[Change, ...]) -> None:
    if not changes:
        return
    rows = [[_("Setting"), _("now"), _("try")]]
    rows += [[change.name, _plain(change.before), _plain(change.value)] for change in changes]
    st.html(element("p", _("Try this"), "uw-muted") + table_html(rows))
    for page, name, wanted in _sliders(changes):
        st.page_link(
            page,
            label=_("Try it on {page}").format(page=name),
            icon=":material/tune:",
            query_params={"run": run.run_id, **wanted},
        )
    st.code(" ".join(f"--set {word}" for word in setting_words(_sections(changes))), language="bash")


def _plain(value: Any) -> str:
    return "-" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def _sections(changes: tuple[Change, ...]) -> dict[str, dict[str, Any]]:
    sections: dict[str, dict[str, Any]] = {}
    for change in changes:
        part, _dot, name = change.name.partition(".")
        sections.setdefault(part, {})[name] = change.value
    return sections


def _sliders(changes: tuple[Change, ...]) -> list[tuple[str, str, dict[str, str]]]:
    """Pages whose sliders can take the changes: path, name and what the address then holds."""
    loss: Mapping[str, Any] = _sections(changes).get("loss", {})
    pages = [
        ("pages/explain/weight_curve.py", _("Weight curve"), CONTROLS),
        ("pages/explain/modal_balance.py", _("Modal balance"), BALANCE_CONTROLS.names),
    ]
    return [
        (path, name, {key: str(value) for key, value in loss.items() if key in names})
        for path, name, names in pages
        if any(key in names for key in loss)
    ]


def _show_me(run: Run, found: Finding) -> None:
    folder = {"training": "watch"}.get(found.link.page, "explain")
    st.page_link(
        f"pages/{folder}/{found.link.page}.py",
        label=_("Show me"),
        icon=":material/arrow_forward:",
        query_params={"run": run.run_id, **found.link.query},
    )


def quiet_rules(told: Diagnosis) -> None:
    """List the rules that are silent, and those that cannot judge the run, each with its reason."""
    titles = {rule.name: translate(rule.title) for rule in RULES}
    section(_("What else was looked for") if told.findings else _("What was looked for"))
    left, right = st.columns(2, gap="small")
    with left.container(border=True, key="card-silent"):
        count = len(told.silent)
        text = ngettext("{n} rule found nothing", "{n} rules found nothing", count).format(n=count)
        st.html(element("h2", text, "uw-title") + _list({titles[name]: "" for name in told.silent}))
        if not count:
            note(_("None has what it needs yet."))
    with right.container(border=True, key="card-not-applicable"):
        count = len(told.not_applicable)
        text = ngettext("{n} rule cannot judge this run", "{n} rules cannot judge this run", count)
        st.html(
            element("h2", text.format(n=count), "uw-title")
            + _list({titles[name]: reason for name, reason in told.not_applicable.items()})
        )
        if not count:
            note(_("Everything that the rules need was logged."))


def _list(entries: Mapping[str, str]) -> str:
    lines = [
        f"<li>{html.escape(name)}{element('small', reason, 'uw-muted') if reason else ''}</li>"
        for name, reason in entries.items()
    ]
    return f'<ul class="uw-guide uw-rules">{"".join(lines)}</ul>'


def findings_download(told: Diagnosis) -> None:
    """Offer all findings as one table."""
    frame = findings_table(told)
    st.download_button(
        _("All findings as CSV"),
        lambda: to_csv(frame),
        file_name="findings.csv",
        mime="text/csv",
        key="csv-findings",
        icon=":material/download:",
        type="tertiary",
        on_click="ignore",
    )


def findings_table(told: Diagnosis) -> pd.DataFrame:
    """All findings with their numbers, a row per number, as the download gives them."""
    return pd.DataFrame(
        [
            {
                "rule": found.rule,
                "severity": found.severity,
                "confidence": found.confidence,
                "title": found.title,
                "number": number.name,
                "value": number.value,
                "unit": number.unit,
                "n": number.n,
                "first_step": number.first_step,
                "last_step": number.last_step,
                "changes": yaml.safe_dump(_sections(found.changes), default_flow_style=True).strip(),
            }
            for found in told.findings
            for number in found.numbers
        ]
    )
