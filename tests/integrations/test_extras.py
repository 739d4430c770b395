"""Adapters and the libraries that they are for: none is needed until one is used."""

from __future__ import annotations

import subprocess
import sys

import pytest

LIBRARIES = ("lightning", "open_clip", "pytorch_metric_learning", "sentence_transformers", "transformers")


def python_says(python: str, code: str) -> str:
    return subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_importing_the_package_of_adapters_loads_no_library(python: str) -> None:
    code = "import sys, uwml_core, uwml_core.integrations; print(*{'torch', *%r} & set(sys.modules))"
    assert python_says(python, code % (LIBRARIES,)) == ""


@pytest.fixture(scope="module")
def told() -> list[str]:
    """What importing each adapter without its library says; one process, as most of it is torch's import."""
    # None in sys.modules is how Python marks a module that cannot be imported
    code = (
        "import importlib, sys\n"
        f"for library in {LIBRARIES!r}:\n"
        "    sys.modules[library] = None\n"
        "    try: importlib.import_module(f'uwml_core.integrations.{library}'); print('imported')\n"
        "    except ImportError as error: print(error, error.name)\n"
        "    del sys.modules[library]"
    )
    return python_says(sys.executable, code).splitlines()


@pytest.mark.parametrize("library", LIBRARIES)
def test_an_adapter_without_its_library_names_the_extra(told: list[str], library: str) -> None:
    extra = library.replace("_", "-")
    assert len(told) == len(LIBRARIES)
    assert told[LIBRARIES.index(library)] == (
        f'{library} is not installed; install it with: pip install "uwml-lens[{extra}]" {library}'
    )
