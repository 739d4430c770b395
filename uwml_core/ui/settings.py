"""What the person who started the app decided: where it reads, whether it may launch anything."""

from __future__ import annotations

import os
from pathlib import Path

LOGS_VARIABLE = "UWML_LOGS"
READ_ONLY_VARIABLE = "UWML_READ_ONLY"


def logs_root() -> Path:
    """Folder that holds the run folders, ``logs`` unless the environment says otherwise."""
    return Path(os.environ.get(LOGS_VARIABLE) or "logs")


def read_only() -> bool:
    """Whether everything that writes or launches is hidden."""
    return os.environ.get(READ_ONLY_VARIABLE, "").lower() not in {"", "0", "false", "no"}
