"""What is drawn over a chart by a part of the page that redraws itself without the chart.

A chart of forty thousand points is sent once; a click then sends the rings around what was clicked.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import streamlit as st
from numpy.typing import NDArray

_JS = (Path(__file__).parent / "map_overlay.js").read_text(encoding="utf-8")

_component = st.components.v2.component(
    "uwml_map_overlay", html="<span hidden></span>", js=_JS, isolate_styles=False
)


def map_overlay(
    name: str,
    figure: Any,
    *,
    selected: Sequence[NDArray[np.int64]] | None,
    quiet: bool,
    on_click: Callable[[list[float]], None],
    on_select: Callable[[list[float]], None],
) -> None:
    """Draw over the chart that was given this overlay's name.

    Args:
        name: of the overlay.
        figure: a plotly Figure; only its traces are used.
        selected: per trace of the chart the points that stay while the others step back; None for all.
        quiet: whether all points of the chart step back.
        on_click: called with the numbers of a clicked point's ``customdata``.
        on_select: called with x and y of each corner of what was drawn around; without any when that is
            undone.
    """
    traces = json.loads(figure.to_json(validate=False))["data"]
    chosen = None if selected is None else [_packed(rows) for rows in selected]
    source = json.dumps({"traces": traces, "chosen": chosen, "quiet": quiet})
    key = f"overlay-{name}"

    def told(kind: str, act: Callable[[list[float]], None]) -> None:
        numbers = st.session_state[key].get(kind)
        if numbers is not None:
            act([float(number) for number in numbers])

    _component(
        key=key,
        data={"name": name, "source": source},
        height=1,
        on_clicked_change=lambda: told("clicked", on_click),
        on_selected_change=lambda: told("selected", on_select),
    )


def _packed(rows: NDArray[np.int64]) -> dict[str, str]:
    return {"dtype": "i4", "bdata": base64.b64encode(rows.astype("<i4").tobytes()).decode()}
