"""Where the app lies: at the top of a checkout, or inside an installed package.

The build runs this file by itself, before what the package depends on is there: standard library only.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

# folder of the package that a built one carries the app in
CARRIED = "_app"

_APP = ("app.py", "pages/*/*.py", "static/icon.*", ".streamlit/config.toml")
_LOGS = "logs"
_SAMPLES = "sample-*/run.json"


def app_folder() -> Path:
    """Folder of ``app.py``, ``pages``, ``static``, ``.streamlit`` and the sample runs in ``logs``."""
    package = Path(__file__).resolve().parent
    carried = package / CARRIED
    return carried if carried.is_dir() else package.parent


def child_environment() -> dict[str, str]:
    """Environment in which a new process finds this package, also where it is a checkout."""
    checkout = app_folder()
    if checkout.name == CARRIED:
        return dict(os.environ)
    paths = [str(checkout), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}


def sample_logs() -> Path:
    """Logs folder that the sample runs lie in; of an installed package, nothing may be written there."""
    return app_folder() / _LOGS


def app_files(root: Path) -> list[Path]:
    """What a package carries of a checkout.

    Args:
        root: top of the checkout.

    Returns:
        Paths relative to it, sorted: the app, and of ``logs`` the sample runs only.
    """
    files = [path.relative_to(root) for pattern in _APP for path in root.glob(pattern)]
    return sorted([*files, *(_LOGS / path for path in sample_files(root / _LOGS))])


def sample_files(logs: Path) -> list[Path]:
    """Files of the sample runs in a logs folder, and of the items that they name.

    Locks, checkpoints, notes and half-written files are no part of a sample run, nor are the items of the
    other runs that were made in that folder.

    Args:
        logs: logs folder.

    Returns:
        Paths relative to it, sorted; empty where there are no sample runs.
    """
    files = set()
    for described in logs.glob(_SAMPLES):
        fingerprint = json.loads(described.read_text(encoding="utf-8")).get("data_fingerprint")
        files |= {described, logs / "_items" / f"{fingerprint}.parquet"}
        files |= {path for path in described.parent.rglob("*.parquet") if not path.name.startswith(".")}
    return sorted(path.relative_to(logs) for path in files if path.is_file())


def has_sample_set(name: str) -> bool:
    """Whether a sample set of pairs of this name is shipped with the package."""
    return name in {path.stem for path in (Path(__file__).parent / "data" / "sample").glob("*.parquet")}
