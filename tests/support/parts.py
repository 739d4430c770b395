"""Part files of a run that no compaction has joined."""

from __future__ import annotations

from pathlib import Path

import pyarrow.compute as pc

from uwml_core.runlog.parts import parse_part_name, part_name, write_parquet
from uwml_core.runlog.reader import open_run
from uwml_core.runlog.schema import TABLES


def split_table(folder: Path, table: str, *firsts: int) -> list[Path]:
    """Write a table named by step, which is one file, as several, each from its first step on."""
    run = open_run(folder)
    (whole,), rows = run.parts(table), run.table(table)
    name = parse_part_name(whole.path.name)
    assert name is not None
    whole.path.unlink()
    paths = []
    for first, after in zip((name.first, *firsts), (*firsts, name.last + 1), strict=True):
        paths.append(whole.path.with_name(part_name(name.segment, first, after - 1)))
        mine = rows.filter((pc.field("step") >= first) & (pc.field("step") < after))
        write_parquet(mine, paths[-1], TABLES[table])
    return paths
