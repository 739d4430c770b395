"""What an experiment may change in a training run that its configuration cannot say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from uwml_core.data import PairDataset

if TYPE_CHECKING:
    from uwml_core.training.loop import Trainer


class Intervention:
    """Changes nothing; ``training.sick`` holds those that make a run ill."""

    def data(self, dataset: PairDataset) -> PairDataset:
        """The data to train on."""
        return dataset

    def trainer(self, trainer: Trainer) -> None:
        """Change the parts of a trainer before its first step."""
