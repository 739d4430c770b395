"""Data in every layout, through training or diagnosis, to pages in a real browser."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.browser import Visit, served, visit
from tests.support.layouts import LAYOUTS, finished_model
from uwml_core.__main__ import main
from uwml_core.training import build_config, run_training

pytestmark = pytest.mark.browser

FINISHED = "embeddings"
# features stand for pictures there
WITHOUT_PICTURES = {"precomp"}
CLIPS = {"msrvtt"}


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One run of each layout, called as it is."""
    root = tmp_path_factory.mktemp("formats")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UWML_CACHE", str(root / "cache"))
        for name, make in LAYOUTS.items():
            (root / name).mkdir()
            settings = [
                f"data.path={make(root / name)}",
                "data.batch_size=8",
                "model.dim=16",
                "train.epochs=1",
            ]
            if name in CLIPS:
                settings.append("data.eval_split=test")
            config = build_config(settings=[*settings, f"run.root={root / 'logs'}"])
            run_training(config, run_id=name, progress=False)
        (root / FINISHED).mkdir()
        words = finished_model(root / FINISHED)
        made = main(["diagnose-embeddings", *words, "--logs", str(root / "logs"), "--run-id", FINISHED])
        assert made == 0
    return root / "logs"


@pytest.fixture(scope="module")
def seen(logs: Path) -> Iterator[tuple[str, Visit]]:
    with served(logs) as url, visit() as seen:
        yield url, seen


def sound(seen: Visit) -> None:
    assert not seen.exceptions()
    assert not seen.errors
    assert not seen.foreign_hosts()


@pytest.mark.parametrize("name", [*LAYOUTS, FINISHED])
def test_a_layout_comes_through_to_the_pages(seen: tuple[str, Visit], name: str) -> None:
    url, visited = seen
    page = visited.page
    visited.open(f"{url}/training?run={name}", charts=0 if name == FINISHED else 8)
    main_part = page.get_by_test_id("stMain")
    split = "test" if name in CLIPS else "val"
    if name == FINISHED:
        main_part.get_by_text("R@1 / R@5 / R@10 of a finished model").first.wait_for()
    else:
        first = "v2t" if name in CLIPS else "i2t"
        main_part.get_by_text(f"Best {split} R@1").first.wait_for()
        main_part.locator(".uw-title", has_text=f"Recall on {split}").first.wait_for()
        tile = main_part.locator(".uw-number", has_text=f"R@10, {first}").first
        tile.wait_for()
        assert re.search(r"\d / [\d.]+ / [\d.]+\s*%, n = 12", tile.inner_text()), tile.inner_text()
    sound(visited)

    visited.open(f"{url}/hard_negatives?run={name}")
    entry = main_part.locator(".uw-entry, .uw-rows tr").first
    entry.wait_for()
    assert any(colour in main_part.inner_text() for colour in ("red", "lime", "blue"))
    pictures = main_part.locator(".uw-sheet img, .uw-rows img")
    if name in WITHOUT_PICTURES:
        assert pictures.count() == 0
    else:
        page.wait_for_function(
            "[...document.querySelectorAll('.uw-sheet img, .uw-rows img')].some(i => i.naturalWidth >= 32)"
        )
    sound(visited)
