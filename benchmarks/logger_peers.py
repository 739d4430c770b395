"""Other experiment logs as contestants of ``benchmarks/logging.py``, each the way that suits it best.

Their own monitoring of the machine and capture of the terminal are off, as ours has none. Each package is
imported when its contestant is made, so that one environment need not hold them all.
"""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.logger_files import by_step, level_db, rows_to_columns
from benchmarks.loggers import ARRAYS, SCALARS, Columns, Logger, Ours, OursTwo, Step


class TensorBoard(Logger):
    """``SummaryWriter`` of torch: a scalar and a tensor at a time."""

    title = "tensorboard, add_tensor"
    package = "tensorboard"
    arrays = ARRAYS

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        import torch
        from torch.utils.tensorboard import SummaryWriter

        self._writer, self._tensor = SummaryWriter, torch.from_numpy

    def open(self) -> None:
        self._log = self._writer(str(self.folder))

    def log(self, step: int, values: Step) -> None:
        for name, value in values.scalars.items():
            self._log.add_scalar(name, value, step)
        for name in ARRAYS:
            self.log_array(name, values.arrays[name].ravel(), step)

    def log_array(self, name: str, array: np.ndarray, step: int) -> None:
        """Log one array."""
        self._log.add_tensor(name, self._tensor(array), step)

    def close(self) -> None:
        self._log.close()

    def read(self) -> Columns:
        from tensorboard.backend.event_processing.event_file_loader import EventFileLoader
        from tensorboard.util import tensor_util

        found: dict[str, list[Any]] = {}
        for event in EventFileLoader(str(next(self.folder.glob("events.*")))).Load():
            for value in event.summary.value:
                found.setdefault(value.tag, []).append(tensor_util.make_ndarray(value.tensor))
        # histograms differ in their number of bins
        even = {name: rows for name, rows in found.items() if len({row.shape for row in rows}) == 1}
        return {name: np.array(rows) for name, rows in even.items()}


class TensorBoardEvent(TensorBoard):
    """The least that an event file can be asked to do: all eight values of a step in one event."""

    title = "tensorboard, one event a step"

    def __init__(self, folder: Path) -> None:
        Logger.__init__(self, folder)
        from tensorboard.compat.proto import event_pb2, summary_pb2
        from tensorboard.summary.writer.event_file_writer import EventFileWriter
        from tensorboard.util.tensor_util import make_tensor_proto

        self._writer, self._proto = EventFileWriter, make_tensor_proto
        self._event, self._summary = event_pb2.Event, summary_pb2.Summary

    def log(self, step: int, values: Step) -> None:
        told = [self._summary.Value(tag=name, simple_value=value) for name, value in values.scalars.items()]
        for name in ARRAYS:
            told.append(self._summary.Value(tag=name, tensor=self._proto(values.arrays[name].ravel())))
        self._log.add_event(self._event(step=step, summary=self._summary(value=told)))


class TensorBoardHistogram(TensorBoard):
    """The usual way in TensorBoard."""

    title = "tensorboard, add_histogram"

    def log_array(self, name: str, array: np.ndarray, step: int) -> None:
        self._log.add_histogram(name, array, step)


class Lists(Logger):
    """A dictionary a step, arrays as lists."""

    arrays = ARRAYS
    _log: Any

    def log(self, step: int, values: Step) -> None:
        arrays = {name: self.wrap(values.arrays[name].ravel()) for name in ARRAYS}
        self._log.log({**values.scalars, **arrays}, step=step)

    def wrap(self, array: np.ndarray) -> Any:
        """What is given for an array."""
        return array.tolist()

    def close(self) -> None:
        self._log.finish()


class Wandb(Lists):
    """Offline, arrays as lists; as arrays they would become histograms."""

    title = "wandb offline, lists"
    package = "wandb"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        os.environ |= {"WANDB_SILENT": "true", "WANDB_MODE": "offline"}
        import wandb

        self._wandb = wandb

    def open(self) -> None:
        settings = self._wandb.Settings(
            x_disable_stats=True, x_disable_meta=True, console="off", disable_git=True
        )
        self._log = self._wandb.init(project="bench", dir=str(self.folder), settings=settings)

    def read(self) -> Columns:
        from wandb.proto.wandb_internal_pb2 import Record

        rows = []
        for content in level_db(next(self.folder.rglob("*.wandb")).read_bytes()):
            record = Record.FromString(content)
            if record.HasField("history"):
                items = record.history.item
                rows.append(
                    {item.key or ".".join(item.nested_key): json.loads(item.value_json) for item in items}
                )
        return rows_to_columns(rows)


class WandbHistogram(Wandb):
    """The usual way in wandb."""

    title = "wandb offline, Histogram"

    def wrap(self, array: np.ndarray) -> Any:
        return self._wandb.Histogram(array)


class MLflow(Logger):
    """Metrics into the default SQLite store; it has no arrays, so they are an artifact, a file a step."""

    title = "mlflow, .npy artifacts"
    package = "mlflow"
    arrays = ARRAYS

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
        import mlflow

        self._mlflow = mlflow

    def open(self) -> None:
        self._mlflow.set_tracking_uri(f"sqlite:///{self.folder}/mlflow.db")
        self._id = self._mlflow.start_run().info.run_id
        self._scratch = tempfile.TemporaryDirectory()

    def log(self, step: int, values: Step) -> None:
        self._mlflow.log_metrics(values.scalars, step=step)
        path = Path(self._scratch.name) / f"{step:06d}.npy"
        np.save(path, np.stack([values.arrays[name].ravel() for name in ARRAYS]))
        self._mlflow.log_artifact(str(path), "arrays")
        path.unlink()

    def close(self) -> None:
        self._mlflow.end_run()
        self._scratch.cleanup()

    def read(self) -> Columns:
        client = self._mlflow.MlflowClient()
        metrics = {name: client.get_metric_history(self._id, name) for name in SCALARS}
        scalars = {
            name: np.array([metric.value for metric in sorted(history, key=lambda metric: metric.step)])
            for name, history in metrics.items()
        }
        files = np.stack([np.load(path) for path in sorted(self.folder.rglob("arrays/*.npy"))])
        return scalars | {name: files[:, index] for index, name in enumerate(ARRAYS)}


class Aim(Logger):
    """Arrays as the counts of a distribution that is binned already, which it keeps as they are."""

    title = "aim, values as counts"
    package = "aim"
    arrays = ARRAYS

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        os.environ |= {"AIM_UI_TELEMETRY_ENABLED": "0"}
        import aim

        self._aim = aim

    def open(self) -> None:
        self._log = self._aim.Run(
            repo=str(self.folder), system_tracking_interval=None, capture_terminal_logs=False
        )

    def log(self, step: int, values: Step) -> None:
        self._log.track(values.scalars, step=step)
        for name in ARRAYS:
            self._log.track(self.wrap(values.arrays[name].ravel()), name=name, step=step)

    def wrap(self, array: np.ndarray) -> Any:
        """What is given to aim for an array."""
        return self._aim.Distribution(hist=array, bin_range=(0, len(array)))

    def close(self) -> None:
        self._log.close()

    def read(self) -> Columns:
        from aim.storage.context import Context

        # a run that is opened for reading only is empty until a server has indexed the folder
        run = self._aim.Run(
            self._log.hash, repo=str(self.folder), system_tracking_interval=None, capture_terminal_logs=False
        )
        found = {name: run.get_metric(name, Context({})).data.view("val").numpy() for name in SCALARS}
        scalars = {name: values[0] for name, (_steps, values) in found.items()}
        arrays = {}
        for name in ARRAYS:
            sequence = run.get_distribution_sequence(name, Context({})).values
            arrays[name] = np.array([value.weights for value in by_step(sequence.sparse_list())])
        return scalars | arrays


class AimDistribution(Aim):
    """The usual way in aim."""

    title = "aim, Distribution"

    def wrap(self, array: np.ndarray) -> Any:
        return self._aim.Distribution(array)


class Trackio(Lists):
    """Arrays as lists, which it writes as JSON into SQLite."""

    title = "trackio, lists"
    package = "trackio"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        os.environ |= {"TRACKIO_DIR": str(folder), "HF_HUB_OFFLINE": "1"}
        import trackio

        self._trackio = trackio

    def open(self) -> None:
        self._log = self._trackio.init(
            project="bench", name="run", embed=False, auto_log_cpu=False, auto_log_gpu=False
        )

    def read(self) -> Columns:
        rows = self._trackio.SQLiteStorage.get_logs("bench", "run")
        return rows_to_columns(sorted(rows, key=lambda row: row["step"]))


class TrackioHistogram(Trackio):
    """The usual way in trackio."""

    title = "trackio, Histogram"

    def wrap(self, array: np.ndarray) -> Any:
        return self._trackio.Histogram(array)


KINDS = (Logger, Ours, OursTwo, TensorBoard, TensorBoardEvent, TensorBoardHistogram, Wandb, WandbHistogram)
KINDS += (MLflow, Aim, AimDistribution, Trackio, TrackioHistogram)
CONTESTANTS: dict[str, type[Logger]] = {kind.title: kind for kind in KINDS}
