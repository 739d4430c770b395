"""Train probes whose margin keeps growing while recall on val falls."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from uwml_core.analysis.splits import main_split
from uwml_core.analysis.text import fixed, listed
from uwml_core.i18n import _, ngettext

METRIC = "R@1"
FEWEST_EVALUATIONS = 4
# Two standard errors of the difference of two shares, as if the queries were not the same.
Z = 2.0


@dataclass(frozen=True, kw_only=True)
class RecallFall:
    """How recall on val moved from its best evaluation to the last one.

    Attributes:
        direction: retrieval direction.
        evaluations: after training began.
        best_epoch, last_epoch: where; −1 without any.
        best, last: R@1 in percent, NaN without any.
        error: what the difference must exceed to count, percent.
    """

    direction: str
    evaluations: int
    best_epoch: int = -1
    last_epoch: int = -1
    best: float = float("nan")
    last: float = float("nan")
    error: float = float("nan")

    @property
    def enough(self) -> bool:
        """Whether there are enough evaluations to speak of a fall."""
        return self.evaluations >= FEWEST_EVALUATIONS

    @property
    def falls(self) -> bool:
        """Whether recall lies below its best by more than chance explains."""
        return self.enough and self.best - self.last > self.error


def recall_fall(
    evals: pd.DataFrame, direction: str, until_epoch: int | None = None, split: str | None = None
) -> RecallFall:
    """Look at R@1 from its best evaluation to the last one.

    Args:
        evals: frame of the table ``evals``.
        direction: retrieval direction.
        until_epoch: leaves later evaluations out; None keeps all.
        split: evaluated split; None takes the ``main_split``.

    Returns:
        The fall; it counts beyond two standard errors, √(p₁(100 − p₁)/n₁ + p₂(100 − p₂)/n₂) in percent.
    """
    split = split or main_split(evals)
    rows = evals[(evals["split"] == split) & (evals["metric"] == METRIC) & (evals["direction"] == direction)]
    rows = rows[(rows["epoch"] >= 0) & rows["value"].notna()].sort_values("step", kind="stable")
    if until_epoch is not None:
        rows = rows[rows["epoch"] <= until_epoch]
    if rows.empty:
        return RecallFall(direction=direction, evaluations=0)
    value, n = rows["value"].to_numpy(dtype=float), rows["n"].to_numpy(dtype=float)
    best = int(np.argmax(value))
    variance = [value[k] * (100.0 - value[k]) / max(n[k], 1.0) for k in (best, -1)]
    return RecallFall(
        direction=direction,
        evaluations=len(rows),
        best_epoch=int(rows["epoch"].iloc[best]),
        last_epoch=int(rows["epoch"].iloc[-1]),
        best=float(value[best]),
        last=float(value[-1]),
        error=Z * float(np.sqrt(sum(variance))),
    )


def memorised(neighbors: pd.DataFrame, falls: list[RecallFall]) -> pd.DataFrame:
    """Train probes whose margin grew since recall on val was best, in directions in which it falls.

    Args:
        neighbors: frame of ``with_margin``.
        falls: one per direction.

    Returns:
        Frame ``[direction, item_id, caption, negative_item_id, negative_caption, margin, margin_then, growth,
        n, first_epoch, last_epoch]``: the nearest wrong candidate at the last snapshot, the margin there and
        at the best epoch, n snapshots in between, both included. The largest growth comes first.
    """
    parts = [_grown(neighbors, fall) for fall in falls if fall.falls]
    columns = [
        "direction", "item_id", "caption", "negative_item_id", "negative_caption", "margin", "margin_then",
        "growth", "n", "first_epoch", "last_epoch",
    ]  # fmt: skip
    found = pd.concat(parts) if parts else pd.DataFrame(columns=columns)
    return found.sort_values("growth", ascending=False, kind="stable")[columns].reset_index(drop=True)


def _grown(neighbors: pd.DataFrame, fall: RecallFall) -> pd.DataFrame:
    rows = neighbors[(neighbors["split"] == "train") & (neighbors["rank"] == 1)]
    rows = rows[(rows["direction"] == fall.direction)]
    rows = rows[rows["epoch"].between(fall.best_epoch, fall.last_epoch)]
    grouped = rows.groupby("item_id", sort=True)
    last = grouped.last().reset_index()
    last["margin_then"] = grouped["margin"].first().to_numpy()
    last["growth"] = last["margin"] - last["margin_then"]
    last["n"] = grouped.size().to_numpy()
    last["first_epoch"], last["last_epoch"] = grouped["epoch"].first().to_numpy(), last["epoch"]
    return last[(last["n"] >= 2) & (last["growth"] > 0)]


def memorised_headline(found: pd.DataFrame, falls: list[RecallFall]) -> str:
    """One sentence: whether recall on val falls while train margins grow.

    Args:
        found: frame of ``memorised``.
        falls: one per direction.
    """
    known = [fall for fall in falls if fall.enough]
    if not known:
        most = max((fall.evaluations for fall in falls), default=0)
        return ngettext(
            "Too little data yet: {count} evaluation on val, {needed} needed to see recall fall.",
            "Too little data yet: {count} evaluations on val, {needed} needed to see recall fall.",
            most,
        ).format(count=most, needed=FEWEST_EVALUATIONS)
    falling = [fall for fall in known if fall.falls]
    if not falling:
        parts = [
            _("{direction} {last} % (best {best} %)").format(
                direction=fall.direction, last=fixed(fall.last), best=fixed(fall.best)
            )
            for fall in known
        ]
        return _("Nothing points to memorizing: R@1 on val does not fall, {parts}.").format(
            parts=listed(parts)
        )
    parts = [
        _("{direction} from {best} % in epoch {epoch} to {last} %").format(
            direction=fall.direction, best=fixed(fall.best), epoch=fall.best_epoch, last=fixed(fall.last)
        )
        for fall in falling
    ]
    text = _("R@1 on val fell, {parts}, while the margins of {n} train probes kept growing.")
    return text.format(parts=listed(parts), n=f"{found['item_id'].nunique():,}")
