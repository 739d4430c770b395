"""Training loss that falls while recall on held-out items falls."""

from __future__ import annotations

import numpy as np
import pandas as pd

from uwml_core.analysis.diagnosis.finding import Change, Evidence, Finding, Measured, PageLink, confidence
from uwml_core.analysis.diagnosis.frames import Frames
from uwml_core.analysis.diagnosis.registry import NotApplicable, Rule
from uwml_core.analysis.diagnosis.series import current
from uwml_core.analysis.diagnosis.thresholds import FEWEST_EVALUATIONS, RECALL_FALL, TRAIN_ACCURACY
from uwml_core.analysis.splits import main_split
from uwml_core.analysis.text import fixed, percent
from uwml_core.i18n import _, mark


def check(frames: Frames) -> list[Finding]:
    """Find R@1, R@5 and R@10 of both directions, on average, below their best while training goes on well."""
    recall = _recall(frames)
    if len(recall) < FEWEST_EVALUATIONS:
        raise NotApplicable(
            _("Too few evaluations: {n}, {needed} needed to see recall fall.").format(
                n=len(recall), needed=FEWEST_EVALUATIONS
            )
        )
    best = int(recall["recall"].to_numpy().argmax())
    fall = float(recall["recall"].iloc[best] - recall["recall"].iloc[-1])
    relative = fall / max(float(recall["recall"].iloc[best]), 1e-9)
    accuracy = _train_accuracy(frames)
    if not (relative > RECALL_FALL and best < len(recall) - 1 and accuracy > TRAIN_ACCURACY):
        return []
    return [_falling(frames, recall, best, accuracy)]


def _falling(frames: Frames, recall: pd.DataFrame, best: int, accuracy: float) -> Finding:
    first, last = recall.iloc[best], recall.iloc[-1]
    fall = float(first["recall"] - last["recall"])
    relative = fall / max(float(first["recall"]), 1e-9)
    return Finding(
        rule=OVERFITTING.name,
        severity="warning",
        confidence=confidence(relative, RECALL_FALL, 3 * RECALL_FALL),
        title=_(
            "Recall on val fell from {best} % in epoch {epoch} to {last} % (mean of R@1, R@5 and R@10, "
            "both directions, n = {n}), while {accuracy} of the training anchors are right."
        ).format(
            best=fixed(first["recall"]),
            epoch=int(first["epoch"]),
            last=fixed(last["recall"]),
            n=f"{int(last['n']):,}",
            accuracy=percent(accuracy),
        ),
        cause=_(
            "The model learns the training pairs by heart: too few items, or too many epochs for them."
        ),
        advice=_(
            "Stop at the best epoch, take more data, more weight decay, a smaller model or a lower rate."
        ),
        numbers=(
            Measured(
                name="recall_fall", value=fall, unit="%", n=int(last["n"]),
                first_step=int(first["step"]), last_step=int(last["step"]),
            ),
            Measured(name="train_accuracy", value=accuracy, unit="1", n=len(frames.steps)),
        ),
        evidence=Evidence(frame=recall, x="epoch", y=("recall",), unit="%"),
        changes=(
            Change(
                name="train.epochs",
                value=int(first["epoch"]) + 1,
                before=current(frames, "train.epochs"),
            ),
        ),
        link=PageLink(page="training"),
    )  # fmt: skip


def _recall(frames: Frames) -> pd.DataFrame:
    """Mean R@K of the evaluations of the ``main_split``, ``[step, epoch, recall, n]``."""
    evals = frames.evals
    recalls = evals["metric"].isin(["R@1", "R@5", "R@10"])
    rows = evals[recalls & (evals["split"] == main_split(evals)) & (evals["epoch"] >= 0)]
    rows = rows[np.isfinite(rows["value"].to_numpy(dtype=np.float64))]
    found = rows.groupby("step", as_index=False).agg({"epoch": "last", "value": "mean", "n": "max"})
    return pd.DataFrame(found).rename(columns={"value": "recall"})


def _train_accuracy(frames: Frames) -> float:
    """Mean over the newest tenth of the steps and the directions that were logged."""
    newest = max(1, len(frames.steps) // 10)
    accuracy = np.array([frames.column(f"accuracy_{d}")[-newest:] for d in frames.directions])
    return float(np.nanmean(accuracy)) if np.isfinite(accuracy).any() else float("nan")


OVERFITTING = Rule(
    name="overfitting",
    title=mark("Recall on held-out items that falls while training goes on"),
    tables=("evals", "steps"),
    needs=("evals.value", "steps.accuracy_d"),
    check=check,
)
