"""Processor time of each figure and of each page that draws them; ``python -m benchmarks.figures``."""

from __future__ import annotations

import argparse
import dataclasses
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from streamlit.testing.v1 import AppTest

from tests.support.synthetic import make_run
from uwml_core.analysis import margins, what_if
from uwml_core.analysis import training as analysis
from uwml_core.analysis.bands import bands_frame
from uwml_core.analysis.curves import curve_frame, curves_by_epoch
from uwml_core.analysis.loss_settings import loss_config
from uwml_core.analysis.replay import logged_pairs
from uwml_core.analysis.selection import PREVIEW_COLUMNS, select_steps
from uwml_core.figures import curve_by_epoch, shares, training, weight_curve
from uwml_core.figures.theme import theme
from uwml_core.runlog.reader import Run, open_run

APP = Path(__file__).resolve().parents[1] / "app.py"
PAGES = ("pages/watch/training.py", "pages/explain/weight_curve.py")
REPEATS = 10


def cpu_ms(work: Callable[[], Any], repeats: int = REPEATS) -> float:
    """Median processor time of one call, after one that warms the caches."""
    work()
    took = []
    for _repeat in range(repeats):
        start = time.process_time()
        work()
        took.append(1e3 * (time.process_time() - start))
    return float(np.median(took))


def training_figures(run: Run) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Figures of the training page, from the data that the page draws them from."""
    look, directions = theme("light"), run.directions
    steps = run.frame("steps", columns=analysis.step_columns(directions))
    bands, marks = analysis.phase_bands(steps), analysis.event_marks(run.frame("events"))
    loss = analysis.series_view(steps, directions, "loss").frame
    smooth = analysis.series_view(steps, directions, "loss", smooth=True).frame
    rate = analysis.series_view(steps, directions, "learning_rate").frame
    lines = analysis.reference_lines(loss_config(run.config), steps)
    curves = analysis.retrieval_curves(run.frame("evals"))
    yield (
        "loss_figure",
        lambda: training.loss_figure(loss, bands, marks, lines, look, directions=directions, smooth=smooth),
    )
    yield "retrieval_figure", lambda: training.retrieval_figure(curves, look, directions=directions)
    yield (
        "line_figure",
        lambda: training.line_figure(rate, title="", unit="", theme=look, directions=directions, bands=bands),
    )


def weight_figures(run: Run) -> Iterator[tuple[str, Callable[[], Any]]]:
    """The preview and the figures of the weight curve page."""
    look, directions = theme("light"), run.directions
    steps = run.frame("steps", columns=analysis.step_columns(directions))
    histogram, epochs = margins.margin_histogram(run.rollup("margins")), margins.epoch_progress(steps)
    newest = max(margins.epochs_in(histogram))
    before = loss_config(run.config)
    if before is None:
        raise ValueError(f"run={run.run_id!r} has no loss configuration; expected a run of this project")
    after = dataclasses.replace(before, center=before.center + 0.05)
    pairs = run.table("pairs", columns=list(PREVIEW_COLUMNS), filter=select_steps(steps, newest).filter)
    logged = logged_pairs(pairs.unify_dictionaries().combine_chunks(), steps, directions)
    base = what_if.baseline(logged, before, directions)
    result, shown = what_if.compare(base, after), margins.select_epoch(histogram, newest)
    now, new, curves = curve_frame(before, [0.5]), curve_frame(after, [0.5]), curves_by_epoch(after, epochs)
    yield f"compare, {pairs.num_rows:,} rows", lambda: what_if.compare(base, after)
    yield (
        "weight_curve_figure",
        lambda: weight_curve.weight_curve_figure(
            shown, now, new, bands_frame(), look, directions=directions, center=after.center
        ),
    )
    yield "bands_figure", lambda: shares.bands_figure(result.bands, look, directions=directions)
    yield "weights_figure", lambda: shares.weights_figure(result.weights, look, directions=directions)
    yield "curve_by_epoch_figure", lambda: curve_by_epoch.curve_by_epoch_figure(curves, look)


def page_runs(logs: Path) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Whole pages, frame and menu included: drawn again, and with a slider moved each time."""
    os.environ["UWML_LOGS"] = str(logs)
    for page in PAGES:
        app = AppTest.from_file(str(APP), default_timeout=300)
        app.run()
        app.switch_page(page).run()
        yield f"{page}, nothing new", app.run
        if page.endswith("weight_curve.py"):
            yield f"{page}, a slider moved", slider_moves(app)


def slider_moves(app: AppTest) -> Callable[[], Any]:
    """Function that puts the center somewhere else at each call and runs the page."""
    centers = iter(np.linspace(-0.3, 0.4, 71).round(2).tolist())
    return lambda: app.slider(key="center").set_value(next(centers)).run()


def main() -> None:
    """Print the measurements."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--batch", type=int, default=32)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as root:
        run = open_run(make_run(root, steps=options.steps, batch=options.batch, epochs=10))
        print(f"{options.steps:,} steps of batch {options.batch}; processor time, median of {REPEATS}")
        for measured in (training_figures(run), weight_figures(run), page_runs(Path(root))):
            for name, work in measured:
                print(f"  {name:48s} {cpu_ms(work):7.1f} ms")


if __name__ == "__main__":
    main()
