"""Every table and column of the run log, once: name, Arrow type, unit, meaning, version.

Wide columns per direction carry the direction as a suffix (``gap_i2t``), so a schema is a function of
the run's two direction names.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from uwml_core.runlog.tables import SCHEMA_VERSION, Column, Table
from uwml_core.runlog.tables import col as _col

__all__ = [
    "CAPTIONS",
    "DIRECTION",
    "EVALS",
    "EVENTS",
    "ITEMS",
    "ITEM_ROLLUPS",
    "MARGIN_ROLLUPS",
    "NEIGHBORS",
    "PAIRS",
    "PROJECTIONS",
    "RANKS",
    "SCHEMA_VERSION",
    "SNAPSHOTS",
    "STEPS",
    "TABLES",
    "TIME",
    "Column",
    "Table",
    "schema",
]

DIRECTION = pa.dictionary(pa.int32(), pa.string())
TIME = pa.timestamp("us", tz="UTC")
CAPTIONS = pa.list_(pa.string())

_STEP = _col("step", pa.int64(), "optimizer step, the first is 0", "step")
_LAST_STEP = _col("step", pa.int64(), "last completed optimizer step, -1 before training", "step")
_SEGMENT = _col("segment", pa.int32(), "segment that wrote the row; a resume opens a new one")
_EPOCH = _col("epoch", pa.int32(), "epoch, the first is 0", "epoch")
_DIRECTION = _col("direction", DIRECTION, "retrieval direction")
_SPLIT = _col("split", pa.string(), "data split")
_ITEM = _col("item_id", pa.int32(), "row of the data set")
_LABEL = _col("label", pa.int32(), "what the item shows; equal labels are never negatives")

# Of the tables that grow with every step the columns that say which rows a part of a file holds: everything
# else has nearly all its values in each, and its bounds cost as much as the rows.
_IN_ORDER = ("step", "epoch")

STEPS = Table(
    name="steps",
    columns=(
        _STEP,
        _EPOCH,
        _col("phase", pa.string(), "training phase, such as warmup or train"),
        _col("progress", pa.float64(), "optimizer steps done / total", "1"),
        _col("time", TIME, "wall clock, UTC"),
        _col("elapsed_s", pa.float64(), "monotonic time since the segment began", "s"),
        _col("step_time_ms", pa.float64(), "time of the whole step, telemetry included", "ms"),
        _col("telemetry_time_ms", pa.float64(), "time of the previous log_step call", "ms"),
        _col("batch_size", pa.int32(), "pairs in the batch", "pairs"),
        _col("loss", pa.float64(), "training loss", "nat"),
        _col("loss", pa.float64(), "loss of the direction, before the direction weight", "nat", True),
        _col("gap", pa.float64(), "mean margin of the step", "cosine", True),
        _col("gap_window", pa.float64(), "mean gap over the controller's window", "cosine", True),
        _col("direction_weight", pa.float64(), "weight of the direction", "1", True),
        _col("steepness", pa.float64(), "steepness of the difficulty curve", "1/cosine"),
        _col("stage_factor", pa.float64(), "steepness relative to its largest", "1"),
        _col("temperature", pa.float64(), "softmax temperature", "cosine"),
        _col("ess", pa.float64(), "effective sample size of the weights", "pairs", True),
        _col("clamped_share", pa.float64(), "share of anchors at the weight clamp", "1", True),
        _col("no_negative_count", pa.float64(), "anchors without negatives", "anchors", True),
        _col("dead_share", pa.float64(), "share of anchors in the dead zone", "1", True),
        _col("wrong_sign_share", pa.float64(), "share of anchors in the wrong-sign zone", "1", True),
        _col("accuracy", pa.float64(), "share of anchors whose hardest-negative margin is > 0", "1", True),
        _col("learning_rate", pa.float64(), "learning rate of the step"),
        _col("gradient_norm", pa.float64(), "norm of the gradient before clipping"),
        _col("margin_scale", pa.float64(), "what margins are divided by before the curve", "cosine", True),
        _col("negatives_per_anchor", pa.float64(), "mean negatives per anchor", "negatives"),
        _col("masked_false_negatives", pa.int64(), "negatives masked as false", "pairs"),
        _col("rank_count", pa.int32(), "processes that trained together", "ranks"),
    ),
    bounds=_IN_ORDER,
)

_PAIR_FLOATS = (
    _col("positive_similarity", pa.float32(), "similarity to the positive", "cosine"),
    _col("negative_similarity", pa.float32(), "similarity statistic of the negatives", "cosine"),
    _col("margin", pa.float32(), "positive minus negative similarity, unscaled", "cosine"),
    _col("pair_loss", pa.float32(), "base loss of the anchor", "nat"),
    _col("pair_weight", pa.float32(), "difficulty curve at the margin", "1"),
    _col("weight", pa.float32(), "relative weight after the clamp", "1"),
    _col("gradient_share", pa.float32(), "share of the direction's gradient (L1)", "1"),
)

PAIRS = Table(
    name="pairs",
    columns=(
        _STEP,
        _EPOCH,
        _DIRECTION,
        _ITEM,
        _col("caption", pa.int16(), "caption index within the item"),
        _col("negative_item_id", pa.int32(), "item of the hardest negative"),
        _col("negative_caption", pa.int16(), "caption index of the hardest negative"),
        *_PAIR_FLOATS,
        _col("suspected_false_negative", pa.bool_(), "negative more similar than the positive by over 0.1"),
    ),
    dictionary=("step", "epoch", "direction"),
    byte_stream_split=("item_id", "negative_item_id", *(column.name for column in _PAIR_FLOATS)),
    bounds=_IN_ORDER,
)

EVALS = Table(
    name="evals",
    columns=(
        _LAST_STEP,
        _SEGMENT,
        _EPOCH,
        _SPLIT,
        _col("direction", DIRECTION, "retrieval direction; null for rsum"),
        _col("metric", pa.string(), "R@1, R@5, R@10, median_rank, mean_rank or rsum"),
        _col("value", pa.float64(), "value; R@K in percent"),
        _col("n", pa.int64(), "queries", "queries"),
        _col("tied_share", pa.float64(), "share of queries whose best positive ties with a negative", "1"),
    ),
)

RANKS = Table(
    name="ranks",
    columns=(
        _LAST_STEP,
        _SEGMENT,
        _EPOCH,
        _SPLIT,
        _DIRECTION,
        _ITEM,
        _col("caption", pa.int16(), "caption index of the query; null where the query is a picture"),
        _col("rank", pa.float32(), "expected rank of the best positive, 1 is best", "rank"),
    ),
    dictionary=("step", "segment", "epoch", "split", "direction"),
    byte_stream_split=("item_id", "rank"),
)

EVENTS = Table(
    name="events",
    columns=(
        _col("time", TIME, "wall clock, UTC"),
        _LAST_STEP,
        _col("level", pa.string(), "info, warning or error"),
        _col("kind", pa.string(), "phase, non_finite, resume, checkpoint, telemetry, ..."),
        _col("message", pa.string(), "one sentence"),
        _col("data", pa.string(), "details as JSON"),
    ),
)

SNAPSHOTS = Table(
    name="snapshots",
    columns=(
        _LAST_STEP,
        _SEGMENT,
        _EPOCH,
        _ITEM,
        _col("modality", pa.dictionary(pa.int32(), pa.string()), "modality of the embedding"),
        _col("embedding", pa.list_(pa.float16()), "unit-norm embedding, fixed size within a file"),
        _LABEL,
        _SPLIT,
    ),
)

NEIGHBORS = Table(
    name="neighbors",
    columns=(
        _LAST_STEP,
        _SEGMENT,
        _EPOCH,
        _SPLIT,
        _DIRECTION,
        _ITEM,
        _col("caption", pa.int16(), "caption index within the item"),
        _col("negative_item_id", pa.int32(), "item of the wrong candidate: its label differs"),
        _col("negative_caption", pa.int16(), "caption index of the wrong candidate"),
        _col("similarity", pa.float32(), "similarity to the wrong candidate", "cosine"),
        _col("rank", pa.int16(), "place among the wrong candidates, 1 is the nearest", "rank"),
        _col("positive_similarity", pa.float32(), "similarity to the positive", "cosine"),
    ),
    dictionary=("step", "segment", "epoch", "split", "direction", "caption", "negative_caption", "rank"),
    byte_stream_split=("item_id", "negative_item_id", "similarity", "positive_similarity"),
)

# A row counts the pairs of one process between two steps; rows that agree in their keys add up, and a
# resume leaves out rows that reach over its first step.
_COUNTED = (
    _col("first_step", pa.int64(), "first optimizer step that is counted", "step"),
    _col("step", pa.int64(), "last optimizer step that is counted", "step"),
    _SEGMENT,
    _col("process", pa.int32(), "rank of the process that counted"),
)

MARGIN_ROLLUPS = Table(
    name="rollups/margins",
    columns=(
        *_COUNTED,
        _EPOCH,
        _DIRECTION,
        _col("bin", pa.int16(), "floor((margin + 2) * 100); -1 below -2, 400 above 2; null: not finite"),
        _col("count", pa.int64(), "rows of pairs", "pairs"),
        _col("weight_sum", pa.float64(), "sum of weight", "1"),
        _col("weight_sq_sum", pa.float64(), "sum of weight squared", "1"),
        _col("gradient_share_sum", pa.float64(), "sum of gradient_share", "1"),
        _col("one_minus_p_sum", pa.float64(), "sum of 1 - p = -expm1(-pair_loss)", "1"),
        _col("no_weight_count", pa.int64(), "rows whose weight is no finite number, in no sum", "pairs"),
        _col("no_gradient_share_count", pa.int64(), "rows without a finite gradient_share", "pairs"),
        _col("no_pair_loss_count", pa.int64(), "rows without a finite pair_loss", "pairs"),
    ),
    dictionary=("first_step", "step", "segment", "process", "epoch", "direction"),
)

ITEM_ROLLUPS = Table(
    name="rollups/items",
    columns=(
        *_COUNTED,
        _col("epoch", pa.int32(), "first epoch of the window of 10 epochs", "epoch"),
        _DIRECTION,
        _ITEM,
        _col("n", pa.int64(), "rows of pairs with a finite margin", "pairs"),
        _col("margin_mean", pa.float64(), "mean of the finite margins", "cosine"),
        _col("margin_min", pa.float64(), "least finite margin", "cosine"),
        _col("margin_spread", pa.float64(), "standard deviation of the finite margins, by n", "cosine"),
        _col("weight_mean", pa.float64(), "mean of the finite weights", "1"),
        _col("no_margin_count", pa.int64(), "rows whose margin is no finite number", "pairs"),
        _col("no_weight_count", pa.int64(), "rows whose weight is no finite number", "pairs"),
    ),
    dictionary=("first_step", "step", "segment", "process", "epoch", "direction"),
    byte_stream_split=("item_id", "margin_mean", "margin_min", "margin_spread", "weight_mean"),
)

ITEMS = Table(
    name="items",
    columns=(
        _ITEM,
        _col("item_key", pa.string(), "the data's own name of the item"),
        _LABEL,
        _col("group", pa.string(), "category of the item"),
        _SPLIT,
        _col("captions", CAPTIONS, "captions of the item"),
        _col("thumbnail", pa.binary(), "WebP, longest side at most 96 px; a clip: a strip of 4 frames"),
        _col("path", pa.string(), "path relative to the data root"),
    ),
    # few, so that of very many pictures those of a sheet can be read
    rows_per_group=1024,
)

# A folder of whole files named by key, not of parts: outside TABLES, read by ``runlog.projections``.
PROJECTIONS = Table(
    name="projections",
    columns=(
        _LAST_STEP,
        _EPOCH,
        _ITEM,
        _col("modality", pa.dictionary(pa.int32(), pa.string()), "modality of the point"),
        _col("x", pa.float32(), "horizontal place in the layout, the same axes at every step"),
        _col("y", pa.float32(), "vertical place in the layout"),
    ),
    dictionary=("step", "epoch", "modality"),
    byte_stream_split=("item_id", "x", "y"),
)

TABLES: Mapping[str, Table] = {
    table.name: table
    for table in (STEPS, PAIRS, EVALS, RANKS, EVENTS, SNAPSHOTS, NEIGHBORS, MARGIN_ROLLUPS, ITEM_ROLLUPS)
}


def schema(table: str, directions: tuple[str, str]) -> pa.Schema:
    """Arrow schema of a table for a run with these directions.

    Raises:
        ValueError: if the table is unknown.

    Example:
        >>> schema("pairs", ("i2t", "t2i")).names[:4]
        ['step', 'epoch', 'direction', 'item_id']
    """
    if table not in TABLES:
        raise ValueError(f"table={table!r} is unknown; choose one of {', '.join(TABLES)}")
    return TABLES[table].schema(directions)
