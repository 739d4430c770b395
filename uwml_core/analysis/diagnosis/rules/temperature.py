"""A temperature at which the softmax is a maximum, and one at which all negatives count alike."""

from __future__ import annotations

import numpy as np
import pandas as pd

from uwml_core.analysis.diagnosis.finding import Change, Evidence, Finding, Measured, PageLink, confidence
from uwml_core.analysis.diagnosis.frames import Frames
from uwml_core.analysis.diagnosis.registry import NotApplicable, Rule
from uwml_core.analysis.diagnosis.series import current, measured, tail
from uwml_core.analysis.diagnosis.thresholds import EASY_LIMIT, SMALL_TEMPERATURE
from uwml_core.analysis.splits import main_split
from uwml_core.analysis.text import fixed, percent
from uwml_core.i18n import _, mark
from uwml_core.weighting import UWMLConfig

_NEWEST = 200


def check_small(frames: Frames) -> list[Finding]:
    """Find a temperature below what any method uses, and tell how recall jumps from epoch to epoch."""
    found = measured(frames, "temperature", frames.column("temperature"), tail(frames), "cosine")
    if not 0 < found.value < SMALL_TEMPERATURE:
        return []
    recall = _recall(frames)
    jump = float(np.abs(np.diff(recall["recall"])).mean()) if len(recall) > 1 else float("nan")
    return [
        Finding(
            rule=SMALL_TEMPERATURE_RULE.name,
            severity="warning",
            confidence=confidence(found.value, SMALL_TEMPERATURE, SMALL_TEMPERATURE / 3),
            title=_(
                "The temperature is {temperature} over the last {n} steps; recall on val moves by {jump} "
                "points from one evaluation to the next."
            ).format(temperature=fixed(found.value, 4), n=f"{found.n:,}", jump=fixed(jump, 1)),
            cause=_(
                "Dividing by so little makes the softmax a maximum: one negative per anchor gets all the "
                "gradient, noise and wrong pairs above all."
            ),
            advice=_("Raise the temperature: 0.05 to 0.1 for small batches, 0.01 for very large ones."),
            numbers=(found, Measured(name="recall_jump", value=jump, unit="%", n=max(0, len(recall) - 1))),
            evidence=Evidence(frame=recall, x="epoch", y=("recall",), unit="%"),
            changes=_default_temperature(frames),
            link=PageLink(page="training"),
        )
    ]


def _recall(frames: Frames) -> pd.DataFrame:
    evals = frames.evals
    rows = evals[(evals["metric"] == "R@1") & (evals["split"] == main_split(evals)) & (evals["epoch"] >= 0)]
    found = rows.groupby(["step", "epoch"], as_index=False)["value"].mean()
    return pd.DataFrame(found).rename(columns={"value": "recall"})


def check_easy(frames: Frames) -> list[Finding]:
    """Find that all but the hardest negative of each anchor hold nearly all of the negative gradient."""
    if frames.loss is not None and (
        frames.loss.base != "infonce" or frames.loss.negative_statistic != "hardest"
    ):
        raise NotApplicable(_("Only InfoNCE with the hardest negative tells who holds the gradient."))
    shares = _easy_shares(frames)
    if shares.empty:
        raise NotApplicable(_("No pair has both a loss and a weight."))
    value = float(shares["easy"].mean())
    if not value > EASY_LIMIT:
        return []
    number = Measured(
        name="easy_share", value=value, unit="1", n=len(shares),
        first_step=int(shares["step"].min()), last_step=int(shares["step"].max()),
    )  # fmt: skip
    temperature = float(np.nanmedian(frames.column("temperature")))
    return [
        Finding(
            rule=EASY_NEGATIVES.name,
            severity="warning",
            confidence=confidence(value, EASY_LIMIT, 1.0),
            title=_(
                "Easy negatives hold {share} of the negative gradient (last {n} steps): the hardest one of "
                "an anchor hardly counts."
            ).format(share=percent(value, 1), n=f"{len(shares):,}"),
            cause=_("The temperature {temperature} is so high that all negatives weigh alike.").format(
                temperature=fixed(temperature, 3)
            ),
            advice=_("Lower the temperature, or weigh pairs by difficulty."),
            numbers=(number,),
            evidence=Evidence(
                frame=shares, x="step", y=("easy",), unit="1", limit=EASY_LIMIT, limit_name=_("limit")
            ),
            changes=_default_temperature(frames),
            link=PageLink(page="weight_curve"),
        )
    ]


def _default_temperature(frames: Frames) -> tuple[Change, ...]:
    before = current(frames, "loss.temperature")
    return (Change(name="loss.temperature", value=UWMLConfig().temperature, before=before),)


def _easy_shares(frames: Frames) -> pd.DataFrame:
    """Part of the negative gradient behind the hardest negatives, ``[step, easy]`` of the newest steps."""
    known = frames.steps["step"].to_numpy()
    rows = frames.pairs.iloc[_newest_rows(frames.pairs["step"].to_numpy()) :]
    step = rows["step"].to_numpy()
    place = np.minimum(np.searchsorted(known, step), len(known) - 1)
    temperature = np.where(known[place] == step, frames.column("temperature")[place], np.nan)
    margin, loss, weight = (rows[name].to_numpy(np.float64) for name in ("margin", "pair_loss", "weight"))
    pull = -weight * np.expm1(-loss)
    hardest = weight * np.exp(np.minimum(-loss - margin / temperature, 0.0))
    usable = np.isfinite(hardest) & np.isfinite(pull)
    parts = pd.DataFrame({"step": step, "hardest": hardest, "all": pull})[usable]
    sums = parts.groupby("step", as_index=False).sum()
    sums = sums[sums["all"] > 0]
    easy = 1.0 - np.minimum(sums["hardest"] / sums["all"], 1.0)
    return pd.DataFrame({"step": sums["step"].astype(np.int64), "easy": easy}).reset_index(drop=True)


def _newest_rows(step: np.ndarray) -> int:
    """First row of the newest ``_NEWEST`` steps that have rows."""
    begins = np.flatnonzero(np.diff(step, prepend=-1))
    return int(begins[-_NEWEST]) if len(begins) >= _NEWEST else 0


SMALL_TEMPERATURE_RULE = Rule(
    name="small_temperature",
    title=mark("A temperature that is too small"),
    tables=("steps", "evals"),
    needs=("steps.temperature",),
    check=check_small,
)
EASY_NEGATIVES = Rule(
    name="easy_negatives",
    title=mark("Easy negatives that hold the gradient"),
    tables=("steps", "pairs"),
    needs=("steps.temperature", "pairs.pair_loss", "pairs.weight"),
    check=check_easy,
    early=False,
)
