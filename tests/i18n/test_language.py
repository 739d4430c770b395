"""Choosing a language: per thread, with plurals, never by accident."""

from __future__ import annotations

import threading

import pytest

from uwml_core.analysis.text import clauses, listed, sentences
from uwml_core.i18n import LANGUAGES, _, language, mark, ngettext, set_language, translate


@pytest.fixture(autouse=True)
def _english_afterwards():
    yield
    set_language("en")


def test_source_text_is_english_without_a_choice() -> None:
    assert language() == "en"
    assert _("Training") == "Training"


def test_chosen_language_is_spoken() -> None:
    set_language("zh")
    assert _("Training") == "训练"
    assert translate(mark("Training")) == "训练"


def test_unknown_language_is_refused_with_those_there_are() -> None:
    with pytest.raises(ValueError, match="language='xx' is unknown; choose one of en, zh"):
        set_language("xx")
    assert language() == "en"


@pytest.mark.parametrize(
    ("spoken", "n", "expected"),
    [("en", 1, "1 step"), ("en", 2, "2 steps"), ("zh", 1, "1 步"), ("zh", 2, "2 步")],
)
def test_plural_follows_the_language(spoken: str, n: int, expected: str) -> None:
    set_language(spoken)
    assert ngettext("{n} step", "{n} steps", n).format(n=n) == expected


def test_sentences_and_lists_are_joined_as_the_language_joins_them() -> None:
    assert sentences(["A.", "", "B."]) == "A. B."
    assert (listed(["a", "b"]), clauses(["a", "", "b"]), sentences([])) == ("a, b", "a; b", "")
    set_language("zh")
    assert sentences(["甲。", "乙。"]) == "甲。乙。"
    assert (listed(["a", "b"]), clauses(["a", "b"])) == ("a，b", "a；b")


def test_two_visitors_at_once_do_not_mix() -> None:
    together, heard = threading.Barrier(len(LANGUAGES)), {}

    def visit(spoken: str) -> None:
        set_language(spoken)
        texts = set()
        for _turn in range(200):
            together.wait(10)
            texts.add(_("Training"))
        heard[spoken] = texts

    threads = [threading.Thread(target=visit, args=(spoken,)) for spoken in LANGUAGES]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert heard == {"en": {"Training"}, "zh": {"训练"}}
    assert language() == "en"
