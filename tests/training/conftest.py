"""A small set of real pairs and a configuration that trains on it in seconds."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from uwml_core.data import sample_path
from uwml_core.training import TrainConfig, build_config


@pytest.fixture(scope="session")
def small_pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """240 training and 60 validation rows of the shipped set."""
    table = pq.read_table(
        sample_path("emoji_pairs"), columns=["item_id", "group", "split", "captions", "image"]
    )
    splits = table["split"].to_pylist()
    # every 12th row keeps all groups; three styles of an emoji lie side by side and are kept together
    blocks = [k for start in range(0, len(splits), 36) for k in range(start, min(start + 3, len(splits)))]
    chosen = [k for k in blocks if splits[k] == "train"][:240] + [k for k in blocks if splits[k] == "val"][
        :60
    ]
    path = tmp_path_factory.mktemp("data") / "small.parquet"
    pq.write_table(pa.table(table.take(chosen)), path)
    return path


@pytest.fixture
def settings(small_pairs: Path, tmp_path: Path) -> list[str]:
    """Settings of a run of 3 epochs of 7 steps."""
    return [
        f"data.path={small_pairs}",
        "data.batch_size=32",
        "model.dim=32",
        "train.epochs=3",
        f"run.root={tmp_path / 'logs'}",
    ]


@pytest.fixture
def config(settings: list[str]) -> TrainConfig:
    """The same as a configuration."""
    return build_config(settings=settings)
