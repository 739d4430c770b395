"""Weighted cross-modal losses in PyTorch."""

from uwml_core.losses.caching import cached_backward
from uwml_core.losses.diagnostics import StepDiagnostics
from uwml_core.losses.functional import weighted_loss
from uwml_core.losses.uwml import UWMLLoss

__all__ = ["StepDiagnostics", "UWMLLoss", "cached_backward", "weighted_loss"]
