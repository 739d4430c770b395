"""What the states of a run are called on the screen."""

from __future__ import annotations

from uwml_core.i18n import _


def status_label(status: str) -> str:
    """What a status of the run log is called on the screen."""
    labels = {
        "running": _("running"),
        "finished": _("finished"),
        "stopped": _("stopped by the user"),
        "failed": _("failed"),
        "stale": _("stopped writing, probably killed"),
        "foreign": _("foreign: no run.json of ours"),
        "newer": _("newer version"),
    }
    return labels.get(status, status)
