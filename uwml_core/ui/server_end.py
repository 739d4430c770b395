"""What happens when the server ends."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import streamlit as st

from uwml_core.ui.projection import queue
from uwml_core.ui.trainings import trainings


@asynccontextmanager
async def end_children(app: st.App) -> AsyncIterator[None]:
    """Ask what the server has started to end with it; for ``st.App``.

    A signal ends the server without the functions of ``atexit``.
    """
    yield
    trainings.close()
    queue.close()
