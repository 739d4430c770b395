"""Pure maths of the weighting, over NumPy arrays and torch tensors alike.

The loss, the direction controller in the trainer and every preview in the app call these functions;
there is no second definition of any of them.
"""

from uwml_core.weighting.config import UWMLConfig
from uwml_core.weighting.curve import CURVES, WEIGHT_FLOOR, difficulty_weight
from uwml_core.weighting.direction import (
    DirectionController,
    LoggedGaps,
    direction_names,
    replay_controller,
)
from uwml_core.weighting.normalization import (
    COMBINATIONS,
    NORMALIZATIONS,
    combined_weight,
    effective_sample_size,
    loss_denominator,
    relative_weight,
)
from uwml_core.weighting.parameters import PARAMETERS, Parameter
from uwml_core.weighting.presets import LOSS_PRESETS, LossPreset, loss_preset
from uwml_core.weighting.stage import stage_factor, stage_steepness

__all__ = [
    "COMBINATIONS",
    "CURVES",
    "LOSS_PRESETS",
    "NORMALIZATIONS",
    "PARAMETERS",
    "WEIGHT_FLOOR",
    "DirectionController",
    "LoggedGaps",
    "LossPreset",
    "Parameter",
    "UWMLConfig",
    "combined_weight",
    "difficulty_weight",
    "direction_names",
    "effective_sample_size",
    "loss_denominator",
    "loss_preset",
    "relative_weight",
    "replay_controller",
    "stage_factor",
    "stage_steepness",
]
