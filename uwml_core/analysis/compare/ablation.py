"""Tables: which settings differ, and what each method reached."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from uwml_core.analysis.compare.comparison import Comparison, seed_values
from uwml_core.analysis.compare.headline import mean_text
from uwml_core.analysis.compare.methods import Method, seeds_text
from uwml_core.analysis.compare.seeds import t_interval
from uwml_core.analysis.compare.settings import differing, setting_text
from uwml_core.i18n import _

_SHOWN = ("R@1", "R@5", "R@10", "rsum")


def configuration_diff(methods: Sequence[Method]) -> pd.DataFrame:
    """Settings that differ, ``[setting, <name of each method>]``, as texts.

    Args:
        methods: with names of their own; the columns stand in their order. One whose settings were not
            logged has no column.
    """
    known = [method for method in methods if method.settings]
    names = differing([method.settings for method in known])
    columns = {m.name: [setting_text(m.settings, name) for name in names] for m in known}
    return pd.DataFrame({"setting": pd.Series(names, dtype=object), **columns})


def ablation(comparison: Comparison) -> pd.DataFrame:
    """One row per method: its differing settings, then each metric with its 95 % interval, then n.

    Returns:
        Frame ``[method, <settings>, <metric direction>, <... low>, <... high>, seeds, queries]``. The
        interval is over seeds where a method has two or more, else over queries.
    """
    resampled = comparison.resampled
    if resampled is None:
        return pd.DataFrame(columns=["method", "seeds", "queries"])
    factors = _factors(comparison)
    rows = []
    for m, (method, outcomes) in enumerate(zip(comparison.methods, comparison.outcomes, strict=True)):
        row: dict[str, object] = {"method": method.name}
        row |= {name: setting_text(method.settings, name) for name in factors}
        low, high = resampled.interval(m)
        per_seed = seed_values(method, outcomes, resampled.names)
        for k, (direction, metric) in enumerate(resampled.names):
            if metric not in _SHOWN:
                continue
            column = f"{metric} {direction}".strip()
            seeds = t_interval(np.array(list(per_seed[k].values())))
            bounds = (low[k], high[k]) if np.isnan(seeds.low) else (seeds.low, seeds.high)
            row |= {column: resampled.value[m, k]}
            row |= {f"{column} low": bounds[0], f"{column} high": bounds[1]}
        queries = sum(len(ranks) for ranks in outcomes[0].ranks.values())
        rows.append({**row, "seeds": len(method.members), "queries": queries})
    return pd.DataFrame(rows)


def _factors(comparison: Comparison) -> list[str]:
    return differing([method.settings for method in comparison.methods if method.settings])


def ablation_texts(frame: pd.DataFrame, comparison: Comparison) -> list[list[str]]:
    """The ablation table as texts, the first row being the heading.

    Args:
        frame: of ``ablation``.
        comparison: what it was made from.
    """
    bounded = [name for name in frame.columns if f"{name} low" in frame.columns]
    factors = _factors(comparison)
    rows = [[_("Method"), *factors, *bounded, _("n")]]
    for method, (_index, row) in zip(comparison.methods, frame.iterrows(), strict=True):
        cells = [mean_text(row[name], 0.5 * (row[f"{name} high"] - row[f"{name} low"])) for name in bounded]
        rows.append([method.name, *(row[name] for name in factors), *cells, seeds_text(method)])
    return rows
