"""One configuration of the study: data, method and settings, without the seed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from uwml_core.training.config import TrainConfig
from uwml_core.weighting import LOSS_PRESETS


@dataclass(frozen=True, kw_only=True)
class Configuration:
    """What one process trains, once for each seed.

    Attributes:
        modality, encoder: which material.
        noise: share of the training captions that are swapped.
        method: what tables call it.
        preset: named loss that it begins with.
        settings: ``section.key`` to value, laid over the preset; ``study.attached`` lets gradients flow
            through the weights, which no run can be told to do.
        warmup: preset of the loss before ``warmup_share`` of the steps are done; None without.
        warmup_share: share of the steps.
        purpose: ``tune`` (validation split only) or ``test``.
    """

    modality: str
    encoder: str
    method: str
    preset: str
    noise: float = 0.0
    settings: Mapping[str, Any] = field(default_factory=dict)
    warmup: str | None = None
    warmup_share: float = 0.2
    purpose: str = "test"

    @property
    def key(self) -> str:
        """Name of its results, whatever the method is called: its data for readers, a digest of the rest."""
        told = {name: value for name, value in vars(self).items() if name != "method"}
        text = json.dumps({**told, "settings": dict(self.settings)}, sort_keys=True)
        digest = hashlib.sha256(text.encode()).hexdigest()[:16]
        return f"{self.modality}-{self.encoder}-{round(100 * self.noise)}-{digest}"

    @property
    def settings_text(self) -> str:
        """The settings as JSON with sorted keys."""
        return json.dumps(dict(self.settings), sort_keys=True)

    def train_config(self, seed: int) -> TrainConfig:
        """The trainer's configuration for a seed."""
        sections: dict[str, dict[str, Any]] = {
            "loss": LOSS_PRESETS[self.preset].config.to_dict(),
            "train": {"seed": seed},
        }
        for key, value in self.settings.items():
            section, _, name = key.partition(".")
            sections.setdefault(section, {})[name] = value
        sections.pop("study", None)
        return TrainConfig.from_dict(sections)
