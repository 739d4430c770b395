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


def test_readme_shows_the_loss_and_the_logger():
    assert len(BLOCKS) == 2


@pytest.mark.parametrize("block", BLOCKS, ids=["loss", "logger"])
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
    }
    exec(compile(block, str(README), "exec"), names)
    assert torch.isfinite(names["loss"])
    if "RunLogger" in block:
        from uwml_core import list_runs

        (run,) = list_runs(tmp_path / "logs")
        assert run.status == "finished"
        assert run.table("steps").num_rows == 6
        assert run.table("pairs").num_rows == 6 * 16 * 2
