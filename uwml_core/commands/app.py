"""``uwml app``: serve the app over a folder of runs."""

from __future__ import annotations

import argparse
from pathlib import Path

from uwml_core.commands.server import (
    first_choice,
    free_port,
    interrupt_when_asked_to_end,
    start_server,
    stop,
    wait_until_healthy,
)
from uwml_core.runlog.location import parse_place, shown_place

HELP = "serve the app over a folder of runs"
_LOGS = "folder of runs, or a URL such as s3://bucket/logs (default: logs)"
_ADDRESS = "address to bind (default: this machine only; any other is served read-only)"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("--logs", type=parse_place, default=Path("logs"), help=_LOGS)
    parser.add_argument("--port", type=int, help="first port to try (default: STREAMLIT_SERVER_PORT or 8501)")
    parser.add_argument("--address", default="127.0.0.1", help=_ADDRESS)
    parser.add_argument("--read-only", action="store_true", help="hide everything that writes or launches")


def run(args: argparse.Namespace) -> int:
    """Serve until Ctrl-C; returns the exit code."""
    # a URL that cannot be used is said here, not on a page
    shown_place(args.logs)
    port = free_port(first_choice(args.port))
    interrupt_when_asked_to_end()
    server = start_server(port=port, logs=args.logs, read_only=args.read_only, address=args.address)
    try:
        wait_until_healthy(server, port, address=args.address)
        host = args.address if args.address not in ("127.0.0.1", "0.0.0.0", "::") else "localhost"
        print(f"http://{host}:{port}", flush=True)
        return server.wait()
    except KeyboardInterrupt:
        return 0
    finally:
        stop(server)
