"""Whether replaying the logged parameters on the logged gaps gives the logged direction weights."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from uwml_core.analysis.controller_log import ControllerLog
from uwml_core.i18n import _, ngettext
from uwml_core.weighting import UWMLConfig, replay_controller


@dataclass(frozen=True, kw_only=True)
class ReplayCheck:
    """Result of the check, without a word of text, so that it can be kept for readers of any language.

    Attributes:
        obstacle: why nothing can be compared: ``loss``, ``gaps``, ``weights`` or ``steps`` is missing;
            empty where it was compared.
        missing_steps: steps that are not in the log.
        n: steps compared.
        wrong: steps whose weights differ in any bit; a weight that is not a number always does.
        first_wrong: the first of them, None without any.
        max_error: largest |replayed − logged| weight; NaN where a weight is not a number or nothing
            was compared.
    """

    obstacle: str = ""
    missing_steps: int = 0
    n: int = 0
    wrong: int = 0
    first_wrong: int | None = None
    max_error: float = float("nan")

    @property
    def ok(self) -> bool | None:
        """True where all weights are reproduced bit for bit, None where nothing was compared."""
        return None if self.obstacle else self.wrong == 0

    @property
    def reason(self) -> str:
        """One sentence to show."""
        if self.obstacle:
            return self._why_not()
        if self.ok:
            return ngettext(
                "Replaying the logged parameters gives the logged direction weights bit for bit ({n} step).",
                "Replaying the logged parameters gives the logged direction weights bit for bit ({n} steps).",
                self.n,
            ).format(n=f"{self.n:,}")
        return _(
            "Replaying the logged parameters does not give the logged direction weights ({wrong} of {n} "
            "steps, first step {step}, largest difference {error}): the replay does not describe this run."
        ).format(
            wrong=f"{self.wrong:,}",
            n=f"{self.n:,}",
            step=f"{self.first_wrong:,}",
            error=f"{self.max_error:.1e}",
        )

    def _why_not(self) -> str:
        reasons = {
            "loss": _("The run does not tell its loss parameters, so the replay cannot be checked."),
            "gaps": _("No gap was logged, so the controller cannot be replayed."),
            "weights": _("No direction weight was logged, so the replay cannot be checked."),
        }
        if self.obstacle in reasons:
            return reasons[self.obstacle]
        return ngettext(
            "{n} step is missing from the log, so the replay starts from an unknown state and cannot be "
            "checked.",
            "{n} steps are missing from the log, so the replay starts from an unknown state and cannot be "
            "checked.",
            self.missing_steps,
        ).format(n=f"{self.missing_steps:,}")


def replay_validity(log: ControllerLog, config: UWMLConfig | None) -> ReplayCheck:
    """Compare replayed and logged weights bit for bit.

    A resumed run goes on with the state of its controller, so its segments are one replay.

    Args:
        log: the logged steps.
        config: the run's loss, None where it is unknown.
    """
    missing = {
        "loss": config is None,
        "gaps": not log.has_gaps,
        "weights": not log.has_weights,
        "steps": log.missing_steps > 0,
    }
    obstacle = next((name for name, is_missing in missing.items() if is_missing), "")
    if obstacle or config is None:
        return ReplayCheck(obstacle=obstacle, missing_steps=log.missing_steps)
    replayed = replay_controller(log.gap, config)
    wrong = np.flatnonzero((replayed != log.weight).any(axis=1))
    return ReplayCheck(
        n=len(replayed),
        wrong=len(wrong),
        first_wrong=int(log.step[wrong[0]]) if len(wrong) else None,
        max_error=float(np.abs(replayed - log.weight).max()),
    )
