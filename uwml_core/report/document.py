"""The file itself: head with its policy, contents, sections, script."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from uwml_core.i18n import _, language, ngettext
from uwml_core.report.about import facts
from uwml_core.report.content import Block, Chart, Section
from uwml_core.report.library import library_hash, packed_library, script_hash
from uwml_core.report.markup import Html, joined, notes, tag
from uwml_core.report.payload import packed_payload
from uwml_core.report.source import Source

_FOLDER = Path(__file__).parent


def document(source: Source, sections: Sequence[Section]) -> str:
    """The report as one HTML text that asks for nothing else.

    Args:
        source: the run.
        sections: in order.
    """
    script = static("curve.js") + static("report.js")
    packed = (("library", packed_library()), ("payload", packed_payload(sections)))
    body = tag(
        "body",
        _header(source),
        tag(
            "div",
            _contents(sections),
            tag("main", _problem(), *map(_section, sections), id="top"),
            class_="page",
        ),
        _footer(),
        *(tag("script", Html(text), type="application/octet-stream", id=name) for name, text in packed),
        tag("script", Html(script)),
    )
    head = _head(source, script)
    return f"<!doctype html>\n{tag('html', head, body, lang=language(), data_theme='auto')}\n"


def static(name: str) -> str:
    """Text of a file of the package."""
    return (_FOLDER / name).read_text(encoding="utf-8")


def _head(source: Source, script: str) -> Html:
    scripts = f"{library_hash()} {script_hash(script.encode())}"
    policy = (
        f"default-src 'none'; script-src {scripts}; style-src 'unsafe-inline'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )
    return tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="referrer", content="no-referrer"),
        # or the browser asks the folder for one
        tag("link", rel="icon", href="data:,"),
        tag("title", f"{source.run.name} · UWML Lens"),
        tag("style", Html(static("report.css"))),
    )


def _header(source: Source) -> Html:
    names = {"auto": _("System"), "light": _("Light"), "dark": _("Dark")}
    choices = [
        tag("button", name, type="button", data_theme_choice=key, aria_pressed=str(key == "auto").lower())
        for key, name in names.items()
    ]
    themes = tag("div", *choices, role="group", aria_label=_("Colors"), class_="themes")
    title = tag("h1", source.run.name, dir="auto")
    return tag("header", tag("div", title, themes, class_="top"), facts(source), class_="head")


def _contents(sections: Sequence[Section]) -> Html:
    links = [tag("li", tag("a", section.title, href=f"#{section.key}")) for section in sections]
    return tag("nav", tag("h2", _("Contents")), tag("ul", *links), aria_label=_("Contents"))


def _problem() -> Html:
    text = _(
        "This browser cannot unpack the charts (it lacks DecompressionStream). Headlines, tables and "
        "pictures are here; open the file in a current Chrome, Edge, Firefox or Safari to see the charts."
    )
    return joined(
        [
            tag("p", text, id="problem", role="alert", hidden=True),
            tag("noscript", tag("p", _("The charts need JavaScript; everything else is here."))),
        ]
    )


def _section(section: Section) -> Html:
    head = [tag("h2", section.title), tag("span", section.question, class_="note")]
    sentence = [tag("p", section.headline, class_="headline")] if section.headline else []
    parts = [tag("div", *head, class_="title"), *sentence]
    blocks = tag("div", *(_block(block) for block in section.blocks), class_="blocks")
    return tag("section", *parts, blocks, id=section.key)


def _block(block: Block) -> Html:
    return _figure(block) if isinstance(block, Chart) else block


def _figure(chart: Chart) -> Html:
    small = [tag("small", chart.unit)] if chart.unit else []
    count = len(chart.frame)
    button = tag(
        "button", "CSV", type="button", data_csv=chart.key,
        title=_("Download the table behind this chart"), aria_label=f"CSV: {chart.title}",
    )  # fmt: skip
    head = tag("figcaption", tag("h3", chart.title, " ", *small), button)
    words = ngettext(
        "Chart: {title}, {rows} row in its table", "Chart: {title}, {rows} rows in its table", count
    )
    words = words.format(title=chart.title, rows=f"{count:,}")
    plot = tag(
        "div", role="img", aria_label=words, class_="plot", data_chart=chart.key,
        style=f"height:{chart.height}px",
    )  # fmt: skip
    body = plot if len(chart.frame) else notes(_("Nothing logged for this chart yet."))
    return tag("figure", head, body, notes(*chart.notes), class_="block wide" if chart.wide else "block")


def _footer() -> Html:
    made = _("Made by UWML Lens on {day}, UTC. The file loads nothing from anywhere.")
    return tag("footer", tag("p", made.format(day=f"{datetime.now(UTC):%Y-%m-%d %H:%M}"), class_="note"))
