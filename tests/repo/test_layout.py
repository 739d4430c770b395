"""The shape of the code: what may be imported where, and how large things may grow."""

from __future__ import annotations

import ast
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "pages").rglob("*.py"))
PACKAGE = sorted((ROOT / "uwml_core").rglob("*.py"))


def imported_modules(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    plain = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    froms = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    return {name.split(".")[0] for name in plain | froms}


def test_there_are_pages_and_package_files_to_check():
    assert len(PAGES) >= 3
    assert len(PACKAGE) >= 30


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_page_imports_only_streamlit_and_the_package(page):
    assert imported_modules(page) <= {"streamlit", "uwml_core", "__future__"}


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_page_stays_under_eighty_lines(page):
    assert len(page.read_text(encoding="utf-8").splitlines()) <= 80


def test_no_page_script_lies_directly_in_the_pages_folder():
    # such a script would be run without app.py by the first deep link of a fresh server
    assert not list((ROOT / "pages").glob("*.py"))


@pytest.mark.parametrize("path", PACKAGE, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_package_file_has_no_bare_assert_and_at_most_300_lines(path):
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 300
    assert not [node.lineno for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Assert)]


def test_pins_lie_inside_the_ranges_of_the_package():
    from packaging.requirements import Requirement

    def normal(name: str) -> str:
        return re.sub(r"[-_.]+", "-", name).lower()

    pins = {}
    for line in (ROOT / "requirements.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            requirement = Requirement(line)
            (spec,) = requirement.specifier
            assert spec.operator == "=="
            pins[normal(requirement.name)] = spec.version
    ranges = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    for requirement in map(Requirement, ranges):
        assert requirement.specifier.contains(pins[normal(requirement.name)]), requirement


def test_command_is_installed_and_lists_its_subcommands(python):
    done = subprocess.run([python, "-m", "uwml_core", "--help"], capture_output=True, text=True, check=True)
    for command in ("train", "app", "demo"):
        assert command in done.stdout
