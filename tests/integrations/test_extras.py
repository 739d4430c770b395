"""Adapters and the libraries that they are for: none is needed until one is used."""

from __future__ import annotations

import subprocess

import pytest

LIBRARIES = ("lightning", "open_clip", "pytorch_metric_learning", "sentence_transformers", "transformers")


def python_says(python: str, code: str) -> str:
    return subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_importing_the_package_of_adapters_loads_no_library(python: str) -> None:
    code = "import sys, uwml_core, uwml_core.integrations; print(*{'torch', *%r} & set(sys.modules))"
    assert python_says(python, code % (LIBRARIES,)) == ""


@pytest.mark.parametrize("library", LIBRARIES)
def test_an_adapter_without_its_library_names_the_extra(python: str, library: str) -> None:
    # None in sys.modules is how Python marks a module that cannot be imported
    code = (
        f"import sys; sys.modules[{library!r}] = None\n"
        f"try: import uwml_core.integrations.{library}\n"
        "except ImportError as error: print(error, error.name)"
    )
    extra = library.replace("_", "-")
    assert python_says(python, code) == (
        f'{library} is not installed; install it with: pip install "uwml-lens[{extra}]" {library}'
    )
