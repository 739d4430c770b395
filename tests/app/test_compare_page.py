"""The compare page: every control moved once, seeds, runs that cannot be compared, nothing at all."""

from __future__ import annotations

import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.synthetic import make_run
from uwml_core.__main__ import main
from uwml_core.runlog.writer import RunLogger
from uwml_core.weighting import UWMLConfig

PAGE = "pages/decide/compare.py"
HOSTILE = "<img src=x onerror=alert(1)> | & \\ $x$ *b* {y} %{z}"
PLAIN = UWMLConfig(curve="uniform", direction_mode="off")


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("logs")
    whole = {"epochs": 3, "steps_per_epoch": 4, "items": 120}
    # a seed draws other ranks
    for seed in range(2):
        make_run(folder, run_id=f"plain-{seed}", seed=seed, config=PLAIN, **whole)
    make_run(folder, run_id="bell-0", seed=3, **whole)
    make_run(folder, run_id="hostile", name=HOSTILE, seed=4, config=UWMLConfig(curve="hard"), **whole)
    make_run(folder, run_id="running", seed=5, status="running", config=UWMLConfig(center=0.0), **whole)
    make_run(folder, run_id="other-data", seed=0, epochs=2, steps_per_epoch=4, items=100)
    unranked = UWMLConfig(center=0.3)
    make_run(folder, run_id="no-ranks", without=("ranks",), config=unranked, **whole)
    make_run(folder, run_id="video", seed=0, epochs=2, steps_per_epoch=4, directions=("v2t", "t2v"))
    foreign = make_run(folder, run_id="foreign", seed=6, **whole)
    (foreign / "run.json").unlink()
    return folder


@pytest.fixture
def opened(open_page: Callable[..., Any], logs: Path) -> Any:
    page = open_page(PAGE, logs, run="bell-0", runs=["bell-0", "plain-0", "hostile"], baseline="plain-0")
    assert not page.failures
    return page


def control(page: Any, key: str) -> Any:
    return next(box for box in page.app.selectbox if box.key == key)


def runs(page: Any) -> Any:
    return next(box for box in page.app.multiselect if box.key == "runs")


def headline(page: Any) -> str:
    found = re.search(r'class="uw-headline">(.*?)</p>', page.markup)
    assert found
    return found.group(1)


def tables(page: Any) -> list[list[list[str]]]:
    """Cells of every table on the page."""

    class Cells(HTMLParser):
        def __init__(self) -> None:
            super().__init__()
            self.tables: list[list[list[str]]] = []

        def handle_starttag(self, tag: str, attrs: object) -> None:
            if tag == "table":
                self.tables.append([])
            elif tag == "tr":
                self.tables[-1].append([])
            elif tag in ("td", "th"):
                self.tables[-1][-1].append("")

        def handle_data(self, data: str) -> None:
            if self.tables and self.tables[-1] and self.tables[-1][-1]:
                self.tables[-1][-1][-1] += data

    parser = Cells()
    parser.feed("".join(str(e.proto.body) for e in page.app.get("html") if "uw-table" in str(e.proto.body)))
    return parser.tables


def table_with(page: Any, heading: str) -> list[list[str]]:
    return next(table for table in tables(page) if table[0][0] == heading)


def test_without_a_choice_the_picked_run_meets_its_natural_baseline_and_its_seeds(
    open_page: Callable[..., Any], logs: Path
) -> None:
    page = open_page(PAGE, logs, run="bell-0")
    assert not page.failures
    assert set(runs(page).value) == {"bell-0", "plain-0", "plain-1"}
    assert set(page.app.query_params["runs"]) == {"bell-0", "plain-0", "plain-1"}
    assert control(page, "baseline").value in ("plain-0", "plain-1")
    assert "2 seeds, baseline" in page.text
    assert table_with(page, "Method")[1][0] == "plain"


def test_address_gives_the_same_view(open_page: Callable[..., Any], logs: Path, opened: Any) -> None:
    again = open_page(
        PAGE, logs, **{name: v for name, v in opened.app.query_params.items() if name != "lang"}
    )
    assert headline(again) == headline(opened)
    assert tables(again) == tables(opened)
    assert runs(again).value == ["bell-0", "plain-0", "hostile"]


def test_choosing_runs(opened: Any) -> None:
    assert headline(opened).startswith("Of 2 methods held against plain-0, ")
    runs(opened).set_value(["bell-0", "plain-0"]).run()
    assert not opened.failures
    assert "bell-0" in headline(opened)
    assert not headline(opened).startswith("Of 2")
    assert opened.app.query_params["runs"] == ["bell-0", "plain-0"]
    assert {trace["name"] for trace in opened.charts()["R@1 on val"]["data"]} == {"bell-0", "plain-0"}


def test_baseline_turns_the_differences(opened: Any) -> None:
    runs(opened).set_value(["bell-0", "plain-0"]).run()
    before = {row[0]: row[3] for row in table_with(opened, "Metric")[1:]}
    control(opened, "baseline").set_value("bell-0").run()
    assert not opened.failures
    after = {row[0]: row[3] for row in table_with(opened, "Metric")[1:]}
    turn = str.maketrans("+−", "−+")
    assert after == {metric: change.translate(turn) for metric, change in before.items()}
    assert opened.app.query_params["baseline"] == "bell-0"
    assert "Difference to bell-0" in opened.charts()


def test_best_evaluation_is_no_worse_than_the_newest(opened: Any) -> None:
    newest = {row[0]: row[3:] for row in table_with(opened, "Method")[1:]}
    control(opened, "at").set_value("best").run()
    assert not opened.failures
    assert "which flatters all of them" in opened.text
    assert opened.app.query_params["at"] == "best"
    best = {row[0]: row[3:] for row in table_with(opened, "Method")[1:]}
    head = table_with(opened, "Method")[0]
    places = [head.index(name) - 3 for name in ("R@1 i2t", "R@1 t2i")]
    for name, cells in best.items():
        mean = [sum(float(row[p].split(" ±")[0]) for p in places) for row in (newest[name], cells)]
        assert mean[1] >= mean[0] - 1e-9


def test_details_of_another_method(opened: Any) -> None:
    first = table_with(opened, "Metric")
    other = next(run for run in ("bell-0", "hostile") if run != control(opened, "against").value)
    control(opened, "against").set_value(other).run()
    assert not opened.failures
    assert table_with(opened, "Metric")[0][2] != first[0][2]
    assert opened.app.query_params["against"] == other


def test_direction_of_the_gallery(opened: Any) -> None:
    control(opened, "won").set_value("t2i").run()
    assert not opened.failures
    assert set(re.findall(r"<header><b[^>]*>(\w+)</b>", opened.markup)) == {"t2i"}
    assert opened.app.query_params["won"] == "t2i"
    assert 'href="hard_negatives?run=' in opened.markup


def test_gallery_counts_are_those_of_the_table(opened: Any) -> None:
    runs(opened).set_value(["bell-0", "plain-0"]).run()
    control(opened, "won").set_value("i2t").run()
    gained, lost = table_with(opened, "Metric")[1][6].split(" / ")
    assert re.search(rf"{gained} quer(y|ies) found by bell-0 only", opened.text)
    assert re.search(rf"{lost} quer(y|ies) found by plain-0 only", opened.text)


def test_the_run_picker_adds_a_run(opened: Any) -> None:
    control(opened, "run").set_value("plain-1").run()
    assert not opened.failures
    assert runs(opened).value == ["bell-0", "plain-0", "hostile", "plain-1"]


def test_choice_survives_another_page(opened: Any) -> None:
    runs(opened).set_value(["hostile", "plain-0"]).run()
    opened.app.switch_page("pages/watch/training.py").run()
    opened.app.switch_page(PAGE).run()
    assert not opened.failures
    assert runs(opened).value == ["hostile", "plain-0"]


def test_hostile_name_stays_text(opened: Any) -> None:
    assert "<img src=x" not in opened.markup
    assert HOSTILE in opened.text
    figures = opened.charts()
    texts = [str(part) for figure in figures.values() for part in figure["data"]]
    assert not any("<img" in text for text in texts)


@pytest.mark.parametrize(
    ("chosen", "says"),
    [
        (["bell-0"], "Too little data yet: choose a second run to compare with."),
        (["plain-0", "plain-1"], "The chosen runs are one method"),
        (["bell-0", "video"], "they retrieve between other modalities"),
        (["bell-0", "other-data"], "they are runs on different data"),
        (["bell-0", "no-ranks"], "no-ranks has no ranks on val"),
        (["bell-0", "gone"], "runs that are not in this folder: gone"),
        (["gone"], "Choose two runs or more."),
    ],
)
def test_what_cannot_be_compared_is_said(
    open_page: Callable[..., Any], logs: Path, chosen: list[str], says: str
) -> None:
    page = open_page(PAGE, logs, run="bell-0", runs=chosen, baseline=chosen[0])
    assert not page.failures
    assert says in page.text
    assert "Differences on val" not in page.text


def test_one_run_is_taught_what_to_do(open_page: Callable[..., Any], logs: Path) -> None:
    page = open_page(PAGE, logs, run="bell-0", runs=["bell-0"])
    assert [block.value.split()[:2] for block in page.app.code] == [["uwml", "train"], ["for", "seed"]]
    assert "R@1 on val" in page.charts()


def test_missing_ranks_are_taught(open_page: Callable[..., Any], logs: Path) -> None:
    page = open_page(PAGE, logs, run="no-ranks", runs=["no-ranks", "bell-0"], baseline="no-ranks")
    assert not page.failures
    assert "log.log_ranks(" in page.app.code[0].value


def needed(page: Any) -> list[str]:
    """What the card says a comparison needs."""
    card = page.markup.split("What a comparison needs")[1].split("uw-title")[0]
    return re.findall(r'class="uw-note">(.*?)</p>', card) + [
        block.value.split()[0] for block in page.app.code
    ]


@pytest.mark.parametrize(
    ("other", "says"),
    [
        ("other-data", "Every run has to answer the same queries: those of the same data and split."),
        ("video", "Every run has to answer the same queries: those of the same data and split."),
        ("no-ranks", "Intervals come from the ranks of the same queries in every run. To log them:"),
    ],
)
def test_runs_that_cannot_be_compared_are_told_what_would_do(
    open_page: Callable[..., Any], logs: Path, other: str, says: str
) -> None:
    page = open_page(PAGE, logs, run="bell-0", runs=["bell-0", other], baseline="bell-0")
    assert not page.failures
    assert needed(page)[0] == says
    instead = [text for text in needed(page) if text.startswith("On the data of")]
    if other == "no-ranks":
        assert instead == []
        assert "log.log_ranks(" in page.app.code[0].value
    else:
        assert len(instead) == 1
        assert instead[0].startswith("On the data of bell-0 are also ")
        assert {"plain-0", "plain-1", "running"} <= set(re.split(", | ", instead[0].rstrip(".")))


def test_runs_alone_on_their_data_are_told_to_train_another(
    open_page: Callable[..., Any], logs: Path
) -> None:
    page = open_page(PAGE, logs, run="video", runs=["other-data", "video"], baseline="other-data")
    assert not page.failures
    assert [block.value.split()[:2] for block in page.app.code] == [["uwml", "train"]]


@pytest.mark.parametrize("run", ["running", "foreign"])
def test_running_and_foreign_runs_are_compared(open_page: Callable[..., Any], logs: Path, run: str) -> None:
    page = open_page(PAGE, logs, run="bell-0", runs=["bell-0", run], baseline="bell-0")
    assert not page.failures
    assert run in headline(page)
    assert "Differences on val" in page.text
    assert ("No settings were logged by foreign" in page.text) == (run == "foreign")


def test_split_is_chosen_where_there_are_several(open_page: Callable[..., Any], tmp_path: Path) -> None:
    ids = np.arange(40)
    for run, found in (("a", {"val": 10, "test": 10}), ("b", {"val": 10, "test": 30})):
        with RunLogger(tmp_path, run, config={"optimizer": run}, seed=0) as log:
            for split, right in found.items():
                ranks = np.where(ids < right, 1.0, 9.0)
                for direction in ("i2t", "t2i"):
                    log.log_ranks(
                        step=3, split=split, direction=direction, item_ids=ids, captions=None, ranks=ranks
                    )
    page = open_page(PAGE, tmp_path, run="b", runs=["a", "b"], baseline="a")
    assert not page.failures
    assert "b and a find the same queries" in headline(page)
    assert "No logged R@K to check the hit rates against" in page.text
    control(page, "split").set_value("test").run()
    assert not page.failures
    assert headline(page).startswith("b beats a: +50.0 R@1")
    assert page.app.query_params["split"] == "test"
    assert table_with(page, "Setting")[1] == ["optimizer", "a", "b"]


def test_finished_models_are_compared(open_page: Callable[..., Any], tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    images = random.normal(size=(60, 8))
    np.save(tmp_path / "images.npy", images)
    logs = tmp_path / "logs"
    for run, noise in (("close", 0.3), ("far", 2.0)):
        np.save(tmp_path / f"{run}.npy", images + noise * random.normal(size=images.shape))
        words = ["--images", str(tmp_path / "images.npy"), "--texts", str(tmp_path / f"{run}.npy")]
        assert main(["diagnose-embeddings", *words, "--logs", str(logs), "--run-id", run]) == 0
    page = open_page(PAGE, logs, run="close", runs=["far", "close"], baseline="far")
    assert not page.failures
    assert headline(page).startswith("close beats far: +")
    assert table_with(page, "Setting")[1][0] == "finished_model.texts"


def test_folder_without_runs(open_page: Callable[..., Any], tmp_path: Path) -> None:
    page = open_page(PAGE, tmp_path)
    assert not page.failures
    assert headline(page) == "No runs yet."


def test_tables_are_offered_in_three_formats(opened: Any) -> None:
    keys = {button.proto.label for button in opened.app.get("download_button")}
    assert {"CSV", "LaTeX", "Markdown"} <= keys
