"""Logs, commands and ports of a pod at an edge, through processes as people run them."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import socket
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.e2e.processes import refuse_old_kubectl

_BIN = Path(sys.executable).parent
_POD = """
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: shop}
spec:
  containers:
  - name: main
    image: python
    command: ["python3", "-u", "-m", "http.server", "8000", "--directory", "/etc"]
    readinessProbe: {tcpSocket: {port: 8000}, periodSeconds: 1}
"""


class Place:
    """A hub that takes tunnels, and an edge that has dialled one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = {
            "PATH": f"{_BIN}:{os.environ['PATH']}",
            "HOME": str(folder),
            "SKERRY_HOME": str(folder / "home"),
            "TMPDIR": str(folder),
            "KUBECONFIG": str(folder / "hub" / "admin.kubeconfig"),
        }

    def run(self, *words: str, given: str = "", code: int = 0) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            words, cwd=self.folder, env=self.environment, input=given, text=True, timeout=100,
            capture_output=True, check=False,
        )  # fmt: skip
        assert done.returncode == code, f"{words}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done

    def sessions(self) -> list[dict[str, str]]:
        """Return what the audit log says of sessions that have ended."""
        lines = (self.folder / "audit.log").read_text().splitlines()
        events = [event for event in map(json.loads, lines) if "/edges/" in event["requestURI"]]
        ended = [event for event in events if event["stage"] == "ResponseComplete"]
        return [event["annotations"] for event in ended]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    refuse_old_kubectl()
    place = Place(tmp_path_factory.mktemp("tunnel"))
    up = ("skerry", "up", "--detach", "--init", "--no-console", "--data-dir", "hub", "--port", "0")
    place.run(*up, "--tunnel", "--audit-log", str(place.folder / "audit.log"))
    try:
        place.run("kubectl", "ws", "create", "imw", "--enter")
        place.run("skerry", "edge", "join", "florin", "env=prod", "--tunnel")
        at_edge = ("kubectl", "--context", "kind-florin")
        place.run(*at_edge, "create", "namespace", "shop")
        # What a pod needs is made a moment after its namespace.
        wait = (*at_edge, "-n", "shop", "wait", "--timeout=60s")
        place.run(*wait, "--for=create", "serviceaccount/default")
        place.run(*at_edge, "apply", "-f", "-", given=_POD)
        place.run(*wait, "--for=condition=Ready", "pod/web")
        yield place
    finally:
        with contextlib.suppress(AssertionError):
            place.run("skerry", "edge", "delete", "florin")
        place.run("skerry", "down", "--data-dir", "hub")


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
