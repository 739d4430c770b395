"""What the sources must keep to so that a catalogue can hold every text."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from docs.translations import ROOT, messages, sources

TRANSLATING = {"_", "ngettext", "translate"}
VIEWER = (
    "app.py",
    "pages/",
    "uwml_core/ui/",
    "uwml_core/report/",
    "uwml_core/figures/",
    "uwml_core/analysis/",
)
# Widgets and helpers that show their first text, and the position of it where it is another.
SHOWING = {
    *("button", "toggle", "selectbox", "slider", "select_slider", "segmented_control", "pills", "radio"),
    *("text_input", "number_input", "checkbox", "multiselect", "download_button", "expander", "popover"),
    *("caption", "write", "markdown", "error", "warning", "info", "success", "toast", "spinner", "metric"),
    *("header", "subheader", "title", "text", "TextColumn", "NumberColumn", "DatetimeColumn", "link_button"),
    *("LineChartColumn", "choice", "headline", "note", "notes", "section", "guide", "card", "table_card"),
    *("key_numbers", "add_annotation", "begin_page", "begin_folder_page"),
}
TEXT_OF_ELEMENT = {"element": 1}
SHOWN_KEYWORDS = {"help", "placeholder", "label", "title", "title_text", "hovertemplate", "hovertext"}
SHOWN_IN_FIGURES = {*SHOWN_KEYWORDS, "name", "text"}
# The same in every language, or the value of something that is not shown.
NAMES = {"CSV", "UTC", "UWML", "Lens", "UMAP", "PCA", "YAML", "Python", "InfoNCE", "VSE", "nbsp", "fullData"}
NOT_TEXT = re.compile(r"<[^>]*>|%\{[^}]*\}|:material/\w+:|#[0-9a-f]{6}")
WORD = re.compile(r"[A-Za-z]{2,}")


def trees() -> Iterator[tuple[str, ast.Module]]:
    for path in sources():
        yield path.relative_to(ROOT).as_posix(), ast.parse(path.read_text(encoding="utf-8"))


def name_of(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def translations_in(node: ast.AST) -> list[ast.Call]:
    calls = [child for child in ast.walk(node) if isinstance(child, ast.Call)]
    return [call for call in calls if isinstance(call.func, ast.Name) and call.func.id in TRANSLATING]


@pytest.mark.parametrize(
    "text", ['_(f"{n} runs")', "_(name)", '_("a" + b)', '_("")', 'ngettext("one", many, n)']
)
def test_text_that_is_not_written_out_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"page\.py:1: .* needs its text as a literal"):
        list(messages(text, "page.py"))


def test_messages_are_found_wherever_they_stand() -> None:
    source = """
x = f"{_('in a string')} {ngettext('one', 'many', n)}"
y = _(
    "in "
    "two parts"
)
z = {"a": mark("marked")}
"""
    assert sorted(map(str, messages(source, "page.py"))) == sorted(
        ["in a string", str(("one", "many")), "in two parts", "marked"]
    )


def test_nothing_is_translated_before_there_is_a_visitor() -> None:
    early = []
    for name, tree in trees():
        if not name.startswith("uwml_core/"):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                parts: list[ast.AST] = [*node.decorator_list, *node.args.defaults]
                parts += [default for default in node.args.kw_defaults if default is not None]
            elif isinstance(node, ast.Module | ast.ClassDef):
                kinds = (ast.FunctionDef, ast.ClassDef)
                parts = [child for child in node.body if not isinstance(child, kinds)]
            else:
                continue
            early += [f"{name}:{call.lineno}" for part in parts for call in translations_in(part)]
    assert early == [], "translated when the module is imported, in whatever language that is"


def test_each_fragment_begins_by_asking_for_the_language() -> None:
    silent = []
    for name, tree in trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and any(
                "fragment" in ast.dump(d) for d in node.decorator_list
            ):
                first = ast.unparse(node.body[0])
                if first != "apply_language()":
                    silent.append(f"{name}:{node.lineno}")
    assert silent == [], "reruns in a thread of its own, which speaks English until it is told"


def test_what_is_cached_with_a_text_has_the_language_in_its_key() -> None:
    shared = []
    for name, tree in trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and any("cache" in ast.dump(d) for d in node.decorator_list):
                arguments = {argument.arg for argument in node.args.args}
                if translations_in(node) and "language" not in arguments:
                    shared.append(f"{name}:{node.lineno}")
    assert shared == [], "the first visitor's language would be everybody's"


def words(node: ast.AST | None) -> list[str]:
    """Words that a literal shows; those of an f-string's own text too."""
    parts = node.values if isinstance(node, ast.JoinedStr) else [node]
    text = " ".join(
        part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str)
    )
    return [word for word in WORD.findall(NOT_TEXT.sub(" ", text)) if word not in NAMES]


def shown_literals(tree: ast.Module, keywords: set[str] = SHOWN_KEYWORDS) -> Iterator[ast.expr]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Dict) and keywords is SHOWN_IN_FIGURES:
            for key, value in zip(node.keys, node.values, strict=True):
                if isinstance(key, ast.Constant) and key.value in keywords:
                    yield value
        if not isinstance(node, ast.Call):
            continue
        called = name_of(node.func)
        if called in SHOWING or called in TEXT_OF_ELEMENT:
            place = TEXT_OF_ELEMENT.get(called, 0)
            yield from node.args[place : place + 1]
        for keyword in node.keywords:
            if keyword.arg in keywords:
                yield keyword.value


def test_no_text_is_shown_past_the_catalogue() -> None:
    untold = []
    for name, tree in trees():
        if not name.startswith(VIEWER):
            continue
        keywords = SHOWN_IN_FIGURES if "/figures/" in name else SHOWN_KEYWORDS
        shown = [node for node in shown_literals(tree, keywords) if words(node)]
        untold += [f"{name}:{node.lineno}: {ast.unparse(node)}" for node in shown]
    assert untold == [], "wrap it in _()"


def test_the_check_for_shown_texts_sees_what_it_should() -> None:
    def found(source: str) -> int:
        return sum(bool(words(node)) for node in shown_literals(ast.parse(source), SHOWN_IN_FIGURES))

    assert found('st.button("Press", help="Do it")') == 2
    assert found('element("p", f"Item {n}", "uw-note")') == 1
    assert found('st.button(_("Press"), key="press", icon=":material/home:")') == 0
    assert found('{"type": "scatter", "name": "Loss", "mode": "lines"}') == 1
    assert found('go.Scatter(hovertemplate=f"<b>{d}</b> %{{y:.3f}}<extra></extra>", name=_("x"))') == 0


def test_sources_exist() -> None:
    assert Path(ROOT, "app.py") in set(sources())
    assert len(list(sources())) > 50
