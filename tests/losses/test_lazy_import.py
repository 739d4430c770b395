"""``import uwml_core`` is cheap: neither torch nor streamlit, and every public name resolves."""

from __future__ import annotations

import subprocess

import pytest

import uwml_core

HEAVY = ("torch", "streamlit", "plotly", "pandas", "pyarrow")


def loaded_by(python: str, statement: str) -> set[str]:
    code = f"import sys\n{statement}\nprint(*[name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_importing_the_package_loads_nothing_heavy(python: str) -> None:
    assert loaded_by(python, "import uwml_core; dir(uwml_core)") == set()


def test_weighting_and_its_names_load_neither_torch_nor_streamlit(python: str) -> None:
    loaded = loaded_by(python, "from uwml_core import UWMLConfig, DirectionController, difficulty_weight")
    assert not loaded & {"torch", "streamlit"}


def test_the_check_above_can_fail(python: str) -> None:
    assert "torch" in loaded_by(python, "from uwml_core import UWMLLoss")


def test_every_public_name_resolves() -> None:
    assert sorted(uwml_core.__all__) == uwml_core.__all__
    for name in uwml_core.__all__:
        assert getattr(uwml_core, name) is not None
        assert name in dir(uwml_core)


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'uwml_core' has no attribute 'UWML'"):
        uwml_core.UWML  # noqa: B018


@pytest.mark.parametrize("module", ["uwml_core.losses", "uwml_core.weighting"])
def test_all_lists_what_exists(module: str) -> None:
    from importlib import import_module

    loaded = import_module(module)
    assert all(hasattr(loaded, name) for name in loaded.__all__)
    assert len(set(loaded.__all__)) == len(loaded.__all__)
