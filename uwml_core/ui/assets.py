"""Files that the browser fetches from the app itself, so that no other host is ever asked."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import plotly

APP_ROOT = Path(__file__).resolve().parents[2]
STATIC = APP_ROOT / "static"
ICON = STATIC / "icon.png"
LOGO = STATIC / "icon.svg"


def publish_plotly_js(static: Path = STATIC) -> Path:
    """Copy the chart library of the installed plotly package into the static folder, once per version.

    Args:
        static: folder that the app serves under ``app/static``.

    Returns:
        The published file.

    Raises:
        OSError: if the folder cannot be written and holds no copy.
    """
    source = Path(plotly.__file__).parent / "package_data" / "plotly.min.js"
    target = static / source.name
    if target.exists() and target.stat().st_size == source.stat().st_size:
        return target
    static.mkdir(parents=True, exist_ok=True)
    # Two sessions may start together: each writes its own file, the move is atomic.
    temporary = static / f".{source.name}.{os.getpid()}"
    shutil.copyfile(source, temporary)
    os.replace(temporary, target)
    return target
