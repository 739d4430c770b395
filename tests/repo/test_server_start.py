"""Which port the app gets, and what is said when it cannot get one."""

from __future__ import annotations

import signal
import socket
import tomllib
from pathlib import Path

import pytest
from streamlit import config

from uwml_core.commands import server


def test_streamlit_port_variable_is_the_first_choice(monkeypatch):
    monkeypatch.setenv("STREAMLIT_SERVER_PORT", "8765")
    assert server.first_choice(None) == 8765


def test_port_argument_beats_the_variable(monkeypatch):
    monkeypatch.setenv("STREAMLIT_SERVER_PORT", "8765")
    assert server.first_choice(9000) == 9000


def test_default_port_without_variable(monkeypatch):
    monkeypatch.delenv("STREAMLIT_SERVER_PORT", raising=False)
    assert server.first_choice(None) == server.DEFAULT_PORT


@pytest.mark.parametrize("text", ["", "eight", "0", "70000", "-1"])
def test_port_variable_that_is_no_port_is_refused(monkeypatch, text):
    monkeypatch.setenv("STREAMLIT_SERVER_PORT", text)
    with pytest.raises(server.ServerError, match="STREAMLIT_SERVER_PORT"):
        server.first_choice(None)


def test_taken_port_is_skipped():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert server.free_port(port) > port


def test_no_free_port_is_said():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 65535))
        taken.listen()
        with pytest.raises(server.ServerError, match="no free port"):
            server.free_port(65535)


def test_a_port_asked_for_that_is_none_is_refused():
    for port in (0, -1, 70000):
        with pytest.raises(server.ServerError, match=f"--port={port} is not a port; expected a number"):
            server.first_choice(port)


class Stubborn:
    """A child that does not end before it is killed, waited for by somebody who loses patience."""

    killed = False

    def poll(self):
        return None

    def terminate(self):
        pass

    def kill(self):
        self.killed = True

    def wait(self, timeout=None):
        if not self.killed:
            raise KeyboardInterrupt


def test_a_second_interrupt_kills_a_child_rather_than_leaving_it_behind():
    child = Stubborn()
    server.stop(child)
    assert child.killed


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_closed_terminal_and_a_process_manager_end_the_children_as_an_interrupt_does(number):
    before = signal.getsignal(number)
    try:
        signal.signal(number, signal.SIG_DFL)
        server.interrupt_when_asked_to_end()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(number)
        signal.signal(number, signal.SIG_IGN)
        server.interrupt_when_asked_to_end()
        signal.raise_signal(number)
    finally:
        signal.signal(number, before)


@pytest.mark.parametrize(
    ("address", "own"),
    [("127.0.0.1", True), ("::1", True), ("localhost", True), ("0.0.0.0", False), ("10.0.0.4", False)],
)
def test_public_address_is_served_read_only_to_any_host_name(monkeypatch, tmp_path, address, own):
    started = {}

    def popen(command, *, env, **options):
        started.update(command=command, env=env)

    monkeypatch.setattr(server.subprocess, "Popen", popen)
    server.start_server(port=8501, logs=tmp_path, address=address)
    assert (started["env"]["UWML_READ_ONLY"] == "") is own
    assert ("--server.allowedHosts=*" not in started["command"]) is own


def test_no_script_run_looks_through_every_object_while_others_wait():
    shipped = tomllib.loads((Path(__file__).parents[2] / ".streamlit" / "config.toml").read_text())
    assert shipped["runner"] == {"postScriptGC": False}
    # the name is one that this version of Streamlit knows
    config.get_option("runner.postScriptGC")
