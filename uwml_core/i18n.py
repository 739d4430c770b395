"""Translation of user-visible text; English is the source language."""

from __future__ import annotations

import gettext as _gettext
from contextvars import ContextVar
from functools import lru_cache
from pathlib import Path

LOCALE_DIR = Path(__file__).parent / "locale"
LANGUAGES = {"en": "English", "zh": "中文"}

_language: ContextVar[str] = ContextVar("uwml_language", default="en")


def set_language(language: str) -> None:
    """Choose the language of this thread of execution.

    Raises:
        ValueError: if the language has no catalogue.
    """
    if language not in LANGUAGES:
        raise ValueError(f"language={language!r} is unknown; choose one of {', '.join(LANGUAGES)}")
    _language.set(language)


def language() -> str:
    """Language of this thread of execution; whatever caches a translated text needs it in its key."""
    return _language.get()


@lru_cache(maxsize=8)
def _catalogue(language: str) -> _gettext.NullTranslations:
    return _gettext.translation("uwml", LOCALE_DIR, languages=[language], fallback=language == "en")


def _(message: str) -> str:
    """Translate one message; the English text is its key and must be written out."""
    return translate(message)


def ngettext(singular: str, plural: str, n: int) -> str:
    """Translate a message that depends on a count; both texts must be written out."""
    return _catalogue(_language.get()).ngettext(singular, plural, n)


def mark(message: str) -> str:
    """Mark a text that ``translate`` translates later, such as that of a constant; returns it as it is."""
    return message


def translate(message: str) -> str:
    """Translate a text that was marked where it is written out.

    Example:
        >>> translate(mark("Training"))
        'Training'
    """
    return _catalogue(_language.get()).gettext(message)
