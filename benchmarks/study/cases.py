"""Single changes of the weighting whose effect is asked for, each against one base."""

from __future__ import annotations

from dataclasses import dataclass, replace

from benchmarks.study.configuration import Configuration
from benchmarks.study.methods import BASE as TRAINING
from benchmarks.study.methods import FLOORED, INFONCE, UWML, Settings, configuration, weighted

FEW_SEEDS = tuple(range(5))
# All three factors on, so that each can be taken away.
BASE = weighted(0.3, 2.0, 20.0)
_NO_DIRECTION = {"loss.direction_mode": "off"}
_NO_STAGE = {"loss.steepness_start": 20.0}
_NO_PAIR = {"loss.curve": "uniform"}


@dataclass(frozen=True, kw_only=True)
class Case:
    """One line of a table.

    Attributes:
        title: what it is called.
        settings: laid over those of the method.
        method: which one.
        warmup: preset of the loss of the first fifth of the steps.
        longer: how many times as many epochs.
    """

    title: str
    settings: Settings
    method: str = UWML
    warmup: str | None = None
    longer: int = 1

    def configuration(
        self, modality: str, noise: float, encoder: str = "frozen", purpose: str = "test"
    ) -> Configuration:
        """The case on some data."""
        settings = dict(self.settings)
        if self.longer > 1:
            settings["train.epochs"] = self.longer * TRAINING[modality]["train.epochs"]
        return configuration(
            self.method, modality, noise, settings, encoder=encoder, purpose=purpose, warmup=self.warmup
        )


def _changed(title: str, **fields: object) -> Case:
    return Case(title=title, settings={**BASE, **{f"loss.{name}": value for name, value in fields.items()}})


# Where the defaults began, what they are now, and others.
FIRST = Case(title="floor 0.3, 2 to 12: the first defaults", settings={}, method=FLOORED)
DEFAULTS = Case(title="no floor, 2 to 20: the defaults", settings={})
NOISY = Case(title="no floor, 16 to 24: preset noisy_pairs", settings=weighted(0.15, 16.0, 24.0))
FAR_CENTER = Case(title="no floor, 12 throughout, center 0.3", settings=weighted(0.3, 12.0, 12.0))
CANDIDATES = (
    *(FIRST, DEFAULTS, NOISY, FAR_CENTER),
    Case(title="no floor, 2 to 20, center 0.3", settings=BASE),
    Case(
        title="no floor, in standard deviations, center 1, 0.5 to 3",
        settings={**weighted(1.0, 0.5, 3.0), "loss.margin_scale": "negative_std"},
    ),
)
ALL = Case(title="pair, direction, stage", settings=BASE)
NO_DIRECTION = Case(title="pair, stage", settings={**BASE, **_NO_DIRECTION})
NO_STAGE = Case(title="pair, direction", settings={**BASE, **_NO_STAGE})
PAIR = Case(title="pair", settings={**BASE, **_NO_STAGE, **_NO_DIRECTION})
DIRECTION = Case(title="direction", settings={**BASE, **_NO_PAIR})
ADDED = Case(title="added instead of multiplied", settings={**BASE, "loss.combination": "add"})
NONE = Case(title="none: InfoNCE", settings={}, method=INFONCE)
# without the pair weight there is no stage
ABLATION = (ALL, NO_DIRECTION, NO_STAGE, PAIR, DIRECTION, ADDED, NONE)
CHOICES = (NONE, FIRST, DEFAULTS, NOISY, FAR_CENTER)
# times as many epochs
FAR = 5
LONG_DEFAULTS, LONG_NOISY = (replace(case, longer=FAR) for case in (DEFAULTS, NOISY))
LONG = tuple(replace(case, longer=FAR) for case in CHOICES)
# Weightings among which the validation split chooses: how steep in the beginning, and where the center is.
SCREENED = tuple(
    Case(title=f"center {center:g}, {start:g} to {end:g}", settings=weighted(center, start, end))
    for center, start, end in (
        *(
            (0.15, 2.0, 20.0),
            (0.15, 8.0, 20.0),
            (0.15, 12.0, 12.0),
            (0.15, 12.0, 30.0),
            (0.15, 20.0, 20.0),
            (0.15, 16.0, 24.0),
            (0.15, 20.0, 30.0),
            (0.15, 30.0, 30.0),
        ),
        *((0.1, 20.0, 20.0), (0.2, 12.0, 20.0), (0.2, 12.0, 30.0), (0.2, 20.0, 20.0), (0.3, 12.0, 12.0)),
    )
)
SENSITIVITY = (
    *(_changed(f"center {value}", center=value) for value in (0.0, 0.15, 0.45)),
    *(_changed(f"floor {value}", hard_floor=value) for value in (0.1, 0.3)),
    *(_changed(f"steepness 2 to {value:.0f}", steepness_end=value) for value in (6.0, 12.0, 40.0)),
    *(
        _changed(
            f"negative_std, center {value:.0f}, 0.5 to 3",
            margin_scale="negative_std",
            center=value,
            steepness_start=0.5,
            steepness_end=3.0,
        )
        for value in (0.0, 1.0, 2.0)
    ),
    _changed("max_weight 10", max_weight=10.0),
)
SUM = _changed("normalization sum", normalization="sum")
ATTACHED = Case(title="weights not detached", settings={**BASE, "study.attached": True})
EVERY_STEP = _changed("update_every 1", update_every=1)
SHORT_WINDOW = _changed("window 5, no smoothing", window=5, smoothing=0.0)
WARM = _changed("temperature 0.1", temperature=0.1)
FIXED = tuple(
    _changed(f"fixed ratio {value}", direction_mode="fixed", direction_fixed=value) for value in (0.3, 0.7)
)
QUEUE = _changed("queue of 4 batches", memory_batches=4)
NO_WEIGHTS_QUEUE = Case(
    title="InfoNCE, queue of 4 batches", settings={"loss.memory_batches": 4}, method=INFONCE
)
SHORT = Case(title="InfoNCE, 5 epochs", settings={"train.epochs": 5}, method=INFONCE)
AFTER_INFONCE = Case(title="after a fifth of InfoNCE", settings=BASE, warmup="infonce")
SMALL, LARGE = (Case(title=f"batch {size}", settings={**BASE, "data.batch_size": size}) for size in (64, 192))
SMALL_SUM = Case(title="batch 64, sum", settings={**SMALL.settings, "loss.normalization": "sum"})
PROMISES = (
    *(ATTACHED, EVERY_STEP, SHORT_WINDOW, SUM, WARM, *FIXED, QUEUE, AFTER_INFONCE, SMALL, LARGE, SMALL_SUM),
    *(NO_WEIGHTS_QUEUE, SHORT),
)
