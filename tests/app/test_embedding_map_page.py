"""The embedding map page: each control is moved, each gap in the log is said."""

from __future__ import annotations

import base64
import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import streamlit as st

from tests.support.snapshots import log_run, pair_vectors
from tests.support.synthetic import make_run
from uwml_core.figures.embedding_map import embedding_map_figure
from uwml_core.projection.job import project
from uwml_core.projection.parameters import ProjectionParameters, chain_keys
from uwml_core.runlog.projections import find_projection, projection_path, write_projection
from uwml_core.runlog.reader import open_run
from uwml_core.runlog.writer import RunLogger
from uwml_core.ui import map_read, map_told, player
from uwml_core.ui import projection as queue_module
from uwml_core.ui.projection import Job, ProjectionQueue

MAP = "pages/explain/embedding_map.py"
TITLE = "Map of image (circles) and text (diamonds)"
BROKEN = np.where(np.arange(6)[:, None] < 2, np.nan, pair_vectors(6)[0])


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("logs")
    make_run(folder, run_id="one", steps=10, epochs=1, without=("items",))
    make_run(folder, run_id="none", steps=10, epochs=1, without=("snapshots",))
    make_run(folder, run_id="clips", steps=20, epochs=2, directions=("v2t", "t2v"))
    # the newest: the simulated browser forgets the choice of run when a page starts over
    make_run(folder, run_id="a", steps=60, epochs=3, items=48, phases=("warmup", "train"))
    return folder


@pytest.fixture
def opened(open_page: Callable[..., Any], logs: Path) -> Any:
    page = open_page(MAP, logs, run="a")
    assert not page.failures
    return page


def numbers(values: Any) -> np.ndarray:
    if isinstance(values, dict):
        return np.frombuffer(base64.b64decode(values["bdata"]), values["dtype"])
    return np.asarray(values)


def count(opened: Any) -> int:
    return sum(len(numbers(trace["x"])) for trace in opened.charts()[TITLE]["data"][:2])


def over(opened: Any) -> dict[str, Any]:
    """What lies over the map: traces, chosen points per trace of the map, whether the others step back."""
    found = [
        json.loads(element.proto.json)
        for element in opened.app.get("bidi_component")
        if element.proto.component_name == "uwml_map_overlay"
    ]
    assert [data["name"] for data in found] == ["map"]
    return json.loads(found[0]["source"])  # type: ignore[no-any-return]


def names(opened: Any) -> list[str]:
    drawn = [*opened.charts()[TITLE]["data"], *over(opened)["traces"]]
    return [trace.get("name", "") for trace in drawn]


def area_around(opened: Any) -> str:
    """A box around all points that are shown, as the address has it."""
    traces = opened.charts()[TITLE]["data"][:2]
    x, y = (np.concatenate([numbers(trace[axis]) for trace in traces]) for axis in "xy")
    left, right, bottom, top = x.min() - 1, x.max() + 1, y.min() - 1, y.max() + 1
    return "_".join(f"{value:.4g}" for value in (left, bottom, right, bottom, right, top, left, top))


def test_page_shows_both_modalities_at_once_by_pca(opened: Any) -> None:
    assert opened.app.session_state["method"] == "pca"
    assert names(opened) == ["image", "text"]
    assert count(opened) == 96
    assert "pairs went from" in opened.text
    assert "96 of 96 points" in opened.text
    assert "nearest neighbors are among its" in opened.text
    assert "n = 96 of 96 points" in opened.text
    assert "not in itself a fault" in opened.text
    assert {"The gap in the original space", TITLE} <= set(opened.charts())


def test_slider_shows_another_snapshot(opened: Any) -> None:
    before = numbers(opened.charts()[TITLE]["data"][0]["x"])
    opened.app.select_slider(key="moment-en-0").set_value("19").run()
    assert not opened.failures
    after = numbers(opened.charts()[TITLE]["data"][0]["x"])
    assert before.shape == after.shape
    assert not np.allclose(before, after)
    ranges = opened.charts()[TITLE]["layout"]["xaxis"]["range"]
    assert ranges[0] < min(before.min(), after.min())
    assert ranges[1] > max(before.max(), after.max())


def test_map_is_drawn_once_for_what_it_shows(opened: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    module, drawn = sys.modules["uwml_core.ui.map_card"], []

    def draw(points: Any, *given: Any, **named: Any) -> Any:
        drawn.append(int(points["step"].iloc[0]))
        return embedding_map_figure(points, *given, **named)

    monkeypatch.setattr(module, "embedding_map_figure", draw)
    first = opened.charts()[TITLE]
    for moment, color in (("59", "modality"), ("19", "modality"), ("59", "modality"), ("59", "group")):
        opened.app.select_slider(key="moment-en-0").set_value(moment)
        opened.app.selectbox(key="color").set_value(color).run()
        assert not opened.failures
        assert (opened.charts()[TITLE] == first) == ((moment, color) == ("59", "modality"))
    assert drawn == [19, 59]


def test_play_goes_through_the_snapshots_and_stops_at_the_last(
    opened: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(player, "PLAY_S", 0.0)
    opened.app.button(key="play-moments").click().run()
    seen = []
    for _ in range(6):
        seen.append([bar.proto.text for bar in opened.app.get("progress")])
        if not seen[-1]:
            break
        opened.app.run()
    assert [text for texts in seen for text in texts][-1] == "epoch 2"
    assert seen[-1] == []
    assert opened.app.session_state["moment"] == "59"
    assert not opened.failures


def test_pause_stays_where_it_is(opened: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    opened.app.select_slider(key="moment-en-0").set_value("19").run()
    monkeypatch.setattr(player, "PLAY_S", 1e9)
    opened.app.button(key="play-moments").click().run()
    monkeypatch.setattr(player, "PLAY_S", 0.0)
    opened.app.button(key="pause-moments").click().run()
    assert opened.app.session_state["moment"] == "19"
    assert opened.app.select_slider(key="moment-en-1").value == "19"


@pytest.mark.parametrize(
    ("color", "word"),
    [
        ("modality", "image"),
        ("group", "flags & signs"),
        ("margin", "misaligned"),
        ("rank", "rank 2 to 5"),
        ("weight", "weight 0.5–1"),
        ("phase", "warmup"),
        ("kept", "kept ≥ 75 %"),
    ],
)
def test_colour_by_tells_what_the_colours_mean(opened: Any, color: str, word: str) -> None:
    opened.app.selectbox(key="color").set_value(color).run()
    assert not opened.failures
    key = opened.text.split('<div class="uw-key">')[1].split("</div>")[0]
    assert word in key


def test_split_leaves_the_other_points_out(opened: Any) -> None:
    opened.app.selectbox(key="points").set_value("val").run()
    assert count(opened) == 24
    assert "24 of 96 points" in opened.text


def test_links_join_the_worst_pairs(opened: Any) -> None:
    opened.app.selectbox(key="links").set_value("worst").run()
    assert names(opened) == ["image", "text", "pairs"]
    assert len(numbers(over(opened)["traces"][0]["x"])) == 3 * 40
    assert opened.app.query_params["links"] in ("worst", ["worst"])
    opened.app.selectbox(key="links").set_value("selection").run()
    assert names(opened) == ["image", "text"]
    assert "No points are selected" in opened.text


def test_area_of_the_address_selects_its_points(
    open_page: Callable[..., Any], logs: Path, opened: Any
) -> None:
    area = area_around(opened)
    page = open_page(MAP, logs, run="a", area=area, area_at="59", links="selection", trails="true")
    assert not page.failures
    assert "Selected points: 96" in page.text
    assert names(page) == ["image", "text", "pairs", "trails", "trails"]
    chosen = [np.frombuffer(base64.b64decode(rows["bdata"]), "<i4") for rows in over(page)["chosen"]]
    assert [rows.tolist() for rows in chosen] == [list(range(48))] * 2
    table = page.markup.split('<table class="uw-table">')[1].split("</table>")[0]
    assert [cell in table for cell in (">image<", ">text<", ">Both<", ">96<", ">48<")] == [True] * 5
    assert "of all" in page.text
    assert len(page.app.dataframe[0].value) == 96
    assert page.markup.count('class="uw-thumb"') >= 40
    page.app.button(key="clear-selection").click().run()
    assert "Draw around points" in page.text
    assert "area" not in page.app.query_params


def test_selected_points_stay_selected_at_another_snapshot(
    open_page: Callable[..., Any], logs: Path, opened: Any
) -> None:
    trace = opened.charts()[TITLE]["data"][0]
    x, y = float(numbers(trace["x"])[7]), float(numbers(trace["y"])[7])
    r = 1e-3
    area = "_".join(str(value) for value in (x - r, y - r, x + r, y - r, x + r, y + r, x - r, y + r))
    page = open_page(MAP, logs, run="a", area=area, area_at="59", moment="19")
    assert "Selected points: 1" in page.text
    chosen = [np.frombuffer(base64.b64decode(rows["bdata"]), "<i4").tolist() for rows in over(page)["chosen"]]
    assert chosen == [[7], []]


@pytest.mark.parametrize("area", ["x", "nan_0_1_1_0_1", "<script>"])
def test_area_that_is_none_selects_nothing(open_page: Callable[..., Any], logs: Path, area: str) -> None:
    page = open_page(MAP, logs, run="a", area=area, area_at="59")
    assert not page.failures
    assert "Draw around points" in page.text


def test_trail_leads_from_the_first_snapshot_to_the_shown_one(
    open_page: Callable[..., Any], logs: Path
) -> None:
    page = open_page(MAP, logs, run="a", item="7", trails="true")
    trails = [trace for trace in over(page)["traces"] if trace["name"] == "trails"]
    assert [len(numbers(trace["x"])) for trace in trails] == [3 * 2, 3 * 2]
    page.app.toggle(key="trails").set_value(False).run()
    assert "trails" not in names(page)


def held(release: threading.Event, work: Callable[..., Any]) -> Callable[..., Any]:
    def wait(*given: Any, **named: Any) -> Any:
        release.wait(60)
        return work(*given, **named)

    return wait


def test_large_snapshot_shows_its_points_before_it_is_compared(
    open_page: Callable[..., Any], logs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(map_told, "AT_ONCE_POINTS", 10)
    monkeypatch.setattr(map_told, "COMPARED_AT_ONCE", 10)
    release = threading.Event()
    some, all_ = map_told.pair_strength, held(release, map_told.pair_strength)
    # those of the points that are asked about are told at once
    monkeypatch.setattr(map_told, "pair_strength", lambda *given: (some if given[2:] else all_)(*given))
    monkeypatch.setattr(map_told, "projection_quality", held(release, map_told.projection_quality))
    page = open_page(MAP, logs, run="a", moment="39", item="7", color="margin", method="pca")
    assert count(page) == 96
    assert "Margins and ranks are being computed" in page.text
    assert "quality is being computed" in page.text
    # of the chosen item alone they are known at once
    assert "image: margin" in page.text
    release.set()
    for _attempt in range(600):
        page.app.run()
        if "being computed" not in page.text:
            break
        time.sleep(0.05)
    assert "being computed" not in page.text
    assert "trustworthiness" in page.text


def test_large_snapshot_is_drawn_before_anything_is_measured(
    open_page: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(map_read, "AT_ONCE_POINTS", 10)
    monkeypatch.setattr(map_told, "AT_ONCE_POINTS", 10)
    monkeypatch.setattr(map_told, "COMPARED_AT_ONCE", 10)
    judged: list[int] = []
    monkeypatch.setattr(map_told, "projection_quality", judged.append)
    measured: list[int] = []
    monkeypatch.setattr(map_read, "measures_of", noted(measured, map_read.measures_of))
    log_run(tmp_path, "a", [pair_vectors(20, seed=seed) for seed in range(5)])
    page = open_page(MAP, tmp_path, run="a")
    assert not page.failures
    assert count(page) == 40
    assert "is being measured" in page.text
    assert "0 of 5 snapshots measured so far" in page.text
    assert judged == measured == []


def noted(calls: list[int], work: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def act(given: Any) -> Any:
        calls.append(len(given))
        return work(given)

    return act


def test_measures_of_a_large_run_come_first_and_last_then_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(map_read, "AT_ONCE_POINTS", 10)
    logged = [pair_vectors(20, seed=seed) for seed in range(5)]
    path = log_run(tmp_path, "a", logged)
    last = sorted((path / "snapshots").iterdir())[-1]
    to_come = last.rename(tmp_path / "to_come")
    run = open_run(path)
    shown = map_read.snapshot(run, 30)
    assert map_read.gap_measures(run, shown)[1] == 4
    # what the page does two seconds later
    assert map_read._go_on(run, first=True)
    gaps, rest = map_read.gap_measures(run, shown)
    assert (sorted(set(gaps["step"])), rest) == ([0, 30], 2)
    # a snapshot of a run that grows is measured as it comes
    to_come.rename(last)
    grown = open_run(path)
    gaps, rest = map_read.gap_measures(grown, shown)
    assert (sorted(set(gaps["step"])), rest) == ([0, 30, 40], 2)
    while not map_read._go_on(grown, first=False):
        pass
    assert map_read.gap_measures(grown, shown)[1] == 0


def test_axes_of_large_snapshots_come_from_fewer_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = open_run(log_run(tmp_path, "a", [pair_vectors(20, seed=seed) for seed in range(9)]))
    for most, few in ((1_000, 6), (160, 4), (10, 3)):
        monkeypatch.setattr(map_read, "MOST_POINTS", most)
        st.cache_resource.clear()
        places, used, total = map_read.pca_layout(run, [10])
        assert (used, total) == (few, 9)
        assert {0, 10, 80} <= set(places)


def test_search_rings_what_it_finds_and_shows_one(opened: Any) -> None:
    opened.app.text_input(key="find").set_value("THING 7,").run()
    assert "1 of 48 items match" in opened.text
    assert names(opened) == ["image", "text", "highlighted"]
    assert over(opened)["quiet"]
    opened.app.selectbox(key="found-item").set_value(7).run()
    assert "Item 7" in opened.text
    assert "thing 7, caption 0" in opened.text
    opened.app.text_input(key="find").set_value("no such thing").run()
    assert "0 of 48 items match" in opened.text


def test_item_of_the_address_is_shown_with_its_neighbors(open_page: Callable[..., Any], logs: Path) -> None:
    page = open_page(MAP, logs, run="a", item="7", moment="39")
    assert not page.failures
    assert "thing 7, caption 1 ✓ &lt;b&gt;" in page.markup
    assert "Nearest text to its image, of 48" in page.text
    assert "data:image/webp;base64," in page.markup
    assert "its own" in page.text
    assert page.app.session_state["moment"] == "39"
    page.app.button(key="clear-item").click().run()
    assert "Click a point" in page.text


def test_search_looks_among_the_items_that_are_shown(opened: Any) -> None:
    opened.app.selectbox(key="points").set_value("val")
    opened.app.text_input(key="find").set_value("thing").run()
    assert not opened.failures
    assert "12 of 12 items match" in opened.text
    rings = over(opened)["traces"][0]
    assert (rings["name"], len(numbers(rings["x"]))) == ("highlighted", 24)


@pytest.mark.parametrize("item", ["999", "-1", "x", "٣", "1e3", "99999999999999"])
def test_item_that_is_none_breaks_nothing(open_page: Callable[..., Any], logs: Path, item: str) -> None:
    page = open_page(MAP, logs, run="a", item=item)
    assert not page.failures
    assert ("has no point in this snapshot" in page.text) or ("Click a point" in page.text)


def test_run_without_snapshots_says_how_to_log_them(open_page: Callable[..., Any], logs: Path) -> None:
    page = open_page(MAP, logs, run="none")
    assert not page.failures
    assert "This run has no snapshots table." in page.text
    assert "log.log_snapshot(" in page.app.code[0].value


def test_one_epoch_without_pictures_says_both(open_page: Callable[..., Any], logs: Path) -> None:
    page = open_page(MAP, logs, run="one", item="3")
    assert not page.failures
    assert "One snapshot, epoch 0" in page.text
    assert "too little data yet to say how they move" in page.text
    assert "log them with RunLogger.log_items" in page.text


def test_clips_are_named_by_their_modality(open_page: Callable[..., Any], logs: Path) -> None:
    page = open_page(MAP, logs, run="clips", item="3")
    assert not page.failures
    assert "Map of video (circles) and text (diamonds)" in page.charts()
    assert "Nearest text to its video" in page.text


def test_broken_embeddings_give_a_page_that_says_so(open_page: Callable[..., Any], tmp_path: Path) -> None:
    nan = np.full((6, 4), np.nan)
    log_run(tmp_path, "nan", [(nan, nan)])
    log_run(tmp_path, "same", [(np.tile([[1.0, 0.0]], (6, 1)),) * 2])
    for run in ("nan", "same"):
        page = open_page(MAP, tmp_path, run=run)
        assert not page.failures
        said = [warning.value for warning in page.app.warning]
        assert len(said) == 1
        assert ("No row of this snapshot" if run == "nan" else "All vectors of this snapshot") in said[0]
        # an empty chart would say that nothing was logged
        assert ("No point of this choice has a place on the map" in page.text) == (run == "nan")
        assert (TITLE in page.charts()) == (run == "same")


PAIRS = pair_vectors(6)
ODD_RUNS: dict[str, tuple[Any, str]] = {
    "one item": ([(pair_vectors(1), [4])], "a single item"),
    "some nan": ([((BROKEN, PAIRS[1]), None)], "2 of 12 rows are left out"),
    "other items": (
        [(PAIRS, None), (PAIRS, range(3, 9))],
        "3 stayed, 3 new, 3 gone",
    ),
    "dimension": (
        [(PAIRS, None), (pair_vectors(6, dim=16), None)],
        "16 numbers, in epoch 0 they had 8",
    ),
    "one modality": ([((PAIRS[0], None), None)], "no point of text"),
}


@pytest.mark.parametrize("kind", ODD_RUNS)
def test_odd_snapshot_says_what_is_odd(open_page: Callable[..., Any], tmp_path: Path, kind: str) -> None:
    snapshots, said = ODD_RUNS[kind]
    with RunLogger(tmp_path, "odd") as log:
        for epoch, (vectors, items) in enumerate(snapshots):
            named = {name: v for name, v in zip(("image", "text"), vectors, strict=True) if v is not None}
            ids = list(range(len(vectors[0]))) if items is None else list(items)
            log.log_snapshot(
                step=10 * epoch, epoch=epoch, embeddings=named, item_ids=ids, labels=ids, splits="val"
            )
    page = open_page(MAP, tmp_path, run="odd", item="4")
    assert not page.failures
    assert len(page.app.warning) == 1
    assert said in page.app.warning[0].value.replace("\\", "")
    assert {"The gap in the original space", TITLE} <= set(page.charts())


def test_computed_umap_is_shown_first(open_page: Callable[..., Any], tmp_path: Path) -> None:
    run = open_run(log_run(tmp_path, "a", [pair_vectors(8, seed=seed) for seed in range(2)]))
    placed = store_umap(run)
    page = open_page(MAP, tmp_path, run="a")
    assert page.app.session_state["method"] == "umap"
    np.testing.assert_array_equal(numbers(page.charts()[TITLE]["data"][0]["x"]), placed)
    assert not page.app.button(key="play-moments").disabled
    assert "compute-umap" not in [button.key for button in page.app.button]
    page.app.slider(key="neighbors").set_value(30).run()
    assert "Shown by PCA until UMAP is there" in page.text
    assert "compute-umap" in [button.key for button in page.app.button]


def store_umap(run: Any) -> np.ndarray:
    """Pretend that UMAP was computed; returns the horizontal places of the newest first modality."""
    from uwml_core.runlog.projections import placed_snapshots, read_projection

    frame = read_projection(project(run, ProjectionParameters(method="pca")))
    assert frame is not None
    frame["x"] += 100
    key = chain_keys(run, ProjectionParameters())[-1]
    write_projection(projection_path(run.path / "projections", key), placed_snapshots(frame), {})
    newest = frame[(frame["step"] == frame["step"].max()) & (frame["modality"] == "image")]
    return newest["x"].to_numpy()


def test_grown_run_shows_umap_of_what_it_was(open_page: Callable[..., Any], tmp_path: Path) -> None:
    path = log_run(tmp_path, "a", [pair_vectors(8, seed=seed) for seed in range(3)])
    last = sorted((path / "snapshots").iterdir())[-1]
    kept = last.rename(tmp_path / "kept")
    store_umap(open_run(path))
    kept.rename(last)
    page = open_page(MAP, tmp_path, run="a", moment="10")
    assert "The run has grown since" in page.text
    assert count(page) == 16


def test_read_only_app_shows_but_does_not_start(open_page: Callable[..., Any], logs: Path) -> None:
    page = open_page(MAP, logs, read_only=True, run="a", method="umap")
    assert not page.failures
    assert "compute-umap" not in [button.key for button in page.app.button]
    assert "this app may not start it" in page.text


@pytest.fixture
def fake_queue(monkeypatch: pytest.MonkeyPatch) -> Iterator[ProjectionQueue]:
    queue = ProjectionQueue()
    monkeypatch.setattr(sys.modules["uwml_core.ui.layout_choice"], "queue", queue)
    yield queue
    queue.close()


def test_button_starts_umap_and_cancel_ends_it(
    open_page: Callable[..., Any], logs: Path, fake_queue: ProjectionQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    sleeping = ["sleep", "600"]
    monkeypatch.setattr(queue_module, "project_command", lambda *_args: sleeping)
    page = open_page(MAP, logs, run="a", method="umap")
    page.app.button(key="compute-umap").click().run()
    assert not page.failures
    key = chain_keys(open_run(logs / "a"), ProjectionParameters())[-1]
    job = fake_queue.job(key)
    assert isinstance(job, Job)
    assert job.waits
    assert [bar.proto.text for bar in page.app.get("progress")] == ["UMAP is loading and finds the neighbors"]
    page.app.button(key="cancel-umap").click().run()
    assert job.state == "cancelled"
    assert "compute-umap" in [button.key for button in page.app.button]


def test_failed_umap_says_why(
    open_page: Callable[..., Any], logs: Path, fake_queue: ProjectionQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        queue_module, "project_command", lambda *_args: ["sh", "-c", "echo '<i>no room' >&2; exit 2"]
    )
    run = open_run(logs / "a")
    key = chain_keys(run, ProjectionParameters())[-1]
    job = fake_queue.start(run.path, key, ProjectionParameters())
    while job.waits:
        pass
    page = open_page(MAP, logs, run="a", method="umap")
    assert "&lt;i&gt;no room" in page.markup
    assert page.app.error[0].value == "UMAP could not be computed."
    assert find_projection(run.path, key) is None
