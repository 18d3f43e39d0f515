"""From nothing to a fleet with two commands, seen by a third, with real processes."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kit.e2e.processes import refuse_old_kubectl

_SKERRY = [sys.executable, "-m", "skerry.cli"]


class Machine:
    """A user's machine: a home, a hub, the commands."""

    def __init__(self, folder: Path) -> None:
        self.hub = folder / "hub"
        scripts = Path(sys.executable).parent
        self.environment = {
            **os.environ,
            "HOME": str(folder),
            "KUBECONFIG": str(self.hub / "admin.kubeconfig"),
            "PATH": f"{scripts}:{os.environ['PATH']}",
        }

    def run(self, *words: str, code: int = 0) -> str:
        done = subprocess.run(
            words, capture_output=True, text=True, timeout=120, check=False, env=self.environment
        )
        assert done.returncode == code, f"{words}: {done.stdout}{done.stderr}"
        return done.stdout if code == 0 else done.stderr

    def skerry(self, *words: str, code: int = 0) -> str:
        return self.run(*_SKERRY, *words, code=code)

    def fleet(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.skerry("fleet", "-o", "json"))
        return {edge["name"]: edge for edge in found["edges"]}


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    refuse_old_kubectl()
    machine = Machine(tmp_path_factory.mktemp("home"))
    machine.skerry("up", "--init", "--detach", "--data-dir", str(machine.hub), "--port", "0")
    machine.run("kubectl", "ws", "root")
    machine.run("kubectl", "ws", "create", "imw", "--enter")
    yield machine
    if (Path(machine.environment["HOME"]) / ".skerry/edges/berlin").exists():
        machine.skerry("edge", "delete", "berlin")
    machine.skerry("down", "--data-dir", str(machine.hub))


@pytest.fixture
def joined(machine: Machine) -> Machine:
    """Return the machine with its edge berlin, whichever tests ran here before."""
    machine.skerry("edge", "join", "berlin", "env=test")
    return machine


def test_one_command_makes_an_edge_and_has_it_join(machine: Machine) -> None:
    before = machine.run("kubectl", "config", "current-context")
    printed = machine.skerry("edge", "join", "berlin", "env=prod")
    assert "edge berlin has joined" in printed
    assert machine.run("kubectl", "config", "current-context") == before, "it is still the hub's"
    assert machine.fleet()["berlin"]["state"] == "Ready"
    location = json.loads(machine.run("kubectl", "get", "location", "berlin", "-o", "json"))
    assert location["metadata"]["labels"] == {"env": "prod"}
    assert re.search(r"berlin +Running +Running", machine.skerry("edge", "list"))

    # Again: nothing is made twice, and what runs goes on running.
    pid = _syncer(machine)
    machine.skerry("edge", "join", "berlin", "env=test")
    assert _syncer(machine) == pid
    location = json.loads(machine.run("kubectl", "get", "location", "berlin", "-o", "json"))
    assert location["metadata"]["labels"] == {"env": "test"}

    machine.skerry("edge", "stop", "berlin")
    assert re.search(r"berlin +Stopped +Stopped", machine.skerry("edge", "list"))
    machine.skerry("edge", "start", "berlin")
    assert re.search(r"berlin +Running +Running", machine.skerry("edge", "list"))
    assert machine.run("kubectl", "config", "current-context") == before, "it is still the hub's"


def test_an_edge_goes_over_to_a_new_sync_target_once_the_old_one_is_gone(joined: Machine) -> None:
    machine = joined
    machine.run("kubectl", "ws", "create", "other", "--ignore-existing")
    said = machine.skerry("edge", "join", "berlin", "--imw", "root:imw:other", code=1)
    assert said.splitlines()[-1] == (
        "skerry edge join: edge berlin belongs to another SyncTarget of this hub; "
        "first: skerry edge delete berlin"
    )
    machine.run("kubectl", "delete", "workspace", "other")
    record = Path(machine.environment["HOME"]) / ".skerry/edges/berlin/processes.json"
    before = record.read_text()
    machine.run("kubectl", "delete", "synctarget", "berlin")
    assert "edge berlin has joined" in machine.skerry("edge", "join", "berlin", "env=test")
    assert machine.fleet()["berlin"]["state"] == "Ready"
    assert record.read_text() == before, "what runs there goes on running"


def test_an_edge_made_anew_has_joined_once_the_hub_hears_of_that_one(joined: Machine) -> None:
    machine = joined
    # The heartbeat of the one before is not a minute old.
    machine.skerry("edge", "delete", "berlin")
    assert machine.fleet()["berlin"]["state"] == "Ready"
    words = ("edge", "join", "berlin", "env=test", "--require-approval", "--wait-seconds", "3")
    said = machine.skerry(*words, code=6)
    assert "the hub has not heard of edge berlin yet" in said
    machine.skerry("edge", "approve", "berlin")
    assert "edge berlin has joined" in machine.skerry("edge", "join", "berlin", "env=test")


def _syncer(machine: Machine) -> int:
    record = Path(machine.environment["HOME"]) / ".skerry/edges/berlin/syncer/process.json"
    pid: int = json.loads(record.read_text())["server"][0]
    return pid


def test_a_cluster_elsewhere_gets_one_manifest(machine: Machine) -> None:
    manifest = machine.skerry("edge", "join", "paris", "env=prod", "--manifest")
    kinds = re.findall(r"^kind: (\w+)$", manifest, re.MULTILINE)
    assert {"Namespace", "Deployment", "Secret", "ClusterRole", "ServiceAccount"} <= set(kinds)
    assert machine.fleet()["paris"]["state"] == "NotJoined"


def test_a_workspace_that_is_no_inventory_is_reported_before_anything_is_made(
    machine: Machine,
) -> None:
    said = machine.skerry("edge", "join", "oslo", "env=prod", "--imw", "root:nowhere", code=2)
    assert "root:nowhere is no inventory workspace that you can use" in said
    assert not (Path(machine.environment["HOME"]) / ".skerry/edges/oslo").exists()


def test_the_fleet_is_watched_on_a_terminal_until_it_is_interrupted(joined: Machine) -> None:
    machine = joined
    machine.skerry("edge", "join", "paris", "env=prod", "--manifest")
    child, terminal = pty.fork()
    if child == 0:
        # Ignored in what a shell runs in the background, and that is inherited.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.execve(sys.executable, [*_SKERRY, "fleet", "--watch"], machine.environment)
    try:
        seen = _read_until(terminal, b"NotJoined")
        assert b"2 edges" in seen
        os.kill(child, signal.SIGINT)
        _drain(terminal)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    finally:
        os.close(terminal)


def _read_until(terminal: int, words: bytes) -> bytes:
    seen = b""
    while words not in seen:
        ready, _, _ = select.select([terminal], [], [], 60)
        assert ready, f"in the end: {seen!r}"
        seen += os.read(terminal, 65536)
    return seen


def _drain(terminal: int) -> None:
    """Read to the end, so that the program can write its farewell."""
    while True:
        try:
            if not os.read(terminal, 65536):
                return
        except OSError:  # the last one on the other side is gone
            return
