"""Where a configuration comes from: preset, YAML file, ``--set section.key=value``, an earlier run."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from uwml_core.training.config import TrainConfig, section_names
from uwml_core.weighting import LOSS_PRESETS, loss_preset

PRESETS: tuple[str, ...] = tuple(LOSS_PRESETS)


class _Loader(yaml.SafeLoader):
    """YAML 1.2: numbers such as 1e-3, which YAML 1.1 reads as texts, and no key twice in a mapping."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            # a key that is no text is refused by the reader itself
            if not isinstance(key.value, str):
                continue
            if key.value in seen:
                raise yaml.constructor.ConstructorError(
                    problem=f"{key.value} stands there twice", problem_mark=key.start_mark
                )
            seen.add(key.value)
        return super().construct_mapping(node, deep)


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"^[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d+$"), list("-+.0123456789")
)


def build_config(
    *,
    preset: str | None = None,
    file: str | Path | None = None,
    settings: Sequence[str] = (),
    base: Mapping[str, Any] | None = None,
) -> TrainConfig:
    """Lay preset, file and settings over each other, the later over the earlier.

    Args:
        preset: one of ``PRESETS``.
        file: YAML file of sections.
        settings: ``section.key=value`` with values read as YAML.
        base: sections to start from, such as the configuration of an earlier run.

    Raises:
        ValueError: for anything unknown or out of range, naming it.
    """
    merged: dict[str, dict[str, Any]] = {name: dict(values) for name, values in (base or {}).items()}
    if preset is not None:
        loss_preset(preset)  # a name that is unknown ends here
        _lay_over(merged, {"loss": LOSS_PRESETS[preset].settings})
    if file is not None:
        _lay_over(merged, read_yaml(file))
    for setting in settings:
        _lay_over(merged, parse_setting(setting))
    return TrainConfig.from_dict(merged)


def read_yaml(file: str | Path) -> dict[str, Any]:
    """Sections of a YAML file.

    Raises:
        ValueError: if it is missing, or not YAML with sections at the top.
    """
    try:
        text = Path(file).read_text(encoding="utf-8")
        values = yaml.load(text, _Loader)
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{file} cannot be read; expected a YAML file of settings") from error
    except yaml.YAMLError as error:
        line = getattr(getattr(error, "problem_mark", None), "line", None)
        where = "" if line is None else f" (line {line + 1}: {getattr(error, 'problem', None)})"
        raise ValueError(f"{file} is not valid YAML{where}; expected sections of keys and values") from error
    if not isinstance(values or {}, dict):
        raise ValueError(f"{file} holds {type(values).__name__}; expected sections {_sections()}")
    return values or {}


def parse_setting(setting: str) -> dict[str, dict[str, Any]]:
    """Read ``section.key=value``, the value as YAML.

    Example:
        >>> parse_setting("train.learning_rate=1e-3")
        {'train': {'learning_rate': 0.001}}

    Raises:
        ValueError: for any other form.
    """
    path, equals, text = setting.partition("=")
    section, dot, key = path.strip().partition(".")
    if not (equals and dot and key) or section not in section_names():
        raise ValueError(
            f"--set {setting} is not understood; expected section.key=value, section {_sections()}"
        )
    try:
        return {section: {key: yaml.load(text, _Loader)}}
    except yaml.YAMLError as error:
        raise ValueError(f"--set {setting} has a value that is not valid YAML; quote it") from error


def dump_yaml(config: TrainConfig) -> str:
    """YAML text that ``read_yaml`` takes back."""
    return yaml.safe_dump(config.to_dict(), sort_keys=False, allow_unicode=True)


def _lay_over(merged: dict[str, dict[str, Any]], values: Mapping[str, Any]) -> None:
    for name, section in values.items():
        if not isinstance(section, Mapping):
            if section is None:
                continue
            raise ValueError(f"{name}={section!r} is not a section; expected keys and values under {name}:")
        merged.setdefault(name, {}).update(section)


def _sections() -> str:
    return f"one of {', '.join(section_names())}"
