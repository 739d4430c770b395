"""Files that the browser fetches from the app itself, so that no other host is ever asked."""

from __future__ import annotations

from pathlib import Path

import plotly
import streamlit as st
from starlette.responses import FileResponse
from starlette.routing import Route

from uwml_core.installation import app_folder

APP_ROOT = app_folder()
STATIC = APP_ROOT / "static"
ICON = STATIC / "icon.png"
LOGO = STATIC / "icon.svg"


def plotly_route() -> Route:
    """Serve the chart library of the installed plotly package among the files of ``app/static``.

    From where it lies: what serves the app may be unable to write into the app's folder, or not allowed to.

    Returns:
        Route for ``st.App``.
    """
    library = Path(plotly.__file__).parent / "package_data" / "plotly.min.js"
    base = str(st.get_option("server.baseUrlPath")).strip("/")
    path = f"{base and '/'}{base}/app/static/{library.name}"
    headers = {"X-Content-Type-Options": "nosniff"}
    return Route(path, lambda _: FileResponse(library, media_type="text/javascript", headers=headers))
