"""``uwml demo``: train on the emoji pairs and watch it in the browser."""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
import webbrowser
from pathlib import Path

from uwml_core.commands.server import (
    first_choice,
    free_port,
    interrupt_when_asked_to_end,
    start_server,
    stop,
    wait_until_healthy,
)

HELP = "train on the emoji pairs and watch it in the browser"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("--logs", type=Path, default=Path("logs"), help="folder of runs (default: logs)")
    parser.add_argument("--port", type=int, help="first port to try (default: STREAMLIT_SERVER_PORT or 8501)")
    parser.add_argument("--preset", default="uwml", help="training preset (default: uwml)")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="change a setting")
    parser.add_argument("--no-browser", action="store_true", help="print the address only")


def run(args: argparse.Namespace) -> int:
    """Train and serve side by side; serve on after training until Ctrl-C. Returns the exit code."""
    port = free_port(first_choice(args.port))
    interrupt_when_asked_to_end()
    _show_samples(args.logs)
    before = _run_ids(args.logs)
    children: list[subprocess.Popen[bytes]] = []
    try:
        trainer = _start_training(args)
        children.append(trainer)
        server = start_server(port=port, logs=args.logs)
        children.append(server)
        wait_until_healthy(server, port)
        print(f"http://localhost:{port}", flush=True)
        run_id = _wait_for_run(args.logs, before, trainer)
        if not args.no_browser and run_id:
            webbrowser.open(f"http://localhost:{port}/training?run={run_id}")
        code = trainer.wait()
        state = "has finished" if code == 0 else f"ended with exit code {code}"
        print(f"Training {state}. The app goes on until Ctrl-C.", file=sys.stderr, flush=True)
        server.wait()
        return code
    except KeyboardInterrupt:
        print("Stopping; the log is being completed ...", file=sys.stderr, flush=True)
        return 0
    finally:
        for child in children:
            stop(child)


def _start_training(args: argparse.Namespace) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "uwml_core", "train", "--preset", args.preset]
    settings = ["data.path=emoji_pairs", f"run.root={args.logs}", "run.name=demo", *args.set]
    for setting in settings:
        command += ["--set", setting]
    # in a session of its own: Ctrl-C reaches this process alone, which then ends training cleanly
    return subprocess.Popen(command, start_new_session=True)


def _show_samples(logs: Path) -> None:
    """Something to look at and to compare with, until the first epochs are through."""
    from uwml_core.runlog.sample_runs import add_sample_runs

    if _run_ids(logs):
        return
    added = add_sample_runs(logs)
    if added:
        print(f"Put the sample runs into {logs}: {', '.join(added)}", file=sys.stderr, flush=True)


def _run_ids(logs: Path) -> set[str]:
    return {path.parent.name for path in logs.glob("*/run.json")}


def _wait_for_run(logs: Path, before: set[str], trainer: subprocess.Popen[bytes]) -> str | None:
    while trainer.poll() is None:
        new = _run_ids(logs) - before
        if new:
            return new.pop()
        time.sleep(0.2)
    return None
