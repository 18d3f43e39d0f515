"""A thousand edges at one hub, idle: what they cost the hub and the line.

A hub process, 1,000 mailboxes with an identity and one object each, and the edges' syncers in a
few processes. Everything runs in a network namespace of its own, so that the loopback device
counts what passes between them and nothing else: TLS, TCP and IP, both ways, acknowledgements
and keep-alive probes included. Where no namespace can be made, traffic is not measured.

    python -m bench fleet
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import yaml

from bench.report import Row, table
from bench.servers import Measured, ours
from skerry.api.edge import SYNCER_CONFIGS
from skerry.api.edge_identity import EDGES, REQUESTS, EdgeName, certificate_request
from skerry.api.errors import ApiError
from skerry.api.kcp.resources import API_BINDINGS, SYNC_TARGETS, WORKSPACES
from skerry.api.kinds import GroupVersionResource
from skerry.app.edge_identity import HubAccess, edge_of, issue, mailbox_of, open_hub
from skerry.edge.syncer.identity.signing_request import Subject, signing_request
from skerry.runtime.client import Client, WriteOptions
from skerry.runtime.kubeconfig import connect, load

_SUITE = "fleet"
_EDGES = 1000
_PROCESSES = 2
# A whole round of everything that happens now and then at an idle edge, heartbeats included.
_WINDOW_SECONDS = {30.0: 150.0, 300.0: 600.0}
_SETTLE_SECONDS = 30.0
_MAX = {30.0: 1.0, 300.0: 0.25}
# The loopback device counts an Ethernet head that no line has.
_ETHERNET_BYTES = 14

_NAMESPACES = GroupVersionResource("", "v1", "namespaces")
_CONFIG_MAPS = GroupVersionResource("", "v1", "configmaps")
_OPTIONS = WriteOptions(field_manager="bench")
_PROVIDER = "root:espw"
_INVENTORY = "root:fleet"


def applied(kind: str, version: str, name: str, content: dict[str, Any]) -> dict[str, Any]:
    """Return an object to apply."""
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, **content}


async def put(client: Client, gvr: GroupVersionResource, obj: dict[str, Any], place: str) -> None:
    """Apply an object; a type may need a moment to be there."""
    for _ in range(50):
        try:
            await client.patch(
                gvr, obj["metadata"]["name"], obj, place, kind="apply", force=True, options=_OPTIONS
            )
        except ApiError as error:
            if error.code not in (403, 404, 409):
                raise
            await asyncio.sleep(0.1)
        else:
            return
    raise RuntimeError(f"{gvr} {obj['metadata']['name']} cannot be applied")


async def mailbox(hub: HubAccess, number: int, folder: Path) -> None:
    """Make one edge's mailbox, with an identity and an object that goes down."""
    name, namespace = f"edge-{number}", f"shop-{number}"
    target = applied("SyncTarget", "workload.kcp.io/v1alpha1", name, {"spec": {}})
    box = mailbox_of(await hub.at(_INVENTORY).create(SYNC_TARGETS, target))
    await hub.at(_PROVIDER).create(WORKSPACES, workspace(box.workspace))
    edge = await edge_of(hub, name, _INVENTORY, _PROVIDER)
    client = hub.at(edge.mailbox)
    reference = {"spec": {"reference": {"export": {"path": _PROVIDER, "name": "edge.kcp.io"}}}}
    binding = applied("APIBinding", "apis.kcp.io/v1alpha1", "bind-edge", reference)
    await put(client, API_BINDINGS, binding, "")
    await put(client, _NAMESPACES, projected(applied("Namespace", "v1", namespace, {})), "")
    maps = {"group": "", "resource": "configmaps", "apiVersion": "v1"}
    scope = {"spec": {"namespaceScope": {"namespaces": [namespace], "resources": [maps]}}}
    await put(
        client,
        SYNCER_CONFIGS,
        applied("SyncerConfig", "edge.kcp.io/v1alpha1", "the-one", scope),
        "",
    )
    page = applied("ConfigMap", "v1", "page", {"data": {"number": str(number)}})
    await put(client, _CONFIG_MAPS, projected(page), namespace)
    path = folder / f"{name}.kubeconfig"
    path.write_text(yaml.safe_dump(await issue(hub, name, edge)))
    await redeem(path, edge)


def workspace(name: str) -> dict[str, Any]:
    kind = {"spec": {"type": {"name": "universal", "path": "root"}}}
    return applied("Workspace", "tenancy.kcp.io/v1alpha1", name, kind)


def projected(obj: dict[str, Any]) -> dict[str, Any]:
    metadata = {**obj["metadata"], "labels": {"edge.kcp.io/projected": "yes"}}
    return {**obj, "metadata": metadata}


async def redeem(path: Path, edge: EdgeName) -> None:
    """Put the certificate into the kubeconfig that its bootstrap credential came with.

    The key is made right here: a program for each of a thousand would be what is measured.
    """
    made = signing_request(Subject(edge.common_name, EDGES))
    bearer = Client(connect(load([path])))
    body = certificate_request(made.name, made.request.encode())
    answer = await bearer.create(REQUESTS, body)
    await bearer.transport.close()
    config = yaml.safe_load(path.read_text())
    config["users"][0]["user"] = {
        "client-certificate-data": answer["status"]["certificate"],
        "client-key-data": base64.b64encode(made.key.encode()).decode(),
    }
    path.write_text(yaml.safe_dump(config))


async def mailboxes(kubeconfig: Path, count: int, folder: Path) -> None:
    """Make all mailboxes."""
    hub = open_hub([kubeconfig])
    await hub.at("root").create(WORKSPACES, workspace(_INVENTORY.rpartition(":")[2]))
    room = asyncio.Semaphore(16)

    async def one(number: int) -> None:
        async with room:
            await mailbox(hub, number, folder)

    try:
        await asyncio.gather(*(one(number) for number in range(count)))
    finally:
        await hub.client.transport.close()


@contextmanager
def edges(folder: Path, count: int, heartbeat: float) -> Iterator[None]:
    """Have the edges at work."""
    share = -(-count // _PROCESSES)
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "bench.fleet_edges", str(folder), str(first),
             str(min(count, first + share)), str(heartbeat)],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )
        for first in range(0, count, share)
    ]  # fmt: skip
    try:
        for process in processes:
            assert process.stdout is not None
            if "ready" not in process.stdout.readline():
                raise RuntimeError("the edges did not start")
        yield
    finally:
        for process in processes:
            process.send_signal(signal.SIGTERM)
        for process in processes:
            process.wait(60)


def passed() -> int:
    """Return the bytes that have passed the loopback device, as IP packets."""
    for line in Path("/proc/net/dev").read_text().splitlines():
        name, _, rest = line.partition(":")
        if name.strip() == "lo":
            received = rest.split()
            return int(received[0]) - _ETHERNET_BYTES * int(received[1])
    return 0


def idle(hub: Measured, folder: Path, count: int, heartbeat: float, seconds: float) -> list[Row]:
    """Let the edges be idle for *seconds*; return what that cost."""
    alone = hub.resident_mb()
    with edges(folder, count, heartbeat):
        time.sleep(_SETTLE_SECONDS)
        cpu, line, began = hub.cpu_seconds(), passed(), time.perf_counter()
        time.sleep(seconds)
        lasted = time.perf_counter() - began
        percent = 100 * (hub.cpu_seconds() - cpu) / lasted
        rate = (passed() - line) * 8 / lasted / count / 1000
    every = f"heartbeat every {heartbeat:g} s"
    note = f"{count} edges, {lasted:.0f} s"
    limit = _MAX[heartbeat]
    return [
        Row(_SUITE, f"hub CPU, {every}", percent, "%", "< 10 %", percent < 10, note),
        Row(_SUITE, f"line per edge, {every}", rate, "kbit/s", f"< {limit:g} kbit/s",
            rate < limit, note),
        Row(_SUITE, f"hub memory, {every}", hub.resident_mb(), "MB",
            note=f"{note}, {alone:.0f} MB before they came"),
    ]  # fmt: skip


def inside(count: int, scale: float) -> list[Row]:
    """Measure, in a network namespace that is ours alone."""
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    with ours("hub", ["--init"]) as hub, tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        began = time.perf_counter()
        asyncio.run(mailboxes(hub.kubeconfig, count, folder))
        print(f"{count} mailboxes in {time.perf_counter() - began:.0f} s", file=sys.stderr)
        return [
            row
            for heartbeat, seconds in _WINDOW_SECONDS.items()
            for row in idle(hub, folder, count, heartbeat, seconds * scale)
        ]


def run(count: int = _EDGES, scale: float = 1.0) -> list[Row]:
    """Measure in a network namespace of its own."""
    command = ["unshare", "-n"] if os.geteuid() == 0 else ["unshare", "-rn"]
    flags = ["--inside", "--edges", str(count), "--scale", str(scale)]
    done = subprocess.run(
        [*command, sys.executable, "-m", "bench.fleet", *flags],
        stdout=subprocess.PIPE, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        return [Row(_SUITE, "fleet", 0, "", note="not measured: needs unshare -n and ip")]
    return [Row(**raw) for raw in json.loads(done.stdout)]


def main() -> None:
    """Measure here, or in a namespace."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--inside", action="store_true")
    parser.add_argument("--edges", type=int, default=_EDGES)
    parser.add_argument("--scale", type=float, default=1.0)
    given = parser.parse_args()
    if given.inside:
        print(json.dumps([asdict(row) for row in inside(given.edges, given.scale)]))
    else:
        print(table(run(given.edges, given.scale)))


if __name__ == "__main__":
    main()
