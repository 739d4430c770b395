"""Runs of other loggers as runs of ours: TensorBoard's scalars become the table ``steps``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from uwml_core.runlog import columns
from uwml_core.runlog.event_files import EventFile, Scalar, read_event_file
from uwml_core.runlog.location import local_folder
from uwml_core.runlog.opening import create_run
from uwml_core.runlog.parts import part_name, write_parquet
from uwml_core.runlog.runfile import RUN_FILE
from uwml_core.runlog.schema import STEPS

_EVENTS = "*tfevents*"
_UNSAFE = re.compile(r"[^A-Za-z0-9_]+")
_MAPPED = re.compile(r"[a-z][A-Za-z0-9_]*")
_MODALITIES = ("image", "text")
# set by the conversion itself
_OWN = ("step", "time", "elapsed_s")


@dataclass(frozen=True, kw_only=True)
class Converted:
    """One run that was made.

    Attributes:
        path: its folder.
        steps: rows of ``steps``.
        columns: column of each tag.
        left_out: tags of what is no scalar.
        problems: files that were not read to their end, as "file 2 of 3: why".
    """

    path: Path
    steps: int
    columns: Mapping[str, str]
    left_out: tuple[str, ...]
    problems: tuple[str, ...]


def convert_events(
    source: Path, root: Path | str, *, names: Mapping[str, str] | None = None
) -> list[Converted]:
    """Make a run of each folder of event files at or below a folder.

    Args:
        source: folder of TensorBoard logs.
        root: logs folder, made when missing.
        names: tag of each column that is to be filled from a tag of another name, such as
            ``{"loss": "train/loss"}``. Other tags keep their name, made safe for a column.

    Returns:
        The runs, in the order of their folders.

    Raises:
        FileNotFoundError: if there is no event file.
        ValueError: if a tag of ``names`` does not occur, or a column cannot be filled.
        OSError: if a file cannot be read or written.
    """
    logs = local_folder(root, "root")
    folders = sorted({path.parent for path in source.rglob(_EVENTS) if path.is_file()})
    if not folders:
        raise FileNotFoundError(
            f"{str(source)!r} holds no event files; expected a folder of TensorBoard logs"
        )
    read = {folder: [read_event_file(path) for path in _files(folder)] for folder in folders}
    tags = {scalar.tag for files in read.values() for file in files for scalar in file.scalars}
    wanted = dict(names or {})
    if missing := sorted(set(wanted.values()) - tags):
        raise ValueError(f"tags {missing} do not occur; there are {', '.join(sorted(tags)) or 'none'}")
    return [_convert(folder, source, logs, files, wanted) for folder, files in read.items()]


def _files(folder: Path) -> list[Path]:
    # their names begin with the time at which they were made
    return sorted(path for path in folder.glob(_EVENTS) if path.is_file())


def _convert(
    folder: Path, source: Path, logs: Path, files: Sequence[EventFile], names: Mapping[str, str]
) -> Converted:
    scalars = [scalar for file in files for scalar in file.scalars]
    filled = column_names({scalar.tag for scalar in scalars}, names)
    table = steps_of(scalars, filled)
    relative = folder.relative_to(source)
    name = source.resolve().name if relative == Path() else relative.as_posix()
    opened = create_run(logs, _free_id(logs, name), **_described(name))
    try:
        if table.num_rows:
            step = table["step"].to_numpy()
            path = opened.runfile.folder / STEPS.name / part_name(0, int(step[0]), int(step[-1]))
            path.parent.mkdir()
            write_parquet(table, path, STEPS)
            opened.runfile.content["created_at"] = table["time"][0].as_py().isoformat()
        # neither the files' names, which hold a machine's, nor their folder
        opened.runfile.save(status="finished", converted={"from": "tensorboard", "tags": dict(filled)})
    finally:
        opened.release()
    problems = [
        f"file {n} of {len(files)}: {file.problem}" for n, file in enumerate(files, 1) if file.problem
    ]
    others = sorted({tag for file in files for tag in file.others})
    return Converted(
        path=opened.runfile.folder,
        steps=table.num_rows,
        columns=filled,
        left_out=tuple(others),
        problems=tuple(problems),
    )


def _described(name: str) -> dict[str, Any]:
    nothing = dict.fromkeys(("config", "seed", "data_fingerprint", "parent", "total_steps"))
    return {**nothing, "name": name, "modalities": _MODALITIES}


def _free_id(logs: Path, name: str) -> str:
    base = re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-_")[:80] or "converted"
    taken = {path.parent.name for path in logs.glob(f"*/{RUN_FILE}")}
    numbered = (f"{base}-{n}" for n in range(2, len(taken) + 3))
    return next(run_id for run_id in (base, *numbered) if run_id not in taken)


def column_names(tags: Iterable[str], names: Mapping[str, str]) -> dict[str, str]:
    """Column of each tag: the one it is mapped to, or its own name made safe, numbered where that is taken.

    Raises:
        ValueError: if a column is no name, or one that is no number in ``steps``.

    Example:
        >>> column_names(["loss", "train/loss", "train loss", "time"], {})
        {'loss': 'loss', 'time': 'time_2', 'train loss': 'train_loss', 'train/loss': 'train_loss_2'}
    """
    schema = STEPS.schema(("i2t", "t2i"))
    closed = {name for name in schema.names if not _is_open(schema.field(name))}
    for name in names:
        if not _MAPPED.fullmatch(name) or name in closed:
            raise ValueError(
                f"column {name!r} cannot be filled; expected a name of letters and digits, or a "
                f"column of numbers in steps other than {', '.join(_OWN)}"
            )
    filled = {tag: name for name, tag in names.items()}
    taken = {*filled.values(), *closed}
    for tag in sorted(set(tags) - set(filled)):
        base = _UNSAFE.sub("_", tag).strip("_") or "value"
        numbered = (f"{base}_{n}" for n in range(2, len(taken) + 3))
        filled[tag] = next(name for name in (base, *numbered) if name not in taken)
        taken.add(filled[tag])
    return filled


def _is_open(field: pa.Field) -> bool:
    return field.name not in _OWN and (pa.types.is_floating(field.type) or field.name == "epoch")


def steps_of(scalars: Sequence[Scalar], filled: Mapping[str, str]) -> pa.Table:
    """Rows of ``steps``: one per step that has a scalar, in order; of a step logged again the later value."""
    schema = STEPS.schema(("i2t", "t2i"))
    ordered = sorted(scalars, key=lambda scalar: scalar.wall_time)
    steps = sorted({scalar.step for scalar in scalars})
    place = {step: row for row, step in enumerate(steps)}
    values = {name: np.full(len(steps), np.nan) for name in filled.values()}
    given = {name: np.zeros(len(steps), np.bool_) for name in filled.values()}
    times = np.zeros(len(steps))
    for scalar in ordered:
        row, name = place[scalar.step], filled[scalar.tag]
        values[name][row], given[name][row], times[row] = scalar.value, True, scalar.wall_time
    built = {name: _column(name, values[name], given[name], schema) for name in values}
    built["step"] = columns.numbers(np.array(steps, np.int64), pa.int64())
    built["time"] = columns.numbers((times * 1e6).round(), pa.timestamp("us", tz="UTC"))
    built["elapsed_s"] = columns.numbers(times - times[:1], pa.float64())
    return columns.table(built, schema)


def _column(name: str, values: NDArray[np.float64], given: NDArray[np.bool_], schema: pa.Schema) -> pa.Array:
    if name != "epoch":
        return columns.numbers(values, pa.float64(), given)
    whole = given & np.isfinite(values)
    return columns.numbers(np.where(whole, np.floor(values), 0), schema.field(name).type, whole)
