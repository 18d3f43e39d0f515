"""The example scenario as a new user plays it: one command, two edges, three pages."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from skerry.app.edge_process import EdgeProcess
from tests.kit.e2e.processes import reserved
from tests.kit.ports import free_ports

SKERRY = Path(sys.executable).with_name("skerry")


def _play(*flags: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(SKERRY), "demo", "--once", *flags],
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )


def test_every_stage_of_the_scenario_holds(tmp_path: Path) -> None:
    ended = _play("--ports", *map(str, free_ports(3)), "--data-dir", str(tmp_path / "demo"))
    assert ended.returncode == 0, ended.stdout + ended.stderr
    stages = [line for line in ended.stdout.splitlines() if line.startswith("ok   Stage")]
    assert len(stages) == 9, ended.stdout
    assert ended.stdout.count("This is a common web site.") == 2
    assert ended.stdout.count("This is a special web site.") == 1
    assert "commond: 2 of 2 healthy; speciald: 1 of 1 healthy" in ended.stdout
    assert ended.stderr == ""


def test_ports_that_are_taken_are_reported_in_one_sentence(tmp_path: Path) -> None:
    with reserved(2) as taken:
        ports = [str(each.getsockname()[1]) for each in taken]
        ended = _play(
            "--ports", *ports, *map(str, free_ports(1)), "--data-dir", str(tmp_path / "demo")
        )
    assert ended.returncode == 1
    assert ended.stdout == ""
    for port in ports:
        assert f"port {port} is taken by another program" in ended.stderr
    assert ended.stderr.startswith("Error: ")
    assert ended.stderr.count("\n") == 1
    assert not (tmp_path / "demo").exists()


def test_what_a_killed_demo_left_is_ended_by_the_next_one(tmp_path: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    first = subprocess.Popen(
        [str(SKERRY), "demo", "--ports", *map(str, free_ports(3))],
        stdout=subprocess.PIPE, text=True, env=environment,
    )  # fmt: skip
    assert first.stdout is not None
    assert "ok   Stage 1: two edge clusters" in first.stdout.readline()
    first.kill()
    first.communicate()
    (left,) = tmp_path.glob("skerry-demo-*")
    edges = [EdgeProcess(name, left / "data" / "edges" / name) for name in ("florin", "guilder")]
    assert all(edge.running for edge in edges)
    pids = [edge.process.pid for edge in edges]
    second = subprocess.run(
        [str(SKERRY), "demo", "--story", "server", "--once"],
        capture_output=True, text=True, check=False, timeout=120, env=environment,
    )  # fmt: skip
    assert second.returncode == 0, second.stdout + second.stderr
    expected = f"An earlier demo was killed; what it had left running in {left} was ended."
    assert second.stdout.splitlines()[0] == expected
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)
    assert list(tmp_path.glob("skerry-demo-*")) == []
