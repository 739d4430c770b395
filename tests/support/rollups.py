"""A recount of the rollups by DuckDB over the raw part files, and their comparison."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa

from uwml_core.runlog.reader import Run
from uwml_core.runlog.rollups import ROLLUPS, count, to_table
from uwml_core.runlog.schema import DIRECTION

MARGINS = """
    SELECT epoch, direction,
        CASE WHEN NOT isfinite(m) THEN NULL WHEN m < -2 THEN -1 WHEN m > 2 THEN 400
             WHEN m = 2 THEN 399 ELSE CAST(floor((m + 2) * 100) AS INTEGER) END AS bin,
        count(*) AS count,
        coalesce(sum(w) FILTER (isfinite(m) AND isfinite(w)), 0) AS weight_sum,
        coalesce(sum(w * w) FILTER (isfinite(m) AND isfinite(w)), 0) AS weight_sq_sum,
        coalesce(sum(g) FILTER (isfinite(m) AND isfinite(g)), 0) AS gradient_share_sum,
        coalesce(sum(1 - exp(-l)) FILTER (isfinite(m) AND isfinite(l)), 0) AS one_minus_p_sum,
        count(*) FILTER (NOT isfinite(w)) AS no_weight_count,
        count(*) FILTER (NOT isfinite(g)) AS no_gradient_share_count,
        count(*) FILTER (NOT isfinite(l)) AS no_pair_loss_count
    FROM rows GROUP BY ALL ORDER BY epoch NULLS FIRST, direction, bin NULLS LAST
"""
ITEMS = """
    SELECT epoch // 10 * 10 AS epoch, direction, item_id,
        count(*) FILTER (isfinite(m)) AS n,
        avg(m) FILTER (isfinite(m)) AS margin_mean,
        min(m) FILTER (isfinite(m)) AS margin_min,
        stddev_pop(m) FILTER (isfinite(m)) AS margin_spread,
        avg(w) FILTER (isfinite(w)) AS weight_mean,
        count(*) FILTER (NOT isfinite(m)) AS no_margin_count,
        count(*) FILTER (NOT isfinite(w)) AS no_weight_count
    FROM rows GROUP BY ALL ORDER BY epoch NULLS FIRST, direction, item_id
"""


def recounted(pairs: Any, name: str) -> pd.DataFrame:
    """What the rows of ``pairs`` (a frame or table with directions i2t, t2i) add up to."""
    query = {"margins": MARGINS, "items": ITEMS}[name]
    with duckdb.connect() as connection:
        connection.register("pairs", pairs)
        # null where a number was not given counts like one that is not finite
        connection.sql("""CREATE VIEW rows AS SELECT epoch, CAST(direction AS VARCHAR) AS direction, item_id,
            coalesce(CAST(margin AS DOUBLE), 'nan') AS m, coalesce(CAST(weight AS DOUBLE), 'nan') AS w,
            coalesce(CAST(gradient_share AS DOUBLE), 'nan') AS g,
            coalesce(CAST(pair_loss AS DOUBLE), 'nan') AS l FROM pairs""")
        return connection.sql(query).df()


def assert_same(own: pd.DataFrame, other: pd.DataFrame) -> None:
    """Equal keys and counts, sums within 1e-9; NaN only where the other has it."""
    assert list(own.columns) == list(other.columns)
    assert len(own) == len(other)
    for name in own.columns:
        left, right = own[name], other[name]
        if name == "direction":
            assert left.astype(str).tolist() == right.astype(str).tolist()
            continue
        a, b = (values.to_numpy(dtype=np.float64, na_value=np.nan) for values in (left, right))
        if name.endswith(("_sum", "_mean", "_spread")):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12, err_msg=name)
        else:
            np.testing.assert_array_equal(a, b, err_msg=name)


def assert_rollups_equal_recount(run: Run) -> None:
    """Both rollups of a run equal a recount of its own raw rows."""
    pairs = run.table("pairs")
    for name in ("margins", "items"):
        assert_same(run.rollup(name).to_pandas(), recounted(pairs, name))


def margins_of(pairs: pa.Table) -> pa.Table:
    """Margin rollup of rows of ``pairs``, of which those without an item are no worse."""
    directions = ("i2t", "t2i")
    if "item_id" not in pairs.column_names:
        pairs = pairs.append_column("item_id", pa.nulls(len(pairs), pa.int32()))
    place = pairs.column_names.index("direction")
    encoded = pairs.set_column(place, "direction", pairs["direction"].cast(pa.string()).cast(DIRECTION))
    return to_table(ROLLUPS["margins"], count(ROLLUPS["margins"], encoded, directions), directions)
