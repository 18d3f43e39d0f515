"""The example scenario as a new user plays it: one command, two edges, three pages."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from skerry.app.edge_process import EdgeProcess

SKERRY = Path(sys.executable).with_name("skerry")


@contextlib.contextmanager
def _reserved(count: int) -> Iterator[list[socket.socket]]:
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]


def free_ports(count: int) -> list[str]:
    """Return ports that nobody has now."""
    with _reserved(count) as sockets:
        return [str(each.getsockname()[1]) for each in sockets]


def _play(*flags: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(SKERRY), "demo", "--once", *flags],
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )


def test_every_stage_of_the_scenario_holds(tmp_path: Path) -> None:
    ended = _play("--ports", *free_ports(3), "--data-dir", str(tmp_path / "demo"))
    assert ended.returncode == 0, ended.stdout + ended.stderr
    stages = [line for line in ended.stdout.splitlines() if line.startswith("ok   Stage")]
    assert len(stages) == 9, ended.stdout
    assert ended.stdout.count("This is a common web site.") == 2
    assert ended.stdout.count("This is a special web site.") == 1
    assert "commond: 2 of 2 healthy; speciald: 1 of 1 healthy" in ended.stdout
    assert ended.stderr == ""


def test_a_port_that_is_taken_is_told_in_one_sentence(tmp_path: Path) -> None:
    with _reserved(1) as taken:
        port = str(taken[0].getsockname()[1])
        ended = _play("--ports", port, *free_ports(2), "--data-dir", str(tmp_path / "demo"))
    assert ended.returncode == 1
    failed = [line for line in ended.stdout.splitlines() if line.startswith("FAIL")]
    assert len(failed) == 1
    assert f"port {port}" in failed[0]
    assert "Traceback" not in ended.stdout + ended.stderr
    home = tmp_path / "demo" / "edges"
    assert [name for name in ("florin", "guilder") if EdgeProcess(name, home / name).running] == []
