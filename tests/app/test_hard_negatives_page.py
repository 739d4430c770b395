"""The hard negatives page: every control moved once, texts that want to be markup, runs that lack tables."""

from __future__ import annotations

import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest

from tests.support.synthetic import make_run, rewrite_run_json, thumbnail
from uwml_core.runlog.items import write_items
from uwml_core.ui.gallery import Entry, Tile, rows_html, sheet_html

PAGE = "pages/explain/hard_negatives.py"
HOSTILE = (
    "<img src=x onerror=alert(1)><script>alert(1)</script>",
    '"><a href="https://example.org" title=\'x\'>click</a>',
    "שלום עולם",
    "one\ntwo\r\n# three",
    "\u202eoverride",
    "x" * 500,
)


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("logs")
    make_run(folder, run_id="whole", epochs=4, steps_per_epoch=20, batch=32)
    for table in ("pairs", "neighbors", "items", "evals"):
        make_run(folder, run_id=f"no-{table}", epochs=3, steps_per_epoch=4, without=(table,))
    make_run(folder, run_id="one-epoch", epochs=1, steps_per_epoch=4)
    foreign = make_run(folder, run_id="foreign", epochs=2, steps_per_epoch=4)
    (foreign / "run.json").unlink()
    hostile = make_run(folder, run_id="hostile", epochs=3, steps_per_epoch=20, without=("items",))
    fingerprint = write_items(
        folder,
        item_keys=[f'k"{k}<i>' for k in range(64)],
        labels=[*range(63), 62],
        captions=[[HOSTILE[(k + c) % len(HOSTILE)] for c in range(3)] for k in range(64)],
        groups=[("<b>g</b>", "two\nlines", "y" * 500)[k % 3] for k in range(64)],
        thumbnails=[thumbnail(k) for k in range(64)],
    )
    rewrite_run_json(hostile, data_fingerprint=fingerprint)
    return folder


@pytest.fixture
def opened(open_page: Callable[..., Any], logs: Path) -> Any:
    page = open_page(PAGE, logs, run="whole", epoch="all")
    assert not page.failures
    return page


class Tags(HTMLParser):
    """What a browser makes of the markup."""

    def __init__(self, markup: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(markup)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def found(page: Any) -> tuple[int, int]:
    """Queries and wrong candidates that the page counts."""
    match = re.search(r"([\d,]+) quer(?:y|ies), ([\d,]+) wrong candidates", page.text)
    assert match, page.text
    first, second = (int(text.replace(",", "")) for text in match.groups())
    return first, second


def directions(page: Any) -> set[str]:
    return set(re.findall(r"<header><b[^>]*>(\w+)</b>", page.markup))


def entries(page: Any) -> int:
    return page.markup.count('<article class="uw-entry">')


def sheet(page: Any) -> str:
    """The sheet as it is sent."""
    return next(str(e.proto.body) for e in page.app.get("html") if 'class="uw-sheet' in str(e.proto.body))


def control(page: Any, key: str) -> Any:
    return next(box for box in page.app.selectbox if box.key == key)


def test_sheet_shows_one_page_of_all_queries(opened: Any) -> None:
    queries, wrong = found(opened)
    # 48 train items as pictures and as captions
    assert queries == 96
    assert wrong > queries
    assert entries(opened) == 24
    assert re.search(
        r"In all epochs, [\d.]+ % of 2,560 i2t pairs and [\d.]+ % of 2,560 t2i pairs", opened.text
    )


def test_direction_filter(opened: Any) -> None:
    assert directions(opened) == {"i2t", "t2i"}
    control(opened, "direction").set_value("t2i").run()
    assert directions(opened) == {"t2i"}
    assert found(opened)[0] == 48
    assert opened.app.query_params["direction"] == "t2i"


def test_epoch_filter(opened: Any) -> None:
    before = found(opened)[1]
    control(opened, "epoch").set_value("2").run()
    assert "In epoch 2, " in opened.text
    assert found(opened)[1] < before
    assert opened.app.query_params["epoch"] == "2"


@pytest.mark.parametrize(
    ("tab", "label"),
    [
        ("hardest", "Pairs of"),
        ("false-negatives", "Pairs of"),
        ("persistent", "Everything up to"),
        ("wrong-pairs", "Everything up to"),
        ("memorised", "Everything up to"),
    ],
)
def test_epoch_control_says_whether_earlier_epochs_count(
    open_page: Callable[..., Any], logs: Path, tab: str, label: str
) -> None:
    page = open_page(PAGE, logs, run="whole", tab=tab, epoch="2")
    assert not page.failures
    assert control(page, "epoch").label == label
    assert control(page, "epoch").value == "2"


def test_epoch_stays_when_another_question_names_its_control_anew(opened: Any) -> None:
    control(opened, "epoch").set_value("2").run()
    opened.app.button_group(key="tab").set_value("wrong-pairs").run()
    assert control(opened, "epoch").label == "Everything up to"
    assert control(opened, "epoch").value == "2"
    assert opened.app.query_params["epoch"] == "2"


def test_margin_filter(opened: Any) -> None:
    control(opened, "band").set_value("easy").run()
    margins = [float(text) for text in re.findall(r'uw-cosine">([\d.]+)<', opened.markup)]
    assert len(margins) >= 24
    assert min(margins) >= 0.25


def test_group_filter(opened: Any) -> None:
    control(opened, "group").set_value("food").run()
    # 16 of the 48 train items
    assert 2 * 14 <= found(opened)[0] <= 2 * 18
    assert opened.app.query_params["group"] == "food"


def test_order(opened: Any) -> None:
    lowest = re.search(r'uw-cosine">(−?[\d.]+)<', opened.markup)
    control(opened, "sort-hardest").set_value("often").run()
    assert re.search(r"<span class=\"uw-muted\">\d times", opened.markup)
    assert re.search(r'uw-cosine">(−?[\d.]+)<', opened.markup) != lowest
    assert opened.app.query_params["sort-hardest"] == "often"


def test_search(opened: Any) -> None:
    box = next(box for box in opened.app.text_input if box.key == "find")
    box.set_value("THING 5,").run()
    queries, wrong = found(opened)
    assert 0 < queries < 96
    assert opened.markup.count("thing 5, caption") >= min(entries(opened), wrong)
    box.set_value("no such caption").run()
    assert "Nothing passes the filter." in opened.text
    assert entries(opened) == 0


def test_page_turns_and_a_filter_turns_back(open_page: Callable[..., Any], logs: Path) -> None:
    first = open_page(PAGE, logs, run="whole", epoch="all")
    fourth = open_page(PAGE, logs, run="whole", epoch="all")
    fourth.app.session_state["page"] = 4
    fourth.app.run()
    assert sheet(first) != sheet(fourth)
    assert entries(fourth) == 24
    control(fourth, "direction").set_value("i2t").run()
    assert fourth.app.session_state["page"] == 1
    assert entries(fourth) == 24


@pytest.mark.parametrize(
    ("tab", "sentence"),
    [
        ("persistent", "probe queries have kept their nearest wrong candidate for 3 snapshots or more"),
        ("false-negatives", "negatives above their positive may be right answers"),
        ("wrong-pairs", "items were below their negatives at every encounter"),
        ("memorised", "R@1 on val does not fall"),
    ],
)
def test_each_tab_answers_its_question(
    open_page: Callable[..., Any], logs: Path, tab: str, sentence: str
) -> None:
    page = open_page(PAGE, logs, run="whole", tab=tab)
    assert not page.failures
    assert sentence in page.text
    assert page.app.query_params["tab"] == tab


def test_tabs_switch(opened: Any) -> None:
    tabs = next(group for group in opened.app.get("button_group") if group.key == "tab")
    tabs.set_value("persistent").run()
    assert not opened.failures
    assert "of 4 snapshots" in opened.text
    assert opened.app.query_params["tab"] == "persistent"


def test_links_of_the_sheet_open_an_item_and_keep_the_rest(opened: Any) -> None:
    control(opened, "direction").set_value("i2t").run()
    links = [tag[1]["href"] for tag in Tags(opened.markup).found if tag[0] == "a"]
    assert len(links) > 24
    asked = parse_qs(str(links[0]).removeprefix("?"))
    assert asked["run"] == ["whole"]
    assert asked["direction"] == ["i2t"]
    assert asked["item"][0].isdecimal()


def test_item_shows_its_history_and_leads_back(open_page: Callable[..., Any], logs: Path) -> None:
    page = open_page(PAGE, logs, run="whole", item="4")
    assert not page.failures
    assert "“thing 4, caption 0 ✓ <b>”: i2t margin" in page.text
    assert "below 0 at" in page.text
    chart = page.charts()["Margin over the epochs, cosine"]
    assert {trace["name"] for trace in chart["data"]} == {
        f"{d}, {source}" for d in ("i2t", "t2i") for source in ("batches", "pool")
    }
    assert page.markup.count("<tr>") == 2 * 4
    next(button for button in page.app.button if button.key == "back-to-sheet").click().run()
    assert "item" not in page.app.query_params
    assert entries(page) == 24


@pytest.mark.parametrize("item", ["999", "-1", "x", "9" * 30])
def test_an_unknown_item_is_no_error(open_page: Callable[..., Any], logs: Path, item: str) -> None:
    page = open_page(PAGE, logs, run="whole", item=item)
    assert not page.failures
    if item == "999":
        assert "Too little data yet: “item 999” has not met a negative." in page.text
    else:
        assert entries(page) == 24


@pytest.mark.parametrize("tab", ["hardest", "persistent", "false-negatives"])
def test_hostile_texts_stay_text(open_page: Callable[..., Any], logs: Path, tab: str) -> None:
    page = open_page(PAGE, logs, run="hostile", tab=tab, epoch="all")
    assert not page.failures
    tags = Tags(sheet(page))
    assert {tag for tag, _ in tags.found} <= {
        "div",
        "article",
        "header",
        "b",
        "span",
        "a",
        "img",
        "q",
        "ul",
        "li",
    }
    assert not any(name.startswith("on") for _, attributes in tags.found for name in attributes)
    assert all(str(a["href"]).startswith("?") for tag, a in tags.found if tag == "a")
    assert all(str(a["src"]).startswith("data:image/webp;base64,") for tag, a in tags.found if tag == "img")
    words = set(tags.words)
    assert "one two # three" in words
    assert HOSTILE[0] in words
    assert "x" * 500 in words


def test_hostile_item_stays_text(open_page: Callable[..., Any], logs: Path) -> None:
    page = open_page(PAGE, logs, run="hostile", item="6")
    assert not page.failures
    assert "<script>" not in page.markup
    assert "<img src=x" not in page.markup
    texts = [
        text for trace in page.charts()["Margin over the epochs, cosine"]["data"] for text in trace["text"]
    ]
    assert not any("<" in text for text in texts)


@pytest.mark.parametrize(
    ("run", "tab", "says"),
    [
        ("no-pairs", "hardest", "This run has no pairs table."),
        ("no-pairs", "persistent", "probe queries have kept"),
        ("no-neighbors", "persistent", "This run has no neighbors table."),
        ("no-neighbors", "hardest", "lie below their hardest negative"),
        ("no-evals", "memorised", "This run has no evals table."),
        ("no-items", "hardest", "log them with RunLogger.log_items"),
        ("no-items", "false-negatives", "may be right answers"),
        ("one-epoch", "persistent", "Too little data yet: 1 snapshot, 3 needed"),
        ("one-epoch", "memorised", "Too little data yet: 1 evaluation on val"),
        ("foreign", "hardest", "lie below their hardest negative"),
    ],
)
def test_what_is_missing_is_said(
    open_page: Callable[..., Any], logs: Path, run: str, tab: str, says: str
) -> None:
    page = open_page(PAGE, logs, run=run, tab=tab)
    assert not page.failures
    assert says in page.text
    if "has no" in says:
        assert "log_" in page.app.code[0].value


@pytest.mark.parametrize("run", ["no-pairs", "no-neighbors", "no-items", "foreign", "one-epoch"])
def test_item_page_without_some_tables(open_page: Callable[..., Any], logs: Path, run: str) -> None:
    page = open_page(PAGE, logs, run=run, item="4")
    assert not page.failures
    assert "Margin over the epochs, cosine" in page.text


def tile(item_id: int, caption: str, **changes: Any) -> Tile:
    return Tile(item_id=item_id, caption=caption, thumbnail=b"webp", **changes)


def test_sheet_of_a_caption_query_is_this_markup() -> None:
    entry = Entry(
        direction="t2i", color="#d55e00", fact="twice", own=tile(1, "a"), more=2, asks_in_words=True,
        wrong=[tile(2, "b", number="−0.10", hover=["margin −0.100"])],
    )  # fmt: skip
    image = '<img class="uw-thumb" alt="{}" src="data:image/webp;base64,d2VicA==">'
    assert sheet_html([entry], "?item={}".format) == (
        '<div class="uw-sheet"><article class="uw-entry"><header><b style="--uw-direction:#d55e00">t2i</b>'
        '<span class="uw-muted">twice</span></header>'
        '<a href="?item=1" target="_self" title="a"><q class="uw-query uw-lines" dir="auto">a</q></a>'
        '<ul class="uw-answers">'
        f'<li class="right"><a href="?item=1" target="_self" title="a">{image.format("a")}</a></li>'
        f'<li><a href="?item=2" target="_self" title="b\nmargin −0.100">{image.format("b")}'
        '<span class="uw-cosine">−0.10</span></a></li>'
        '<li class="uw-muted">+2</li></ul></article></div>'
    )


def test_picture_that_is_missing_is_named_in_words() -> None:
    bare = Tile(item_id=3, caption="item 3", thumbnail=None)
    assert '<span class="uw-cut" dir="auto">item 3</span>' in rows_html([("epoch 0", [bare])], str)


def test_short_rows_are_filled_up() -> None:
    markup = rows_html([("a", [tile(1, "x"), tile(2, "y")]), ("b", [tile(3, "z")])], str, least=3)
    assert markup.count("<td></td>") == 1 + 2


def test_long_captions_are_cut_in_the_hover_only() -> None:
    entry = Entry(
        direction="i2t", color="red", fact="", own=tile(1, "x" * 500), wrong=[], more=0, asks_in_words=False
    )
    tags = Tags(sheet_html([entry], str))
    assert max(len(str(a.get("title", ""))) for _, a in tags.found) == 300
    assert "x" * 500 in tags.words


def test_item_that_was_not_logged_is_told_from_items_that_were_not(
    open_page: Callable[..., Any], logs: Path
) -> None:
    assert "hold none of this number" in open_page(PAGE, logs, run="whole", item="999").text
    assert "No items were logged" in open_page(PAGE, logs, run="no-items", item="4").text
