"""Is it learning? Series over steps, retrieval over evaluations, bands, marks and reference lines."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from uwml_core.analysis.decimation import SeriesView, decimate, inside, zoom_series
from uwml_core.analysis.plateau import plateau
from uwml_core.analysis.splits import main_split
from uwml_core.analysis.step_values import column, names_dtype, quantity_values
from uwml_core.i18n import _
from uwml_core.weighting import UWMLConfig

QUANTITIES = (
    "loss",
    "learning_rate",
    "temperature",
    "gradient_norm",
    "ess_share",
    "throughput",
    "gap",
    "direction_weight",
    "accuracy",
    "clamped_share",
    "steepness",
    "step_time_ms",
    "telemetry_time_ms",
)
SERIES_COLUMNS = ["step", "epoch", "direction", "value", "n"]
_SHARED = ("loss", "learning_rate", "temperature", "gradient_norm", "steepness", "step_time_ms")
_PER_DIRECTION = ("loss", "gap", "direction_weight", "accuracy", "clamped_share", "ess", "no_negative_count")
_ROUTINE_EVENTS = ("phase", "checkpoint", "throughput")


def step_columns(directions: tuple[str, str]) -> list[str]:
    """Columns of ``steps`` that the pages on training and on the weight curve read."""
    alone = ["step", "epoch", "phase", "progress", "batch_size", "negatives_per_anchor", "telemetry_time_ms"]
    per_direction = (*_PER_DIRECTION, "margin_scale")
    return [*alone, *_SHARED, *(f"{name}_{d}" for name in per_direction for d in directions)]


def quantity_label(quantity: str) -> tuple[str, str]:
    """Title and unit of a quantity, in the reader's language; ``loss_unit`` knows that of the loss.

    Raises:
        ValueError: if the quantity is unknown.
    """
    labels = {
        "loss": (_("Loss"), ""),
        "learning_rate": (_("Learning rate"), ""),
        "temperature": (_("Temperature"), _("cosine")),
        "gradient_norm": (_("Gradient norm"), ""),
        "ess_share": (_("Effective sample size"), _("% of pairs")),
        "throughput": (_("Throughput"), _("pairs/s")),
        "gap": (_("Mean margin"), _("cosine")),
        "direction_weight": (_("Direction weight"), ""),
        "accuracy": (_("In-batch rank-1 accuracy"), "%"),
        "clamped_share": (_("Clamped anchors"), "%"),
        "steepness": (_("Steepness"), _("per cosine")),
        "step_time_ms": (_("Step time"), _("ms")),
        "telemetry_time_ms": (_("Telemetry time"), _("ms")),
    }
    if quantity not in labels:
        raise ValueError(f"quantity={quantity!r} is unknown; choose one of {', '.join(QUANTITIES)}")
    return labels[quantity]


def step_series(steps: pd.DataFrame, directions: tuple[str, str], quantity: str) -> pd.DataFrame:
    """One quantity over steps, the total and each direction as far as they were logged.

    Args:
        steps: frame of the table ``steps``, in step order.
        directions: the run's directions.
        quantity: one of ``QUANTITIES``; shares are in percent, ``throughput`` in pairs/s.

    Returns:
        Frame ``[step, epoch, direction, value, n]``: ``direction`` is categorical over the run's
        directions, null for the total; ``n`` is the batch size in pairs. Rows of a direction stand
        together; a column that was never logged gives no rows.

    Raises:
        ValueError: if the quantity is unknown.
    """
    quantity_label(quantity)
    found = _logged(steps, directions, quantity)
    return _tidy(steps, directions, {code: value for code, (value, logged) in found.items() if logged})


def _logged(
    steps: pd.DataFrame, directions: tuple[str, str], quantity: str
) -> dict[int, tuple[np.ndarray, bool]]:
    """Values of the total (-1) and of each direction, and whether they were ever logged."""
    found = {}
    for code, direction in enumerate((None, *directions), start=-1):
        value = quantity_values(steps, quantity, direction)
        if value is not None:
            # A total loss of nothing but NaN is a broken run, not a column that was never logged.
            is_total_loss = quantity == "loss" and direction is None
            found[code] = value, is_total_loss or not np.isnan(value).all()
    return found


def _tidy(
    steps: pd.DataFrame,
    directions: tuple[str, str],
    by_code: dict[int, np.ndarray],
    rows: dict[int, np.ndarray] | None = None,
) -> pd.DataFrame:
    """Values of each direction below each other, of all rows or of some."""
    taken = {code: (slice(None) if rows is None else rows[code]) for code in by_code}

    def stacked(column: np.ndarray) -> np.ndarray:
        return np.concatenate([column[:0], *(column[chosen] for chosen in taken.values())])

    codes = [np.full(len(value[taken[code]]), code, np.int8) for code, value in by_code.items()]
    return pd.DataFrame(
        {
            "step": stacked(_step_numbers(steps)),
            "epoch": stacked(column(steps, "epoch")),
            "direction": pd.Categorical.from_codes(
                np.concatenate([np.empty(0, np.int8), *codes]), dtype=names_dtype(directions)
            ),
            "value": np.concatenate([np.empty(0), *(value[taken[code]] for code, value in by_code.items())]),
            "n": stacked(column(steps, "batch_size")),
        }
    )


def _step_numbers(steps: pd.DataFrame) -> np.ndarray:
    numbers = steps["step"].to_numpy()
    return numbers if numbers.dtype == np.int64 else column(steps, "step").astype(np.int64)


def series_view(
    steps: pd.DataFrame, directions: tuple[str, str], quantity: str, *, smooth: bool = False
) -> SeriesView:
    """A quantity over steps, decimated to what is drawn.

    Args:
        steps, directions, quantity: as for ``step_series``.
        smooth: take its ``rolling_mean``.
    """
    quantity_label(quantity)
    found = _logged(steps, directions, quantity)
    by_code = {code: value for code, (value, logged) in found.items() if logged}
    window = _window(len(steps) if by_code else 0)
    if smooth:
        by_code = {code: _trailing_mean(value, window) for code, value in by_code.items()}
    # what is drawn alone: to write all steps of all directions below each other takes longer than the rest
    number = _step_numbers(steps)
    parts = {code: decimate(number, value) for code, value in by_code.items()}
    frame = _tidy(steps, directions, by_code, {code: part.drawn for code, part in parts.items()})
    return SeriesView(
        frame.assign(window=window) if smooth else frame,
        sum(len(part.kept) for part in parts.values()),
        len(steps) * len(parts),
        sum(part.nonfinite_total for part in parts.values()),
    )


def zoomed_view(
    steps: pd.DataFrame,
    directions: tuple[str, str],
    quantity: str,
    whole: SeriesView,
    within: tuple[float, float],
    *,
    smooth: bool = False,
) -> SeriesView:
    """A quantity over steps, drawn more finely within a range of them.

    Args:
        steps, directions, quantity, smooth: as for ``series_view``.
        whole: what that gives.
        within: first and last step of the range; both may be fractions.
    """
    rows = inside(steps["step"].to_numpy(), within)
    window = int(whole.frame["window"].iloc[0]) if smooth and len(whole.frame) else 1
    # a mean at the range's beginning reaches back to steps before it
    near = steps.iloc[max(0, rows.start - window + 1) : rows.stop]
    drawn = set(whole.frame["direction"].cat.codes)
    # what the run has logged may be missing in all of the range
    found = {
        code: value for code, (value, _any) in _logged(near, directions, quantity).items() if code in drawn
    }
    series = _tidy(near, directions, found)
    series = rolling_mean(series, window) if smooth else series
    return zoom_series(whole, series[series["step"].between(*within)], within)


def rolling_mean(series: pd.DataFrame, window: int | None = None) -> pd.DataFrame:
    """Trailing mean of the finite values of each direction.

    Args:
        series: as ``step_series`` gives it.
        window: steps per mean; None takes a fiftieth of the longest direction, at least 1.

    Returns:
        The series with averaged values, NaN where a window holds no finite value, and a column ``window``.
    """
    codes = series["direction"].cat.codes.to_numpy()
    longest = int(np.bincount(codes + 1).max()) if len(codes) else 0
    window = window or _window(longest)
    value = series["value"].to_numpy(dtype=np.float64).copy()
    for code in np.unique(codes):
        rows = codes == code
        value[rows] = _trailing_mean(value[rows], window)
    return series.assign(value=value, window=window)


def _window(steps: int) -> int:
    return max(1, steps // 50)


def _trailing_mean(value: np.ndarray, window: int) -> np.ndarray:
    finite = np.isfinite(value)
    every = bool(finite.all())
    known = value if every else value[finite]
    center = known.mean() if len(known) else 0.0
    # Sums of deviations keep the digits that sums of a million raw values would lose.
    total = np.cumsum(value - center if every else np.where(finite, value - center, 0.0))
    n = np.arange(1, len(value) + 1) if every else np.cumsum(finite)
    for running in (total, n):
        running[window:] -= running[:-window]
    with np.errstate(invalid="ignore"):
        return np.asarray(center + total / n)


def retrieval_curves(evals: pd.DataFrame, split: str | None = None) -> pd.DataFrame:
    """R@K over evaluations.

    Args:
        evals: frame of the table ``evals``.
        split: which split; None takes the ``main_split``.

    Returns:
        Frame ``[step, epoch, direction, metric, value, n, tied_share]``, values in percent, in order of
        metric (R@1, R@5, R@10), direction and step.
    """
    columns = ["step", "epoch", "direction", "metric", "value", "n", "tied_share"]
    rows = evals[(evals["split"] == (split or main_split(evals))) & evals["metric"].str.startswith("R@")]
    rows = rows[columns].assign(at=pd.to_numeric(rows["metric"].str[2:]))
    return rows.sort_values(["at", "direction", "step"], kind="stable")[columns].reset_index(drop=True)


def phase_bands(steps: pd.DataFrame) -> pd.DataFrame:
    """Stretches of steps with the same phase, ``[phase, first_step, last_step]``; none where not logged."""
    columns = ["phase", "first_step", "last_step"]
    if "phase" not in steps.columns:
        return pd.DataFrame(columns=columns)
    # neighbours alone: to number all names of a long run takes three times as long
    phase = pa.array(steps["phase"], pa.large_string(), from_pandas=True)
    runs = pc.run_end_encode(phase.combine_chunks() if isinstance(phase, pa.ChunkedArray) else phase)
    ends, step = runs.run_ends.to_numpy() - 1, steps["step"].to_numpy()
    starts = np.concatenate([[0], ends[:-1] + 1])[: len(ends)]
    named = zip(runs.values.to_pylist(), step[starts].tolist(), step[ends].tolist(), strict=True)
    return pd.DataFrame([stretch for stretch in named if stretch[0]], columns=columns)


def event_marks(events: pd.DataFrame) -> pd.DataFrame:
    """What happened at which step: ``[step, kind, level, message, count]``.

    Phases (drawn as bands) and checkpoints (routine) are left out; several events of a kind at one step
    become one mark with their number and the first message.
    """
    columns = ["step", "kind", "level", "message", "count"]
    rows = events[~events["kind"].isin(_ROUTINE_EVENTS)].dropna(subset=["step", "kind"])
    if rows.empty:
        return pd.DataFrame(columns=columns)
    marks = rows.groupby(["step", "kind"], sort=True, as_index=False).agg(
        level=("level", "first"), message=("message", "first"), count=("kind", "size")
    )
    return marks[columns]


def reference_lines(config: UWMLConfig | None, steps: pd.DataFrame) -> pd.DataFrame:
    """Losses of a model that has learned nothing: ``[name, value, why]``, as ``plateau`` gives them.

    Args:
        config: the run's loss, None where it is unknown (no lines then).
        steps: frame with ``negatives_per_anchor`` and ``batch_size``; medians over steps are used.
    """
    negatives, batch = (_median(column(steps, name)) for name in ("negatives_per_anchor", "batch_size"))
    line = None if config is None or not np.isfinite(batch) else plateau(config, negatives, batch)
    return pd.DataFrame([] if line is None else [line], columns=["name", "value", "why"])


def _median(values: np.ndarray) -> float:
    finite = values[np.isfinite(values)]
    return float(np.median(finite)) if len(finite) else float("nan")
