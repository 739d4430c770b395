"""The catalogues are whole, say the same in each language, and are what the script would write."""

from __future__ import annotations

import re
from typing import Any

import pytest

from docs.translations import TEMPLATE, catalogue_files, extract, merge, mo_bytes, po_bytes, read
from uwml_core.i18n import LANGUAGES

HOW_TO = "run make translations and translate what is new in uwml.po"
PLACEHOLDER = re.compile(r"%?\{[^{}]*\}|<[^<>]*>")
HAN = "[\u3400-\u9fff]"
HALF_WIDTH_AFTER_HAN = re.compile(f"{HAN}[,;:!?]|{HAN}\\.(?!\\w)|[,;:!?]{HAN}")


def texts(message: Any) -> tuple[str, ...]:
    return message.string if isinstance(message.string, tuple) else (message.string,)


def source(message: Any) -> str:
    """The English text; of a plural message the form that names the number."""
    return str(message.id[1] if isinstance(message.id, tuple) else message.id)


@pytest.fixture(params=sorted(catalogue_files()))
def language(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def messages(language: str) -> list[Any]:
    return [message for message in read(catalogue_files()[language], language) if message.id]


def test_each_language_of_the_switch_has_a_catalogue() -> None:
    assert set(catalogue_files()) == set(LANGUAGES) - {"en"}


def test_template_holds_the_messages_of_the_sources() -> None:
    assert TEMPLATE.read_bytes() == po_bytes(extract()), HOW_TO


def test_every_message_is_translated_and_none_is_left_over(language: str, messages: list[Any]) -> None:
    known = {source(message) for message in messages}
    wanted = {source(message) for message in extract() if message.id}
    assert known - wanted == set(), f"no longer used; {HOW_TO}"
    assert wanted - known == set(), f"not in the catalogue; {HOW_TO}"
    assert not read(catalogue_files()[language], language).obsolete
    assert [source(message) for message in messages if not all(texts(message))] == [], HOW_TO


def test_no_translation_is_a_guess(messages: list[Any]) -> None:
    assert [source(message) for message in messages if message.fuzzy] == []


def test_plural_forms_are_those_of_the_language(language: str, messages: list[Any]) -> None:
    forms = read(catalogue_files()[language], language).num_plurals
    for message in messages:
        assert isinstance(message.id, tuple) == isinstance(message.string, tuple), source(message)
        if isinstance(message.id, tuple):
            assert len(message.string) == forms, source(message)


def test_placeholders_and_markup_are_the_same(messages: list[Any]) -> None:
    for message in messages:
        wanted = sorted(PLACEHOLDER.findall(source(message)))
        for text in texts(message):
            assert sorted(PLACEHOLDER.findall(text)) == wanted, source(message)


def test_nothing_stands_at_the_edge_that_is_not_in_the_source(messages: list[Any]) -> None:
    for message in messages:
        for text in texts(message):
            assert text == text.strip() or source(message) != source(message).strip(), repr(text)


def test_chinese_punctuation_is_full_width() -> None:
    for message in read(catalogue_files()["zh"], "zh"):
        if message.id:
            for text in texts(message):
                bare = PLACEHOLDER.sub("", text)
                assert not HALF_WIDTH_AFTER_HAN.search(bare), text


def test_files_are_what_the_script_writes(language: str) -> None:
    path = catalogue_files()[language]
    merged = merge(read(path, language), extract())
    assert path.read_bytes() == po_bytes(merged), HOW_TO
    assert path.with_suffix(".mo").read_bytes() == mo_bytes(merged), HOW_TO
    for file in (TEMPLATE, path):
        assert not re.search(rb"^#:|Date|Generated-By", file.read_bytes(), re.MULTILINE)
