"""The report's text, numbers and file: what stands in it, and that nothing in it is more than text."""

from __future__ import annotations

import io
import os
import re
from html.parser import HTMLParser
from pathlib import Path

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.report.conftest import LOGS, Opened
from tests.support.synthetic import make_run, rewrite_run_json
from uwml_core.__main__ import main
from uwml_core.analysis.training_summary import training_headline
from uwml_core.figures.theme import theme
from uwml_core.i18n import language
from uwml_core.report.build import PAGES, ReportChoice, build_report, estimate_size, write_report
from uwml_core.report.content import Chart
from uwml_core.report.library import script_hash
from uwml_core.report.payload import changes
from uwml_core.report.source import Source
from uwml_core.report.weight_curve import weight_curve_section
from uwml_core.runlog.notes import Anchor, Note, pin_note
from uwml_core.runlog.reader import Run, SchemaTooNew, open_run
from uwml_core.weighting import UWMLConfig

HOSTILE = (
    "</script><script>window.pwned=1</script><img src=x onerror='window.pwned=1'>\u2028\u202e\"'&amp; 🙂"
)
SAMPLES = ("sample-collapse", "sample-infonce", "sample-uwml", "sample-video")


class Tags(HTMLParser):
    """Start tags with attributes, outside scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def small_run(folder: Path, **options: object) -> Run:
    return Run(make_run(folder, **{"run_id": "small", "steps": 24, "epochs": 3, **options}))


def test_every_page_has_its_section_headline_and_charts(sample_report: Opened) -> None:
    sections = re.findall(r'<section id="(\w+)">', sample_report.markup)
    assert sections == [*PAGES, "configuration", "health"]
    assert re.findall(r'href="#(\w+)"', sample_report.markup) == sections
    run = open_run(LOGS / "sample-uwml")
    sentence = training_headline(run.frame("steps"), run.frame("evals"), run.directions)
    assert sentence in sample_report.text
    charts = re.findall(r'data-chart="(\w+)"', sample_report.markup)
    assert list(sample_report.payload["charts"]) == charts
    assert len(charts) == len(set(charts)) == 15
    assert "Every file could be read." in sample_report.text
    assert "steepness_end: 20.0" in sample_report.text


def test_tables_in_the_report_are_what_duckdb_counts(sample_report: Opened) -> None:
    charts = sample_report.payload["charts"]
    path = LOGS / "sample-uwml"
    recall = pd.read_csv(io.StringIO(charts["recall"]["csv"]))
    logged = duckdb.sql(
        f"SELECT step, direction, metric, value, n FROM '{path}/evals/*.parquet' "
        "WHERE split = 'val' AND metric LIKE 'R@%' ORDER BY step, direction, metric"
    ).df()
    ordered = recall.sort_values(["step", "direction", "metric"], kind="stable")
    assert ordered["value"].tolist() == pytest.approx(logged["value"].tolist())
    assert ordered["n"].tolist() == logged["n"].tolist()
    rate = pd.read_csv(io.StringIO(charts["learning_rate"]["csv"]))
    steps = duckdb.sql(f"SELECT learning_rate FROM '{path}/steps/*.parquet' ORDER BY step").df()
    assert rate["value"].tolist() == pytest.approx(steps["learning_rate"].tolist())
    curve = pd.read_csv(io.StringIO(charts["curve"]["csv"]))
    counted = duckdb.sql(
        f"SELECT direction, count(*) n, count(*) FILTER (margin < 0) below FROM '{path}/pairs/*.parquet' "
        f"WHERE epoch = (SELECT max(epoch) FROM '{path}/pairs/*.parquet') GROUP BY ALL ORDER BY direction"
    ).df()
    sums = curve.groupby("direction")["count"].sum()
    below = curve[curve["right"] <= 0].groupby("direction")["count"].sum()
    assert sums.tolist() == counted["n"].tolist()
    assert below.tolist() == counted["below"].tolist()


def test_key_numbers_carry_what_duckdb_finds(sample_report: Opened) -> None:
    path = LOGS / "sample-uwml"
    best = duckdb.sql(
        f"SELECT direction, max(value) value, max(n) n FROM '{path}/evals/*.parquet' "
        "WHERE split = 'val' AND metric = 'R@1' AND direction IS NOT NULL GROUP BY direction"
    ).df()
    for row in best.itertuples():
        assert re.search(rf"{row.value:.1f} / [\d. /]+%, n = {row.n:,}", sample_report.text)


def test_the_preview_starts_from_the_pairs_of_the_newest_epoch(sample_report: Opened) -> None:
    path, preview = LOGS / "sample-uwml", sample_report.payload["preview"]
    logged = duckdb.sql(
        f"SELECT direction, count(*) n, sum(weight) weight, sum(weight * weight) squares "
        f"FROM '{path}/pairs/*.parquet' WHERE epoch = 5 GROUP BY direction"
    ).df()
    assert set(preview["directions"]) == set(logged["direction"]) == {"i2t", "t2i"}
    for row in logged.itertuples():
        bins = pd.DataFrame(preview["directions"][row.direction]["bins"])
        assert bins["n"].sum() == row.n
        assert bins["weight"].sum() == pytest.approx(row.weight)
        assert bins["weight_sq"].sum() == pytest.approx(row.squares)


def test_headlines_are_those_of_the_page(sample_report: Opened) -> None:
    section = weight_curve_section(Source(open_run(LOGS / "sample-uwml"), pictures=False))
    assert section.headline in sample_report.text


@pytest.mark.slow
@pytest.mark.parametrize("name", SAMPLES)
def test_reports_of_the_samples_are_small_and_near_the_estimate(name: str) -> None:
    run = open_run(LOGS / name)
    for pictures, most in ((True, 15e6), (False, 5e6)):
        choice = ReportChoice(pictures=pictures)
        size = len(build_report(run, choice).encode())
        assert size <= most
        assert size == pytest.approx(estimate_size(run, choice), rel=0.1)


def test_everything_is_in_the_file_and_nothing_else_may_run(sample_report: Opened) -> None:
    policy = next(
        attributes["content"]
        for tag, attributes in Tags(sample_report.source).found
        if tag == "meta" and attributes.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy is not None
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    assert "unsafe" not in rules["script-src"]
    own = re.findall(r"<script>(.*?)</script>", sample_report.source, flags=re.DOTALL)
    assert len(own) == 1
    assert script_hash(own[0].encode()) in rules["script-src"]
    for _tag, attributes in Tags(sample_report.markup).found:
        address = attributes.get("src") or attributes.get("href") or "#"
        assert address.startswith(("#", "data:")), address
        assert not any(name.startswith("on") for name in attributes)


def test_hostile_texts_stay_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UWML_CACHE", str(tmp_path / "cache"))
    run = hostile_run(tmp_path)
    opened = Opened(build_report(run, ReportChoice()))
    tags = [tag for tag, _ in Tags(opened.markup).found]
    pictures = [attributes for tag, attributes in Tags(opened.markup).found if tag == "img"]
    assert tags.count("script") == 0
    assert pictures
    assert all((picture["src"] or "").startswith("data:image/webp;base64,") for picture in pictures)
    assert len(re.findall(r"<script\b", opened.source)) == 3
    assert opened.text.count("window.pwned=1</script>") > 5
    assert HOSTILE in opened.payload["charts"]["map"]["csv"].replace('""', '"')


def hostile_run(folder: Path) -> Run:
    run = small_run(folder, name=HOSTILE)
    rewrite_run_json(run.path, config={**run.config, "data": {"path": HOSTILE}, HOSTILE: {"x": HOSTILE}})
    path = run.items_file()
    assert path is not None
    items = pq.read_table(path)
    for name, values in (("captions", [[HOSTILE]] * len(items)), ("group", [HOSTILE] * len(items))):
        place = items.schema.get_field_index(name)
        field = items.schema.field(place)
        items = items.set_column(place, field, pa.array(values, field.type))
    pq.write_table(items, path)
    pin_note(run, Note(page="training", anchor=Anchor(kind="step", value="3"), text=HOSTILE))
    return run


def test_without_pictures_there_are_none_and_captions_stay(tmp_path: Path) -> None:
    run = small_run(tmp_path)
    shown = Opened(build_report(run, ReportChoice(pages=("hard_negatives",))))
    hidden = Opened(build_report(run, ReportChoice(pages=("hard_negatives",), pictures=False)))
    assert "<img" in shown.markup
    assert "<img" not in hidden.markup
    assert "data:image" not in hidden.source
    assert "Pictures were left out of this report; captions and names of items were not." in hidden.text
    captions = re.findall(r'class="caption">([^<]+)<', shown.markup)
    assert captions == re.findall(r'class="caption">([^<]+)<', hidden.markup)
    assert captions


@pytest.mark.parametrize("table", ["steps", "pairs", "evals", "neighbors", "snapshots", "events", "items"])
def test_a_run_without_a_table_still_gives_a_report(tmp_path: Path, table: str) -> None:
    run = small_run(tmp_path, without=(table,))
    opened = Opened(build_report(run, ReportChoice()))
    assert len(re.findall("<section", opened.markup)) == len(PAGES) + 2
    if table in ("steps", "snapshots"):
        assert f"This run has no {table} table." in opened.text


def test_a_run_without_anything_gives_a_report(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    opened = Opened(build_report(Run(tmp_path / "empty"), ReportChoice()))
    assert "This run has no steps table." in opened.text
    assert opened.payload["charts"] == {}


@pytest.mark.parametrize("options", [{"steps": 1, "epochs": 1}, {"nan_steps": (3, 4)}, {"status": "running"}])
def test_ugly_runs_give_a_report(tmp_path: Path, options: dict[str, object]) -> None:
    opened = Opened(build_report(small_run(tmp_path, **options), ReportChoice(pictures=False)))
    assert "curve" in opened.payload["charts"]


@pytest.mark.parametrize(
    ("settings", "movable"),
    [
        ({"base": "wei2020_max", "curve": "uniform", "direction_mode": "off"}, False),
        ({"combination": "add"}, False),
        ({"margin_scale": "negative_std"}, True),
        ({"base": "triplet"}, True),
    ],
)
def test_sliders_are_there_where_the_histogram_gives_the_weights(
    tmp_path: Path, settings: dict[str, str], movable: bool
) -> None:
    run = small_run(tmp_path, config=UWMLConfig(**settings))
    opened = Opened(build_report(run, ReportChoice(pages=("weight_curve",), pictures=False)))
    assert ("preview" in opened.payload) == movable
    assert ("data-parameter" in opened.markup) == movable
    assert ("Not available: " in opened.text) != movable


def test_damaged_files_are_named(tmp_path: Path) -> None:
    run = small_run(tmp_path)
    (run.path / "steps" / "part-0000-000000900-000000901.parquet").write_bytes(b"PAR1 torn")
    opened = Opened(build_report(run, ReportChoice(pages=("training",))))
    assert "1 file was skipped:" in opened.text
    assert "part-0000-000000900-000000901.parquet" in opened.text


def test_the_report_speaks_the_language_asked_for_and_leaves_ours() -> None:
    run = open_run(LOGS / "sample-video")
    opened = Opened(build_report(run, ReportChoice(pages=("training",), language="zh")))
    assert '<html lang="zh"' in opened.source
    assert "训练" in opened.text
    assert language() == "en"


def test_progress_tells_every_part(tmp_path: Path) -> None:
    told: list[tuple[int, int, str]] = []
    build_report(
        small_run(tmp_path), ReportChoice(pages=("training", "hard_negatives")), lambda *x: told.append(x)
    )
    assert told == [(0, 3, "Training"), (1, 3, "Hard negatives"), (2, 3, "Packing")]


def test_both_colour_schemes_are_those_of_the_figures(tmp_path: Path) -> None:
    section = weight_curve_section(Source(small_run(tmp_path), pictures=False))
    chart = next(block for block in section.blocks if isinstance(block, Chart))
    light, dark = (chart.draw(theme(base)).to_plotly_json() for base in ("light", "dark"))
    assert len(light["data"]) == len(dark["data"])
    assert light["layout"]["template"] != dark["layout"]["template"]


def test_changes_make_one_the_other() -> None:
    before = {"a": [1, {"b": 2}], "c": {"d": 3, "e": [4]}, "f": None}
    after = {"a": [1, {"b": 5}], "c": {"d": 3, "e": [4, 6]}, "f": None}
    assert list(changes(before, after)) == [(["a", 1, "b"], 5), (["c", "e"], [4, 6])]
    assert list(changes(before, before)) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pages": ("training", "curve")}, r"pages=\['training', 'curve'\] is out of range; choose from"),
        ({"pages": ()}, r"pages=\[\] is out of range"),
        ({"language": "de"}, "language='de' is unknown"),
    ],
)
def test_a_choice_that_cannot_be_made_is_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ReportChoice(**options)  # type: ignore[arg-type]


def test_a_newer_run_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    run = small_run(tmp_path)
    rewrite_run_json(run.path, schema_version=99)
    with pytest.raises(SchemaTooNew):
        write_report(run, tmp_path / "out.html")
    assert not list(tmp_path.glob("*.html"))


def test_a_file_is_never_replaced_unasked(tmp_path: Path) -> None:
    run, target = small_run(tmp_path), tmp_path / "out.html"
    choice = ReportChoice(pages=("training",))
    write_report(run, target, choice)
    before = target.read_bytes()
    with pytest.raises(FileExistsError, match="exists; choose another name"):
        write_report(run, target, choice)
    assert target.read_bytes() == before
    write_report(run, target, ReportChoice(pages=("modal_balance",)), overwrite=True)
    assert target.read_bytes() != before
    assert sorted(os.listdir(tmp_path)) == ["_items", "out.html", "small"]


def test_the_command_says_sizes_and_writes_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, target = small_run(tmp_path), tmp_path / "out.html"
    words = ["report", str(run.path), "-o", str(target), "--pages", "training, weight_curve", "--no-pictures"]
    assert main(words) == 0
    printed = capsys.readouterr()
    assert re.fullmatch(r"about \d\.\d MB\n", printed.err)
    assert re.fullmatch(rf"{re.escape(str(target))} \(\d\.\d MB\)\n", printed.out)
    assert re.findall('<section id="(.*?)"', target.read_text())[:2] == ["training", "weight_curve"]
    assert main(words) == 2
    assert "exists; choose another name" in capsys.readouterr().err
    assert main([*words, "--overwrite", "--lang", "zh"]) == 0
    capsys.readouterr()
    assert main(["report", str(run.path), "--pages", "nowhere"]) == 2
    assert "pages=['nowhere'] is out of range" in capsys.readouterr().err
