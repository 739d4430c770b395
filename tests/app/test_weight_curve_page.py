"""The weight curve page: each control is moved and its outcome checked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.synthetic import make_run
from uwml_core.weighting import UWMLConfig

WEIGHT_CURVE = "pages/explain/weight_curve.py"
CURVE = "Weight of a pair over its margin"
DEFAULTS = UWMLConfig()


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("logs")
    make_run(folder, run_id="a-uwml", steps=60, epochs=3, batch=32)
    plain = UWMLConfig(curve="uniform", direction_mode="off", center=0.4, total_steps=12)
    make_run(folder, run_id="b-plain", steps=12, epochs=2, config=plain)
    return folder


@pytest.fixture
def opened(open_page: Callable[..., Any], logs: Path) -> Any:
    page = open_page(WEIGHT_CURVE, logs, run="a-uwml")
    assert not page.failures
    return page


def settings(opened: Any) -> dict[str, Any]:
    loss: dict[str, Any] = yaml.safe_load(opened.app.code[0].value)["loss"]
    return loss


def effective(opened: Any) -> list[str]:
    """Row of the table: effective sample before and after, per direction."""
    row = opened.markup.split("<td>Effective sample, % of pairs</td>")[1].split("</tr>")[0]
    return [cell.removeprefix("<td>") for cell in row.split("</td>") if cell]


def test_page_shows_what_the_run_uses(opened: Any) -> None:
    assert settings(opened) == {name: getattr(DEFAULTS, name) for name in settings(opened)}
    assert set(opened.charts()) >= {CURVE, "Gradient by band", "Relative weight of the pairs"}
    assert "Replaying the logged parameters gives the logged weights" in opened.text
    assert "Open-loop preview" in opened.text
    assert "was " not in opened.text
    before_i2t, after_i2t, before_t2i, after_t2i = effective(opened)
    assert (before_i2t, before_t2i) == (after_i2t, after_t2i)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("center", 0.4),
        ("steepness_end", 30.0),
        ("hard_floor", 0.9),
        ("max_weight", 1.1),
    ],
)
def test_slider_changes_the_preview_and_says_what_it_was(opened: Any, name: str, value: float) -> None:
    opened.app.slider(key=name).set_value(value).run()
    assert not opened.failures
    assert settings(opened)[name] == value
    assert f"was {getattr(DEFAULTS, name):g}" in opened.text
    before_i2t, after_i2t, _before, _after = effective(opened)
    assert before_i2t != after_i2t
    assert "→" in opened.text.split("uw-headline")[1][:400]


def test_start_steepness_matters_at_the_start(open_page: Callable[..., Any], logs: Path) -> None:
    opened = open_page(WEIGHT_CURVE, logs, run="a-uwml", epoch="0")
    opened.app.slider(key="steepness_start").set_value(20.0).run()
    assert not opened.failures
    assert settings(opened)["steepness_start"] == 20.0
    assert effective(opened)[0] != effective(opened)[1]


@pytest.mark.parametrize("curve", ["uniform", "hard"])
def test_curve_kind_changes_the_preview(opened: Any, curve: str) -> None:
    opened.app.selectbox(key="curve").set_value(curve).run()
    assert not opened.failures
    assert settings(opened)["curve"] == curve
    assert "was bell" in opened.text
    after_i2t = effective(opened)[1]
    assert after_i2t != effective(opened)[0]
    if curve == "uniform":
        assert after_i2t.startswith("100.0")


def test_normalization_reaches_the_copied_settings(opened: Any) -> None:
    opened.app.selectbox(key="normalization").set_value("sum").run()
    assert not opened.failures
    assert settings(opened)["normalization"] == "sum"
    assert "was l2" in opened.text


@pytest.mark.parametrize(
    ("number", "changed"),
    [(0, {}), (1, {"curve": "uniform"}), (2, {"curve": "hard"}), (3, {"center": 0.0})],
)
def test_preset_sets_every_control(opened: Any, number: int, changed: dict[str, Any]) -> None:
    opened.app.slider(key="max_weight").set_value(5.0).run()
    opened.app.button(key=f"preset-{number}").click().run()
    assert not opened.failures
    expected = {name: getattr(DEFAULTS, name) for name in settings(opened)} | changed
    assert settings(opened) == expected


@pytest.mark.parametrize(
    "config",
    [
        UWMLConfig(base="wei2020_max", total_steps=12),
        UWMLConfig(base="sigmoid", total_steps=12),
        UWMLConfig(base="triplet", over_negatives="sum", total_steps=12),
    ],
    ids=lambda config: config.base,
)
def test_a_loss_that_cannot_be_replayed_says_so_and_offers_nothing(
    open_page: Callable[..., Any], tmp_path: Path, config: UWMLConfig
) -> None:
    make_run(tmp_path, run_id="own", steps=12, epochs=2, batch=16, config=config)
    opened = open_page(WEIGHT_CURVE, tmp_path, run="own", curve="hard", center="0.5")
    assert not opened.failures
    assert "Not available: this loss" in opened.text
    assert "center" not in {slider.key for slider in opened.app.slider}
    before_i2t, after_i2t, _before, _after = effective(opened)
    assert before_i2t == after_i2t


def test_margin_scale_is_offered_where_it_was_logged(open_page: Callable[..., Any], tmp_path: Path) -> None:
    config = UWMLConfig(margin_scale="negative_std", center=3.0, total_steps=12)
    make_run(tmp_path, run_id="scaled", steps=12, epochs=2, batch=32, config=config)
    opened = open_page(WEIGHT_CURVE, tmp_path, run="scaled")
    assert not opened.failures
    assert settings(opened)["margin_scale"] == "negative_std"
    assert "Replaying the logged parameters gives the logged weights" in opened.text
    opened.app.selectbox(key="margin_scale").set_value("none").run()
    assert not opened.failures
    assert (settings(opened)["margin_scale"], settings(opened)["center"]) == ("none", 2.0)
    before_i2t, after_i2t, _before, _after = effective(opened)
    assert before_i2t != after_i2t


def test_margin_scale_is_not_offered_otherwise(opened: Any) -> None:
    assert "margin_scale" not in settings(opened)
    assert "margin_scale" not in {box.key for box in opened.app.selectbox}


def test_reset_goes_back_to_the_run_in_one_click(open_page: Callable[..., Any], logs: Path) -> None:
    opened = open_page(WEIGHT_CURVE, logs, run="b-plain")
    assert settings(opened)["center"] == 0.4
    opened.app.slider(key="center").set_value(0.0).run()
    opened.app.selectbox(key="curve").set_value("bell").run()
    opened.app.button(key="reset").click().run()
    assert not opened.failures
    assert (settings(opened)["center"], settings(opened)["curve"]) == (0.4, "uniform")


def test_another_run_brings_its_own_parameters(opened: Any) -> None:
    opened.app.slider(key="center").set_value(0.0).run()
    opened.app.selectbox(key="run").set_value("b-plain").run()
    assert not opened.failures
    assert (settings(opened)["center"], settings(opened)["curve"]) == (0.4, "uniform")


def test_run_with_whole_numbers_can_be_reset_to(open_page: Callable[..., Any], tmp_path: Path) -> None:
    whole = UWMLConfig(
        center=0, steepness_start=1, steepness_end=8, hard_floor=0, max_weight=3, total_steps=6
    )
    make_run(tmp_path, steps=6, epochs=2, config=whole)
    opened = open_page(WEIGHT_CURVE, tmp_path)
    opened.app.slider(key="max_weight").set_value(5.0).run()
    opened.app.button(key="reset").click().run()
    assert not opened.failures
    assert settings(opened) == {name: getattr(whole, name) for name in settings(opened)}


def test_run_changed_on_another_page_brings_its_own_parameters(opened: Any) -> None:
    opened.app.slider(key="center").set_value(0.1).run()
    opened.app.switch_page("pages/watch/training.py").run()
    opened.app.selectbox(key="run").set_value("b-plain").run()
    opened.app.switch_page(WEIGHT_CURVE).run()
    assert not opened.failures
    assert (settings(opened)["center"], settings(opened)["curve"]) == (0.4, "uniform")


def test_ghost_appears_once_the_curve_differs(opened: Any) -> None:
    def curves() -> list[str]:
        return [
            trace["name"] for trace in opened.charts()[CURVE]["data"] if "steepness" in str(trace["name"])
        ]

    assert len(curves()) == 1
    opened.app.slider(key="center").set_value(0.4).run()
    assert len(curves()) == 2


@pytest.mark.parametrize(
    ("epoch", "steps"), [("latest", "All 20 steps"), ("0", "All 20 steps"), ("all", "All 60 steps")]
)
def test_epoch_chooses_the_pairs(opened: Any, epoch: str, steps: str) -> None:
    opened.app.selectbox(key="epoch").set_value(epoch).run()
    assert not opened.failures
    assert steps in opened.text


def test_address_brings_back_the_whole_view(open_page: Callable[..., Any], logs: Path) -> None:
    opened = open_page(WEIGHT_CURVE, logs, run="a-uwml", center="0.3", curve="hard", epoch="1")
    assert not opened.failures
    assert (settings(opened)["center"], settings(opened)["curve"]) == (0.3, "hard")
    assert opened.app.selectbox(key="epoch").value == "1"


@pytest.mark.parametrize(
    "query", [{"center": "99"}, {"center": "nan"}, {"curve": "<b>"}, {"epoch": "77"}, {"max_weight": "x"}]
)
def test_senseless_address_falls_back_to_the_run(
    open_page: Callable[..., Any], logs: Path, query: dict[str, str]
) -> None:
    opened = open_page(WEIGHT_CURVE, logs, run="a-uwml", **query)
    assert not opened.failures
    assert settings(opened) == {name: getattr(DEFAULTS, name) for name in settings(opened)}
    assert opened.app.selectbox(key="epoch").value == "latest"


def test_run_without_pairs_says_how_to_log_them(open_page: Callable[..., Any], tmp_path: Path) -> None:
    make_run(tmp_path, steps=6, epochs=2, without=("pairs",))
    opened = open_page(WEIGHT_CURVE, tmp_path)
    assert not opened.failures
    assert "This run has no pairs table." in opened.text


@pytest.mark.parametrize("steps", [1, 2])
def test_one_step_is_a_useful_page(open_page: Callable[..., Any], tmp_path: Path, steps: int) -> None:
    make_run(tmp_path, steps=steps, epochs=1, status="running")
    opened = open_page(WEIGHT_CURVE, tmp_path)
    assert not opened.failures
    assert CURVE in opened.charts()


def test_foreign_run_is_drawn_and_cannot_be_validated(open_page: Callable[..., Any], tmp_path: Path) -> None:
    folder = make_run(tmp_path, steps=12, epochs=2)
    (folder / "run.json").unlink()
    opened = open_page(WEIGHT_CURVE, tmp_path)
    assert not opened.failures
    assert "foreign" in opened.text
    assert CURVE in opened.charts()


def test_torn_part_of_the_pairs_is_named(open_page: Callable[..., Any], tmp_path: Path) -> None:
    folder = make_run(tmp_path, steps=120, epochs=3)
    torn = sorted((folder / "pairs").glob("*.parquet"))[0]
    torn.write_bytes(torn.read_bytes()[:-9])
    opened = open_page(WEIGHT_CURVE, tmp_path)
    assert not opened.failures
    assert torn.name in opened.text
