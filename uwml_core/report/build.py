"""Build a report of a run and write it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from uwml_core.i18n import LANGUAGES, _, language, mark, set_language, translate
from uwml_core.report.about import configuration_section, health_section, notes_section
from uwml_core.report.content import Section
from uwml_core.report.document import document, static
from uwml_core.report.embedding_map import embedding_map_section
from uwml_core.report.hard_negatives import hard_negatives_section
from uwml_core.report.library import packed_library
from uwml_core.report.modal_balance import modal_balance_section
from uwml_core.report.source import Source
from uwml_core.report.training import training_section
from uwml_core.report.weight_curve import weight_curve_section
from uwml_core.runlog.reader import Run

Progress = Callable[[int, int, str], None]


@dataclass(frozen=True)
class Page:
    """A page that a report can hold: its title, the tables it needs, what makes it."""

    title: str
    needs: tuple[str, ...]
    make: Callable[[Source], Section]


PAGES: Mapping[str, Page] = {
    "training": Page(mark("Training"), ("steps",), training_section),
    "weight_curve": Page(mark("Weight curve"), ("steps", "pairs"), weight_curve_section),
    "modal_balance": Page(mark("Modal balance"), ("steps",), modal_balance_section),
    "hard_negatives": Page(mark("Hard negatives"), (), hard_negatives_section),
    "embedding_map": Page(mark("Embedding map"), ("snapshots",), embedding_map_section),
}


@dataclass(frozen=True, kw_only=True)
class ReportChoice:
    """What goes into a report.

    Attributes:
        pages: keys of ``PAGES``, in order.
        pictures: whether thumbnails go in; captions do in either case.
        language: one of ``i18n.LANGUAGES``.

    Raises:
        ValueError: naming what is unknown.
    """

    pages: Sequence[str] = tuple(PAGES)
    pictures: bool = True
    language: str = "en"

    def __post_init__(self) -> None:
        unknown = [page for page in self.pages if page not in PAGES]
        if unknown or not self.pages:
            raise ValueError(f"pages={list(self.pages)} is out of range; choose from {', '.join(PAGES)}")
        if self.language not in LANGUAGES:
            raise ValueError(f"language={self.language!r} is unknown; choose one of {', '.join(LANGUAGES)}")


def page_titles() -> dict[str, str]:
    """What the pages are called, by key."""
    return {key: translate(page.title) for key, page in PAGES.items()}


def build_report(run: Run, choice: ReportChoice, progress: Progress | None = None) -> str:
    """The report of a run as one HTML text.

    Args:
        run: the run, which may be running: its files of this moment are taken.
        choice: what goes in.
        progress: called with parts done, parts in all and the name of the next one.

    Raises:
        SchemaTooNew: if a newer version wrote the run.
    """
    run.refuse_newer()
    before = language()
    set_language(choice.language)
    try:
        source, tell = Source(run, pictures=choice.pictures), progress or _silent
        titles, sections = page_titles(), []
        for number, key in enumerate(choice.pages):
            tell(number, len(choice.pages) + 1, titles[key])
            sections.append(_made(source, key))
        tell(len(choice.pages), len(choice.pages) + 1, _("Packing"))
        noted = notes_section(source, titles)
        about = [configuration_section(source), health_section(source)]
        return document(source, [*sections, *([noted] if noted else []), *about])
    finally:
        set_language(before)


def _silent(done: int, total: int, name: str) -> None:
    """Tell nobody."""


def _made(source: Source, key: str) -> Section:
    page = PAGES[key]
    missing = source.lacks(*page.needs)
    if missing:
        text = _("This run has no {table} table.").format(table=missing)
        return Section(key=key, title=translate(page.title), headline=text)
    return page.make(source)


def estimate_size(run: Run, choice: ReportChoice) -> int:
    """About how many bytes a report will have, to be said before it is made."""
    fixed = len(packed_library()) + sum(len(static(name)) for name in ("report.css", "report.js", "curve.js"))
    return fixed + sum(_page_bytes(run, key, choice) for key in choice.pages) + _ABOUT_BYTES


# Measured, packed. Charts over steps are thinned, so that from some length on a run needs no more.
_ABOUT_BYTES = 4_000
_PAGE_BYTES = {
    "training": 5_000,
    "weight_curve": 85_000,
    "modal_balance": 5_000,
    "hard_negatives": 20_000,
    "embedding_map": 40_000,
}
_STEP_BYTES = {"training": 105, "modal_balance": 62}
_MOST_STEPS = 4_000
_PICTURES_BYTES = 200_000


def _page_bytes(run: Run, key: str, choice: ReportChoice) -> int:
    steps = min(max((part.last + 1 for part in run.parts("steps")), default=0), _MOST_STEPS)
    pictures = key == "hard_negatives" and choice.pictures and run.has("items")
    return _PAGE_BYTES[key] + _STEP_BYTES.get(key, 0) * steps + (_PICTURES_BYTES if pictures else 0)


def write_report(
    run: Run,
    target: str | os.PathLike[str],
    choice: ReportChoice | None = None,
    *,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> Path:
    """Write a report of a run; it is there whole or not at all.

    Args:
        run: the run.
        target: the file to make.
        choice: what goes in; everything when None.
        overwrite: whether a file of that name is replaced.
        progress: as for ``build_report``.

    Returns:
        The target.

    Raises:
        FileExistsError: if the target exists and is not to be replaced.
        OSError: if the target cannot be written.
        SchemaTooNew: if a newer version wrote the run.
    """
    path = Path(target)
    if path.exists() and not overwrite:
        raise FileExistsError(f"{str(path)!r} exists; choose another name or pass overwrite (--overwrite)")
    text = build_report(run, choice or ReportChoice(), progress)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        # what a log holds may be no text at all: half a character is written as a question mark
        temporary.write_bytes(text.encode("utf-8", "replace"))
        # unlike a rename, a link never replaces what came meanwhile
        (os.replace if overwrite else os.link)(temporary, path)
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()
    return path
