"""The report's own curve, in a real browser, against the functions of the loss and of the page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tests.report.conftest import LOGS
from tests.support.browser import visit
from uwml_core.analysis.pooled import compare_pooled, pooled_margins
from uwml_core.report.document import static
from uwml_core.report.preview import preview_data
from uwml_core.runlog.reader import open_run
from uwml_core.weighting import UWMLConfig, difficulty_weight, stage_steepness

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def script() -> Iterator[Any]:
    """A page that knows the report's curve, without a report."""
    with visit() as seen:
        seen.page.goto("about:blank")
        seen.page.add_script_tag(content=static("curve.js"))
        yield seen.page


@pytest.mark.parametrize("curve", ["bell", "uniform", "hard"])
def test_the_scripts_curve_is_the_losses_own(script: Any, curve: str) -> None:
    margin = np.concatenate(
        [np.linspace(-2.0, 2.0, 81), [0.15, np.nextafter(0.15, 0), np.nextafter(0.15, 1), np.nan]]
    )
    grid = [
        (center, floor, kappa)
        for center in (-2.0, 0.0, 0.15, 0.3, 2.0)
        for floor in (0.0, 0.3, 0.99)
        for kappa in (0.0, 1e-3, 2.0, 12.0, 200.0)
    ]
    found = script.evaluate(
        """([margins, grid, curve]) => grid.map(([center, hard_floor, kappa]) =>
          margins.map(margin => uwmlCurve.weight(margin ?? NaN, { curve, center, hard_floor }, kappa)))""",
        [[None if np.isnan(value) else value for value in margin.tolist()], grid, curve],
    )
    expected = [
        difficulty_weight(margin, curve=curve, center=center, steepness=kappa, hard_floor=floor)
        for center, floor, kappa in grid
    ]
    np.testing.assert_allclose(np.array(found, float), np.array(expected), rtol=0, atol=1e-12)
    assert not np.isnan(np.array(found, float)).any()


def test_the_scripts_schedule_is_the_losses_own(script: Any) -> None:
    moments = np.linspace(0.0, 1.0, 101)
    found = script.evaluate("t => t.map(value => uwmlCurve.steepness(value, 2, 12))", moments.tolist())
    np.testing.assert_allclose(found, stage_steepness(moments, 2.0, 12.0), rtol=0, atol=1e-12)
    assert script.evaluate("uwmlCurve.steepness(null, 2, 12)") == pytest.approx(12.0, abs=1e-12)


@pytest.mark.parametrize("seed", range(12))
def test_the_scripts_preview_is_that_of_the_pooled_histogram(script: Any, seed: int) -> None:
    run, draw = open_run(LOGS / "sample-uwml"), np.random.default_rng(seed)
    in_use = UWMLConfig(**{**run.config["loss"], "modalities": tuple(run.config["loss"]["modalities"])})
    pooled = pooled_margins(run.rollup("margins"), run.frame("steps"), seed % 6, in_use, run.directions)
    tried = UWMLConfig(
        curve=("bell", "uniform", "hard")[seed % 3],
        center=float(draw.uniform(-0.5, 0.5)),
        steepness_start=float(draw.uniform(0, 40)),
        steepness_end=float(draw.uniform(0, 40)),
        hard_floor=float(draw.uniform(0, 0.99)),
        max_weight=float(draw.uniform(1, 5)),
    )
    result = compare_pooled(pooled, tried)
    names = ("curve", "center", "steepness_start", "steepness_end", "hard_floor", "max_weight")
    found = script.evaluate(
        """([data, tried]) => {
          const of = ({ progress, bins }) => {
            const [inUse, other] = [data.in_use, tried].map(each => uwmlCurve.moments(bins, each, progress))
            return uwmlCurve.measures(bins, other, inUse, data.bands)
          }
          return Object.fromEntries(Object.entries(data.directions).map(([name, part]) => [name, of(part)]))
        }""",
        [preview_data(pooled, progress=0.5, scale=1.0), {name: getattr(tried, name) for name in names}],
    )
    for row in result.summary.to_dict("records"):
        assert found[row["direction"]]["ess_share"] == pytest.approx(row["ess_share_after"], abs=1e-12)
    for row in result.bands.to_dict("records"):
        assert found[row["direction"]][row["band"]] == pytest.approx(row["share_after"], abs=1e-12)
