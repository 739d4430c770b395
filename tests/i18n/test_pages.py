"""Each page speaks the visitor's language, whoever came before, and keeps what was chosen."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from docs.translations import catalogue_files, read
from tests.support.synthetic import make_run

PAGES = (
    "pages/watch/runs.py",
    "pages/watch/training.py",
    "pages/explain/weight_curve.py",
    "pages/explain/modal_balance.py",
    "pages/explain/hard_negatives.py",
    "pages/explain/embedding_map.py",
    "pages/share/share.py",
    "pages/decide/compare.py",
)
HAN = re.compile("[\u3400-\u9fff]")
# What an element shows, by the names of its fields.
SHOWN = {"label", "help", "placeholder", "options", "body", "value", "columns", "title", "text", "name"}
SHOWN_IN_FIGURES = {"text", "name", "hovertemplate", "hovertext", "ticktext"}


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("logs")
    make_run(folder, run_id="a", steps=60, epochs=3)
    return folder


def strings(message: Any, field: str = "") -> Iterator[str]:
    """Texts in a message to the browser that a visitor sees."""
    if isinstance(message, str):
        if field in SHOWN:
            yield message
    elif hasattr(message, "ListFields"):
        for descriptor, value in message.ListFields():
            yield from strings(value, descriptor.name)
    elif hasattr(message, "__iter__") and not isinstance(message, bytes):
        for value in message:
            yield from strings(value, field)


def figure_strings(part: Any, field: str = "") -> Iterator[str]:
    if isinstance(part, str):
        if field in SHOWN_IN_FIGURES:
            yield part
    elif isinstance(part, dict):
        for name, value in part.items():
            yield from figure_strings(value, name)
    elif isinstance(part, list):
        for value in part:
            yield from figure_strings(value, field)


def shown(opened: Any) -> list[str]:
    """Every text on a page, its charts and the labels of its columns included."""
    found: list[str] = []
    for element in opened.app._tree:
        proto = getattr(element, "proto", None)
        if proto is not None:
            found += strings(proto)
    for title, figure in opened.charts().items():
        found += [title, *figure_strings(figure)]
    return [
        html.unescape(re.sub("<style>.*?</style>|<[^>]*>", "\n", text, flags=re.DOTALL)) for text in found
    ]


def english() -> list[tuple[str, re.Pattern[str]]]:
    """English messages that do not read the same in Chinese, as patterns."""
    patterns = []
    for message in read(catalogue_files()["zh"], "zh"):
        for text in message.id if isinstance(message.id, tuple) else (message.id,):
            words = re.findall("[A-Za-z]{2,}", re.sub(r"%?\{[^}]*\}|<[^>]*>", "", text))
            if not words or text in (message.string, *message.string):
                continue
            parts = re.split(r"%?\{[^}]*\}", re.sub("<[^>]*>", "\n", text))
            pattern = ".{0,60}?".join(re.escape(part) for part in parts)
            # one word may be part of anything: it counts where it is all of a line
            patterns.append((text, re.compile(pattern if len(words) > 1 else rf"(?m)^\s*{pattern}\s*$")))
    return patterns


def english_on(opened: Any) -> list[str]:
    texts = "\n".join(shown(opened))
    return [text for text, pattern in english() if pattern.search(texts)]


@pytest.mark.parametrize("page", PAGES)
def test_page_speaks_one_language_whoever_came_before(
    open_page: Callable[..., Any], logs: Path, page: str
) -> None:
    before = open_page(page, logs)
    assert not before.failures
    assert len(english_on(before)) > 3
    opened = open_page(page, logs, lang="zh")
    assert not opened.failures
    assert english_on(opened) == []
    assert len(HAN.findall("".join(shown(opened)))) > 100
    after = open_page(page, logs)
    spoken = [text for text in shown(after) if HAN.search(text) and text != "中文"]
    assert spoken == []


def test_item_page_speaks_chinese(open_page: Callable[..., Any], logs: Path) -> None:
    opened = open_page("pages/explain/hard_negatives.py", logs, lang="zh", item="1")
    assert not opened.failures
    assert english_on(opened) == []


def test_modalities_are_named_in_chinese(open_page: Callable[..., Any], logs: Path) -> None:
    assert "图像（圆点）与文本（菱形）" in open_page("pages/explain/embedding_map.py", logs, lang="zh").text
    item = open_page("pages/explain/hard_negatives.py", logs, lang="zh", item="1")
    assert "离其图像最近的错误文本" in item.text


@pytest.mark.parametrize("page", PAGES)
def test_page_without_a_run_speaks_chinese(open_page: Callable[..., Any], tmp_path: Path, page: str) -> None:
    opened = open_page(page, tmp_path, lang="zh")
    assert not opened.failures
    assert english_on(opened) == []


def test_switch_writes_the_language_to_the_address_and_keeps_what_was_chosen(
    open_page: Callable[..., Any], logs: Path
) -> None:
    opened = open_page("pages/explain/weight_curve.py", logs, epoch="1")
    opened.app.slider(key="center").set_value(0.4).run()
    opened.app.selectbox(key="curve").set_value("hard").run()
    opened.app.selectbox(key="lang").set_value("zh").run()
    assert not opened.failures
    assert opened.app.query_params["lang"] == "zh"
    assert english_on(opened) == []
    assert opened.app.selectbox(key="epoch").value == "1"
    assert opened.app.slider(key="center").value == 0.4
    assert opened.app.selectbox(key="curve").value == "hard"
    opened.app.selectbox(key="lang").set_value("en").run()
    assert "lang" not in opened.app.query_params
    assert opened.app.selectbox(key="epoch").value == "1"


def test_option_that_a_late_browser_names_in_the_language_before_stays_chosen(
    open_page: Callable[..., Any], logs: Path
) -> None:
    opened = open_page("pages/explain/weight_curve.py", logs, epoch="1")
    opened.app.selectbox(key="lang").set_value("zh").run()
    for _tick in range(2):
        late = opened.app.selectbox(key="epoch")
        late.options = ["Epoch 1"]
        late.set_value("Epoch 1").run()
        assert not opened.failures
        assert opened.app.selectbox(key="epoch").value == "1"
        assert opened.app.query_params["epoch"] == "1"
    opened.app.selectbox(key="epoch").set_value("0").run()
    assert opened.app.query_params["epoch"] == "0"


def test_option_that_another_run_lacks_gives_way_to_the_default(
    open_page: Callable[..., Any], tmp_path: Path
) -> None:
    make_run(tmp_path, run_id="long", steps=12, epochs=2)
    make_run(tmp_path, run_id="short", steps=6, epochs=1)
    opened = open_page("pages/explain/weight_curve.py", tmp_path, run="long", epoch="1")
    assert opened.app.selectbox(key="epoch").value == "1"
    opened.app.selectbox(key="run").set_value("short").run()
    assert not opened.failures
    assert opened.app.selectbox(key="epoch").value == "latest"
    assert "epoch" not in opened.app.query_params


def test_language_survives_a_change_of_page(open_page: Callable[..., Any], logs: Path) -> None:
    opened = open_page("pages/watch/runs.py", logs, lang="zh")
    opened.app.switch_page("pages/watch/training.py").run()
    assert english_on(opened) == []


def test_unknown_language_in_the_address_is_english(open_page: Callable[..., Any], logs: Path) -> None:
    opened = open_page("pages/watch/runs.py", logs, lang="tlh")
    assert not opened.failures
    assert not [text for text in shown(opened) if HAN.search(text) and text != "中文"]


def test_figures_are_sent_in_the_visitors_language(open_page: Callable[..., Any], logs: Path) -> None:
    charts = open_page("pages/watch/training.py", logs, lang="zh").charts()
    assert all(HAN.search(title) for title in charts)
    for figure in charts.values():
        templates = re.findall(r'"hovertemplate": "([^"]*)"', json.dumps(figure, ensure_ascii=False))
        assert all(HAN.search(template) for template in templates)
