"""The README's Python blocks run as printed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

README = Path(__file__).resolve().parents[2] / "README.md"
BLOCKS = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.S)


def test_every_file_that_the_readme_points_to_is_there():
    targets = re.findall(r"\]\(([^)#]+)\)", README.read_text(encoding="utf-8"))
    local = [target for target in targets if "://" not in target]
    assert len(local) >= 6
    assert [target for target in local if not (README.parent / target).is_file()] == []


LOOPS, READERS = BLOCKS[:-1], BLOCKS[-1].splitlines()


def test_readme_shows_the_loss_both_loggers_and_three_readers():
    assert len(LOOPS) == 3
    assert len(READERS) == 3


@pytest.mark.parametrize("line", READERS, ids=[line.split(".")[0] for line in READERS])
def test_one_line_of_another_tool_reads_a_run(line, monkeypatch):
    import duckdb
    import pandas
    import polars

    monkeypatch.chdir(README.parent)
    rows = eval(line, {"duckdb": duckdb, "pandas": pandas, "polars": polars})
    if "duckdb" in line:
        assert list(rows.columns) == ["epoch", "direction", "avg(margin)"]
        assert len(rows.fetchall()) >= 12
    else:
        from uwml_core import open_run

        whole = open_run("logs/sample-uwml").frame("pairs")
        assert list(rows.columns) == list(whole.columns)
        assert float(rows["margin"].mean()) == pytest.approx(float(whole["margin"].mean()), rel=1e-6)
        assert len(rows) == len(whole) > 0


def test_adapters_are_shown_in_at_most_three_lines():
    changes = re.findall(r"```diff\n(.*?)```", README.read_text(encoding="utf-8"), re.S)
    assert len(changes) == 5
    assert max(change.count("\n") for change in changes) <= 3


@pytest.mark.parametrize("block", LOOPS, ids=["loss", "logger", "similarities"])
def test_readme_block_runs(block, tmp_path, monkeypatch):
    import torch

    monkeypatch.chdir(tmp_path)
    image_encoder, text_encoder = torch.nn.Linear(8, 4), torch.nn.Linear(6, 4)
    optimizer = torch.optim.SGD([*image_encoder.parameters(), *text_encoder.parameters()], lr=0.1)
    generator = torch.Generator().manual_seed(0)
    ids = torch.arange(16)
    batch = [torch.randn(16, 8, generator=generator), torch.randn(16, 6, generator=generator), ids]
    if "item_ids" in block:
        batch.append(ids)
    names = {
        "epochs": 2,
        "loader": [tuple(batch)] * 3,
        "image_encoder": image_encoder,
        "text_encoder": text_encoder,
        "optimizer": optimizer,
        "my_loss": lambda similarity: -similarity.diagonal().mean(),
    }
    exec(compile(block, str(README), "exec"), names)
    assert torch.isfinite(names["loss"])
    if "RunLogger" in block:
        from uwml_core import list_runs

        (run,) = list_runs(tmp_path / "logs")
        assert run.status == "finished"
        assert run.table("steps").num_rows == 6
        assert run.table("pairs").num_rows == 6 * 16 * 2
