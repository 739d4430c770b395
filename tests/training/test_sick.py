"""Kinds of runs that begin with another kind, and what they leave behind."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from uwml_core.training.sick import KINDS, sick_run
from uwml_core.training.sick.run import Sickness
from uwml_core.weighting import LOSS_PRESETS

CONTINUED = {name: kind for name, kind in KINDS.items() if kind.start is not None}


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str | None]]:
    """Run ids and what each begins with; nothing is trained."""
    told: list[tuple[str, str | None]] = []

    def run_training(config: Any, *, run_id: str, **_: object) -> None:
        told.append((run_id, config.train.init_from))
        (Path(config.run.root) / run_id).mkdir()

    monkeypatch.setattr("uwml_core.training.sick.run.run_training", run_training)
    return told


def test_a_kind_finds_the_run_that_it_begins_with_or_trains_it_first(
    tmp_path: Path, trained: list[tuple[str, str | None]]
) -> None:
    start = str(tmp_path / "healthy-infonce-seed3")
    sick_run("memorised", root=tmp_path, seed=3)
    sick_run("healthy-vsepp", root=tmp_path, seed=3)
    assert trained == [
        ("healthy-infonce-seed3", None),
        ("memorised-seed3", start),
        ("healthy-vsepp-seed3", start),
    ]


def test_runs_that_others_begin_with_keep_a_checkpoint_and_no_others_do() -> None:
    assert CONTINUED
    assert {kind.start for kind in CONTINUED.values()} == {name for name, kind in KINDS.items() if kind.kept}
    for kept in (True, False):
        trainer = SimpleNamespace(save="writes", logger=SimpleNamespace(flush="flushes"))
        kind = SimpleNamespace(kept=kept, parts=())
        Sickness(kind, 0).trainer(trainer)  # type: ignore[arg-type]
        assert trainer.save == ("writes" if kept else "flushes")


def test_every_loss_has_a_healthy_control() -> None:
    assert {f"healthy-{name}" for name in LOSS_PRESETS} <= KINDS.keys()
