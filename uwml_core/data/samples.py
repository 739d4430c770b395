"""The sample sets that are shipped with the package."""

from __future__ import annotations

import difflib
from pathlib import Path

from uwml_core.data.errors import DataError

SAMPLE_DIR = Path(__file__).parent / "sample"
SAMPLES: tuple[str, ...] = tuple(sorted(path.stem for path in SAMPLE_DIR.glob("*.parquet")))


def sample_path(source: str | Path) -> Path:
    """Path of a shipped set by its name, or of a Parquet file.

    Args:
        source: name of a shipped set, or path of an existing file.

    Raises:
        DataError: if it is neither, with the nearest shipped names.

    Example:
        >>> sample_path("emoji_pairs").name
        'emoji_pairs.parquet'
        >>> sample_path("emoji_pair")
        Traceback (most recent call last):
        uwml_core.data.errors.DataError: emoji_pair: is neither a file nor a shipped sample set; did you \
mean emoji_pairs?
    """
    if str(source) in SAMPLES:
        return SAMPLE_DIR / f"{source}.parquet"
    path = Path(source).expanduser()
    if path.is_file():
        return path
    if path.is_dir():
        raise DataError(str(source), "is a folder; expected a Parquet file or the name of a shipped set")
    near = difflib.get_close_matches(str(source), SAMPLES, n=1)
    hint = f"did you mean {near[0]}?" if near else f"shipped: {', '.join(SAMPLES)}"
    raise DataError(str(source), f"is neither a file nor a shipped sample set; {hint}")
