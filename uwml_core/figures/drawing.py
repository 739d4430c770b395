"""A finished figure that turns into JSON without being copied first."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from copy import copy
from typing import Any, ParamSpec

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.io.json import to_json_plotly

P = ParamSpec("P")

# As the chart library calls the types of the arrays that it takes as bytes.
_SHORT = {np.dtype(name): name for name in ("i1", "u1", "i2", "u2", "i4", "u4", "f4", "f8")}
_SMALLER = {"i": ("i1", "i2", "i4"), "u": ("u1", "u2", "u4")}
# Plotly leaves what these hold as it is, too.
_LEFT = frozenset({"geojson", "layer", "layers", "range"})


class Drawing(go.Figure):  # type: ignore[misc]  # plotly tells no types
    """A Figure of plain dictionaries and NumPy arrays; its JSON is that of a Figure, in a third of the time.

    Every chart of a page is encoded whenever the page is drawn, and Plotly would copy all of it for that,
    and when it is made, too: it becomes Plotly's own figure only when somebody looks into it or changes it.

    Args:
        data: traces, as for a Figure; nothing is checked.
        layout: layout, as for a Figure, its template included.
    """

    def __init__(self, data: Any = None, layout: Any = None) -> None:
        self.__dict__["_given"] = (data or [], layout or {})

    def __getattr__(self, name: str) -> Any:
        """Become Plotly's figure; only what a drawing does not have yet is asked for here."""
        given = self.__dict__.pop("_given", None)
        if given is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        super().__init__(*given, _validate=False)
        return getattr(self, name)

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies are made of what this drawing was made of."""
        return type(self), self._parts()

    def to_dict(self) -> dict[str, Any]:
        """Data and layout as they go to the browser; they share their contents with the figure."""
        data, layout = self._parts()
        return {"data": _encoded(data), "layout": _encoded(layout)}

    def _parts(self) -> tuple[Any, Any]:
        return self.__dict__.get("_given") or (self._data, self._layout)


class Encoded:
    """A finished figure of which only its JSON is left, which is all that the browser is sent.

    Args:
        figure: what to encode.

    Example:
        >>> line = Encoded(Drawing([{"type": "scatter", "y": [1, 2]}]))
        >>> line.over([{"type": "bar"}]).to_json()
        '{"data":[{"type":"scatter","y":[1,2]},{"type":"bar"}],"layout":{}}'
    """

    def __init__(self, figure: go.Figure) -> None:
        parts = figure.to_dict()
        # the traces stand apart, so that others can be drawn over them
        self._traces: list[str] = [to_json_plotly(trace) for trace in parts["data"]]
        self._layout: str = to_json_plotly(parts["layout"])

    def over(self, traces: Sequence[dict[str, Any]]) -> Encoded:
        """The figure with more traces over it, of which only those are encoded anew."""
        more = copy(self)
        more._traces = [*self._traces, *(to_json_plotly(_encoded(trace)) for trace in traces)]
        return more

    def to_json(self, **_options: Any) -> str:
        """The JSON; options as for a Figure, which has been encoded already."""
        return f'{{"data":[{",".join(self._traces)}],"layout":{self._layout}}}'


def encoded(draw: Callable[P, go.Figure], *args: P.args, **options: P.kwargs) -> Encoded:
    """What ``draw(*args, **options)`` draws, as it is sent to the browser: for a figure that is kept."""
    return Encoded(draw(*args, **options))


def _encoded(value: Any) -> Any:
    kind = type(value)
    if kind is dict:
        return {name: part if name in _LEFT else _encoded(part) for name, part in value.items()}
    if kind in _NESTED:
        # an array in a list is left to the list
        return [_encoded(part) if type(part) in _NESTED else part for part in value]
    if kind is np.ndarray:
        return _as_bytes(value)
    return _as_bytes(np.asarray(value)) if isinstance(value, pd.Series | pd.Index) else value


_NESTED = frozenset({dict, list, tuple})


def _as_bytes(array: np.ndarray) -> Any:
    """An array of numbers as the chart library takes it; one of anything else as it is."""
    if not array.size:
        return array
    if array.dtype.kind in _SMALLER:
        low, high = array.min(), array.max()
        for name in _SMALLER[array.dtype.kind] if array.dtype.itemsize == 8 else ():
            limits = np.iinfo(name)
            if limits.min <= low and high <= limits.max:
                array = array.astype(name)
                break
    short = _SHORT.get(array.dtype)
    if short is None:
        return array
    encoded = {"dtype": short, "bdata": base64.b64encode(array.tobytes()).decode("ascii")}
    return encoded if array.ndim == 1 else {**encoded, "shape": str(array.shape)[1:-1]}
