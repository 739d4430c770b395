"""What a run's configuration says about its loss."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from uwml_core.i18n import _
from uwml_core.weighting import UWMLConfig


def loss_config(config: Mapping[str, Any]) -> UWMLConfig | None:
    """Loss parameters of a run.

    Args:
        config: the run's configuration, either with a section ``loss`` or the loss parameters themselves.

    Returns:
        The parameters, None where the run was not trained with this loss (another program's keys, values
        out of range, or no configuration at all).

    Example:
        >>> loss_config({"loss": {"center": 0.1}}).center
        0.1
        >>> loss_config({"optimizer": "sgd"}) is None
        True
    """
    section = config.get("loss", config)
    if not isinstance(section, Mapping) or not section:
        return None
    try:
        return UWMLConfig.from_dict(section)
    except (TypeError, ValueError):
        return None


def loss_kind(config: Mapping[str, Any]) -> str:
    """Name of the loss for a table, such as ``UWML on InfoNCE``.

    Example:
        >>> loss_kind({"base": "triplet", "curve": "uniform", "direction_mode": "off"})
        'VSE++'
    """
    loss = loss_config(config)
    if loss is None:
        return _("other")
    if loss.own_weights or (loss.curve == "uniform" and loss.direction_mode == "off"):
        return _PUBLISHED.get((loss.base, loss.over_negatives), _base_name(loss))
    base = _base_name(loss)
    if loss.curve == "uniform":
        return _("{base}, directions weighted").format(base=base)
    if loss.curve == "hard":
        return _("hard weighting on {base}").format(base=base)
    return _("UWML on {base}").format(base=base)


def loss_unit(loss: UWMLConfig | None) -> str:
    """Unit of a loss, in the reader's language; empty where it has none or is unknown.

    Logarithms of probabilities are in nat, hinges on a difference of similarities in cosine, polynomials of
    similarities have no unit.

    Args:
        loss: as ``loss_config`` gives it.

    Example:
        >>> loss_unit(UWMLConfig()), loss_unit(UWMLConfig(base="triplet")), loss_unit(None)
        ('nat', 'cosine', '')
    """
    units = {"triplet": _("cosine"), "wei2020_max": "", "wei2020_calibrated": ""}
    return "" if loss is None else units.get(loss.base, _("nat"))


# What the authors of an unweighted loss call it, where that is not the name of the base.
_PUBLISHED = {("triplet", "hardest"): "VSE++", ("triplet", "sum"): "VSE0"}


def _base_name(loss: UWMLConfig) -> str:
    names = {
        "infonce": "InfoNCE",
        "triplet": "triplet" if loss.over_negatives == "hardest" else _("triplet sum"),
        "sigmoid": "SigLIP",
        "dcl": "DCL",
        "hn_nce": "HN-NCE",
        "wei2020_max": "Wei 2020 Max",
        "wei2020_calibrated": _("Wei 2020, calibrated"),
    }
    return names[loss.base]
