"""Losses ready to use: the method and the comparators, each defined once, with formula and source.

In the formulas s+ is the similarity of an anchor to its positive, s_j that to a negative, t the temperature.
Each loss is the mean over anchors and over both directions unless its formula says otherwise.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from uwml_core.weighting.config import UWMLConfig


@dataclass(frozen=True, kw_only=True)
class LossPreset:
    """A named loss.

    Attributes:
        title: what its authors call it.
        formula: loss of an anchor, in one line of plain text.
        reference: where it is from.
        settings: fields of ``UWMLConfig`` that differ from the defaults, or that must not follow them.
    """

    title: str
    formula: str
    reference: str
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def config(self) -> UWMLConfig:
        """The loss's configuration."""
        return UWMLConfig(**self.settings)


_WEIGHTED = {"base": "infonce", "curve": "bell", "direction_mode": "adaptive"}
_UNWEIGHTED = {"base": "infonce", "curve": "uniform", "direction_mode": "off"}
_VSE = "F. Faghri et al., VSE++: Improving Visual-Semantic Embeddings with Hard Negatives, BMVC 2018"
_WEI = "J. Wei et al., Universal Weighting Metric Learning for Cross-Modal Matching, CVPR 2020"
_POLYNOMIALS = "[0.2 s+^2 - 0.7 s+ + 0.5]+ + [0.9 s-^2 - 0.4 s- + 0.03]+"

LOSS_PRESETS: Mapping[str, LossPreset] = {
    "uwml": LossPreset(
        title="UWML",
        formula="w_d r_i log(1 + sum_j e^((s_j - s+) / t)), r_i bell-shaped in the margin, w_d adaptive",
        reference="this package, defaults measured in docs/results.md; weights after " + _WEI,
        settings=_WEIGHTED,
    ),
    "article_calm": LossPreset(
        title="UWML, calm",
        formula="as uwml, t = 0.1, w_d smoothed by 0.95",
        reference="this package",
        settings={
            **_WEIGHTED,
            "temperature": 0.1,
            "smoothing": 0.95,
        },
    ),
    "noisy_pairs": LossPreset(
        title="UWML, noisy pairs",
        formula="as uwml, the bell steep from the first step on: pairs that stay wrong are never learned",
        reference="this package; measured in docs/results.md",
        settings={**_WEIGHTED, "steepness_start": 16.0, "steepness_end": 24.0},
    ),
    "infonce": LossPreset(
        title="InfoNCE",
        formula="log(1 + sum_j e^((s_j - s+) / t)), t fixed",
        reference="A. van den Oord et al., Representation Learning with Contrastive Predictive Coding, 2018",
        settings=_UNWEIGHTED,
    ),
    "clip": LossPreset(
        title="CLIP",
        formula="log(1 + sum_j e^((s_j - s+) / t)), t learned, 1 / t at most 100",
        reference="A. Radford et al., Learning Transferable Visual Models From Natural Language Supervision, "
        "ICML 2021",
        settings={**_UNWEIGHTED, "learnable_temperature": True},
    ),
    "hard": LossPreset(
        title="hard weighting",
        formula="r_i log(1 + sum_j e^((s_j - s+) / t)), r_i falling in the margin",
        reference="this package",
        settings={"base": "infonce", "curve": "hard", "direction_mode": "off"},
    ),
    "vse0": LossPreset(
        title="VSE0",
        formula="sum_j [0.2 - s+ + s_j]+; the authors sum over the batch and both directions: times 2 B",
        reference=_VSE,
        settings={**_UNWEIGHTED, "base": "triplet", "over_negatives": "sum", "triplet_margin": 0.2},
    ),
    "vsepp": LossPreset(
        title="VSE++",
        formula="max_j [0.2 - s+ + s_j]+; the authors sum over the batch and both directions: times 2 B",
        reference=_VSE,
        settings={**_UNWEIGHTED, "base": "triplet", "over_negatives": "hardest", "triplet_margin": 0.2},
    ),
    "siglip": LossPreset(
        title="SigLIP",
        formula="-log sigmoid(a s+ + b) - sum_j log sigmoid(-(a s_j + b)), a from 10 and b from -10 learned",
        reference="X. Zhai et al., Sigmoid Loss for Language Image Pre-Training, ICCV 2023",
        settings={**_UNWEIGHTED, "base": "sigmoid"},
    ),
    "dcl": LossPreset(
        title="DCL",
        formula="-s+ / t + log sum_j e^(s_j / t), negatives across modalities only; may be below 0",
        reference="C.-H. Yeh et al., Decoupled Contrastive Learning, ECCV 2022",
        settings={**_UNWEIGHTED, "base": "dcl"},
    ),
    "hn_nce": LossPreset(
        title="HN-NCE",
        formula="log(a + sum_j v_j e^((s_j - s+) / t)), v_j = n e^(b s_j / t) / sum_k e^(b s_k / t), "
        "n negatives; a = 1, b = 0.25",
        reference="F. Radenovic et al., Filtering, Distillation, and Hard Negatives for Vision-Language "
        "Pre-Training, CVPR 2023; b is this package's choice",
        settings={**_UNWEIGHTED, "base": "hn_nce", "hn_alpha": 1.0, "hn_beta": 0.25},
    ),
    "wei2020_max": LossPreset(
        title="Wei 2020 Max",
        formula=f"{_POLYNOMIALS}, s- the hardest with s- + 0.2 > s+, else 0; directions summed",
        reference=_WEI + "; the authors' released code",
        settings={**_UNWEIGHTED, "base": "wei2020_max"},
    ),
    "wei2020_calibrated": LossPreset(
        title="Wei 2020, calibrated",
        formula="as wei2020_max on 0.6 + 0.2 (s - med s-) / max(med s+ - med s-, 0.05)",
        reference="this package, not the paper's loss; after " + _WEI,
        settings={**_UNWEIGHTED, "base": "wei2020_calibrated"},
    ),
}


def loss_preset(name: str) -> UWMLConfig:
    """Configuration of a named loss.

    Raises:
        ValueError: if the name is unknown, naming the nearest.

    Example:
        >>> loss_preset("vsepp").base
        'triplet'
        >>> loss_preset("vsep")
        Traceback (most recent call last):
        ValueError: preset='vsep' is unknown; did you mean vsepp?
    """
    if name not in LOSS_PRESETS:
        near = difflib.get_close_matches(name, LOSS_PRESETS, n=1)
        hint = f"did you mean {near[0]}?" if near else f"choose one of {', '.join(LOSS_PRESETS)}"
        raise ValueError(f"preset={name!r} is unknown; {hint}")
    return LOSS_PRESETS[name].config
