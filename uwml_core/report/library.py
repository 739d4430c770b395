"""The chart library, packed so that it fits into the file."""

from __future__ import annotations

import base64
import gzip
import hashlib
from functools import lru_cache
from pathlib import Path

import plotly


@lru_cache(maxsize=1)
def packed_library() -> str:
    """plotly.js of the installed package, gzip in base64."""
    # without a time, equal runs give equal files
    return base64.b64encode(gzip.compress(_library(), 9, mtime=0)).decode()


@lru_cache(maxsize=1)
def library_hash() -> str:
    """What a content security policy knows the inflated library by."""
    return script_hash(_library())


def script_hash(source: bytes) -> str:
    """What a content security policy knows an inline script by.

    Example:
        >>> script_hash(b"")
        "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='"
    """
    return f"'sha256-{base64.b64encode(hashlib.sha256(source).digest()).decode()}'"


def _library() -> bytes:
    return (Path(plotly.__file__).parent / "package_data" / "plotly.min.js").read_bytes()
