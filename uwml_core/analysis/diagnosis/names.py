"""What the columns of evidence are called."""

from __future__ import annotations

from uwml_core.analysis.training import QUANTITIES, quantity_label
from uwml_core.i18n import _


def column_name(column: str) -> str:
    """Name of a column in the reader's language; one that has none is spelt out."""
    names = {
        "caption": _("Caption"),
        "direction": _("Direction"),
        "easy": _("Share of easy pairs"),
        "epoch": _("Epoch"),
        "items": _("Items"),
        "labels": _("Labels"),
        "largest": _("Largest similarity"),
        "margin": _("Margin"),
        "mean_margin": _("Mean margin"),
        "recall": _("Recall"),
        "similarity": _("Similarity"),
        "step": _("Step"),
        "tied_share": _("Share of tied queries"),
        "weight": _("Weight"),
    }
    if column in names:
        return names[column]
    return quantity_label(column)[0] if column in QUANTITIES else column.replace("_", " ")
