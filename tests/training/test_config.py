"""Configuration: round trips, presets, --set, and what is refused."""

from __future__ import annotations

import dataclasses

import pytest
import yaml

from uwml_core.training import PRESETS, TrainConfig, build_config, dump_yaml
from uwml_core.training.settings import SETTINGS
from uwml_core.training.sources import parse_setting, read_yaml
from uwml_core.weighting import loss_preset


def test_plain_values_and_yaml_come_back_equal(tmp_path):
    config = build_config(
        preset="hard", settings=["train.epochs=3", "run.name=naïve 试验", "loss.temperature_end=0.02"]
    )
    assert TrainConfig.from_dict(config.to_dict()) == config
    file = tmp_path / "config.yaml"
    file.write_text(dump_yaml(config), encoding="utf-8")
    assert build_config(file=file) == config
    assert list(config.to_dict()) == ["data", "model", "loss", "train", "run"]


def test_later_layers_win(tmp_path):
    file = tmp_path / "c.yaml"
    file.write_text("loss: {curve: uniform, center: 0.1}\ntrain:\n", encoding="utf-8")
    config = build_config(preset="hard", file=file, settings=["loss.center=0.2", "loss.center=0.3"])
    assert (config.loss.curve, config.loss.center, config.loss.direction_mode) == ("uniform", 0.3, "off")


def test_numbers_in_scientific_notation_are_numbers(tmp_path):
    assert parse_setting("train.learning_rate=1e-3") == {"train": {"learning_rate": 0.001}}
    file = tmp_path / "c.yaml"
    file.write_text("train: {learning_rate: 5E-4, weight_decay: 1.e+0}", encoding="utf-8")
    train = build_config(file=file).train
    assert (train.learning_rate, train.weight_decay) == (0.0005, 1.0)


def test_null_turns_an_optional_setting_off():
    assert build_config(settings=["train.gradient_clip=null"]).train.gradient_clip is None


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_is_valid_and_sets_only_what_it_names(name):
    config = build_config(preset=name)
    assert dataclasses.replace(config, loss=TrainConfig().loss) == TrainConfig()


def test_presets_are_the_losses_of_their_names():
    assert set(PRESETS) >= {"uwml", "infonce", "vse0", "vsepp", "hard", "siglip", "dcl", "hn_nce"}
    assert build_config(preset="uwml").loss == TrainConfig().loss
    for name in PRESETS:
        assert build_config(preset=name).loss == loss_preset(name)


def test_a_preset_wins_over_the_base_loss_that_was_there():
    before = build_config(preset="vse0").to_dict()
    for name in PRESETS:
        if name not in ("vse0", "vsepp"):
            before["loss"]["over_negatives"] = "hardest"
        assert build_config(preset=name, base=before).loss.base == loss_preset(name).base


def test_every_number_and_name_has_a_range():
    config = TrainConfig()
    for key in SETTINGS:
        section, _, name = key.partition(".")
        value = getattr(getattr(config, section), name)
        # None leaves it to the data or the start
        assert value is None or SETTINGS[key].allows(value), key


REFUSED = {
    "loss.centre=0": "loss.centre is not a known setting; did you mean loss.center?",
    "train.epoch=1": "train.epoch is not a known setting; did you mean train.epochs?",
    "data.zzz=1": "data.zzz is not a known setting; known: batch_size, captions, decode, eval_split",
    "lr=1": "--set lr=1 is not understood; expected section.key=value, section one of data, model",
    "optim.lr=1": "--set optim.lr=1 is not understood",
    "loss.center": "--set loss.center is not understood",
    "loss.temperature=-1": "temperature=-1 is out of range; expected > 0",
    "loss.modalities=5": "modalities=5: expected two non-empty names such as ('image', 'text')",
    "loss.modalities=it": "modalities='it': expected two non-empty names",
    "train.learning_rate=0": "train.learning_rate=0 is out of range; expected > 0",
    "train.learning_rate=.nan": "train.learning_rate=nan is out of range",
    "train.learning_rate=fast": "train.learning_rate='fast' is out of range; expected > 0",
    "train.epochs=2.5": "train.epochs=2.5 is out of range; expected a whole number >= 1",
    "train.epochs=true": "train.epochs=True is out of range",
    "train.seed=-1": "train.seed=-1 is out of range; expected a whole number >= 0",
    "data.batch_size=1": "data.batch_size=1 is out of range; expected a whole number >= 2",
    "model.kind=huge": "model.kind='huge' is out of range; expected one of small",
    "data.captions=fr": "data.captions='fr' is out of range; expected one of en, zh",
    "data.only=noto": "only='noto' is not understood; expected column=value, such as source=noto",
    "data.only=''": "data.only='' is not usable; expected a text",
    "train.snapshot_items=1": "train.snapshot_items=1 is out of range; expected a whole number >= 2",
    "data.path=": "data.path=None is not usable; expected a text",
    "run.root=3": "run.root=3 is not usable; expected a text",
    "data.path={": "--set data.path={ has a value that is not valid YAML",
}


@pytest.mark.parametrize("setting", REFUSED)
def test_a_wrong_setting_is_told_in_one_line(setting):
    with pytest.raises(ValueError, match=r".") as caught:
        build_config(settings=[setting])
    assert REFUSED[setting] in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("train: [1, 2]", "train=[1, 2] is not a section"),
        ("just a text", "holds str; expected sections"),
        ("train: {epochs: 1", "is not valid YAML (line 1: expected ',' or '}', but got '<stream end>')"),
        ("train:\n  epochs: 1\n  epochs: 2", "is not valid YAML (line 3: epochs stands there twice)"),
        ("? [1]\n: 2", "is not valid YAML (line 1: found unhashable key)"),
        ("train: {seed: 9223372036854775808}", "train.seed=9223372036854775808 is out of range"),
        ("training: {epochs: 1}", "config.training is not a known setting; did you mean config.train?"),
    ],
)
def test_a_wrong_file_is_told_in_one_line(tmp_path, text, message):
    file = tmp_path / "c.yaml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=r".") as caught:
        build_config(file=file)
    assert message in str(caught.value)


def test_a_missing_file_and_an_unknown_preset_are_named(tmp_path):
    with pytest.raises(ValueError, match=r"none\.yaml cannot be read"):
        read_yaml(tmp_path / "none.yaml")
    with pytest.raises(ValueError, match="preset='infonc' is unknown; did you mean infonce"):
        build_config(preset="infonc")


def test_an_empty_file_is_the_defaults(tmp_path):
    file = tmp_path / "c.yaml"
    file.write_text("# nothing\n", encoding="utf-8")
    assert build_config(file=file) == TrainConfig()


def test_a_yaml_copied_from_the_loss_fits():
    assert build_config(settings=[]).loss.to_dict() == yaml.safe_load(dump_yaml(TrainConfig()))["loss"]
