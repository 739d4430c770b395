"""Build the package with the app in it; all else that a build needs to know stands in pyproject.toml."""

from __future__ import annotations

import runpy
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

# by its path: what the package itself depends on is not there when it is built
INSTALLATION = runpy.run_path("uwml_core/installation.py")


class BuildWithApp(build_py):
    """Put the app and the sample runs, which lie beside the package in a checkout, inside of it.

    An editable installation finds them where they are.
    """

    def run(self) -> None:
        """Copy them after the package's own files."""
        super().run()
        for target, source in self._carried().items():
            self.mkpath(str(Path(target).parent))
            self.copy_file(source, target)

    def get_output_mapping(self) -> dict[str, str]:
        """Built file to the file that it is made of."""
        return {**super().get_output_mapping(), **self._carried()}

    def get_outputs(self, include_bytecode: bool = True) -> list[str]:
        """Built files."""
        return [*super().get_outputs(include_bytecode), *self._carried()]

    def get_source_files(self) -> list[str]:
        """Files that a source distribution needs."""
        return [*super().get_source_files(), *self._carried().values()]

    def _carried(self) -> dict[str, str]:
        if self.editable_mode:
            return {}
        folder = Path(self.build_lib, "uwml_core", INSTALLATION["CARRIED"])
        return {str(folder / path): path.as_posix() for path in INSTALLATION["app_files"](Path())}


setup(cmdclass={"build_py": BuildWithApp})
