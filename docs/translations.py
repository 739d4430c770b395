"""Bring the catalogues of the app's texts up to date with the sources, and compile them.

usage: make translations

Extracts every ``_()``, ``mark()`` and ``ngettext()`` into uwml_core/locale/uwml.pot, merges it into each
language's uwml.po, where new messages wait for a translation and reworded ones are marked fuzzy, and compiles
uwml.mo. The files hold neither dates nor line numbers: they change where a message or a translation does.
A new language begins with an empty uwml.po in its folder and with its name in uwml_core.i18n.LANGUAGES.
"""

from __future__ import annotations

import ast
import io
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from babel.messages import Catalog
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po

ROOT = Path(__file__).resolve().parents[1]
LOCALE = ROOT / "uwml_core" / "locale"
TEMPLATE = LOCALE / "uwml.pot"
SOURCES = ("app.py", "pages/**/*.py", "uwml_core/**/*.py")
KEYWORDS = {"_": 1, "mark": 1, "ngettext": 2}

Message = str | tuple[str, str]


class PlainCatalog(Catalog):
    """A catalogue whose header says only what is needed to read it."""

    @property
    def mime_headers(self) -> list[tuple[str, str]]:
        headers = [("Content-Type", "text/plain; charset=utf-8"), ("Content-Transfer-Encoding", "8bit")]
        if self.locale is not None:
            headers += [("Language", str(self.locale)), ("Plural-Forms", self.plural_forms)]
        return headers


def sources() -> Iterator[Path]:
    """Files that may hold texts of the app, in the order of their names."""
    yield from sorted({path for pattern in SOURCES for path in ROOT.glob(pattern)})


def extract() -> PlainCatalog:
    """Template of all messages in the sources."""
    template = _empty(None)
    for path in sources():
        for message in messages(path.read_text(encoding="utf-8"), path.relative_to(ROOT).as_posix()):
            template.add(message).flags.discard("python-format")
    return template


def messages(source: str, name: str) -> Iterator[Message]:
    """Messages of one file; also those inside f-strings, whatever the version of Python.

    Raises:
        ValueError: where what is to be translated is not written out: no catalogue could know it.
    """
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            continue
        count = KEYWORDS.get(node.func.id)
        if count is None:
            continue
        constants = [text.value for text in node.args[:count] if isinstance(text, ast.Constant)]
        texts = [text for text in constants if isinstance(text, str) and text]
        if len(texts) < count:
            raise ValueError(f"{name}:{node.lineno}: {node.func.id}() needs its text as a literal, not empty")
        yield texts[0] if count == 1 else (texts[0], texts[1])


def catalogue_files() -> dict[str, Path]:
    """The catalogue of each language."""
    return {path.parents[1].name: path for path in sorted(LOCALE.glob("*/LC_MESSAGES/uwml.po"))}


def read(path: Path, language: str) -> Catalog:
    """A catalogue as it is on the disk."""
    return read_po(io.BytesIO(path.read_bytes()), locale=language)


def merge(known: Catalog, template: Catalog) -> PlainCatalog:
    """The template's messages with the translations that are known."""
    known.update(template, update_creation_date=False)
    return _plain(known, str(known.locale))


def po_bytes(catalog: Catalog) -> bytes:
    """A catalogue as a .po or .pot file."""
    file = io.BytesIO()
    write_po(file, catalog, width=100, no_location=True, sort_output=True, include_previous=True)
    return file.getvalue()


def mo_bytes(catalog: Catalog) -> bytes:
    """A catalogue as a .mo file; fuzzy and missing translations are left out."""
    file = io.BytesIO()
    write_mo(file, _plain(catalog, str(catalog.locale)))
    return file.getvalue()


def _empty(language: str | None) -> PlainCatalog:
    text = "Texts of UWML Lens; written by docs/translations.py, only msgstr is to be edited."
    return PlainCatalog(locale=language, header_comment=f"# {text}", fuzzy=False)


def _plain(catalog: Catalog, language: str) -> PlainCatalog:
    plain = _empty(language)
    for message in catalog:
        if message.id:
            # "% of" is not a printf format: placeholders are those of str.format
            flags = message.flags - {"python-format"}
            added = plain.add(message.id, message.string, flags=flags, previous_id=message.previous_id)
            added.flags.discard("python-format")
    return plain


def _report(language: str, catalog: Catalog) -> None:
    states = Counter(_state(message) for message in catalog if message.id)
    print(f"{language}: " + ", ".join(f"{states[state]} {state}" for state in sorted(states)))


def _state(message: Any) -> str:
    texts = message.string if isinstance(message.string, tuple) else (message.string,)
    return "fuzzy" if message.fuzzy else "translated" if all(texts) else "missing"


def main() -> None:
    template = extract()
    TEMPLATE.write_bytes(po_bytes(template))
    for language, path in catalogue_files().items():
        merged = merge(read(path, language), template)
        path.write_bytes(po_bytes(merged))
        path.with_suffix(".mo").write_bytes(mo_bytes(merged))
        _report(language, merged)


if __name__ == "__main__":
    main()
