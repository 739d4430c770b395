"""Training runs: configuration, encoders, loop."""

from uwml_core.training.config import DataConfig, ModelConfig, OptimizationConfig, RunConfig, TrainConfig
from uwml_core.training.distributed import processes_of_torchrun
from uwml_core.training.loop import NonFiniteLossError
from uwml_core.training.run import continued_config, run_training
from uwml_core.training.sources import PRESETS, build_config, dump_yaml
from uwml_core.training.stop import TrainingStopped

__all__ = [
    "PRESETS",
    "DataConfig",
    "ModelConfig",
    "NonFiniteLossError",
    "OptimizationConfig",
    "RunConfig",
    "TrainConfig",
    "TrainingStopped",
    "build_config",
    "continued_config",
    "dump_yaml",
    "processes_of_torchrun",
    "run_training",
]
