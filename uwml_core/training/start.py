"""What a run starts from: another run's folder, its weights, and how long the backbones stay frozen."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from uwml_core.training.checkpoint import load_checkpoint
from uwml_core.training.config import OptimizationConfig, TrainConfig
from uwml_core.training.encoders import TwoTower


def resume_folder(resume: str, root: str) -> Path:
    """Folder of the run to continue: a path, or a run id within the logs folder."""
    path = Path(resume).expanduser()
    return path if path.is_dir() else Path(root).expanduser() / resume


def start_from(model: TwoTower, config: TrainConfig) -> None:
    """Take over the weights of the run that the configuration begins with; a resumed run has its own.

    Raises:
        ValueError: if that run has no checkpoint, or other encoders.
    """
    if config.train.init_from is None or config.train.resume is not None:
        return
    earlier = load_checkpoint(resume_folder(config.train.init_from, config.run.root))
    try:
        model.load_state_dict(earlier.model)
    except RuntimeError as error:
        kind = earlier.config.get("model")
        raise ValueError(
            f"train.init_from={config.train.init_from!r} has other encoders ({kind}) than this run "
            f"({config.to_dict()['model']}); choose the same"
        ) from error


def with_warmup(train: OptimizationConfig, *, trained: bool) -> OptimizationConfig:
    """Settings with the frozen epochs filled in: two where backbones were trained before, else none.

    Args:
        train: the settings.
        trained: whether the backbones come from others; those after ``init_from`` were trained in any case.
    """
    if train.warmup_epochs is not None:
        return train
    trained = trained or train.init_from is not None
    return dataclasses.replace(train, warmup_epochs=min(2, train.epochs) if trained else 0)
