"""Named losses: complete, valid, each with its source, and equal to what their settings say."""

from __future__ import annotations

import numpy as np
import pytest

from uwml_core.weighting import LOSS_PRESETS, PARAMETERS, UWMLConfig, difficulty_weight, loss_preset


def test_the_method_and_all_comparators_are_there() -> None:
    assert set(LOSS_PRESETS) == {
        *("uwml", "article_calm", "infonce", "clip", "hard", "vse0", "vsepp", "siglip", "dcl", "hn_nce"),
        *("wei2020_max", "wei2020_calibrated", "noisy_pairs"),
    }
    assert {preset.config.base for preset in LOSS_PRESETS.values()} == set(PARAMETERS["base"].choices)


def test_each_has_a_title_a_formula_and_a_reference_in_one_line() -> None:
    for preset in LOSS_PRESETS.values():
        for text in (preset.title, preset.formula, preset.reference):
            assert text.strip() == text != ""
            assert "\n" not in text
    assert len({preset.title for preset in LOSS_PRESETS.values()}) == len(LOSS_PRESETS)


def test_only_the_method_and_hard_weighting_have_weights() -> None:
    weighted = {name for name in LOSS_PRESETS if loss_preset(name).curve != "uniform"}
    assert weighted == {"uwml", "article_calm", "noisy_pairs", "hard"}
    adaptive = [name for name in LOSS_PRESETS if loss_preset(name).direction_mode != "off"]
    assert adaptive == ["uwml", "article_calm", "noisy_pairs"]
    assert loss_preset("uwml") == UWMLConfig()


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("clip", {"base": "infonce", "learnable_temperature": True, "temperature": 0.07}),
        ("vse0", {"base": "triplet", "over_negatives": "sum", "triplet_margin": 0.2}),
        ("vsepp", {"base": "triplet", "over_negatives": "hardest", "triplet_margin": 0.2}),
        ("hn_nce", {"hn_alpha": 1.0, "hn_beta": 0.25}),
        ("wei2020_max", {"positive_polynomial": (0.5, -0.7, 0.2), "negative_polynomial": (0.03, -0.4, 0.9)}),
    ],
)
def test_constants_are_those_of_the_source(name: str, settings: dict) -> None:
    config = loss_preset(name)
    assert {key: getattr(config, key) for key in settings} == settings


def test_the_preset_for_noisy_pairs_gives_a_wrong_pair_next_to_no_weight() -> None:
    config = loss_preset("noisy_pairs")
    shape = {"center": config.center, "hard_floor": config.hard_floor}
    right, wrong = (
        difficulty_weight(np.array([margin]), steepness=kappa, **shape).item()
        for margin, kappa in ((0.15, config.steepness_end), (-0.3, config.steepness_start))
    )
    assert right == 1.0
    # sech^2(16 * 0.45 / 2)
    assert wrong == pytest.approx(1 / np.cosh(3.6) ** 2)
    assert wrong < 0.003


def test_unknown_name_names_the_nearest_or_all() -> None:
    with pytest.raises(ValueError, match=r"preset='siglipp' is unknown; did you mean siglip\?"):
        loss_preset("siglipp")
    with pytest.raises(ValueError, match="preset='x' is unknown; choose one of uwml, article_calm, "):
        loss_preset("x")
