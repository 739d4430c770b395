"""What is told about the points of a map only where somebody asks: weight, phase, what the map tore apart."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

WEIGHT_COLUMNS = ("item_id", "direction", "weight")


def item_weights(pairs: pa.Table, item_ids: NDArray[np.int64]) -> pd.DataFrame:
    """Mean weight of items in each direction.

    Args:
        pairs: ``WEIGHT_COLUMNS`` of the table ``pairs``; rows without a finite weight are left out.
        item_ids: the items; those without a row are left out.

    Returns:
        Frame ``[item_id, direction, weight, n]``, by item and direction; n counts the rows.
    """
    asked = pc.is_in(pairs["item_id"], pa.array(item_ids, pairs["item_id"].type))
    known = pairs.select(list(WEIGHT_COLUMNS)).filter(pc.and_(asked, pc.is_finite(pairs["weight"])))
    texts = known.set_column(1, "direction", known["direction"].cast(pa.string()))
    grouped = texts.group_by(["item_id", "direction"]).aggregate([("weight", "mean"), ("weight", "count")])
    frame: pd.DataFrame = grouped.to_pandas().rename(columns={"weight_mean": "weight", "weight_count": "n"})
    ordered = frame[["item_id", "direction", "weight", "n"]]
    return ordered.sort_values(["item_id", "direction"], kind="stable", ignore_index=True)


def with_weights(
    points: pd.DataFrame,
    weights: pd.DataFrame,
    modalities: tuple[str, str],
    directions: tuple[str, str],
) -> pd.DataFrame:
    """Points with the weight that their item had as an anchor of their modality; NaN where it had none.

    Args:
        points: frame of ``map_points``.
        weights: frame of ``item_weights``.
        modalities: names of both, in the order of the directions.
        directions: names of both.
    """
    weight = np.full(len(points), np.nan)
    for modality, direction in zip(modalities, directions, strict=True):
        mine = (points["modality"] == modality).to_numpy()
        known = weights[weights["direction"] == direction].set_index("item_id")["weight"]
        weight[mine] = known.reindex(points.loc[mine, "item_id"]).to_numpy(np.float64)
    return points.assign(weight=weight)


def with_kept_share(points: pd.DataFrame, quality: pd.DataFrame) -> pd.DataFrame:
    """Points with the share of their neighbors that the map kept; NaN where it was not looked at.

    Args:
        points: frame of ``map_points``.
        quality: frame of ``point_quality`` over the same points in the same order.
    """
    kept = np.full(len(points), np.nan)
    kept[quality["row"].to_numpy(np.int64)] = quality["kept_share"].to_numpy(np.float64)
    return points.assign(kept_share=kept)
