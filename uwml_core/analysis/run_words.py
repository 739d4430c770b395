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


def share_headline(name: str, status: str) -> str:
    """What a teammate would be shown, as one sentence."""
    if status in ("running", "stale"):
        return _("{name} is {status}: a report or bundle holds what it has written so far.").format(
            name=name, status=status_label(status)
        )
    return _("{name} is {status}: links, reports and bundles of it all show the same.").format(
        name=name, status=status_label(status)
    )
