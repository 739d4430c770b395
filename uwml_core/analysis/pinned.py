"""Notes that are pinned to a step, as marks on the time axis of their page's chart."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd

from uwml_core.runlog.notes import Note


def pinned_steps(notes: Iterable[Note], page: str) -> pd.DataFrame:
    """Notes of a page that are pinned to a step: ``[step, text, count]``, a row per step, ascending.

    Args:
        notes: of a run.
        page: name of the page, such as ``training``.

    Returns:
        Several notes at one step are one row, their texts in the order given, an empty line between them.
    """
    texts: dict[int, list[str]] = {}
    for note in notes:
        if note.page == page and note.anchor.kind == "step":
            texts.setdefault(int(note.anchor.value), []).append(note.text.strip())
    rows = [(step, "\n\n".join(found), len(found)) for step, found in sorted(texts.items())]
    return pd.DataFrame(rows, columns=["step", "text", "count"])
