"""Start the app's server on a free port and know when it answers."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

from uwml_core.addresses import is_loopback
from uwml_core.installation import app_folder
from uwml_core.runlog.location import place_from_anywhere

DEFAULT_PORT = 8501
_PORTS_TRIED = 100


class ServerError(OSError):
    """The app's server could not be started; the message says why and what to do."""


def app_script() -> Path:
    """Path of ``app.py``.

    Raises:
        ServerError: if it is missing.
    """
    script = app_folder() / "app.py"
    if not script.is_file():
        raise ServerError(f"no app at {script}; install the package again, or run this in a checkout of it")
    return script


def first_choice(port: int | None) -> int:
    """Port asked for: the argument, else STREAMLIT_SERVER_PORT, else 8501.

    Raises:
        ServerError: if what is asked for is not a port number.
    """
    if port is not None:
        if not 0 < port < 65536:
            raise ServerError(f"--port={port} is not a port; expected a number from 1 to 65535")
        return port
    text = os.environ.get("STREAMLIT_SERVER_PORT", str(DEFAULT_PORT))
    if not text.isdecimal() or not 0 < int(text) < 65536:
        raise ServerError(f"STREAMLIT_SERVER_PORT={text!r} is not a port; expected a number from 1 to 65535")
    return int(text)


def free_port(first: int) -> int:
    """First free loopback port from ``first`` upwards.

    Raises:
        ServerError: if none of a hundred is free.
    """
    for port in range(first, min(first + _PORTS_TRIED, 65536)):
        if _is_free(port):
            return port
    raise ServerError(f"no free port from {first} to {first + _PORTS_TRIED - 1}; set STREAMLIT_SERVER_PORT")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        # as the server binds: a port in TIME_WAIT counts as free
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def start_server(
    *, port: int, logs: Path | str, read_only: bool = False, address: str = "127.0.0.1"
) -> subprocess.Popen[bytes]:
    """Start the app's server as a child process in a session of its own.

    A session of its own, so that Ctrl-C in the terminal reaches the caller alone and the caller decides
    in which order things end. It stays in the caller's folder, whose ``.streamlit/secrets.toml`` it reads:
    the folder of the app may lie where nobody is to write.
    """
    environment = {**os.environ, "UWML_LOGS": place_from_anywhere(logs)}
    # whoever reaches a public address must not start processes or write
    environment["UWML_READ_ONLY"] = "1" if read_only or not is_loopback(address) else ""
    # -P: a random.py in the caller's folder is not the module of that name
    command = [sys.executable, "-P", "-m", "streamlit", "run", str(app_script())]
    command += [f"--server.port={port}", f"--server.address={address}", "--server.headless=true"]
    # the code does not change under a served app, and watching it costs time and file handles
    command += ["--server.fileWatcherType=none"]
    if not is_loopback(address):
        # the host list of the configuration names this machine only
        command += ["--server.allowedHosts=*"]
    return subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, start_new_session=True)


def wait_until_healthy(
    server: subprocess.Popen[bytes], port: int, timeout_s: float = 60.0, *, address: str = "127.0.0.1"
) -> None:
    """Block until the server answers at the address that it is bound to.

    Raises:
        ServerError: if it exits or stays silent.
    """
    host = "127.0.0.1" if address in ("0.0.0.0", "::", "localhost") else address
    host = f"[{host}]" if ":" in host else host
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        if server.poll() is not None:
            raise ServerError(f"the app's server exited with code {server.returncode} at its start")
        if _answers(host, port):
            return
        time.sleep(0.1)
    raise ServerError(f"the app's server did not answer on port {port} within {timeout_s:.0f} s")


def _answers(host: str, port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://{host}:{port}/_stcore/health", timeout=1) as answer:
            return bool(answer.read() == b"ok")
    except (urllib.error.URLError, OSError):
        return False


def interrupt_when_asked_to_end() -> None:
    """Take SIGTERM and SIGHUP as Ctrl-C: children in sessions of their own would outlive this process."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        # ignored under nohup, and that is meant
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler)


def stop(process: subprocess.Popen[bytes], timeout_s: float = 20.0) -> None:
    """Ask a child process to end, and kill it if it does not or if Ctrl-C comes again."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(timeout_s)
        except (subprocess.TimeoutExpired, KeyboardInterrupt):
            process.kill()
            process.wait()
