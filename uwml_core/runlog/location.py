"""Where runs lie: in a folder of this machine, or in object storage, named by a URL."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qsl, urlencode, urlsplit

Place = str | os.PathLike[str]

# what only says where something lies and how it is reached; everything else could be a secret
_OPTIONS = frozenset(
    {"region", "scheme", "endpoint_override", "force_virtual_addressing", "tls_verify_certificates"}
    | {"enable_tls", "blob_storage_authority", "blob_storage_scheme", "retry_limit_seconds"}
    | {"dfs_storage_authority", "dfs_storage_scheme", "default_bucket_location", "project_id"}
)
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
_SECRET = re.compile(r"/[^/]*@")


class RemotePlace(NamedTuple):
    """A URL in its parts; ``query`` holds options of the connection, never credentials."""

    scheme: str
    host: str
    path: str
    query: str

    @property
    def shown(self) -> str:
        """The URL without its options, to be shown."""
        return f"{self.scheme}://{self.host}{self.path}"

    @property
    def url(self) -> str:
        """The URL with its options."""
        return f"{self.shown}?{self.query}" if self.query else self.shown

    def split(self) -> tuple[RemotePlace, str]:
        """The place above and the last name; an empty name at the top."""
        above, _, name = self.path.rpartition("/")
        return self._replace(path=above), name


def is_remote(place: Place) -> bool:
    """Whether a place is a URL.

    Example:
        >>> is_remote("s3://bucket/logs"), is_remote("logs"), is_remote("C:/logs")
        (True, False, False)
    """
    return isinstance(place, str) and _SCHEME.match(place) is not None and "://" in place


def parse_remote(url: str) -> RemotePlace:
    """Take a URL apart.

    Raises:
        ValueError: if it holds credentials, or options that might be some, or no bucket.

    Example:
        >>> parse_remote("s3://bucket/logs/?region=eu-west-1").shown
        's3://bucket/logs'
        >>> parse_remote("s3://key:secret@bucket/logs")
        Traceback (most recent call last):
        ValueError: the s3:// URL holds credentials; take them out and set them in the environment \
(AWS_ACCESS_KEY_ID, AWS_PROFILE and the like)
    """
    parts = urlsplit(url)
    options = sorted(parse_qsl(parts.query, keep_blank_values=True))
    if "@" in parts.netloc or any("@" in value for _, value in options):
        raise ValueError(
            f"the {parts.scheme}:// URL holds credentials; take them out and set them in the environment "
            "(AWS_ACCESS_KEY_ID, AWS_PROFILE and the like)"
        )
    place = RemotePlace(parts.scheme.lower(), parts.netloc, parts.path.rstrip("/"), urlencode(options))
    if unknown := [name for name, _ in options if name not in _OPTIONS]:
        raise ValueError(
            f"{place.shown} has the options {unknown}; known ones are {', '.join(sorted(_OPTIONS))}, and "
            "credentials come from the environment"
        )
    nowhere = not place.host and (place.scheme != "file" or not place.path)
    if nowhere or parts.fragment or ".." in place.path.split("/"):
        raise ValueError(f"{place.shown} is no place of runs; expected s3://bucket/folder or the like")
    return place


def parse_place(text: str) -> Path | str:
    """A place that was typed: a URL as it is, anything else as a path."""
    return text if is_remote(text) else Path(text)


def place_from_anywhere(place: Place) -> str:
    """A place for a process that runs in another folder: an absolute path, or the URL."""
    return str(place) if is_remote(place) else str(Path(place).resolve())


def shown_place(place: Place) -> str:
    """A place as people are shown it: an absolute path, or a URL without its options."""
    return parse_remote(str(place)).shown if is_remote(place) else str(Path(place).resolve())


def local_folder(place: Place, argument: str) -> Path:
    """A place that is written to.

    Raises:
        ValueError: if it is remote.

    Example:
        >>> local_folder("s3://bucket/logs", "root")
        Traceback (most recent call last):
        ValueError: root='s3://bucket/logs' is remote, and runs are written on this machine; write into a \
local folder and have it copied (copy_to='s3://bucket/logs', or `uwml copy`), also while the run grows
    """
    # a path made of a URL has lost one of its slashes
    if _SCHEME.match(os.fspath(place)):
        shown = _SECRET.sub("/", os.fspath(place).partition("?")[0])
        raise ValueError(
            f"{argument}={shown!r} is remote, and runs are written on this machine; write into a local "
            f"folder and have it copied (copy_to={shown!r}, or `uwml copy`), also while the run grows"
        )
    return Path(place)
