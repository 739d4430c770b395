"""A run that repeats another with other parameters of the loss: whether it can be, and what it is called."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from uwml_core.analysis.finished import is_finished_model
from uwml_core.analysis.loss_settings import loss_config
from uwml_core.i18n import _
from uwml_core.installation import has_sample_set
from uwml_core.weighting import PARAMETERS, UWMLConfig

_SECTIONS = ("data", "model", "loss", "train")
_MOST_NAMED = 3
_MOST_LETTERS = 160


def child_obstacle(config: Mapping[str, Any], folder: Path) -> str:
    """Why a run cannot be trained anew with other parameters, as one sentence; empty where it can.

    Args:
        config: the run's configuration.
        folder: what paths of data are relative to.
    """
    if is_finished_model(config):
        return _("The run was made from a finished model; there is no training to repeat.")
    ours = all(isinstance(config.get(name), Mapping) for name in _SECTIONS)
    if not ours or loss_config(config) is None:
        return _("The run comes from a training loop of your own; use the copied settings there.")
    data = config["data"]
    places = [data.get("path"), data.get("pictures")]
    gone = [place for place in places[: 1 if places[1] is None else 2] if not _is_there(place, folder)]
    if gone:
        return _("Its data, {path}, are not on this computer.").format(path=gone[0])
    return ""


def _is_there(place: Any, folder: Path) -> bool:
    if not isinstance(place, str) or not place.strip():
        return False
    try:
        return has_sample_set(place) or (folder / Path(place).expanduser()).exists()
    except (OSError, ValueError, RuntimeError):
        return False


def changed_parameters(before: UWMLConfig, after: UWMLConfig) -> list[str]:
    """Names of the parameters whose values differ.

    Example:
        >>> changed_parameters(UWMLConfig(), UWMLConfig(center=0.1, max_weight=3.0))
        ['center', 'max_weight']
    """
    return [name for name in PARAMETERS if getattr(before, name) != getattr(after, name)]


def child_name(parent: str, before: UWMLConfig, after: UWMLConfig) -> str:
    """What the new run is called; the same in every language, as it is stored.

    Example:
        >>> child_name("demo", UWMLConfig(), UWMLConfig(center=0.1, curve="hard"))
        'demo, curve bell→hard, center 0.15→0.1'
    """
    names = changed_parameters(before, after)
    parts = [
        f"{name.replace('_', ' ')} {_value(getattr(before, name))}→{_value(getattr(after, name))}"
        for name in names[:_MOST_NAMED]
    ]
    more = [f"{len(names) - _MOST_NAMED} more"] if len(names) > _MOST_NAMED else []
    changes = ", ".join([*parts, *more])
    # half a character can be read from a log and not be written
    whole = parent.encode(errors="replace").decode()
    room = max(1, _MOST_LETTERS - len(changes) - 2)
    return f"{whole if len(whole) <= room else whole[: room - 1] + '…'}, {changes}"


def _value(value: Any) -> str:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return f"{value:g}" if is_number else str(value)


def child_config(
    parent: Mapping[str, Any], after: UWMLConfig, *, root: str, name: str, parent_id: str
) -> dict[str, dict[str, Any]]:
    """Configuration of the new run, by section: the parent's with another loss.

    Args:
        parent: the parent's configuration.
        after: the loss to train with.
        root: logs folder.
        name: what the new run is called.
        parent_id: run id of the parent.

    Raises:
        ValueError: if the loss is not allowed.
    """
    loss = UWMLConfig.from_dict(after.to_dict()).to_dict()
    # it follows from the data
    del loss["total_steps"]
    return {
        "data": dict(parent["data"]),
        "model": dict(parent["model"]),
        "loss": loss,
        "train": {**parent["train"], "resume": None},
        "run": {"root": root, "name": name, "parent": parent_id},
    }


@dataclass(frozen=True, kw_only=True)
class TrainingProgress:
    """How far a training is.

    Attributes:
        done, total: steps; 0 where unknown.
        epoch: of the newest step, from 0; None before the first.
        left_s: seconds to the end at the pace so far; NaN where unknown.
    """

    done: int = 0
    total: int = 0
    epoch: int | None = None
    left_s: float = math.nan

    @property
    def share(self) -> float:
        """Steps done of all, from 0 to 1."""
        return min(1.0, self.done / self.total) if self.total > 0 else 0.0


def training_progress(last: Mapping[str, Any] | None, total: int | None) -> TrainingProgress:
    """How far a run is.

    Args:
        last: its newest row of ``steps``, None without steps.
        total: steps planned, None where that was not logged.

    Example:
        >>> training_progress({"step": 9, "epoch": 0.0, "elapsed_s": 5.0}, 40)
        TrainingProgress(done=10, total=40, epoch=0, left_s=15.0)
    """
    if not last:
        return TrainingProgress(total=total or 0)
    done, epoch, elapsed = int(last["step"]) + 1, _finite(last.get("epoch")), _finite(last.get("elapsed_s"))
    left = math.nan if elapsed is None or not total else elapsed / done * max(0, total - done)
    return TrainingProgress(
        done=done, total=total or 0, epoch=None if epoch is None else int(epoch), left_s=left
    )


def _finite(value: Any) -> float | None:
    return None if value is None or not math.isfinite(value) else float(value)
