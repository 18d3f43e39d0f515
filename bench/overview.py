"""``skerry fleet`` at a hub with 10,000 edges and 100 placements, as a person starts it.

The hub is a process without edge controllers; what those and the syncers would have written of
edges and placements is written here, and the hub itself judges the heartbeats. The command is run
whole, interpreter and all, several times; the first screen ends with it.

    python -m bench overview
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from bench.edge_hub import (
    EDGE,
    bind,
    body,
    connected,
    for_each,
    make_workspace,
    sync_target,
)
from bench.report import Row, table
from bench.servers import Measured, ours
from skerry.api.edge import EDGE_PLACEMENTS, HEARTBEAT_LEASE_SECONDS, MAX_LEASE_SECONDS
from skerry.api.kcp.resources import SYNC_TARGETS
from skerry.api.objects import Object
from skerry.kit.timestamps import rfc3339

_SUITE = "overview"
_EDGES = 10_000
_PLACEMENTS = 100
_INVENTORIES = 4
_ROUNDS = 5
_MAX_SECONDS = 1.0
_MAX_MB = 150.0
_SINCE = "2026-03-01T12:00:00Z"
_WANTED = "10,000 edges: 9,900 ready, 100 lost"
_COMMAND = (sys.executable, "-m", "skerry.cli", "fleet")


def run() -> list[Row]:
    """Measure everything."""
    with ours("hub", ["--init"]) as hub:
        asyncio.run(_fill(hub.kubeconfig))
        return _measured(hub)


async def _fill(kubeconfig: Path) -> None:
    async with connected(kubeconfig) as client:
        inventories = [
            await make_workspace(client, "root", f"imw-{number}") for number in range(_INVENTORIES)
        ]

        async def edge(number: int) -> None:
            inventory = client.at("", inventories[number % _INVENTORIES])
            labels = {"id": f"edge-{number}", "region": f"r{number % 20}", "env": "prod"}
            target = sync_target(f"edge-{number}", labels)
            # None of them lapses meanwhile.
            target["metadata"]["annotations"] = {HEARTBEAT_LEASE_SECONDS: str(MAX_LEASE_SECONDS)}
            made = await inventory.create(SYNC_TARGETS, target)
            made["status"] = _standing(number)
            await inventory.update_status(SYNC_TARGETS, made)

        await for_each(_EDGES, edge)
        owner = await make_workspace(client, "root", "shop")
        await bind(client, owner, "edge.kcp.io")
        workspace = client.at("", owner)

        async def placement(number: int) -> None:
            spec = {"locationSelectors": [{"matchLabels": {"env": "prod"}}]}
            obj = body(EDGE, "EdgePlacement", f"p{number}", spec=spec)
            made = await workspace.create(EDGE_PLACEMENTS, obj)
            made["status"] = _outcome(number)
            await workspace.update_status(EDGE_PLACEMENTS, made)

        await for_each(_PLACEMENTS, placement)


def _condition(kind: str, status: str, message: str = "") -> Object:
    return {
        "type": kind,
        "status": status,
        "reason": kind if status == "True" else f"Not{kind}",
        "message": message,
        "lastTransitionTime": _SINCE,
    }


def _standing(number: int) -> Object:
    """What mailbox controller and syncer say of an edge: one in a hundred is lost."""
    heard = _SINCE if number % 100 == 0 else rfc3339(datetime.now(UTC))
    return {
        "lastSyncerHeartbeatTime": heard,
        "objects": {"wanted": 12, "applied": 12, "refused": 0, "unhealthy": 0, "held": 0},
        "syncerVersion": "0.1.0",
        "conditions": [_condition("Held", "False"), _condition("ObjectsRefused", "False")],
    }


def _outcome(number: int) -> Object:
    ready = "True" if number % 10 else "False"
    return {
        "specGeneration": 1,
        "observedGeneration": 1,
        "matchingLocationCount": _EDGES,
        "destinationCount": _EDGES,
        "deliveredDestinations": _EDGES,
        "healthyDestinations": _EDGES - number,
        "unhealthyDestinations": number,
        "unknownDestinations": 0,
        "conditions": [
            _condition(kind, ready, "9,990 of 10,000 destinations")
            for kind in ("Scheduled", "Delivered", "Healthy", "ConflictFree", "Ready")
        ],
    }


def _shown(environment: dict[str, str]) -> str:
    done = subprocess.run(_COMMAND, env=environment, text=True, capture_output=True, check=True)
    return done.stdout


def _measured(hub: Measured) -> list[Row]:
    walls, own, server, resident = [], [], [], []
    environment = {**os.environ, "KUBECONFIG": str(hub.kubeconfig)}
    while _WANTED not in _shown(environment):
        pass  # the hub still judges heartbeats
    for _ in range(_ROUNDS):
        used, began = hub.cpu_seconds(), time.perf_counter()
        process = subprocess.Popen(
            _COMMAND,
            stdout=subprocess.PIPE,
            env=environment,
        )
        assert process.stdout is not None
        shown = process.stdout.read().decode()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        walls.append(time.perf_counter() - began)
        assert process.returncode == 0, shown
        assert _WANTED in shown, shown
        own.append(usage.ru_utime + usage.ru_stime)
        resident.append(usage.ru_maxrss / 1024)
        server.append(hub.cpu_seconds() - used)
    wall = sorted(walls)[_ROUNDS // 2]
    memory = max(resident)
    note = f"CPU s: command {min(own):.2f}, hub {min(server):.2f}; best {min(walls):.2f} s"
    name = f"{_EDGES:,} edges, {_PLACEMENTS} placements"
    return [
        Row(_SUITE, f"skerry fleet, {name}: whole command, median", wall, "s",
            f"under {_MAX_SECONDS:g} s", wall < _MAX_SECONDS, note),
        Row(_SUITE, f"skerry fleet, {name}: most memory", memory, "MB",
            f"under {_MAX_MB:g} MB", memory < _MAX_MB),
    ]  # fmt: skip


if __name__ == "__main__":
    print(table(run()))
