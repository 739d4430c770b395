"""What stands in for the run log in the study: a few numbers of the steps instead of all of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from uwml_core.losses.diagnostics import StepDiagnostics

# anchors are looked at every so many steps
_EVERY = 10
# what is said of "late" is about this last share of the steps
_LATE = 1 / 3

Flags = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]


class Meter:
    """Takes what the trainer would log.

    Args:
        wrong: item ids of the pairs with captions that are not theirs.
    """

    def __init__(self, wrong: Ints) -> None:
        self._wrong = wrong
        self._loss: list[float] = []
        self._norm: list[float] = []
        self._direction: list[float] = []
        self._anchors: list[dict[str, float]] = []

    def log_step(self, last: StepDiagnostics, *, step: int, **told: Any) -> None:
        """Take a step."""
        self._loss.append(last.loss)
        self._norm.append(float(told["gradient_norm"]))
        self._direction.append(float(last.direction_weight[0]))
        if step % _EVERY == 0:
            self._anchors.append(_of_anchors(last, np.isin(told["item_ids"], self._wrong)))

    def log_event(self, *args: Any, **named: Any) -> None:
        """Take an event, which nobody reads here."""

    def summary(self) -> dict[str, float]:
        """Means over the late steps; NaN where nothing was measured."""
        late = self._anchors[-max(1, round(_LATE * len(self._anchors))) :]
        found = {name: _mean([anchors[name] for anchors in late]) for name in late[0]}
        found["ess_share_all"] = _mean([anchors["ess_share"] for anchors in self._anchors])
        loss, norm, direction = (self._late(values) for values in (self._loss, self._norm, self._direction))
        typical = float(np.median(loss))
        found["loss_jitter"] = float(np.diff(loss).std() / abs(typical)) if typical else float("nan")
        found["gradient_spike"] = float(norm.max() / np.median(norm)) if np.median(norm) else float("nan")
        found["direction_weight"] = float(direction.mean())
        found["direction_jitter"] = float(np.abs(np.diff(direction)).mean())
        return found

    def _late(self, values: list[float]) -> npt.NDArray[np.float64]:
        return np.array(values[-max(2, round(_LATE * len(values))) :])


def _of_anchors(last: StepDiagnostics, wrong: Flags) -> dict[str, float]:
    """Shares and means over the anchors of a step, both directions together."""
    margin, weight, share = (
        values.double().numpy() for values in (last.margin, last.weight, last.gradient_share)
    )
    usable = np.isfinite(margin)
    weight = np.where(usable & np.isfinite(weight), weight, 0.0)
    hit = usable & wrong
    mean_weight = weight[usable].mean() if usable.any() else float("nan")
    return {
        "ess_share": float((last.ess.numpy() / usable.sum(1)).mean()) if usable.any() else float("nan"),
        "clamped_share": float(last.clamped_share.mean()),
        "in_batch_accuracy": float(last.accuracy.mean()),
        "gap_first": float(last.gap[0]),
        "gap_second": float(last.gap[1]),
        "margin_scale": 1.0 if last.margin_scale is None else float(last.margin_scale.mean()),
        "margin_std": float(margin[usable].std()),
        "wrong_weight": float(weight[hit].mean() / mean_weight) if hit.any() else float("nan"),
        "wrong_gradient": float(np.nansum(share[hit]) / 2) if hit.any() else float("nan"),
    }


def _mean(values: list[float]) -> float:
    known = np.array(values)[np.isfinite(values)]
    return float(known.mean()) if len(known) else float("nan")
