"""What the copy buttons hand out sets exactly what the sliders show."""

from __future__ import annotations

import shlex

import pytest
import yaml

from uwml_core.training.sources import build_config
from uwml_core.ui.balance_controls import BALANCE_CONTROLS
from uwml_core.ui.controls import CONTROLS
from uwml_core.ui.recipes import as_command, as_python, as_yaml
from uwml_core.weighting import UWMLConfig

BALANCE = BALANCE_CONTROLS.names
CONFIGS = [
    UWMLConfig(),
    UWMLConfig(curve="uniform", normalization="none"),
    UWMLConfig(
        curve="hard", center=-0.37, steepness_start=0, steepness_end=33.5, hard_floor=0.0, max_weight=1
    ),
]


@pytest.mark.parametrize("config", CONFIGS)
def test_yaml_reads_back_as_the_same_weighting(config: UWMLConfig) -> None:
    assert UWMLConfig.from_dict(yaml.safe_load(as_yaml(config))["loss"]) == config


@pytest.mark.parametrize("config", CONFIGS)
def test_python_names_every_control_with_its_value(config: UWMLConfig) -> None:
    given: dict[str, object] = {}
    code = as_python(config).replace("from uwml_core import UWMLLoss", "")
    exec(code, {"UWMLLoss": lambda **values: given.update(values)})
    assert given == {name: getattr(config, name) for name in CONTROLS}


@pytest.mark.parametrize("config", CONFIGS)
def test_command_line_sets_every_control(config: UWMLConfig) -> None:
    words = shlex.split(as_command(config).replace("\\\n", " "))
    settings = dict(word.split("=", 1) for word in words if word.startswith("loss."))
    values = {name.removeprefix("loss."): yaml.safe_load(value) for name, value in settings.items()}
    assert values == {name: getattr(config, name) for name in CONTROLS}


@pytest.mark.parametrize("mode", ["adaptive", "fixed", "off"])
def test_direction_mode_survives_yaml_and_command_line(mode: str) -> None:
    config = UWMLConfig(direction_mode=mode, window=50, smoothing=0.95)
    assert UWMLConfig.from_dict(yaml.safe_load(as_yaml(config, BALANCE))["loss"]) == config
    words = shlex.split(as_command(config, BALANCE).replace("\\\n", " "))
    settings = [word for word in words if word.startswith("loss.")]
    assert build_config(settings=settings).loss == config
    assert f"direction_mode={mode!r}" in as_python(config, BALANCE)
