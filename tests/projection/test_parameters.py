"""Parameters are checked, and a key stands for parameters and content."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.support.snapshots import log_run, pair_vectors
from uwml_core.projection.parameters import ProjectionParameters, chain_keys
from uwml_core.runlog.reader import open_run


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"method": "tsne"}, "method='tsne' is unknown"),
        ({"metric": "l1"}, "metric='l1' is unknown"),
        ({"neighbors": 1}, "neighbors=1 is outside 2 to 200"),
        ({"min_dist": float("nan")}, "min_dist=nan is outside"),
        ({"min_dist": 1.5}, "min_dist=1.5 is outside"),
        ({"seed": -1}, "seed=-1 is outside"),
        ({"items": 4}, "items=4 is outside 5 to 1000000"),
    ],
)
def test_wrong_parameter_is_refused_by_name(changed: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ProjectionParameters(**changed)  # type: ignore[arg-type]


def test_parameters_survive_a_round_trip() -> None:
    for parameters in (ProjectionParameters(neighbors=7, seed=3), ProjectionParameters(method="pca")):
        assert ProjectionParameters.from_dict(parameters.to_dict()) == parameters


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return log_run(tmp_path / "logs", "a", [pair_vectors(6, seed=seed) for seed in range(3)])


def keys(run: Path, **changed: object) -> list[str]:
    return chain_keys(open_run(run), ProjectionParameters(**changed))  # type: ignore[arg-type]


def test_each_parameter_has_its_own_key(run: Path) -> None:
    variants = [
        {},
        {"neighbors": 16},
        {"min_dist": 0.2},
        {"metric": "euclidean"},
        {"seed": 1},
        {"items": 10},
        {"method": "pca"},
    ]
    assert len({keys(run, **changed)[-1] for changed in variants}) == len(variants)


def test_a_copy_has_the_same_key_whenever_it_was_copied(run: Path, tmp_path: Path) -> None:
    copy = tmp_path / "elsewhere" / "renamed"
    shutil.copytree(run, copy)
    for path in copy.glob("snapshots/*"):
        os.utime(path, (1, 1))
    assert keys(copy) == keys(run)


def test_a_run_that_grew_keeps_the_keys_of_what_it_was(run: Path) -> None:
    last = sorted((run / "snapshots").iterdir())[-1]
    shutil.move(last, run.parent / "kept")
    before = keys(run)
    shutil.move(run.parent / "kept", last)
    assert keys(run)[:2] == before
    assert len(keys(run)) == 3


def test_a_changed_snapshot_changes_its_key_and_those_after_it(run: Path, tmp_path: Path) -> None:
    before = keys(run)
    other = log_run(tmp_path / "other", "b", [pair_vectors(6, seed=seed) for seed in (0, 9, 2)])
    middle = sorted((run / "snapshots").iterdir())[1]
    shutil.copyfile(sorted((other / "snapshots").iterdir())[1], middle)
    after = keys(run)
    assert after[0] == before[0]
    assert after[1] != before[1]
    assert after[2] != before[2]


def test_a_run_without_snapshots_has_no_key(tmp_path: Path) -> None:
    assert keys(log_run(tmp_path, "empty", [])) == []
