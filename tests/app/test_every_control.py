"""Every control of every page, moved once and back: what changes on the page and in the address."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1.element_tree import Element

from tests.support.synthetic import make_run
from uwml_core.weighting import UWMLConfig

TEXT, CHARTS, TABLE, CODE = "text", "charts", "table", "code"
# what is no choice: charts, downloads, what watches the theme and clicks
NO_CONTROLS = {"bidi_component", "download_button"}
DRAWINGS = {"uwml_live_plot", "uwml_map_overlay"}


@dataclass(frozen=True)
class Move:
    """A control that is moved and put back.

    Attributes:
        value: where to; None presses a button.
        changes: what looks different then, and the same again once it is back.
        address: what the address says under the control's name; None where it keeps silent.
        back: button that puts a pressed one back.
    """

    value: Any
    changes: tuple[str, ...]
    address: Any = None
    back: str = ""


@dataclass(frozen=True)
class Elsewhere:
    """A control whose outcome another test checks."""

    test: str


Control = Move | Elsewhere


@dataclass(frozen=True)
class View:
    """A page as an address shows it, and every control that it then has.

    Attributes:
        page: its script.
        controls: by key.
        asks: what the address asks for.
        idle: controls that are greyed out, or moved in another view.
    """

    page: str
    controls: Mapping[str, Control]
    asks: Mapping[str, Any] = field(default_factory=dict)
    idle: frozenset[str] = frozenset()


def pressed(*changes: str) -> Move:
    return Move(None, changes, back="reset")


BROWSER, SHARE = "tests/browser/test_journey.py", "tests/app/test_share_page.py"
MAP, TRAININGS = "tests/app/test_embedding_map_page.py", "tests/app/test_trainings.py"
BALANCE_PAGE, MAP_PAGE = "pages/explain/modal_balance.py", "pages/explain/embedding_map.py"
BOTH = (TEXT, CHARTS)
BALANCE: Mapping[str, Control] = {
    "direction_mode": Move("off", (*BOTH, CODE), "off"),
    "window": Move(20, (*BOTH, CODE), "20"),
    "update_every": Move(3, (*BOTH, CODE), "3"),
    "smoothing": Move(0.5, (*BOTH, CODE), "0.5"),
    "sensitivity": Move(0.2, (*BOTH, CODE), "0.2"),
    "min_weight": Move(0.35, (*BOTH, CODE), "0.35"),
    **{f"preset-{number}": pressed(*BOTH, CODE) for number in range(4)},
    "reset": Elsewhere("every preset is put back by it"),
    "train-with-these": Elsewhere(TRAININGS),
}
MAPPED: Mapping[str, Control] = {
    "color": Move("margin", BOTH, "margin"),
    "points": Move("val", BOTH, "val"),
    "moment-en-0": Move("19", BOTH),
    "links": Move("worst", (CHARTS,), "worst"),
    "find": Move("thing 7,", BOTH, "thing 7,"),
    "play-moments": Elsewhere(MAP),
}
VIEWS: Mapping[str, View] = {
    "runs": View(
        "pages/watch/runs.py",
        {
            "search": Move("plain", (TEXT, TABLE), "plain"),
            "runs-table": Elsewhere("tests/browser/test_pages.py"),
            "start-demo": Elsewhere(BROWSER),
            "bundle_upload": Elsewhere(SHARE),
        },
    ),
    "training, with the frame": View(
        "pages/watch/training.py",
        {
            "run": Move("plain", BOTH, "plain"),
            "lang": Move("zh", BOTH, "zh"),
            "live": Move(False, (), "false"),
        },
    ),
    "training, zoomed": View(
        "pages/watch/training.py",
        {"all-steps": Elsewhere("tests/browser/test_zoom.py")},
        asks={"steps": "3..9"},
    ),
    "weight curve": View(
        "pages/explain/weight_curve.py",
        {
            "epoch": Move("0", BOTH, "0"),
            "curve": Move("hard", (*BOTH, CODE), "hard"),
            "normalization": Move("sum", (TEXT, CODE), "sum"),
            "center": Move(0.4, (*BOTH, CODE), "0.4"),
            "steepness_start": Move(5.0, (*BOTH, CODE), "5.0"),
            "steepness_end": Move(30.0, (*BOTH, CODE), "30.0"),
            "hard_floor": Move(0.9, (*BOTH, CODE), "0.9"),
            "max_weight": Move(1.1, (*BOTH, CODE), "1.1"),
            **{f"preset-{number}": pressed(*BOTH, CODE) for number in range(4)},
            "reset": Elsewhere("every preset is put back by it"),
            "train-with-these": Elsewhere(TRAININGS),
        },
    ),
    "modal balance": View(BALANCE_PAGE, BALANCE, idle=frozenset({"direction_fixed"})),
    "modal balance, fixed": View(
        BALANCE_PAGE,
        {"direction_fixed": Move(0.7, (*BOTH, CODE), "0.7")},
        {"direction_mode": "fixed"},
        idle=frozenset(BALANCE),
    ),
    "hard negatives": View(
        "pages/explain/hard_negatives.py",
        {
            "tab": Move("persistent", (TEXT,), "persistent"),
            "direction": Move("t2i", (TEXT,), "t2i"),
            "epoch": Move("0", (TEXT,), "0"),
            "band": Move("misaligned", (TEXT,), "misaligned"),
            "group": Move("food", (TEXT,), "food"),
            "sort-hardest": Move("often", (TEXT,), "often"),
            "find": Move("thing 7", (TEXT,), "thing 7"),
            "page": Move(2, (TEXT,)),
        },
    ),
    "hard negatives of an item": View(
        "pages/explain/hard_negatives.py",
        {"back-to-sheet": Elsewhere("tests/app/test_hard_negatives_page.py")},
        {"item": "4"},
    ),
    "embedding map": View(
        MAP_PAGE, {**MAPPED, "method": Move("umap", (TEXT,), "umap")}, idle=frozenset({"trails"})
    ),
    "embedding map of an item": View(
        MAP_PAGE,
        {"trails": Move(True, (CHARTS,), "true"), "clear-item": Elsewhere(MAP)},
        {"item": "4"},
        idle=frozenset({*MAPPED, "method"}),
    ),
    "embedding map, searched": View(
        MAP_PAGE,
        {"found-item": Elsewhere(MAP)},
        {"find": "thing 7"},
        idle=frozenset({*MAPPED, "method", "trails"}),
    ),
    "embedding map by UMAP": View(
        MAP_PAGE,
        {
            "neighbors": Move(30, (), "30"),
            "min_dist": Move(0.5, (), "0.5"),
            "metric": Move("euclidean", (), "euclidean"),
            "umap_seed": Move(7, (), "7"),
            "compute-umap": Elsewhere(MAP),
        },
        {"method": "umap"},
        idle=frozenset({*MAPPED, "method", "trails"}),
    ),
    "compare": View(
        "pages/decide/compare.py",
        {
            "runs": Move(["plain", "a"], BOTH, ["plain", "a"]),
            "at": Move("best", (TEXT,), "best"),
            "against": Move("a", (TEXT,), "a"),
            "won": Move("t2i", (TEXT,), "t2i"),
        },
        {"runs": ["plain", "a", "hard"], "baseline": "plain"},
        idle=frozenset({"baseline"}),
    ),
    "compare two": View(
        "pages/decide/compare.py",
        {"baseline": Move("a", BOTH, "a")},
        {"runs": ["plain", "a"], "baseline": "plain"},
        idle=frozenset({"runs", "at", "won"}),
    ),
    "diagnosis": View("pages/decide/diagnosis.py", {}),
    # the other steps have a slider each, which the test of the page moves
    "learn": View(
        "pages/share/learn.py",
        {
            "learn_temperature": Move(0.2, BOTH, "0.2"),
            "lesson-back": Elsewhere("tests/app/test_learn_page.py"),
            "lesson-next": Elsewhere("tests/app/test_learn_page.py"),
        },
    ),
    "share": View(
        "pages/share/share.py",
        {
            "report_pages": Move(["training"], (TEXT,), "training"),
            "report_lang": Move("zh", (), "zh"),
            "report_pictures": Move(False, (TEXT,), "false"),
            "build-report": Elsewhere(SHARE),
            "bundle_pictures": Move(False, (), "false"),
            "bundle_embeddings": Move(False, (), "false"),
            "bundle_pairs": Move(False, (), "false"),
            "bundle_upload": Elsewhere(SHARE),
            "note_page": Move("weight_curve", (), "weight_curve"),
            "note_kind": Move("item", (), "item"),
            "note_value": Elsewhere(SHARE),
            "note_text": Elsewhere(SHARE),
            "pin-note": Elsewhere(SHARE),
        },
    ),
}
FRAME = frozenset({"run", "lang", "live"})
# the browser writes these into its address by itself; the others are written by the page
BOUND = frozenset(
    {
        *(
            "search",
            "live",
            "find",
            "links",
            "trails",
            "page",
            "min_dist",
            "neighbors",
            "metric",
            "umap_seed",
        ),
        *("center", "steepness_start", "steepness_end", "hard_floor", "max_weight", "curve", "normalization"),
        *("direction_mode", "window", "update_every", "smoothing", "sensitivity", "min_weight"),
        *(
            "learn_temperature",
            "direction_fixed",
            "report_pictures",
            "bundle_pictures",
            "bundle_embeddings",
            "bundle_pairs",
        ),
    }
)


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("logs")
    total = {"total_steps": 60}
    settings = {
        "plain": UWMLConfig(curve="uniform", direction_mode="off", **total),
        "hard": UWMLConfig(curve="hard", **total),
        # no preset's own, so that each of them changes something
        "a": UWMLConfig(center=0.2, sensitivity=0.04, smoothing=0.8, window=100, **total),
    }
    for seed, (run_id, config) in enumerate(settings.items()):
        make_run(folder, run_id=run_id, steps=60, epochs=3, items=96, seed=seed, config=config)
    return folder


def controls(app: Any) -> Iterator[tuple[str, Any]]:
    """Keys of all that a visitor can move, with the element."""
    for node in app._tree:
        identity = getattr(getattr(node, "proto", None), "id", "")
        if identity and isinstance(node, Element) and node.type not in NO_CONTROLS:
            # a table that lists other rows is another one
            yield re.sub(r"--?\d{9,}$", "", identity.split("-", 2)[2]), node


def looks(opened: Any) -> dict[str, Any]:
    """What a visitor sees of the page, without its line of status, which grows old, and where links lead.

    Nor with the number by which a visit tells its zooms apart.
    """
    app = opened.app
    labels = [element.proto.label for element in app.get("download_button")]
    text = re.sub(r'<div class="uw-status">.*?</div>|href="[^"]*"', "", opened.markup)
    return {
        TEXT: (text, labels),
        CHARTS: [
            re.sub(r'"zooms": \[[^\]]*\]', "", element.proto.json or element.proto.bytes.decode())
            for element in app.get("bidi_component")
            if element.proto.component_name in DRAWINGS
        ],
        TABLE: [table.value.to_csv() for table in app.dataframe],
        CODE: [block.value for block in app.code],
    }


def said(opened: Any, key: str) -> Any:
    value = opened.app.query_params.get(key)
    return value[0] if isinstance(value, list) and len(value) == 1 else value


def put(opened: Any, key: str, value: Any) -> None:
    """Move a control as a visitor would."""
    element = dict(controls(opened.app))[key]
    if value is None:
        element.click().run()
    elif hasattr(element, "set_value"):
        element.set_value(value).run()
    else:
        # the simulated browser knows no such widget
        opened.app.session_state[key] = value
        opened.app.run()
    assert not opened.failures


def value_of(opened: Any, key: str) -> Any:
    element = dict(controls(opened.app))[key]
    return element.value if hasattr(element, "set_value") else opened.app.session_state[key]


@pytest.mark.parametrize("name", VIEWS)
def test_each_control_does_what_it_says_and_nothing_once_it_is_back(
    open_page: Callable[..., Any], logs: Path, name: str
) -> None:
    view = VIEWS[name]
    opened = open_page(view.page, logs, run="a", **view.asks)
    assert not opened.failures
    frame = frozenset() if set(view.controls) >= FRAME else FRAME
    # a new control needs an entry in the table
    assert {key for key, _ in controls(opened.app)} == set(view.controls) | view.idle | frame
    before = looks(opened)
    for key, move in view.controls.items():
        if isinstance(move, Elsewhere):
            continue
        was = None if move.value is None else value_of(opened, key)
        silent = said(opened, key)
        put(opened, key, move.value)
        after = looks(opened)
        assert [part for part in move.changes if after[part] == before[part]] == [], key
        if key not in BOUND:
            assert said(opened, key) == move.address, key
        if move.address is not None:
            assert (
                looks(open_page(view.page, logs, **{"run": "a", **view.asks, key: move.address})) == after
            ), key
        put(opened, move.back or key, was)
        again = looks(opened)
        assert [part for part in before if again[part] != before[part]] == [], key
        assert key in BOUND or said(opened, key) == silent, key


def test_every_page_is_in_the_table() -> None:
    pages = Path(__file__).resolve().parents[2] / "pages"
    assert {view.page for view in VIEWS.values()} == {
        f"pages/{path.relative_to(pages).as_posix()}" for path in pages.glob("*/*.py")
    }


@pytest.mark.parametrize("name", VIEWS)
def test_no_control_is_idle_in_every_view(name: str) -> None:
    view = VIEWS[name]
    moved = {key for other in VIEWS.values() if other.page == view.page for key in other.controls}
    assert view.idle <= moved
