"""skerry up, status and down, as commands."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

_SKERRY = [sys.executable, "-m", "skerry.cli"]


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*_SKERRY, *arguments], capture_output=True, text=True, timeout=60, check=False
    )


def _parts(data: Path) -> dict[str, Any]:
    status = json.loads(_run("status", "--data-dir", str(data), "-o", "json").stdout)
    return {part["name"]: part for part in status["parts"]}


@pytest.fixture
def data(tmp_path: Path) -> Any:
    yield tmp_path / "data"
    _run("down", "--data-dir", str(tmp_path / "data"))


def test_a_hub_that_is_killed_comes_back_and_down_ends_it(data: Path) -> None:
    started = _run("up", "--detach", "--data-dir", str(data), "--port", "0")
    assert started.returncode == 0, started.stderr
    assert "skerry up ready at https://127.0.0.1:" in started.stdout
    first = _parts(data)["hub"]
    assert first["running"]
    url = _url(data)

    ended = os.pidfd_open(first["pid"])
    os.kill(first["pid"], signal.SIGKILL)
    _wait(ended)
    # Starting is idempotent: it waits for the supervisor's new child or starts a new pair.
    again = _run("up", "--detach", "--data-dir", str(data), "--port", "0")
    assert again.returncode == 0, again.stderr
    second = _parts(data)["hub"]
    assert second["running"]
    assert second["pid"] != first["pid"]
    assert _url(data) == url, "the file names another address"

    assert _run("down", "--data-dir", str(data)).returncode == 0
    assert not _parts(data)["hub"]["running"]
    assert _run("status", "--data-dir", str(data)).returncode == 1


def test_a_hub_that_cannot_start_is_reported_in_one_sentence(data: Path, tmp_path: Path) -> None:
    refused = _run("up", "--detach", "--data-dir", str(data), "--bind-address", "203.0.113.1")
    assert refused.returncode == 1
    assert "the hub did not start" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_a_hub_started_by_hand_is_seen_respected_and_ended(data: Path) -> None:
    hub = subprocess.Popen(
        [*_SKERRY, "hub", "--data-dir", str(data), "--port", "0"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert hub.stdout is not None
    assert "ready" in hub.stdout.readline()
    assert _parts(data)["hub"] == {
        "name": "hub",
        "running": True,
        "pid": hub.pid,
        "supervised": False,
    }
    second = _run("hub", "--data-dir", str(data), "--port", "0")
    assert second.returncode == 1
    refused = _run("up", "--detach", "--data-dir", str(data))
    assert refused.returncode == 1
    assert f"first: skerry down --data-dir {data}" in refused.stderr
    assert refused.stderr.count("\n") == 1
    assert _parts(data)["hub"]["running"]
    assert _run("down", "--data-dir", str(data)).returncode == 0
    hub.communicate(timeout=60)
    assert hub.returncode == 0, "it was asked, not killed"
    assert not (data / "hub.json").exists()
    assert not _parts(data)["hub"]["running"]


def _url(data: Path) -> str:
    return str(json.loads(_run("status", "--data-dir", str(data), "-o", "json").stdout)["url"])


def _wait(descriptor: int) -> None:
    select.select([descriptor], [], [], 20)
    os.close(descriptor)
