"""A real S3-compatible server on this machine, which counts what it is asked for."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import boto3
import pytest
from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

BUCKET = "lens"
KEY = "AKIAIOSFODNN7EXAMPLE"
SECRET = "wJalrXUtnFEMI-EXAMPLEKEY"


class ObjectStore:
    """A bucket; ``requests`` holds method and key, or method and ``?`` for a listing.

    Attributes:
        down: answer every request with an error.
        root: the logs folder in it.
        before_head: called with each key before it is looked at, which comes before it is read.
    """

    def __init__(self, port: int) -> None:
        self.port = port
        self.requests: list[tuple[str, str]] = []
        self.down = False
        self.before_head: Callable[[str], None] = lambda key: None
        self.root = "logs"
        self._stored: dict[str, bytes] = {}
        self._client = boto3.client("s3", endpoint_url=f"http://127.0.0.1:{port}", region_name="us-east-1")
        self._client.create_bucket(Bucket=BUCKET)

    def url(self, below: str = "") -> str:
        query = f"endpoint_override={quote(f'127.0.0.1:{self.port}', safe='')}&region=us-east-1&scheme=http"
        return f"s3://{BUCKET}/{self.root}{below}?{query}"

    def put(self, key: str, content: bytes) -> None:
        """Store an object in one piece, under any key."""
        self._client.put_object(Bucket=BUCKET, Key=key, Body=content)

    def remove(self, key: str) -> None:
        self._client.delete_object(Bucket=BUCKET, Key=key)

    def upload(self, folder: Path, *, new_only: bool = False) -> None:
        """Copy a logs folder; each run.json last, or only what was not copied as it is now."""
        for path in sorted(folder.rglob("*"), key=lambda path: (path.name == "run.json", path)):
            if path.is_file() and not path.name.startswith(".") and path.suffix != ".lock":
                key, content = f"{self.root}/{path.relative_to(folder).as_posix()}", path.read_bytes()
                if not new_only or self._stored.get(key) != content:
                    self.put(key, content)
                self._stored[key] = content

    def read(self) -> list[str]:
        """Keys whose content was sent since the last call."""
        found = [key for method, key in self.requests if method == "GET" and key != "?"]
        self.requests.clear()
        return found


class _Quiet(WSGIRequestHandler):
    def log(self, *args: Any) -> None:
        pass


def _counting(store: list[ObjectStore], app: Any) -> Callable[..., Iterable[bytes]]:
    def answer(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        path = unquote(environ["PATH_INFO"]).removeprefix(f"/{BUCKET}").lstrip("/")
        for one in store:
            one.requests.append((environ["REQUEST_METHOD"], path or "?"))
            if one.down:
                start("403 Forbidden", [("Content-Length", "0")])
                return [b""]
            if environ["REQUEST_METHOD"] == "HEAD" and path:
                one.before_head(path)
        return app(environ, start)

    return answer


@contextmanager
def object_store(folder: Path, patch: pytest.MonkeyPatch) -> Iterator[ObjectStore]:
    """A server with one empty bucket; keys are in the environment, the mirror lies in ``folder``."""
    for name, value in {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET}.items():
        patch.setenv(name, value)
    patch.setenv("UWML_CACHE", str(folder))
    stores: list[ObjectStore] = []
    app = DomainDispatcherApplication(create_backend_app)
    server = make_server("127.0.0.1", 0, _counting(stores, app), threaded=True, request_handler=_Quiet)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    store = ObjectStore(server.server_port)
    stores.append(store)
    try:
        yield store
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
