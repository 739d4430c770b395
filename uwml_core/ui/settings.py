"""What the person who started the app decided: where it reads, whether it may launch anything."""

from __future__ import annotations

import os
from pathlib import Path

import streamlit as st

from uwml_core.addresses import is_loopback
from uwml_core.runlog.location import is_remote, parse_place, shown_place

LOGS_VARIABLE = "UWML_LOGS"
READ_ONLY_VARIABLE = "UWML_READ_ONLY"


def logs_root() -> Path | str:
    """Folder that holds the run folders, or its URL; ``logs`` unless the environment says otherwise."""
    return parse_place(os.environ.get(LOGS_VARIABLE) or "logs")


def shown_root() -> str:
    """The same, to be shown; of a URL without the options of its connection."""
    return shown_place(logs_root())


def may_train() -> bool:
    """Whether runs may be started from a page: nothing trains into a remote folder."""
    return not read_only() and not is_remote(logs_root())


def read_only() -> bool:
    """Whether everything that writes or launches is hidden; always where others can reach the server."""
    asked = os.environ.get(READ_ONLY_VARIABLE, "").lower() not in {"", "0", "false", "no"}
    # without an address the server listens on all of them
    return asked or not is_loopback(str(st.get_option("server.address") or ""))
