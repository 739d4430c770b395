"""Text that comes from a log is shown as it is."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pandas as pd
import pytest

from uwml_core.ui import text as text_module
from uwml_core.ui.balance_controls import BALANCE_CONTROLS
from uwml_core.ui.card import table_html, to_csv
from uwml_core.ui.controls import WEIGHTING_CONTROLS
from uwml_core.ui.parameter_controls import slider_range
from uwml_core.ui.status import age_text, badge_html, row_age
from uwml_core.ui.text import element, escape_markdown, notes
from uwml_core.weighting import PARAMETERS, UWMLConfig

HOSTILE = '<script>alert(1)</script> *a* [b](c) $x$ :material/home: "q" & `d`'


def test_html_text_is_escaped() -> None:
    shown = element("p", HOSTILE, "uw-note")
    assert "<script>" not in shown
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in shown


def test_every_markdown_special_is_escaped() -> None:
    escaped = escape_markdown(HOSTILE)
    for special in "<>*[]()$:`&":
        assert f"\\{special}" in escaped
        assert special not in escaped.replace(f"\\{special}", "")


@pytest.mark.parametrize(
    ("texts", "line"),
    [
        (("PCA of all.", "", "37 %"), "PCA of all · 37 %"),
        (("主成分。", "37 %", "都在同一位置。"), "主成分 · 37 % · 都在同一位置。"),
        (("One.",), "One."),
        (("", ""), ""),
    ],
)
def test_notes_keep_only_the_last_full_stop(
    monkeypatch: pytest.MonkeyPatch, texts: tuple[str, ...], line: str
) -> None:
    shown: list[str] = []
    monkeypatch.setattr(text_module, "note", shown.append)
    notes(*texts)
    assert shown == [line]


def test_markdown_text_stays_on_one_line() -> None:
    assert escape_markdown("a\n\n# b") == r"a \# b"


def test_table_cells_are_escaped() -> None:
    assert "<script>" not in table_html([[HOSTILE], [HOSTILE]])


def test_unknown_status_cannot_break_out_of_its_class() -> None:
    assert 'class="uw-badge other"' in badge_html('x" onload="y')


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-3.0, "0 s"), (0.0, "0 s"), (119.9, "119 s"), (120, "2 min"), (7200, "2 h"), (172_800, "2 d")],
)
def test_age_uses_the_largest_fitting_unit(seconds: float, text: str) -> None:
    assert age_text(seconds) == text


def test_row_age_counts_from_the_row_to_now() -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    assert row_age(pd.Timestamp(now - timedelta(seconds=5)), now) == "newest row 5 s old"


@pytest.mark.parametrize("time", [None, pd.NaT])
def test_row_without_time_has_no_age(time: object) -> None:
    assert row_age(time) == ""


def test_csv_holds_the_frame_as_it_is() -> None:
    frame = pd.DataFrame({"step": [0, 1, 2], "value": [0.5, float("nan"), float("inf")]})
    assert to_csv(frame) == b"step,value\n0,0.5\n1,\n2,inf\n"


@pytest.mark.parametrize("name", [*WEIGHTING_CONTROLS.sliders, *BALANCE_CONTROLS.sliders])
def test_slider_ends_are_allowed_values(name: str) -> None:
    low, high, step = slider_range(name, getattr(UWMLConfig(), name))
    assert low < high
    assert step < high - low
    assert PARAMETERS[name].allows(low)
    assert PARAMETERS[name].allows(high)


def test_open_ended_slider_reaches_beyond_an_unusual_run() -> None:
    assert slider_range("steepness_end", 200.0)[1] == 400.0


def test_slider_of_a_whole_number_moves_in_whole_numbers() -> None:
    assert slider_range("window", 200) == (1, 1000, 1)
    assert all(type(edge) is int for edge in slider_range("update_every", 300))


def test_slider_begins_at_an_unusually_small_value() -> None:
    assert slider_range("sensitivity", 0.001)[0] == 0.001
