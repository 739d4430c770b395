"""Whether replaying the logged parameters on the logged gaps gives the logged direction weights."""

from __future__ import annotations

import numpy as np

from uwml_core.analysis.controller_log import ControllerLog
from uwml_core.analysis.validity import Validity
from uwml_core.i18n import _, ngettext
from uwml_core.weighting import UWMLConfig, replay_controller


def replay_validity(log: ControllerLog, config: UWMLConfig | None) -> Validity:
    """Compare replayed and logged weights bit for bit.

    A resumed run goes on with the state of its controller, so its segments are one replay.

    Args:
        log: the logged steps.
        config: the run's loss, None where it is unknown.

    Returns:
        The largest difference and what it means; ``ok`` is None where nothing can be compared: loss
        unknown, gaps or weights not logged, or steps missing, whose gaps the controller knew. A weight
        that is not a number counts as a failure.
    """
    reason = _cannot(log, config)
    if reason or config is None:
        return Validity(max_error=float("nan"), n=0, ok=None, reason=reason)
    replayed = replay_controller(log.gap, config)
    wrong = np.flatnonzero((replayed != log.weight).any(axis=1))
    error, n = float(np.abs(replayed - log.weight).max()), f"{len(replayed):,}"
    if not len(wrong):
        text = ngettext(
            "Replaying the logged parameters gives the logged direction weights bit for bit ({n} step).",
            "Replaying the logged parameters gives the logged direction weights bit for bit ({n} steps).",
            len(replayed),
        ).format(n=n)
        return Validity(max_error=error, n=len(replayed), ok=True, reason=text)
    text = _(
        "Replaying the logged parameters does not give the logged direction weights (first at step {step}, "
        "largest difference {error}, {n} steps): the replay does not describe this run."
    ).format(step=f"{int(log.step[wrong[0]]):,}", error=f"{error:.1e}", n=n)
    return Validity(max_error=error, n=len(replayed), ok=False, reason=text)


def _cannot(log: ControllerLog, config: UWMLConfig | None) -> str:
    if config is None:
        return _("The run does not tell its loss parameters, so the replay cannot be checked against it.")
    if not log.has_gaps:
        return _("No gap was logged, so the controller cannot be replayed.")
    if not log.has_weights:
        return _("No direction weight was logged, so the replay cannot be checked.")
    if log.missing_steps:
        return ngettext(
            "{n} step is missing from the log, so the controller's state is unknown and the replay, which "
            "starts afresh, cannot be checked.",
            "{n} steps are missing from the log, so the controller's state is unknown and the replay, which "
            "starts afresh, cannot be checked.",
            log.missing_steps,
        ).format(n=f"{log.missing_steps:,}")
    return ""
