import pandas as pd
import pyarrow as pa
import pytest

from tests.support.synthetic import make_run
from uwml_core.runlog.reader import open_run


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    root = tmp_path_factory.mktemp("logs")
    return make_run(
        root,
        run_id="unicode",
        name="ünïcode 跑 <b>",
        epochs=3,
        steps_per_epoch=30,
        batch=24,
        nan_steps=(40,),
        spikes=(50,),
        lonely_steps=(7, 61),
        phases=("warmup", "train"),
    )


@pytest.fixture(scope="session")
def run(folder):
    return open_run(folder)


@pytest.fixture
def pair_table():
    """Two directions of steps 3 and 4 with two anchors each; the weights are written down, not computed."""

    def build(**changes):
        columns = {
            "step": [3, 3, 3, 3, 4, 4, 4, 4],
            "epoch": [0, 0, 0, 0, 1, 1, 1, 1],
            "direction": ["i2t", "i2t", "t2i", "t2i"] * 2,
            "margin": [-0.095, 0.105, 0.0, 0.305, 0.045, 0.065, 0.205, 0.505],
            "pair_loss": [2.0, 0.5, 1.0, 0.1, 1.0, 1.0, 0.4, 0.2],
            "weight": [0.5, 1.5, 1.0, 1.0, 0.8, 1.2, 1.6, 0.4],
            "gradient_share": [0.4, 0.6, 0.7, 0.3, 0.5, 0.5, 0.9, 0.1],
        } | changes
        types = {"step": pa.int64(), "epoch": pa.int32(), "direction": pa.string()}
        return pa.table({name: pa.array(v, types.get(name, pa.float32())) for name, v in columns.items()})

    return build


@pytest.fixture
def step_frame():
    return pd.DataFrame(
        {
            "step": [3, 4],
            "epoch": [0, 1],
            "progress": [0.0, 0.5],
            "temperature": [0.1, 0.1],
            "batch_size": [2, 2],
        }
    )


@pytest.fixture
def empty_frames(run):
    """Steps, evals and events of a run with no rows yet, with the types of the reader."""
    return tuple(run.frame(table).iloc[:0] for table in ("steps", "evals", "events"))
