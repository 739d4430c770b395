"""UWML Lens: universal weighting metric learning, its run log and its views."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from uwml_core.losses import StepDiagnostics, UWMLLoss, cached_backward
    from uwml_core.runlog.reader import Run, list_runs, open_run
    from uwml_core.runlog.writer import NullLogger, RunLogger
    from uwml_core.weighting import DirectionController, UWMLConfig, difficulty_weight

__version__ = "0.1.0"

# Resolved on first use, so that the viewer never pays for torch nor the trainer for pyarrow.
_HOME = {
    "DirectionController": "uwml_core.weighting",
    "NullLogger": "uwml_core.runlog.writer",
    "Run": "uwml_core.runlog.reader",
    "RunLogger": "uwml_core.runlog.writer",
    "StepDiagnostics": "uwml_core.losses",
    "UWMLConfig": "uwml_core.weighting",
    "UWMLLoss": "uwml_core.losses",
    "cached_backward": "uwml_core.losses",
    "difficulty_weight": "uwml_core.weighting",
    "list_runs": "uwml_core.runlog.reader",
    "open_run": "uwml_core.runlog.reader",
}

__all__ = [
    "DirectionController",
    "NullLogger",
    "Run",
    "RunLogger",
    "StepDiagnostics",
    "UWMLConfig",
    "UWMLLoss",
    "cached_backward",
    "difficulty_weight",
    "list_runs",
    "open_run",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
