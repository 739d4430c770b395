"""Losses of a model that has learned nothing: where a training that fails stands still."""

from __future__ import annotations

import numpy as np

from uwml_core.i18n import _
from uwml_core.weighting import UWMLConfig, loss_denominator


def plateau(config: UWMLConfig, negatives: float, batch: float) -> tuple[str, float, str] | None:
    """Name, value and reason of the loss when all similarities are equal.

    Equal weights leave it as it is except under ``rss``, which multiplies by the square root of the number
    of anchors.

    Args:
        config: the run's loss.
        negatives: per anchor; NaN where unknown.
        batch: pairs per step; NaN where unknown.

    Returns:
        None where nothing can be said, or where the loss learns its own scale.

    Example:
        >>> plateau(UWMLConfig(base="wei2020_max"), 127.0, 128.0)[:2]
        ('0.51', 0.51)
    """
    if config.own_weights:
        return _of_polynomials(config)
    factor = _factor(config, batch)
    if config.base == "triplet" and config.over_negatives == "hardest":
        why = _("hinge loss when all embeddings have collapsed into one point")
        return _known(_("margin α"), factor * config.triplet_margin, why)
    number = f"{negatives:,.0f}"
    if config.base == "triplet":
        name, value = _("{negatives} α").format(negatives=number), negatives * config.triplet_margin
        return _known(name, value, _("sum of hinges when all embeddings have collapsed into one point"))
    positive = {"infonce": 1.0, "dcl": 0.0, "hn_nce": config.hn_alpha}.get(config.base)
    if positive is None:
        return None
    name = _("ln({positive} + {negatives})") if positive else _("ln({negatives})")
    why = _("InfoNCE when all {negatives} negatives of an anchor are as similar as its positive")
    if config.base != "infonce":
        why = _("the loss when all {negatives} negatives of an anchor are as similar as its positive")
    value = factor * float(np.log(positive + negatives)) if negatives > 0 else float("nan")
    return _known(
        name.format(positive=f"{positive:g}", negatives=number), value, why.format(negatives=number)
    )


def _known(name: str, value: float, why: str) -> tuple[str, float, str] | None:
    return (name, value, why) if np.isfinite(value) else None


def _factor(config: UWMLConfig, batch: float) -> float:
    if config.normalization != "rss":
        return 1.0
    if not np.isfinite(batch):
        return float("nan")
    equal = np.ones(max(1, round(batch)))
    return len(equal) / float(loss_denominator(equal, config.normalization))


def _of_polynomials(config: UWMLConfig) -> tuple[str, float, str]:
    # calibrated, all similarities are at 0.6; as released, a collapse drifts to the least loss
    calibrated = config.base == "wei2020_calibrated"
    at = np.array([0.6]) if calibrated else np.linspace(-1.0, 1.0, 2001)
    polynomials = (config.positive_polynomial, config.negative_polynomial)
    parts = [np.maximum(np.polynomial.Polynomial(c)(at), 0.0) for c in polynomials]
    value = 2.0 * float((parts[0] + parts[1]).min())
    return f"{value:.2f}", round(value, 6), _("Wei's polynomial loss when all similarities are equal")
