"""The configuration: ranges, refusals, round trip."""

from __future__ import annotations

import dataclasses
import json
import math

import pytest

from uwml_core.weighting import PARAMETERS, UWMLConfig

OUTSIDE = {
    "base": ["cosine", None],
    "negative_statistic": ["max", None],
    "topk": [0, 2.5],
    "quantile": [0.0, 1.1],
    "margin_scale": ["std"],
    "false_negative_margin": [-2.1, 2.1],
    "combination": ["sum"],
    "curve": ["gauss"],
    "center": [-2.1, 2.1, "0"],
    "steepness_start": [-0.1],
    "steepness_end": [-1, math.inf],
    "hard_floor": [-0.1, 1.0],
    "max_weight": [0.99],
    "normalization": ["l1"],
    "direction_mode": ["on"],
    "direction_fixed": [-0.1, 1.1],
    "window": [0, 1.5],
    "update_every": [0, 2.5],
    "smoothing": [-0.1, 1.0],
    "sensitivity": [0, -1],
    "min_weight": [-0.1, 0.5],
    "temperature": [0.0, -1, math.nan, None, True],
    "temperature_end": [0.0],
    "triplet_margin": [-0.1],
    "over_negatives": ["mean"],
    "hn_alpha": [-0.1, 1.1],
    "hn_beta": [-0.1],
    "memory_batches": [-1, 1.5],
    "memory_modalities": ["image"],
    "accumulate_batches": [0, 1.5],
    "total_steps": [0, 1.5],
}
EDGES = {
    "topk": [1],
    "quantile": [1e-6, 1.0],
    "false_negative_margin": [None, -2.0, 0.0, 2.0],
    "center": [-2.0, 2.0],
    "steepness_start": [0],
    "hard_floor": [0.0, 0.999],
    "max_weight": [1.0],
    "direction_fixed": [0.0, 1.0],
    "window": [1],
    "smoothing": [0.0],
    "min_weight": [0.0, 0.499],
    "accumulate_batches": [1, 64],
    "triplet_margin": [0.0],
    "total_steps": [None, 1],
    "temperature_end": [None, 1e-3],
}


def test_every_field_has_its_range_or_is_checked_by_itself() -> None:
    fields = {field.name for field in dataclasses.fields(UWMLConfig)}
    others = {"modalities", "learnable_temperature", "positive_polynomial", "negative_polynomial"}
    assert fields - set(PARAMETERS) == others
    assert set(PARAMETERS) <= fields
    assert set(OUTSIDE) == set(PARAMETERS)


@pytest.mark.parametrize(("name", "value"), [(n, v) for n, values in OUTSIDE.items() for v in values])
def test_outside_the_range_names_field_value_and_range(name: str, value: object) -> None:
    with pytest.raises(ValueError, match=rf"^{name}=") as error:
        UWMLConfig(**{name: value})
    assert repr(value) in str(error.value)
    assert f"expected {PARAMETERS[name].expectation()}" in str(error.value)


@pytest.mark.parametrize(("name", "value"), [(n, v) for n, values in EDGES.items() for v in values])
def test_edges_of_the_range_are_allowed(name: str, value: object) -> None:
    assert getattr(UWMLConfig(**{name: value}), name) == value


def test_negative_temperature_reads_well() -> None:
    with pytest.raises(ValueError, match=r"^temperature=-1 is out of range; expected > 0$"):
        UWMLConfig(temperature=-1)


def test_center_is_free_where_it_counts_multiples_of_a_scale() -> None:
    assert UWMLConfig(center=3.5, margin_scale="negative_std").center == 3.5
    with pytest.raises(ValueError, match=r"^center=inf is out of range"):
        UWMLConfig(center=math.inf, margin_scale="negative_std")


def test_round_trip_through_json() -> None:
    config = UWMLConfig(center=0.0, modalities=("video", "text"), total_steps=7, temperature_end=0.05)
    assert UWMLConfig.from_dict(json.loads(json.dumps(config.to_dict()))) == config
    assert config.directions == ("v2t", "t2v")


def test_unknown_key_names_the_nearest() -> None:
    with pytest.raises(ValueError, match=r"loss.temprature is not a known setting; did you mean loss.temp"):
        UWMLConfig.from_dict({"temprature": 1})
    with pytest.raises(ValueError, match=r"loss.zzz is not a known setting; known: accumulate_batches, base"):
        UWMLConfig.from_dict({"zzz": 1})


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"learnable_temperature": True, "temperature_end": 0.1}, "temperature_end cannot be scheduled"),
        ({"learnable_temperature": True, "base": "triplet"}, "has no effect with base='triplet'"),
        ({"learnable_temperature": 1}, "learnable_temperature=1 is not a truth value"),
        ({"learnable_temperature": True, "base": "wei2020_max"}, "with base='wei2020_max', which has none"),
        ({"learnable_temperature": True, "base": "sigmoid"}, "'sigmoid', which learns its own scale; drop"),
        (
            {"temperature_end": 0.1, "base": "triplet"},
            "temperature_end=0.1 has no effect with base='triplet'",
        ),
        ({"temperature_end": 0.1, "base": "sigmoid"}, "'sigmoid', which learns its own scale; drop it"),
        ({"temperature_end": 0.1, "base": "wei2020_max"}, "with base='wei2020_max', which has none; drop it"),
        ({"over_negatives": "sum"}, "over_negatives='sum' has no effect with base='infonce'; drop it"),
        ({"base": "wei2020_max", "curve": "bell"}, "curve='bell' is impossible with base='wei2020_max'"),
        ({"base": "wei2020_calibrated", "direction_mode": "adaptive"}, "direction_mode='adaptive' is imposs"),
        ({"base": "wei2020_max", "margin_scale": "negative_std"}, "weights of its own; expected 'none'"),
        ({"base": "wei2020_max", "combination": "add"}, "weights of its own; expected 'multiply'"),
        ({"positive_polynomial": ()}, r"positive_polynomial=\(\) is no polynomial; expected finite coeff"),
        ({"negative_polynomial": (1.0, math.nan)}, "negative_polynomial=.* is no polynomial"),
        ({"modalities": ("text", "thermal")}, "begin with the same letter"),
        ({"modalities": 5}, r"^modalities=5: expected two non-empty names"),
        ({"modalities": None}, r"^modalities=None: expected two non-empty names"),
        ({"modalities": (1, 2)}, r"^modalities=\(1, 2\): expected two non-empty names"),
        ({"modalities": "it"}, r"^modalities='it': expected two non-empty names"),
    ],
)
def test_impossible_combinations(values: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        UWMLConfig(**values)


def test_a_base_with_weights_of_its_own_brings_them() -> None:
    config = UWMLConfig(base="wei2020_max")
    assert (config.curve, config.direction_mode) == ("uniform", "off")
    assert UWMLConfig.from_dict(json.loads(json.dumps(config.to_dict()))) == config
    assert (UWMLConfig().curve, UWMLConfig().direction_mode) == ("bell", "adaptive")
    assert type(UWMLConfig().curve) is str


def test_frozen_and_keyword_only() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        UWMLConfig().center = 0.0
    with pytest.raises(TypeError):
        UWMLConfig("infonce")
