"""Tables of texts as LaTeX and Markdown; whatever a run is called stays text."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

Rows = Sequence[Sequence[str]]

_LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    **{mark: f"\\{mark}" for mark in "&%$#_"},
    "−": "$-$",
    "±": r"$\pm$",
    "→": r"$\rightarrow$",
    "∞": r"$\infty$",
    "–": "--",
}
_MARKDOWN = re.compile(r"([\\`*_{}\[\]()#+!|~<>$&])")


def to_latex(rows: Rows) -> str:
    r"""A booktabs table, numbers right-aligned; needs ``\usepackage{booktabs}``.

    Args:
        rows: texts, row by row, the first one being the heading.

    Example:
        >>> print(to_latex([["run", "R@1"], ["a_b", "33.1 ± 0.2"]]))
        \begin{tabular}{lr}
        \toprule
        run & R@1 \\
        \midrule
        a\_b & 33.1 $\pm$ 0.2 \\
        \bottomrule
        \end{tabular}
    """
    lines = [" & ".join(escape_latex(cell) for cell in row) + r" \\" for row in rows]
    columns = "l" + "r" * (len(rows[0]) - 1)
    head, *body = lines
    parts = [rf"\begin{{tabular}}{{{columns}}}", r"\toprule", head, r"\midrule", *body, r"\bottomrule"]
    return "\n".join([*parts, r"\end{tabular}"])


def escape_latex(text: str) -> str:
    r"""Text that LaTeX sets literally, on one line.

    Example:
        >>> escape_latex(r"50% \input{x}")
        '50\\% \\textbackslash{}input\\{x\\}'
    """
    escaped = "".join(_LATEX.get(letter, letter) for letter in _one_line(text))
    # at the start of a row a bracket would be an argument of the line break before
    return f"{{}}{escaped}" if escaped.startswith(("[", "*")) else escaped


def to_markdown(rows: Rows) -> str:
    r"""A Markdown table, numbers right-aligned.

    Args:
        rows: as for ``to_latex``.

    Example:
        >>> print(to_markdown([["run", "R@1"], ["a|b", "33.1"]]))
        | run | R@1 |
        | :-- | --: |
        | a\|b | 33.1 |
    """
    rule = ["--:" if place else ":--" for place in range(len(rows[0]))]
    lines = [[escape_markdown(cell) for cell in row] for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in [lines[0], rule, *lines[1:]])


def escape_markdown(text: str) -> str:
    r"""Text that Markdown shows literally, on one line.

    Example:
        >>> escape_markdown("a|b *c*")
        'a\\|b \\*c\\*'
    """
    return _MARKDOWN.sub(r"\\\1", _one_line(text))


def _one_line(text: str) -> str:
    """Without line breaks, control characters and marks that turn the direction of what follows."""
    spaced = " ".join(text.split())
    return "".join(letter for letter in spaced if unicodedata.category(letter) not in ("Cc", "Cf"))
