"""The Diagnosis page: what it says of a healthy run, of an ill one, and of what it cannot judge."""

from __future__ import annotations

import io
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.synthetic import make_run
from uwml_core.analysis.diagnosis.examine import diagnose
from uwml_core.analysis.diagnosis.finding import SEVERITIES, Change, Evidence, Finding, Measured, PageLink
from uwml_core.analysis.diagnosis.headline import diagnosis_headline
from uwml_core.analysis.diagnosis.registry import Diagnosis
from uwml_core.analysis.diagnosis.rules import RULES
from uwml_core.figures.evidence import evidence_figure
from uwml_core.figures.theme import theme
from uwml_core.runlog.reader import open_run
from uwml_core.runlog.writer import RunLogger
from uwml_core.ui.diagnosis_cards import _evidence_title, findings_table

PAGE = "pages/decide/diagnosis.py"
DIRECTIONS = ("i2t", "t2i")


def finding(evidence: Evidence, **changes: Any) -> Finding:
    given: dict[str, Any] = {
        "rule": "few_pairs",
        "severity": "warning",
        "confidence": 0.75,
        "title": "Few pairs <b>carry</b> the batch.",
        "cause": "A steep curve.",
        "advice": "Make it flatter.",
        "numbers": (Measured(name="ess_share", value=0.125, unit="1", n=40, first_step=0, last_step=39),),
        "evidence": evidence,
        "changes": (
            Change(name="loss.steepness_end", value=8.0, before=200.0),
            Change(name="loss.smoothing", value=0.95),
            Change(name="train.epochs", value=3, before=9),
        ),
        "link": PageLink(page="weight_curve", query={"epoch": "2"}),
    }
    return Finding(**{**given, **changes})


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    """A run whose loss stops being a number."""
    path = make_run(tmp_path, steps=40, epochs=4)
    for part in sorted((path / "steps").glob("*.parquet")):
        table = pq.read_table(part)
        lost = [
            math.nan if step >= 30 else loss
            for step, loss in zip(table["step"].to_pylist(), table["loss"].to_pylist(), strict=True)
        ]
        place = table.column_names.index("loss")
        pq.write_table(
            table.set_column(
                place, table.schema.field(place), pa.array(lost, table.schema.field(place).type)
            ),
            part,
        )
    return path


def test_a_run_of_any_kind_is_answered(open_page: Callable[..., Any], tmp_path: Path) -> None:
    make_run(tmp_path, steps=12, epochs=3)
    opened = open_page(PAGE, tmp_path)
    assert not opened.failures
    told = diagnose(open_run(next(tmp_path.glob("*/run.json")).parent))
    assert diagnosis_headline(told) in opened.text
    for rule in RULES:
        shown = rule.name in told.silent or rule.name in told.not_applicable
        assert (rule.title in opened.text) == shown or rule.name in {f.rule for f in told.findings}
    for reason in told.not_applicable.values():
        assert reason in opened.text


def test_a_run_without_rows_says_that_there_is_too_little(
    open_page: Callable[..., Any], tmp_path: Path
) -> None:
    with RunLogger(tmp_path, "empty"):
        pass
    opened = open_page(PAGE, tmp_path)
    assert not opened.failures
    assert "no rule can judge this run" in opened.text or "Nothing found" in opened.text


def test_findings_come_with_proof_remedy_and_links(
    open_page: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_run(tmp_path, steps=12, epochs=3)
    line = Evidence(frame=pd.DataFrame({"step": [0, 1], "weight": [0.5, 0.25]}), x="step", y=("weight",))
    table = Evidence(
        frame=pd.DataFrame({"caption": ["<script>x</script>", "b"], "items": [3, 2]}),
        x="caption",
        y=("items",),
        kind="table",
    )
    told = Diagnosis(
        findings=(finding(line, severity="serious"), finding(table, changes=(), title="Second.")),
        silent=(RULES[-1].name,),
        not_applicable={RULES[0].name: "Not applicable: needs x."},
    )
    monkeypatch.setattr("uwml_core.analysis.diagnosis.examine.Examination.update", lambda self: told)
    opened = open_page(PAGE, tmp_path)
    assert not opened.failures
    assert "2 findings: 1 serious, 1 warning." in opened.text
    assert "75 % sure" in opened.text
    assert "ess share 12.5 % (n = 40)" in opened.text or "12.5 % (n = 40)" in opened.text
    assert "&lt;script&gt;" in opened.markup
    assert "<b>carry</b>" not in opened.markup
    assert opened.app.get("page_link")
    assert opened.app.code[0].value == (
        "--set loss.steepness_end=8.0 --set loss.smoothing=0.95 --set train.epochs=3"
    )
    labels = [element.proto.label for element in opened.app.get("page_link")]
    assert labels == ["Try it on Weight curve", "Try it on Modal balance", "Show me", "Show me"]
    queries = [element.proto.query_string for element in opened.app.get("page_link")]
    assert "steepness_end=8.0" in queries[0]
    assert "smoothing=0.95" in queries[1]
    assert "epoch=2" in queries[2]


def test_the_page_in_chinese_has_no_english_rule(open_page: Callable[..., Any], tmp_path: Path) -> None:
    make_run(tmp_path, steps=12, epochs=3)
    opened = open_page(PAGE, tmp_path, lang="zh")
    assert not opened.failures
    for rule in RULES:
        assert rule.title not in opened.text


def test_a_loss_that_broke_is_found_and_its_number_recounted(broken: Path) -> None:
    told = diagnose(open_run(broken))
    [found] = [one for one in told.findings if one.rule == "non_finite"]
    assert found.severity == SEVERITIES[0]
    assert diagnosis_headline(told).endswith(told.findings[0].title)


def test_all_findings_are_one_table_with_a_row_per_number() -> None:
    line = Evidence(frame=pd.DataFrame({"step": [0], "weight": [0.5]}), x="step", y=("weight",))
    frame = findings_table(Diagnosis(findings=(finding(line),), silent=(), not_applicable={}))
    assert frame["value"].tolist() == [0.125]
    assert frame["changes"].tolist() == ["{loss: {smoothing: 0.95, steepness_end: 8.0}, train: {epochs: 3}}"]
    assert pd.read_csv(io.StringIO(frame.to_csv(index=False))).shape == frame.shape


def test_evidence_is_drawn_as_it_is() -> None:
    frame = pd.DataFrame(
        {"direction": ["i2t", "t2i"] * 2, "epoch": [0, 0, 1, 1], "recall": [1.0, 2.0, 3.0, np.nan]}
    )
    evidence = Evidence(frame=frame, x="epoch", y=("recall",), unit="%", limit=2.5, limit_name="limit")
    look = theme("light")
    figure = evidence_figure(evidence, look, directions=DIRECTIONS)
    assert [trace.name for trace in figure.data] == ["i2t", "t2i"]
    assert [trace.line.color for trace in figure.data] == [look.first, look.second]
    assert figure.data[0].y.tolist() == [1.0, 3.0]
    assert np.isnan(figure.data[1].y[1])
    assert figure.layout.shapes[0].y0 == 2.5
    bars = evidence_figure(
        Evidence(frame=frame, x="direction", y=("recall",), kind="bar"), look, directions=DIRECTIONS
    )
    assert (bars.data[0].type, bars.layout.showlegend) == ("bar", False)
    empty = Evidence(frame=frame.iloc[:0], x="epoch", y=("recall",))
    assert "No numbers" in evidence_figure(empty, look, directions=DIRECTIONS).layout.annotations[0].text


@pytest.mark.parametrize(
    ("columns", "title"),
    [
        (("gap_i2t", "gap_t2i"), "Mean margin by step"),
        (("gap_i2t",), "Mean margin i2t by step"),
        (("loss", "gradient_norm"), "Loss by step"),
    ],
)
def test_title_of_evidence_names_what_its_lines_share(columns: tuple[str, ...], title: str) -> None:
    frame = pd.DataFrame({"step": [0], **{name: [1.0] for name in columns}})
    assert _evidence_title(Evidence(frame=frame, x="step", y=columns)) == title
