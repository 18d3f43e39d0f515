"""The small server, as a process of its own on loopback."""

from __future__ import annotations

import http.client
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from skerry.edge.agent import static_server
from tests.kit.ports import free_ports


class Served:
    def __init__(self, root: Path) -> None:
        (self.port,) = free_ports(1)
        path = str(Path(static_server.__file__))
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-S", path, "127.0.0.1", str(self.port), str(root)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stderr is not None
        self.greeting = self.process.stderr.readline()

    def ask(self, method: str, *paths: str) -> list[tuple[int, bytes]]:
        """Ask for several paths over one connection."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        found = []
        for path in paths:
            connection.request(method, path)
            answer = connection.getresponse()
            found.append((answer.status, answer.read()))
        connection.close()
        return found

    def end(self) -> tuple[int, str]:
        self.process.send_signal(signal.SIGTERM)
        output, _ = self.process.communicate(timeout=5)
        return self.process.returncode, output


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "index.html").write_text("hello")
    (tmp_path / "secret").write_text("secret")
    made = Served(tmp_path / "root")
    yield made
    made.process.kill()
    made.process.communicate()


def test_files_below_the_root_are_served_logged_and_nothing_else(served: Served) -> None:
    assert served.greeting.endswith(f"on port {served.port}\n")
    paths = ("/", "/none", "/../secret", "/%2e%2e/secret")
    first, missing, *outside = served.ask("GET", *paths)
    assert first == (200, b"hello")
    assert missing[0] == 404
    assert [status for status, _ in outside] == [404, 404]
    assert served.ask("HEAD", "/") == [(200, b"")]
    assert served.ask("POST", "/")[0][0] == 501
    code, log = served.end()
    assert code == 0
    assert "127.0.0.1 - - [" in log
    assert '"GET / HTTP/1.1" 200 -\n' in log


def test_what_clients_ask_is_logged_as_text_that_is_only_read(served: Served) -> None:
    with socket.create_connection(("127.0.0.1", served.port), timeout=5) as client:
        client.sendall(b"GET /a\x1b[2J\x9b2J\x07\xe5 HTTP/1.1\r\nConnection: close\r\n\r\n")
        while client.recv(4096):
            pass
    _, log = served.end()
    assert '"GET /a\\x1b[2J\\x9b2J\\x07\\xe5 HTTP/1.1"' in log
    assert all(line.isprintable() for line in log.splitlines())
