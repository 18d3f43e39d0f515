"""Logs, commands and ports of a pod at an edge, through processes as people run them."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import socket
import struct
import subprocess
import termios
from collections.abc import Iterator

import pytest

from tests.kit.e2e.processes import refuse_old_kubectl
from tests.kit.e2e.tunnel import Place, tunnel_place


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    refuse_old_kubectl()
    with tunnel_place(tmp_path_factory.mktemp("tunnel"), "--no-console") as place:
        yield place


def test_a_log_is_shown_and_what_keeps_it_is_said(place: Place) -> None:
    assert "Serving HTTP" in place.run("skerry", "logs", "florin", "web", "-n", "shop").stdout
    refused = place.run("skerry", "logs", "florin", "nobody", "-n", "shop", code=1)
    assert refused.stderr == 'skerry logs: pods "nobody" not found\n'
    refused = place.run("skerry", "logs", "guilder", "web", "-n", "shop", code=1)
    assert refused.stderr.startswith('skerry logs: edge "guilder": it is none of this workspace')


def test_a_command_has_its_streams_and_its_exit_code(place: Place) -> None:
    script = "cat; echo wrong >&2; exit 7"
    words = ("skerry", "exec", "florin", "web", "-n", "shop", "-i", "--", "sh", "-c", script)
    done = place.run(*words, given="typed\n" * 20_000, code=7)
    assert (done.stdout, done.stderr) == ("typed\n" * 20_000, "wrong\n")


def test_a_terminal_has_the_size_of_the_one_it_is_seen_in(place: Place) -> None:
    mine, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 33, 111, 0, 0))
    script = "while [ \"$(stty size)\" != '33 111' ]; do :; done; stty size; exit 3"
    words = ["skerry", "exec", "florin", "web", "-n", "shop", "-it", "--", "sh", "-c", script]
    with subprocess.Popen(
        words, cwd=place.folder, env=place.environment, stdin=its, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.read() == b"33 111\r\n"
        assert process.wait(60) == 3
    os.close(mine)
    os.close(its)


@contextlib.contextmanager
def _running(place: Place, stdin: int, *command: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a command with a terminal at the edge; it is gone when the context is left."""
    words = ["skerry", "exec", "florin", "web", "-n", "shop", "-it", "--", *command]
    with subprocess.Popen(
        words, cwd=place.folder, env=place.environment, stdin=stdin, stdout=subprocess.PIPE
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def test_a_shell_with_a_terminal_ends_with_its_own_exit_code(place: Place) -> None:
    mine, its = pty.openpty()
    with _running(place, its, "sh") as process:
        assert process.stdout is not None
        assert process.stdout.read(1) == b"#"
        os.write(mine, b"exit 3\r")
        assert process.wait(60) == 3
    os.close(mine)
    os.close(its)


def test_a_port_is_forwarded_and_the_end_of_the_edge_is_said(place: Place) -> None:
    words = ["skerry", "port-forward", "florin", "web", ":8000", "-n", "shop"]
    with contextlib.ExitStack() as stack:
        process = stack.enter_context(
            subprocess.Popen(
                words, cwd=place.folder, env=place.environment, text=True,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            )
        )  # fmt: skip
        stack.callback(process.kill)
        assert process.stdout is not None
        assert process.stderr is not None
        where, _, to = process.stdout.readline().removeprefix("Forwarding from ").partition(" -> ")
        host, _, port = where.partition(":")
        assert (host, to) == ("127.0.0.1", "8000\n")
        for _ in range(3):
            with socket.create_connection((host, int(port)), 30) as line:
                line.sendall(b"GET /hostname HTTP/1.0\r\n\r\n")
                with line.makefile("rb") as answer:
                    assert answer.read().startswith(b"HTTP/1.0 200 OK")
        place.run("skerry", "edge", "revoke", "florin")
        assert process.wait(60) == 1
        said = process.stderr.read()
    assert said.startswith('skerry port-forward: edge "root:imw:florin" has no tunnel: it was lost')
    place.run("skerry", "down", "--data-dir", "hub")
    actions = {notes.get("edge.kcp.io/tunnel-action") for notes in place.sessions()}
    assert {"log", "exec", "portforward"} <= actions
