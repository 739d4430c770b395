"""What is there, what is running? One row per run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

import numpy as np
import pandas as pd

from uwml_core.analysis.loss_settings import loss_kind
from uwml_core.analysis.splits import main_split
from uwml_core.analysis.text import fixed, sentences
from uwml_core.analysis.training_summary import best_retrieval
from uwml_core.i18n import _, ngettext

LAST_STEP_COLUMNS = ("step", "epoch", "time", "elapsed_s")
RUN_COLUMNS = (
    "run_id",
    "name",
    "status",
    "loss",
    "started",
    "duration_s",
    "steps",
    "epoch",
    "first_direction",
    "second_direction",
    "r1_first",
    "r1_second",
    "n_first",
    "n_second",
    "rsum",
    "sparkline",
)


class RunMeta(Protocol):
    """What a row needs of a run; ``runlog.reader.Run`` has it."""

    @property
    def run_id(self) -> str:
        """Name of the run's folder."""

    @property
    def name(self) -> str:
        """Name to show."""

    @property
    def status(self) -> str:
        """Status as the reader derives it."""

    @property
    def config(self) -> dict[str, Any]:
        """Configuration, empty where unknown."""

    @property
    def created_at(self) -> Any:
        """Start, UTC; None where unknown."""

    @property
    def directions(self) -> tuple[str, str]:
        """Names of both directions."""


def last_step(steps: pd.DataFrame) -> dict[str, Any] | None:
    """The newest row of ``steps`` as a mapping, None without rows."""
    return None if steps.empty else {str(k): v for k, v in steps.iloc[-1].to_dict().items()}


def run_row(
    run: RunMeta, last: Mapping[str, Any] | None, evals: pd.DataFrame | None, split: str | None = None
) -> dict[str, Any]:
    """One row of the table of runs.

    Args:
        run: the run.
        last: its newest row of ``steps`` with ``LAST_STEP_COLUMNS``, None without steps.
        evals: frame of its table ``evals``, None without.
        split: evaluated split; None takes the ``main_split``.

    Returns:
        Mapping with the keys ``RUN_COLUMNS``; NaN, None or an empty list where nothing was logged.
        ``steps`` counts from the first, so it is the newest step + 1.
    """
    last = last or {}
    started = pd.to_datetime(run.created_at, utc=True, errors="coerce") if run.created_at else pd.NaT
    return {
        "run_id": run.run_id,
        "name": run.name,
        "status": run.status,
        "loss": loss_kind(run.config),
        "started": started,
        "duration_s": _duration_s(started, last),
        "steps": int(last["step"]) + 1 if last else 0,
        "epoch": _number(last.get("epoch")),
        "first_direction": run.directions[0],
        "second_direction": run.directions[1],
        **_retrieval(evals, run.directions, split),
    }


def _number(value: Any) -> float:
    return float("nan") if value is None or pd.isna(value) else float(value)


def _duration_s(started: Any, last: Mapping[str, Any]) -> float:
    # elapsed_s begins anew with each segment, so wall clock is right for a resumed run.
    newest: Any = last.get("time")
    newest = pd.NaT if newest is None else pd.to_datetime(newest, utc=True, errors="coerce")
    if pd.isna(started) or pd.isna(newest):
        return _number(last.get("elapsed_s"))
    return max(0.0, float((newest - started).total_seconds()))


def _retrieval(evals: pd.DataFrame | None, directions: tuple[str, str], split: str | None) -> dict[str, Any]:
    nothing = float("nan")
    row: dict[str, Any] = {"r1_first": nothing, "r1_second": nothing, "n_first": 0, "n_second": 0}
    if evals is None or evals.empty:
        return {**row, "rsum": nothing, "sparkline": []}
    split = split or main_split(evals)
    best = best_retrieval(evals, directions, split)
    for place, direction in zip(("first", "second"), directions, strict=True):
        found = best[(best["direction"] == direction) & (best["metric"] == "R@1")]
        if len(found):
            row |= {f"r1_{place}": float(found["value"].iloc[0]), f"n_{place}": int(found["n"].iloc[0])}
    mine = evals[evals["split"] == split]
    at_one = mine[(mine["metric"] == "R@1") & mine["direction"].isin(directions)]
    sums = mine.loc[mine["metric"] == "rsum", "value"]
    spark = at_one.groupby("step", sort=True)["value"].mean()
    return {**row, "rsum": float(sums.max()) if len(sums) else nothing, "sparkline": spark.dropna().tolist()}


def runs_table(rows: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """Rows of ``run_row`` as a frame with the columns ``RUN_COLUMNS``, in the order given."""
    table = pd.DataFrame([dict(row) for row in rows], columns=list(RUN_COLUMNS))
    return table.assign(started=pd.to_datetime(table["started"], utc=True))


def search_runs(table: pd.DataFrame, text: str) -> pd.DataFrame:
    """Rows in which every word of ``text`` occurs in name, id, loss or status, whatever the case."""
    shown = table[["name", "run_id", "loss", "status"]].astype(str)
    haystack = shown.agg("\n".join, axis=1).str.casefold() if len(table) else pd.Series(dtype=str)
    keep = np.ones(len(table), dtype=bool)
    for word in text.casefold().split():
        keep &= np.array([word in line for line in haystack], dtype=bool)
    return table[keep].reset_index(drop=True)


def runs_headline(table: pd.DataFrame) -> str:
    """One sentence: how many runs, how many of them running, which retrieves best."""
    if table.empty:
        return _("No runs yet: start the demo, or log your own loop with RunLogger.")
    count = ngettext("{count} run", "{count} runs", len(table)).format(count=f"{len(table):,}")
    running = int((table["status"] == "running").sum())
    text = _("{runs}, {running} running.").format(runs=count, running=f"{running:,}")
    known = table.dropna(subset=["rsum"])
    if known.empty:
        return sentences([text, _("No evaluation logged yet.")])
    alike = _same_queries(known)
    best = alike.iloc[int(alike["rsum"].to_numpy().argmax())]
    highest = _(
        "Highest rsum on val: {rsum} by {name} (R@1 {first} % {d1}, {second} % {d2}; n = {n1} and {n2})."
    ).format(
        rsum=fixed(best["rsum"]),
        name=best["name"],
        first=fixed(best["r1_first"]),
        second=fixed(best["r1_second"]),
        d1=best["first_direction"],
        d2=best["second_direction"],
        n1=f"{best['n_first']:,}",
        n2=f"{best['n_second']:,}",
    )
    if len(alike) == len(known):
        return sentences([text, highest])
    others = ngettext(
        "{count} run on other queries cannot be compared with it.",
        "{count} runs on other queries cannot be compared with it.",
        len(known) - len(alike),
    ).format(count=f"{len(known) - len(alike):,}")
    return sentences([text, highest, others])


def _same_queries(known: pd.DataFrame) -> pd.DataFrame:
    """Evaluated runs with the queries of the newest: recall on other data is another scale."""
    columns = ["first_direction", "n_first", "n_second"]
    newest = known["started"].fillna(pd.Timestamp.min.tz_localize("UTC")).to_numpy().argmax()
    return known[(known[columns] == known[columns].iloc[int(newest)]).all(axis=1)]
