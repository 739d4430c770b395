"""Everything that a run needs to go on, in one file that loads without running code."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

FOLDER, FILE = "checkpoint", "last.pt"
_VERSION = 1
_KEYS = {"version", "step", "config", "fingerprint", "model", "optimizer", "loss"}
# What checkpoints of earlier versions lack.
_LATER = {"precision"}


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """State after some steps.

    Attributes:
        step: steps completed, the number of the next one.
        config: configuration of the run, plain values by section.
        fingerprint: of the data.
        model, optimizer, loss, precision: their state dicts.
    """

    step: int
    config: dict[str, Any]
    fingerprint: str
    model: dict[str, Any]
    optimizer: dict[str, Any]
    loss: dict[str, Any]
    precision: dict[str, Any] = field(default_factory=dict)

    def save(self, run: Path) -> Path:
        """Write into a run's folder, replacing the earlier one in one move.

        Raises:
            OSError: if it cannot be written; the earlier one then stays.
        """
        path = run / FOLDER / FILE
        path.parent.mkdir(exist_ok=True)
        temporary = path.with_name(f".{FILE}-{os.getpid()}.tmp")
        try:
            with temporary.open("wb") as stream:
                torch.save({"version": _VERSION, **self.__dict__}, stream)
                stream.flush()
                os.fsync(stream.fileno())
            os.replace(temporary, path)
        except (OSError, RuntimeError) as error:
            # a vanished folder may refuse the removal too; the first error is the one to tell
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise OSError(f"checkpoint {path} cannot be written: {error}") from error
        return path


def load_checkpoint(run: Path) -> Checkpoint:
    """Read the checkpoint of a run's folder.

    Raises:
        ValueError: if there is none, or it is damaged or of another version.
    """
    path = run / FOLDER / FILE
    if not run.is_dir():
        raise ValueError(f"resume={str(run)!r} is no folder; expected the folder of a run")
    if not path.is_file():
        raise ValueError(f"resume={str(run)!r} has no {FOLDER}/{FILE} to continue from; start a new run")
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # torch names no type: a torn file ends in any of five
        raise ValueError(f"checkpoint {path} cannot be read; the run cannot be continued") from error
    if not isinstance(content, dict) or content.keys() - _LATER != _KEYS or content["version"] != _VERSION:
        raise ValueError(f"checkpoint {path} is of another version; expected version {_VERSION}")
    return Checkpoint(**{name: value for name, value in content.items() if name != "version"})
