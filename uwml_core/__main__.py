"""The command line ``uwml``; ``python -m uwml_core`` is the same."""

from __future__ import annotations

import argparse
import dis
import importlib
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from uwml_core import __version__

COMMANDS = (
    "demo",
    "train",
    "evaluate",
    "app",
    "losses",
    "inspect-data",
    "project",
    "diagnose-embeddings",
    "report",
    "bundle",
    "import",
    "health",
    "doctor",
    "sick-run",
    "compact",
    "copy",
    "convert",
)
# a keyword can name no module, and one named like a standard module would stand in its way
_MODULES = {"import": "import_bundle", "copy": "copy_run"}

_PACKAGE = Path(__file__).parent


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command.

    Args:
        arguments: words of the command line; those of the process when None.

    Returns:
        Exit code: 0 done, 2 an error that the user can mend (told in one line), 128 + n ended by signal n.
    """
    modules = {
        name: importlib.import_module(f"uwml_core.commands.{_MODULES.get(name, name.replace('-', '_'))}")
        for name in COMMANDS
    }
    options = _parser(modules).parse_args(arguments)
    try:
        return int(modules[options.command].run(options))
    except (ValueError, OSError, RuntimeError) as error:
        if not _for_the_user(error):
            raise
        print(f"uwml: error: {' '.join(str(error).split())}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("uwml: interrupted", file=sys.stderr)
        return 130


def _parser(modules: dict[str, ModuleType]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="uwml", description="Train cross-modal retrieval and see what holds it up."
    )
    parser.add_argument("--version", action="version", version=f"uwml {__version__}")
    commands = parser.add_subparsers(dest="command", required=True)
    for name, module in modules.items():
        command = commands.add_parser(name, help=module.HELP, description=f"{module.HELP.capitalize()}.")
        module.add_arguments(command)
    return parser


def _for_the_user(error: ValueError | OSError | RuntimeError) -> bool:
    """Whether it says what the user can mend: files and devices, or an error of a raise statement here.

    One that a library or an operator raises is a bug of ours, and its traceback is wanted.
    """
    if isinstance(error, OSError):
        return True
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return False
    code = trace.tb_frame.f_code
    stated = code.co_code[trace.tb_lasti] == dis.opmap["RAISE_VARARGS"]
    return stated and _PACKAGE in Path(code.co_filename).parents


if __name__ == "__main__":
    sys.exit(main())
