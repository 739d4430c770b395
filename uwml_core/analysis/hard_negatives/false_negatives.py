"""Negatives that may be right answers: above the positive, and alike or far above."""

from __future__ import annotations

import numpy as np
import pandas as pd

from uwml_core.analysis.hard_negatives.catalogue import caption_texts
from uwml_core.analysis.hard_negatives.likeness import picture_likeness, text_likeness
from uwml_core.analysis.text import listed
from uwml_core.i18n import _

ALIKE_TEXT = 0.8
ALIKE_PICTURE = 0.97
# Decoding two pictures costs about half a millisecond.
MOST_COMPARED = 1_000
REASONS = ("far_above", "caption", "picture")


def to_compare(confusions: pd.DataFrame, most: int = MOST_COMPARED) -> pd.DataFrame:
    """Confusions whose captions and pictures are worth comparing.

    Args:
        confusions: frame of ``confusions``.
        most: as many of those whose mean margin is < 0: the newest, of equal ones the lowest margins.
    """
    rows = confusions[confusions["margin"] < 0]
    return rows.sort_values(["last_epoch", "margin"], ascending=[False, True], kind="stable").head(most)


def suspected_false_negatives(
    confusions: pd.DataFrame, items: pd.DataFrame, most: int = MOST_COMPARED
) -> pd.DataFrame:
    """Negatives that lie above the positive and look like it.

    Args:
        confusions: frame of ``confusions``.
        items: frame of ``catalogue``, with the pictures of those that ``to_compare`` names.
        most: as for ``to_compare``.

    Returns:
        The confusions whose mean margin is < 0 and that have a reason: ``far_above`` (more than 0.1 above
        the positive in at least half of the encounters), ``caption`` (trigram likeness of the two captions
        >= 0.8), ``picture`` (likeness of the two pictures >= 0.97). Further columns: ``text_likeness``,
        ``picture_likeness`` (NaN where unknown), ``likeness`` (the larger of the two), and ``reason``, the
        names joined by a comma. The most alike come first.
    """
    rows = to_compare(confusions, most)
    own = caption_texts(items, rows["item_id"].tolist(), rows["caption"].tolist())
    other = caption_texts(items, rows["negative_item_id"].tolist(), rows["negative_caption"].tolist())
    known = rows["item_id"].isin(items.index) & rows["negative_item_id"].isin(items.index)
    text = np.array([text_likeness(a, b) for a, b in zip(own, other, strict=True)])
    rows = rows.assign(
        text_likeness=np.where(known, text, np.nan) if len(rows) else np.empty(0),
        picture_likeness=_pictures(rows, items),
    )
    rows["likeness"] = rows[["text_likeness", "picture_likeness"]].max(axis=1)
    flags = pd.DataFrame(
        {
            "far_above": 2 * rows["above"] >= rows["n"],
            "caption": rows["text_likeness"] >= ALIKE_TEXT,
            "picture": rows["picture_likeness"] >= ALIKE_PICTURE,
        }
    )
    rows["reason"] = [",".join(name for name in REASONS if row[name]) for row in flags.to_dict("records")]
    rows = rows[rows["reason"] != ""]
    rows = rows.sort_values(["likeness", "margin"], ascending=[False, True], kind="stable")
    return rows.reset_index(drop=True)


def _pictures(rows: pd.DataFrame, items: pd.DataFrame) -> np.ndarray:
    pictures = items["thumbnail"].to_dict()
    pairs = zip(rows["item_id"], rows["negative_item_id"], strict=True)
    return np.array([picture_likeness(pictures.get(a), pictures.get(b)) for a, b in pairs], dtype=float)


def reason_text(reason: str) -> str:
    """Why a negative is suspected, in the reader's language."""
    names = {
        "far_above": _("over 0.1 above"),
        "caption": _("near-duplicate caption"),
        "picture": _("near-duplicate picture"),
    }
    return listed(names.get(name, name) for name in reason.split(",") if name)


def false_negatives_headline(confusions: pd.DataFrame, found: pd.DataFrame, when: str) -> str:
    """One sentence: how many of the negatives above their positive are suspected to be right answers.

    Args:
        confusions: frame of ``confusions``.
        found: frame of ``suspected_false_negatives``.
        when: what the rows belong to, such as "epoch 3".
    """
    above = int((confusions["margin"] < 0).sum())
    if confusions.empty:
        return _("Too little data yet: no pair with a negative has been logged.")
    alike = int(found["reason"].str.contains("caption|picture").sum()) if len(found) else 0
    text = _(
        "In {when}, {found} of {above} negatives above their positive may be right answers; {alike} have a "
        "near-duplicate caption or picture."
    )
    return text.format(when=when, found=f"{len(found):,}", above=f"{above:,}", alike=f"{alike:,}")
