"""What a comparison shows: its methods, differences, recall over epochs, configuration and ablation."""

from __future__ import annotations

import html
from collections.abc import Mapping

import pandas as pd
import streamlit as st

from uwml_core.analysis.compare.ablation import ablation, ablation_texts, configuration_diff
from uwml_core.analysis.compare.bootstrap import DRAWS
from uwml_core.analysis.compare.comparable import recount_note, shares_data
from uwml_core.analysis.compare.comparison import Comparison
from uwml_core.analysis.compare.headline import chosen_note, seeds_note
from uwml_core.analysis.compare.methods import Method, member_of, methods_of, seeds_text
from uwml_core.analysis.compare.progress import recall_progress
from uwml_core.analysis.compare.tables import difference_texts
from uwml_core.analysis.text import listed
from uwml_core.figures import compare as figures
from uwml_core.figures.theme import Theme
from uwml_core.i18n import _
from uwml_core.ui.card import card
from uwml_core.ui.compare_choice import CompareChoice
from uwml_core.ui.compare_read import entries_at, kept_for, recount_errors
from uwml_core.ui.read import evals
from uwml_core.ui.status import badge_html
from uwml_core.ui.table_export import export_card
from uwml_core.ui.text import element, note

_HEIGHT = 380


def chosen_methods(chosen: CompareChoice) -> list[Method]:
    """Methods of all chosen runs, the baseline's first, whether they can be compared or not."""
    first = [run for run in chosen.runs if run.run_id == chosen.baseline]
    rest = [run for run in chosen.runs if run.run_id != chosen.baseline]
    return methods_of([member_of(run) for run in (*first, *rest)])


def methods_line(chosen: CompareChoice, methods: list[Method], colors: Mapping[str, str]) -> None:
    """Draw which colour is which method, how many runs it has and how they are doing."""
    status = {run.run_id: run.status for run in chosen.runs}
    parts = []
    for place, method in enumerate(methods):
        badges = "".join(map(badge_html, dict.fromkeys(status[m.run_id] for m in method.members)))
        small = seeds_text(method) + (_(", baseline") if place == 0 else "")
        parts.append(
            f'<span><i style="background:{colors[method.name]}"></i><b>{html.escape(method.name)}</b></span>'
            f"{element('span', small, 'uw-muted')}{badges}"
        )
    st.html(
        '<div class="uw-status uw-methods">' + "".join(f"<span>{part}</span>" for part in parts) + "</div>"
    )


def difference_card(
    chosen: CompareChoice, found: Comparison, colors: Mapping[str, str], theme: Theme
) -> None:
    """Draw the differences of R@K with their intervals."""
    figure = kept_for(
        chosen,
        "difference figure",
        lambda: figures.difference_figure(found.differences, theme, colors=colors, height=_HEIGHT),
    )
    frame = figures.shown_intervals(found.differences)
    title = _("Difference to {baseline}").format(baseline=found.methods[0].name) if found.methods else ""
    several = found.differences["method"].nunique()
    card(
        title or _("Difference to the baseline"),
        figure,
        frame,
        seeds_note(found.differences),
        _("Filled where the interval leaves out 0"),
        _("{n} intervals: one in twenty misses by chance").format(n=len(frame)) if several > 1 else "",
        key="differences",
        unit=_("points of recall"),
        height=_HEIGHT,
    )


def progress_card(
    chosen: CompareChoice, methods: list[Method], colors: Mapping[str, str], theme: Theme
) -> None:
    """Draw R@1 of all chosen runs over epochs."""
    tables = {run.run_id: evals(run) for run in chosen.runs}
    # recall on other data is another scale
    alike = [m for m in methods if shares_data(methods[0].members[0], m.members[0])]
    curves = kept_for(chosen, "progress", lambda: recall_progress(alike, tables, chosen.split))
    figure = kept_for(
        chosen,
        "progress figure",
        lambda: figures.progress_figure(
            curves, theme, directions=methods[0].members[0].directions, colors=colors, height=_HEIGHT
        ),
    )
    several = len(curves) and curves["runs"].max() > 1
    band = _("Line: mean over a method's runs, band: their range") if several else ""
    title = _("R@1 on {split}").format(split=chosen.split)
    card(title, figure, curves, band, key="progress", unit="%", height=_HEIGHT)


def difference_table(chosen: CompareChoice, found: Comparison, place: int) -> None:
    """Draw every metric's difference of one method.

    Args:
        chosen: what is compared.
        found: what came out.
        place: of the method in ``found.methods``.
    """
    baseline, method = found.methods[0], found.methods[place]
    frame = found.differences[found.differences["method"] == method.name]
    rows = difference_texts(frame, baseline.name, method.name)
    first = frame.iloc[0]
    drawn = _("{draws} resamples of {items} items with all their queries, the same for both runs").format(
        draws=f"{DRAWS:,}", items=f"{int(first['items']):,}"
    )
    counts = [
        _("{direction}: n = {n}").format(direction=direction, n=f"{len(ranks):,}")
        for direction, ranks in found.outcomes[0][0].ranks.items()
    ]
    any_p = frame["mcnemar_p"].notna().any()
    export_card(
        _("Differences on {split}").format(split=chosen.split),
        frame,
        rows,
        ", ".join(counts),
        drawn,
        chosen_note(
            chosen.at, [entries_at(chosen)[m.run_id] for one in (baseline, method) for m in one.members]
        ),
        _("McNemar: exact, two-sided, only where no item asks twice") if any_p else "",
        recount_note(recount_errors(chosen)),
        key="differences-table",
    )


def configuration_card(methods: list[Method]) -> None:
    """Draw the settings that differ; nothing for a single method."""
    if len(methods) < 2:
        return
    frame = configuration_diff(methods)
    unlogged = [method.name for method in methods if not method.settings]
    missing = _("No settings were logged by {runs}").format(runs=listed(unlogged)) if unlogged else ""
    if frame.empty:
        note(missing or _("No logged setting differs but the seed."))
        return
    rows = [[_("Setting"), *frame.columns[1:]], *frame.to_numpy().tolist()]
    export_card(_("What differs in the configuration"), frame, rows, missing, key="configuration")


def ablation_card(chosen: CompareChoice, found: Comparison) -> None:
    """Draw what each method reached, beside its differing settings."""
    frame: pd.DataFrame = kept_for(chosen, "ablation", lambda: ablation(found))
    export_card(
        _("Ablation"),
        frame,
        ablation_texts(frame, found),
        _("R@K in percent on {split}, ± half the 95 % interval").format(split=chosen.split),
        _("over seeds where there are two or more, else over queries"),
        key="ablation",
    )
