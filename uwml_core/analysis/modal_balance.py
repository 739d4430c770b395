"""Which direction lags, and what another controller would have done about it on the logged gaps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from uwml_core.analysis.balance_lines import (
    Drawn,
    Lines,
    Moves,
    Side,
    View,
    contribution_lines,
    drawn,
    gap_and_weight_lines,
    moves,
    side,
)
from uwml_core.analysis.controller_log import ControllerLog, controller_log
from uwml_core.analysis.decimation import inside
from uwml_core.analysis.jitter import jitter
from uwml_core.analysis.lag import Lag
from uwml_core.analysis.text import fixed, sentences
from uwml_core.i18n import _, ngettext
from uwml_core.weighting import LoggedGaps, UWMLConfig, replay_controller

CONTROLLER_PARAMETERS = (
    "direction_mode",
    "direction_fixed",
    "window",
    "update_every",
    "smoothing",
    "sensitivity",
    "min_weight",
)


@dataclass(frozen=True, kw_only=True)
class Balance:
    """Gaps, weights and contributions as logged, and as replayed with other parameters.

    Attributes:
        log: the logged steps.
        lines: gap (line raw, before, after: per step, mean over the window in use, over the one tried) and
            weight (before: as logged, after: replayed), decimated.
        contributions: contribution (w_d L_d) and share (of the loss, %), rolling means, before and
            after, decimated.
        updates: ``[step, shown]``: steps at which the tried controller updates its weights; ``shown``
            thins them out where they would run into each other.
        summary: one row per direction: direction, steps; for before and after: weight_last,
            weight_mean, weight_sd, jitter, jitter_sd (total variation of the weight per 100 steps and its
            spread over stretches of 100 steps), jitter_stretches, share_mean, share_sd (% of the loss),
            share_steps and updates.
        unchanged: whether both controllers have the same parameters.
    """

    log: ControllerLog
    lines: Lines
    contributions: Lines
    updates: pd.DataFrame
    summary: pd.DataFrame
    unchanged: bool


@dataclass(frozen=True, kw_only=True, eq=False)
class BalanceInUse:
    """What every replay starts from; the same whatever is tried.

    Attributes:
        log: the logged steps.
        gaps: their gaps, ready for a replay.
        raw: gap of each step.
        side: what the controller in use does.
        summary: its columns of ``Balance.summary``, by direction.
        config: the parameters in use.
        directions: the run's directions.
        max_points: most points per line.
    """

    log: ControllerLog
    gaps: LoggedGaps
    raw: Drawn
    side: Side
    summary: list[dict[str, object]]
    config: UWMLConfig
    directions: tuple[str, str]
    max_points: int


def balance_in_use(
    steps: pd.DataFrame, config: UWMLConfig, directions: tuple[str, str], *, max_points: int = 1200
) -> BalanceInUse:
    """Look at the logged gaps and weights.

    Args:
        steps: frame of the table ``steps`` with ``controller_log.balance_columns``, in step order.
        config: the parameters in use.
        directions: the run's directions.
        max_points: most points per line.
    """
    log = controller_log(steps, directions)
    gaps = LoggedGaps.of(log.gap)
    moved = moves(log, gaps, log.weight if log.has_weights else replay_controller(gaps, config), config)
    return BalanceInUse(
        log=log,
        gaps=gaps,
        raw=drawn(log, log.gap, log.pairs, max_points),
        side=side(log, moved, max_points),
        summary=_summary(moved, "before"),
        config=config,
        directions=directions,
        max_points=max_points,
    )


def modal_balance(
    steps: pd.DataFrame,
    before: UWMLConfig,
    after: UWMLConfig,
    directions: tuple[str, str],
    *,
    max_points: int = 1200,
) -> Balance:
    """``try_controller`` on gaps that are looked at once; arguments as for ``balance_in_use``."""
    return try_controller(balance_in_use(steps, before, directions, max_points=max_points), after)


def try_controller(
    before: BalanceInUse, after: UWMLConfig, within: tuple[float, float] | None = None
) -> Balance:
    """Replay the logged gaps with other parameters.

    ``before`` are the logged weights, or those that its parameters would have given where none were logged.
    The replay is open-loop: the logged gaps stay as they are, whatever the weights.

    Args:
        before: the logged gaps, the weights and the parameters in use.
        after: the parameters to try.
        within: first and last step of a range to draw more finely; None draws all steps alike.
    """
    log, directions = before.log, before.directions
    moved = moves(log, before.gaps, replay_controller(before.gaps, after), after)
    known = before.side if after.window == before.config.window else None
    tried = side(log, moved, before.max_points, known)
    usable = int(before.gaps.usable.sum())
    rows = [
        {"direction": direction, "steps": usable, **was, **now}
        for direction, was, now in zip(directions, before.summary, _summary(moved, "after"), strict=True)
    ]
    view = View(log=log, directions=directions, within=within, max_points=before.max_points)
    return Balance(
        log=log,
        lines=gap_and_weight_lines(before.raw, before.side, tried, view),
        contributions=contribution_lines(before.side, tried, view),
        updates=_updates(log.step[moved.updates], within),
        summary=pd.DataFrame(rows),
        unchanged=_same_controller(before.config, after),
    )


def _same_controller(before: UWMLConfig, after: UWMLConfig) -> bool:
    return all(getattr(before, name) == getattr(after, name) for name in CONTROLLER_PARAMETERS)


def _updates(step: np.ndarray, within: tuple[float, float] | None, most: int = 200) -> pd.DataFrame:
    shown = np.zeros(len(step), dtype=bool)
    for part in (shown, shown[inside(step, within)] if within else shown):
        part[:: max(1, -(-len(part) // most))] = True
    return pd.DataFrame({"step": step, "shown": shown})


def updates_note(updates: pd.DataFrame) -> str:
    """How many of the updates have a tick; empty where all have."""
    shown, total = int(updates["shown"].sum()), len(updates)
    if shown == total:
        return ""
    return _("{shown} of {total} updates marked").format(shown=f"{shown:,}", total=f"{total:,}")


def _summary(moved: Moves, when: str) -> list[dict[str, object]]:
    restless, rows = jitter(moved.weight), []
    for column in range(moved.weight.shape[1]):
        weight, part = _finite(moved.weight[:, column]), _finite(moved.share[:, column])
        values: dict[str, object] = {
            "weight_last": weight[-1] if len(weight) else np.nan,
            "weight_mean": _mean(weight),
            "weight_sd": _sd(weight),
            "jitter": restless.per_100_steps,
            "jitter_sd": restless.sd,
            "jitter_stretches": restless.stretches,
            "share_mean": _mean(part),
            "share_sd": _sd(part),
            "share_steps": len(part),
            "updates": len(moved.updates),
        }
        rows.append({f"{name}_{when}": value for name, value in values.items()})
    return rows


def _finite(values: np.ndarray) -> np.ndarray:
    kept: np.ndarray = values[np.isfinite(values)]
    return kept


def _mean(values: np.ndarray) -> float:
    return float(values.mean()) if len(values) else float("nan")


def _sd(values: np.ndarray) -> float:
    return float(values.std(ddof=1)) if len(values) > 1 else float("nan")


def balance_headline(lag: Lag, balance: Balance, after: UWMLConfig, directions: tuple[str, str]) -> str:
    """Which direction lags since when, and how much the weights move, before and after.

    Args:
        lag: which direction lags, as ``find_lag`` gives it.
        balance: as ``modal_balance`` gives it.
        after: the parameters that were tried.
        directions: the run's directions.
    """
    return sentences([_lag_sentence(lag, directions), _calm(balance, after)])


def _lag_sentence(lag: Lag, directions: tuple[str, str]) -> str:
    behind = lag.behind
    if not np.isfinite(behind.half_width):
        return ngettext(
            "Too little data yet to say which direction lags: {n} step with gaps.",
            "Too little data yet to say which direction lags: {n} steps with gaps.",
            behind.n,
        ).format(n=f"{behind.n:,}")
    if lag.lagging is None:
        text = _("Neither direction lags: {second} − {first} is {gap} ± {spread} over the last {n} steps.")
    elif lag.from_start or lag.first_epoch is None:
        text = _("{lagging} lags {leading} by {gap} ± {spread} since the first step (n = {n} steps).")
    else:
        text = _("{lagging} lags {leading} by {gap} ± {spread} since epoch {epoch} (n = {n} steps).")
    lagging = directions[lag.lagging or 0]
    # As many digits as the interval has something to say about.
    decimals = 3 if behind.half_width >= 0.002 else 4
    return text.format(
        first=directions[0],
        second=directions[1],
        lagging=lagging,
        leading=directions[1 - (lag.lagging or 0)],
        gap=fixed(behind.mean, decimals),
        spread=fixed(behind.half_width, decimals),
        epoch=lag.first_epoch,
        n=f"{behind.n:,}",
    )


def lag_mark(lag: Lag) -> tuple[int, str] | None:
    """Step and name of the moment since which a direction lags; None where it is not worth a mark."""
    if lag.lagging is None or lag.from_start or lag.first_step is None or lag.first_epoch is None:
        return None
    return lag.first_step, _("lagging since epoch {epoch}").format(epoch=lag.first_epoch)


def _calm(balance: Balance, after: UWMLConfig) -> str:
    row = balance.summary.iloc[0]
    before, now = float(row["jitter_before"]), float(row["jitter_after"])
    if balance.unchanged and not balance.log.has_weights:
        return _("No direction weight was logged.")
    if balance.unchanged and after.direction_mode != "adaptive":
        return _("The direction weights are not adapted (direction_mode: {mode}).").format(
            mode=after.direction_mode
        )
    if not np.isfinite(before):
        return ""
    if balance.unchanged:
        text = _("{direction} now weighs {weight}; jitter {before} per 100 steps.")
    else:
        text = _("Tried: {direction} weighs {was} → {weight}, jitter {before} → {after} per 100 steps.")
    # Of two weights that sum to 1 the larger one tells more.
    heavier = balance.summary.iloc[int(np.argmax(balance.summary["weight_last_after"]))]
    return text.format(
        direction=heavier["direction"],
        weight=fixed(float(heavier["weight_last_after"]), 2),
        was=fixed(float(heavier["weight_last_before"]), 2),
        before=fixed(before, 3),
        after=fixed(now, 3),
    )
