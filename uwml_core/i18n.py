"""Translation of user-visible text; English is the source language."""

from __future__ import annotations

import gettext as _gettext
from contextvars import ContextVar
from functools import lru_cache
from pathlib import Path

LOCALE_DIR = Path(__file__).parent / "locale"
LANGUAGES = {"en": "English"}

_language: ContextVar[str] = ContextVar("uwml_language", default="en")


def set_language(language: str) -> None:
    """Choose the language of this thread of execution.

    Raises:
        ValueError: if the language has no catalogue.
    """
    if language not in LANGUAGES:
        raise ValueError(f"language={language!r} is unknown; choose one of {', '.join(LANGUAGES)}")
    _language.set(language)


@lru_cache(maxsize=8)
def _catalogue(language: str) -> _gettext.NullTranslations:
    return _gettext.translation("uwml", LOCALE_DIR, languages=[language], fallback=language == "en")


def _(message: str) -> str:
    """Translate one message; the English text is its key."""
    return _catalogue(_language.get()).gettext(message)


def ngettext(singular: str, plural: str, n: int) -> str:
    """Translate a message that depends on a count."""
    return _catalogue(_language.get()).ngettext(singular, plural, n)
