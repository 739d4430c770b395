"""What a run records about the software around it; never a host or user name."""

from __future__ import annotations

import dataclasses
import math
import platform
import subprocess
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from uwml_core.weighting import UWMLConfig

PACKAGES = ("uwml-lens", "numpy", "pandas", "pyarrow", "torch", "pillow")


def package_versions() -> dict[str, str]:
    """Versions of Python and of the packages that shape a run, those that are installed."""
    versions = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return versions


def code_revision() -> str | None:
    """Git revision of this package's checkout, ``-dirty`` when changed; None outside of one."""
    checkout = Path(__file__).resolve().parents[2]
    if not (checkout / ".git").exists():
        return None
    command = ["git", "-C", str(checkout), "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=5, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None


def plain_config(config: Any) -> dict[str, Any]:
    """Configuration as values that JSON knows; the home folder in paths becomes ``~``.

    Args:
        config: None, a mapping, a ``UWMLConfig`` (stored under ``loss``), or anything with ``to_dict``.

    Raises:
        ValueError: if it is none of these.

    Example:
        >>> plain_config({"train": {"epochs": 3, "betas": (0.9, 0.95)}})
        {'train': {'epochs': 3, 'betas': [0.9, 0.95]}}
    """
    if config is None:
        return {}
    if isinstance(config, UWMLConfig):
        config = {"loss": config}
    values = _plain(config)
    if not isinstance(values, dict):
        raise ValueError(
            f"config={config!r} is no configuration; expected a mapping or an object with to_dict"
        )
    return values


def _plain(value: Any) -> Any:
    if hasattr(value, "to_dict"):
        return _plain(value.to_dict())
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _plain(dataclasses.asdict(value))
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(entry) for entry in value]
    return _plain_scalar(value.item() if isinstance(value, np.generic) else value)


def _plain_scalar(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    home = str(Path.home())
    return str(value).replace(home, "~") if len(home) > 1 else str(value)
