"""skerry demo as a process, without kubectl."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from pathlib import Path

SKERRY = Path(sys.executable).with_name("skerry")


def test_once_plays_every_stop_and_leaves_nothing_behind(tmp_path: Path) -> None:
    ended = subprocess.run(
        [str(SKERRY), "demo", "--story", "server", "--once"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={"PATH": "", "HOME": str(tmp_path), "TMPDIR": str(tmp_path)},
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    lines = ended.stdout.splitlines()
    assert lines[0].startswith("A Kubernetes API server is ready at https://")
    assert len(lines) == 11
    assert all(line.startswith("ok   ") for line in lines[1:])
    assert ended.stderr == ""
    assert list(tmp_path.iterdir()) == []


def test_it_stays_up_for_kubectl_until_it_is_stopped(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [str(SKERRY), "demo", "--story", "server", "--data-dir", str(tmp_path / "d")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    for line in process.stdout:
        if "kubectl explain" in line:
            break
    assert (tmp_path / "d" / "admin.kubeconfig").exists()
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 0
    assert errors == ""


def test_a_taken_port_is_reported_in_one_sentence() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        ended = subprocess.run(
            [str(SKERRY), "demo", "--story", "server", "--once", "--port", port],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
    assert ended.returncode == 1
    assert ended.stderr.startswith(f"Error: cannot listen on 127.0.0.1:{port}: ")
    assert ended.stderr.count("\n") == 1
