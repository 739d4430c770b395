"""R@1 over epochs, a line per method, with the range of its seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from uwml_core.analysis.compare.methods import Method

CURVE_COLUMNS = ("method", "direction", "step", "epoch", "value", "low", "high", "runs", "queries")


def recall_progress(
    methods: Sequence[Method], evals: Mapping[str, pd.DataFrame], split: str, metric: str = "R@1"
) -> pd.DataFrame:
    """Mean over a method's runs of R@K at each evaluation.

    Args:
        methods: the methods.
        evals: frame of the table ``evals`` of each run, by run id.
        split: which split.
        metric: which R@K.

    Returns:
        Frame with ``CURVE_COLUMNS``, percent; ``low`` and ``high`` are the range over the runs, ``queries``
        of one run. Evaluations of runs that did not log epochs are matched by step.
    """
    frames = []
    for method in methods:
        parts = [_of(evals[m.run_id], split, metric).assign(run=m.run_id) for m in method.members]
        rows = pd.concat(parts, ignore_index=True)
        if rows.empty:
            continue
        at = "epoch" if rows["epoch"].notna().all() else "step"
        # of several evaluations within an epoch the last one
        rows = rows.drop_duplicates(["run", "direction", at], keep="last")
        groups = rows.groupby(["direction", at], sort=True, as_index=False)
        found = groups.agg(
            step=("step", "max"),
            epoch=("epoch", "max"),
            value=("value", "mean"),
            low=("value", "min"),
            high=("value", "max"),
            runs=("value", "count"),
            queries=("n", "max"),
        )
        frames.append(found.assign(method=method.name)[list(CURVE_COLUMNS)])
    if not frames:
        return pd.DataFrame(columns=list(CURVE_COLUMNS))
    return pd.concat(frames, ignore_index=True)


def _of(evals: pd.DataFrame, split: str, metric: str) -> pd.DataFrame:
    rows = evals[(evals["split"] == split) & (evals["metric"] == metric)]
    rows = rows.sort_values("step", kind="stable").dropna(subset=["value", "direction"])
    columns = {name: rows[name].astype("float64") for name in ("step", "epoch", "value", "n")}
    return pd.DataFrame({"direction": rows["direction"].astype(str), **columns})
