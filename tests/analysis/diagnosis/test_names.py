"""What the numbers of findings are called, in the reader's language."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from uwml_core.analysis.diagnosis import rules
from uwml_core.analysis.diagnosis.names import column_name, unit_name
from uwml_core.i18n import set_language

MADE_BY = ("Measured", "Evidence", "measured")
# what every language writes alike
UNITS_OF_ALL = {"", "1", "%", "ms"}


def written() -> Iterator[tuple[str, str]]:
    """What the rules name, as (field, text): names of numbers, columns of evidence, units."""
    for path in Path(rules.__file__).parent.glob("*.py"):
        for call in ast.walk(ast.parse(path.read_text())):
            if not isinstance(call, ast.Call) or getattr(call.func, "id", "") not in MADE_BY:
                continue
            given = {field.arg: field.value for field in call.keywords}
            if call.func.id == "measured":
                given |= dict(zip(("frames", "name", "values", "part", "unit"), call.args, strict=False))
            for field in ("name", "x", "y", "unit"):
                for each in ast.walk(given.get(field, ast.Tuple(elts=[]))):
                    if isinstance(each, ast.Constant) and isinstance(each.value, str):
                        yield field, each.value


@pytest.fixture
def chinese() -> Iterator[None]:
    set_language("zh")
    yield
    set_language("en")


def test_every_number_and_unit_of_the_rules_has_a_name_in_the_other_language(chinese: None) -> None:
    found = set(written())
    names = {text for field, text in found if field != "unit"}
    units = {text for field, text in found if field == "unit"} - UNITS_OF_ALL
    assert len(names) > 40
    assert len(units) > 4
    assert [name for name in sorted(names) if column_name(name).isascii()] == []
    assert [unit for unit in sorted(units) if unit_name(unit) and unit_name(unit).isascii()] == []


@pytest.mark.parametrize(
    ("column", "name"),
    [
        ("lopsidedness", "Lopsidedness"),
        ("gap_i2t", "Mean margin i2t"),
        ("gradient_norm", "Gradient norm"),
        ("text", "text"),
        ("own", "own"),
        ("own_column", "own column"),
    ],
)
def test_column_is_named_with_its_direction_behind(column: str, name: str) -> None:
    assert column_name(column) == name


def test_unknown_unit_is_written_as_it_is() -> None:
    assert unit_name("GiB") == "GiB"
