"""What distinguishes two runs: their configurations, defaults resolved, one flat name per setting."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from uwml_core.analysis.loss_settings import loss_config

# Settings that earlier versions of the trainer lacked, and what they did.
ADDED_LATER: Mapping[str, Any] = {
    "data.decode": "ahead",
    "data.eval_split": None,
    "data.pictures": None,
    "data.swapped": 0.0,
    "data.workers": 0,
    "model.fine_tune": False,
    "model.image_encoder": None,
    "model.text_encoder": None,
    "train.backbone_share": 0.1,
    "train.compile": False,
    "train.device": "auto",
    "train.init_from": None,
    "train.pairs_every": 1,
    "train.precision": "float32",
    "train.warmup_epochs": 0,
}
SEED = "train.seed"
ABSENT = "–"
_BOOKKEEPING = ("run.", "train.resume")
# What the number of epochs and the data imply.
_IMPLIED = {"loss.total_steps": "train.epochs"}


def settings_of(config: Mapping[str, Any]) -> dict[str, Any]:
    """A run's settings by ``section.key``; what its loss left out has the default.

    Args:
        config: the run's configuration.

    Example:
        >>> settings_of({"loss": {"center": 0.1}, "train": {"seed": 3}})["loss.steepness_end"]
        20.0
        >>> settings_of({"optimizer": {"name": "sgd", "betas": [0.9]}})
        {'optimizer.name': 'sgd', 'optimizer.betas': [0.9]}
    """
    loss = loss_config(config)
    if loss is None:
        return dict(_flat(config, ""))
    others = {name: value for name, value in config.items() if name != "loss"} if "loss" in config else {}
    settings = dict(_flat({"loss": loss.to_dict(), **others}, ""))
    if "train" in config:
        settings = {**settings, **{name: v for name, v in ADDED_LATER.items() if name not in settings}}
    return settings


def _flat(values: Mapping[str, Any], prefix: str) -> Iterable[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def identity(settings: Mapping[str, Any]) -> frozenset[tuple[str, str]]:
    """What makes a method: all settings but the seed and what the run is called and where it lies.

    Example:
        >>> identity({"train.seed": 1, "run.name": "a"}) == identity({"train.seed": 2, "run.name": "b"})
        True
    """
    return frozenset((name, canonical(value)) for name, value in settings.items() if _counts(name))


def _counts(name: str) -> bool:
    return not name.startswith(_BOOKKEEPING) and name.rpartition(".")[2] != "seed"


def differing(settings: Sequence[Mapping[str, Any]]) -> list[str]:
    """Names of the settings that are not the same everywhere, in the order of first appearance.

    Seeds and names are left out, and so is what another of them implies.

    Args:
        settings: one mapping per method.

    Example:
        >>> differing([{"loss.center": 0.1, "train.seed": 0}, {"loss.center": 0.2, "train.seed": 1}])
        ['loss.center']
    """
    names = [name for name in dict.fromkeys(name for one in settings for name in one) if _counts(name)]
    differ = [name for name in names if len({_shown(one, name) for one in settings}) > 1]
    return [name for name in differ if _IMPLIED.get(name) not in differ]


def setting_text(settings: Mapping[str, Any], name: str) -> str:
    """A setting as it stands in a table; a dash where it was not logged.

    Example:
        >>> setting_text({"a": 0.1, "b": None}, "a"), setting_text({"a": 1, "b": None}, "b")
        ('0.1', 'none')
        >>> setting_text({}, "a")
        '–'
    """
    if name not in settings:
        return ABSENT
    value = settings[name]
    return "none" if value is None else value if isinstance(value, str) else canonical(value)


def _shown(settings: Mapping[str, Any], name: str) -> str:
    return canonical(settings[name]) if name in settings else ABSENT


def canonical(value: Any) -> str:
    """A value as text that is the same for equal values, such as 1 and 1.0.

    Example:
        >>> canonical(1.0), canonical([True, 0.5, "x"])
        ('1', '[true, 0.5, "x"]')
    """
    return json.dumps(_plain(value), sort_keys=True, ensure_ascii=False, default=str)


def _plain(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return [_plain(one) for one in value] if isinstance(value, (list, tuple)) else value
