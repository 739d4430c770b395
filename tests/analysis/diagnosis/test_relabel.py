"""Lists to label anew: the right items first, with names, captions and a column to fill in."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from tests.support.ill_runs import ITEMS, bad_data, collapsed, ill_curves
from uwml_core.__main__ import main
from uwml_core.analysis.diagnosis.relabel import relabel_tables
from uwml_core.runlog.items import write_items
from uwml_core.runlog.reader import open_run
from uwml_core.runlog.writer import RunLogger

TABLES = ["wrong_pairs", "false_negatives", "memorised"]


def test_items_that_are_never_right_come_first_with_their_captions(tmp_path: Path) -> None:
    wrong = relabel_tables(open_run(bad_data(tmp_path)))["wrong_pairs"]
    never = list(range(0, ITEMS, 7))
    assert sorted(wrong["item_id"].head(len(never))) == never
    assert wrong["suspected"].head(len(never)).all()
    assert wrong["suspected"].is_monotonic_decreasing
    first = wrong.set_index("item_id").loc[14]
    assert (first["item_key"], first["captions"], first["new_label"]) == ("key 14", "thing 4 | only 14", "")


def test_memorised_negatives_grow_most_first(tmp_path: Path) -> None:
    tables = relabel_tables(open_run(ill_curves(tmp_path)), most=7)
    assert list(tables) == TABLES
    assert tables["memorised"]["growth"].is_monotonic_decreasing
    assert [len(tables[name]) for name in TABLES] == [7, 7, 7]
    # nobody logged items: no name, no captions
    assert tables["false_negatives"][["item_key", "captions"]].isna().all(axis=None)


def test_equal_captions_are_the_first_false_negatives_and_their_text_is_no_formula(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    captions = [["=HYPERLINK(1)"] if k % 4 == 0 else [f"thing {k} of its own {k * k}"] for k in range(ITEMS)]
    keys = [str(k) for k in range(ITEMS)]
    fingerprint = write_items(
        tmp_path, item_ids=list(range(ITEMS)), item_keys=keys, labels=list(range(ITEMS)), captions=captions
    )
    run = ill_curves(tmp_path, data_fingerprint=fingerprint)
    assert main(["doctor", str(run), "--export", str(tmp_path / "new" / "lists")]) == 1
    told = capsys.readouterr().err
    for name in TABLES:
        assert f"{name}.csv: " in told
    rows = pd.read_csv(tmp_path / "new" / "lists" / "false_negatives.csv", dtype=str, keep_default_na=False)
    assert int(rows["item_id"].iloc[0]) % 4 == int(rows["negative_item_id"].iloc[0]) % 4 == 0
    assert rows["captions"].iloc[0] == rows["negative_captions"].iloc[0] == "'=HYPERLINK(1)"


@pytest.mark.parametrize("make", [collapsed, None])
def test_a_run_without_what_is_needed_gives_empty_lists(tmp_path: Path, make: object) -> None:
    if callable(make):
        make(tmp_path)
    else:
        with RunLogger(tmp_path, "collapsed"):
            pass
    tables = relabel_tables(open_run(tmp_path / "collapsed"))
    assert [len(tables[name]) for name in TABLES[1:]] == [0, 0]
    assert all(table.columns[-1] == "new_label" for table in tables.values())
