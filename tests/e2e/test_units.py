"""The services of ``deploy/systemd``, started as their units say and as their users."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.e2e.processes import Kubectl, ServerProcess
from tests.kit.e2e.units import Machine, Service, settings_of
from tests.kit.e2e.walkthrough import Terminal
from tests.kit.ports import free_ports

SYSTEMD = Path(__file__).parents[2] / "deploy" / "systemd"
UNITS = sorted(SYSTEMD.glob("*.service"))
USERS = {"skerry": 64001, "skerry-syncer": 64002}
# What every service must be kept from, whatever it is.
HARDENED = {
    "NoNewPrivileges": "true",
    "ProtectSystem": "strict",
    "ProtectHome": "true",
    "PrivateTmp": "true",
    "PrivateDevices": "true",
    "RestrictNamespaces": "true",
    "UMask": "0077",
}


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    if os.geteuid() != 0:
        pytest.skip("only root becomes a service's user")
    for parent in (tmp_path, *tmp_path.parents[:2]):
        parent.chmod(0o755)
    return Machine(tmp_path / "machine", USERS)


@pytest.fixture
def edge(tmp_path: Path) -> Iterator[ServerProcess]:
    process = ServerProcess(tmp_path / "edge")
    process.start()
    yield process
    process.kill()


def test_hub_controllers_and_syncer_run_as_their_units_say(
    machine: Machine, edge: ServerProcess, tmp_path: Path
) -> None:
    (port,) = free_ports(1)
    running = [
        Service(machine, SYSTEMD / "skerry-hub.service", flags=f"--init --port {port}"),
        Service(machine, SYSTEMD / "skerry-controllers.service",
                flags="--server-bind-address 127.0.0.1:0"),
    ]  # fmt: skip
    assert "skerry hub ready at https://" in running[0].start()
    state = machine.state / "skerry"
    assert (state / "admin.kubeconfig").stat().st_uid == USERS["skerry"]
    try:
        running[1].start()
        terminal = Terminal(tmp_path / "terminal")
        shutil.copy(state / "admin.kubeconfig", terminal.folder / "admin.kubeconfig")
        terminal.export(KUBECONFIG=str(terminal.folder / "admin.kubeconfig"))
        terminal(
            "kubectl ws root; kubectl ws create imw --enter\n"
            "kubectl kubestellar ensure location florin env=prod\n"
            "skerry edge bootstrap florin --imw root:imw -o florin-hub.kubeconfig"
        )
        for name, source in (("hub", terminal.folder / "florin-hub.kubeconfig"),
                             ("edge", edge.kubeconfig)):  # fmt: skip
            machine.configure(f"florin/{name}.kubeconfig", source.read_bytes(), "skerry-syncer")
        running.append(Service(machine, SYSTEMD / "skerry-syncer@.service", "florin"))
        assert "skerry syncer ready for florin" in running[-1].start()
        Kubectl(edge.kubeconfig, tmp_path).until("skerry-syncer", "get", "leases", "-o", "name")
        kept = machine.state / "skerry-syncer" / "florin"
        assert {path.stat().st_uid for path in kept.iterdir()} == {USERS["skerry-syncer"]}
    finally:
        for service in reversed(running):
            service.stop()


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_a_service_is_confined_restarted_and_says_when_it_is_ready(unit: Path) -> None:
    settings = settings_of(unit, "florin")
    assert {name: settings[name] for name in HARDENED} == {k: [v] for k, v in HARDENED.items()}
    assert settings["CapabilityBoundingSet"] == []
    assert settings["Type"] == ["notify"]
    assert settings["Restart"] == ["always"]
    # It writes below its state directory only.
    (command,) = settings["ExecStart"]
    below = " ".join(settings["StateDirectory"]).split()
    assert any(f"/var/lib/{name}" in command for name in below)


def test_the_users_of_the_units_are_declared() -> None:
    declared = {
        line.split()[1]
        for line in (SYSTEMD / "skerry.sysusers").read_text().splitlines()
        if line.startswith("u ")
    }
    assert declared == {settings_of(unit)["User"][0] for unit in UNITS} == set(USERS)


@pytest.mark.skipif(shutil.which("systemd-sysusers") is None, reason="systemd is not here")
def test_systemd_makes_the_users(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    subprocess.run(
        ["systemd-sysusers", f"--root={tmp_path}", str(SYSTEMD / "skerry.sysusers")],
        check=True,
        capture_output=True,
    )
    made = [line.split(":") for line in (tmp_path / "etc" / "passwd").read_text().splitlines()]
    assert {fields[0] for fields in made} == set(USERS)
    assert {fields[6] for fields in made} == {"/usr/sbin/nologin"}
