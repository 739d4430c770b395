"""How a run is doing and how old its newest row is."""

from __future__ import annotations

import html
from datetime import UTC, datetime
from typing import Any

import pandas as pd
import streamlit as st

from uwml_core.analysis.run_words import status_label
from uwml_core.i18n import _, ngettext
from uwml_core.ui.text import element


def short_status(status: str) -> str:
    """The status in one or two words, for a table."""
    short = {"stopped": _("stopped"), "stale": _("stopped writing"), "foreign": _("foreign")}
    return short.get(status) or status_label(status)


def age_text(seconds: float) -> str:
    """An age in the largest fitting unit.

    Args:
        seconds: age; a small negative one, from clocks that disagree, counts as 0.

    Example:
        >>> age_text(3.4), age_text(200), age_text(90_000)
        ('3 s', '3 min', '25 h')
    """
    seconds = max(0.0, seconds)
    for limit, size, unit in ((120, 1, _("s")), (7200, 60, _("min")), (172_800, 3600, _("h"))):
        if seconds < limit:
            return f"{int(seconds // size)} {unit}"
    return f"{int(seconds // 86_400)} {_('d')}"


def badge_html(status: str) -> str:
    """Coloured dot and word for a status; an unknown one is shown as it is."""
    css = status if status.isalpha() and status.isascii() else "other"
    return element("span", status_label(status), f"uw-badge {css}")


def row_age(time: Any, now: datetime | None = None) -> str:
    """How old a row is; empty without a time."""
    if time is None or pd.isna(time):
        return ""
    age = (now or datetime.now(UTC)) - time
    return _("newest row {age} old").format(age=age_text(age.total_seconds()))


def status_line(name: str, status: str, last_step: dict[str, Any] | None, extra: str = "") -> None:
    """One line: run, status, last step, age of its newest row."""
    parts = [f"<b>{html.escape(name)}</b>", badge_html(status)]
    if last_step:
        steps = int(last_step["step"]) + 1
        parts.append(html.escape(ngettext("{n} step", "{n} steps", steps).format(n=f"{steps:,}")))
        parts.append(html.escape(row_age(last_step.get("time"))))
    parts.append(html.escape(extra))
    st.html('<div class="uw-status">' + "".join(f"<span>{part}</span>" for part in parts if part) + "</div>")
