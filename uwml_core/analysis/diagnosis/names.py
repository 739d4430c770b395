"""What the columns of evidence are called."""

from __future__ import annotations

from uwml_core.analysis.text import modality_name
from uwml_core.analysis.training import QUANTITIES, quantity_label
from uwml_core.i18n import _


def column_name(column: str) -> str:
    """Name of a column or of a number in the reader's language; one that has none is spelt out.

    A direction at the end is said behind the name.
    """
    names = {**_of_columns(), **_of_numbers()}
    base, _bar, direction = column.rpartition("_")
    for name, behind in ((column, ""), (base, f" {direction}")):
        if name in names:
            return names[name] + behind
        if name in QUANTITIES:
            return quantity_label(name)[0] + behind
    return column.replace("_", " ") if base else modality_name(column)


def unit_name(unit: str) -> str:
    """A unit in the reader's language; one that has no name is written as it is."""
    names = {
        "cosine": _("cosine"),
        "epoch": _("epochs"),
        "items": _("items"),
        "negatives": _("negatives"),
        "pairs": _("pairs"),
        "step": "",
        "steps": _("steps"),
        "ms": _("ms"),
    }
    return names.get(unit, unit)


def _of_columns() -> dict[str, str]:
    return {
        "caption": _("Caption"),
        "chance": _("Chance"),
        "dead_share": _("Share in the dead zone"),
        "direction": _("Direction"),
        "easy": _("Share of easy pairs"),
        "epoch": _("Epoch"),
        "growth": _("Growth of the margin"),
        "item_id": _("Item"),
        "items": _("Items"),
        "labels": _("Labels"),
        "largest": _("Largest similarity"),
        "margin": _("Margin"),
        "mean_margin": _("Mean margin"),
        "negatives": _("Negatives per anchor"),
        "negatives_per_anchor": _("Negatives per anchor"),
        "no_negative_share": _("Share without negatives"),
        "recall": _("Recall"),
        "scale": _("Logit scale"),
        "similarity": _("Similarity"),
        "step": _("Step"),
        "steps": _("Steps"),
        "tied_share": _("Share of tied queries"),
        "weight": _("Weight"),
        "wrong_sign_share": _("Share of the wrong sign"),
    }


def _of_numbers() -> dict[str, str]:
    return {
        "behind": _("Distance behind"),
        "beyond_share": _("Share beyond 1"),
        "claimed_batch": _("Reported batch"),
        "early_step_time": _("Step time, first half"),
        "easy_share": _("Share of the easy"),
        "end_scale": _("Logit scale at the end"),
        "false_negatives_per_anchor": _("False negatives per anchor"),
        "first_gradient_norm": _("First gradient norm"),
        "first_loss": _("First loss"),
        "first_step": _("First step"),
        "gradient_ratio": _("Gradient jump over the median"),
        "highest_scale": _("Highest logit scale"),
        "jitter_per_100_steps": _("Jitter per 100 steps"),
        "largest_similarity": _("Largest similarity"),
        "late_step_time": _("Step time, end"),
        "least_similarity": _("Least similarity to the snapshot before"),
        "lopsidedness": _("Lopsidedness"),
        "lost_share": _("Share without push"),
        "memorised_share": _("Share memorized"),
        "other_similarity": _("The other modality's similarity"),
        "queue_age_epochs": _("Age of the queue"),
        "recall_fall": _("Fall of recall"),
        "recall_jump": _("Jump of recall"),
        "shared_share": _("Share that shares a caption"),
        "similarity_spread": _("Spread of the similarities"),
        "similarity_within_epoch": _("Similarity within an epoch"),
        "step_time": _("Step time"),
        "suspected_share": _("Share suspected"),
        "telemetry_time": _("Telemetry time"),
        "train_accuracy": _("Accuracy in training"),
        "typical_margin": _("Typical margin"),
    }
