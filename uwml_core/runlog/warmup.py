"""Pay for lazy imports and first calls before training begins, so that the first flush stalls nobody."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pyarrow as pa

from uwml_core.runlog.makers import JobMaker
from uwml_core.runlog.parts import encode
from uwml_core.runlog.records import StepRecord
from uwml_core.runlog.schema import PAIRS, TABLES


def warm_up(directions: tuple[str, str]) -> None:
    """Build and encode one step in memory."""
    # thinned pairs go through all there is
    maker = JobMaker(0, directions, pairs_every=2)
    for job in [*maker.jobs([_tiny_step()]), *maker.cut()]:
        encode(job.data, pa.BufferOutputStream(), TABLES[job.table])


def _tiny_step() -> StepRecord:
    anchors = {name: np.zeros((2, 2), np.float32) for name in PAIRS.byte_stream_split[2:]}
    last = SimpleNamespace(negative_index=np.zeros((2, 2), np.int64), loss=0.0, batch_size=2, **anchors)
    return StepRecord(0, 0, "", 0, 0.0, None, None, last, np.zeros(2, np.int32), None, {})
