"""The hub of a storm: a process that is killed and started again, and a fleet to fill it with.

    python -m bench.storm_hub FOLDER EDGES

makes that many edges in a folder, with ``SKERRY_BENCH_OBJECTS`` objects each, and nothing else.
What was made in a folder stays there, and the next run with that folder begins with it; what was
interrupted is completed.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from datetime import timedelta
from pathlib import Path

from cryptography import x509

from bench.edge_hub import (
    COMPUTE,
    CONFIG_MAPS,
    EDGE,
    NAMESPACES,
    PROVIDER,
    bind,
    body,
    connected,
    controlling,
    for_each,
    mailbox_clusters,
    make_edges,
    make_workspace,
)
from bench.servers import Measured, from_kubeconfig
from bench.storm_syncers import Edge
from skerry.api.edge import EDGE_PLACEMENTS, mailbox_named
from skerry.api.edge_identity import EDGES, EdgeName
from skerry.api.errors import AlreadyExists, NotFound
from skerry.api.kcp.resources import WORKSPACES
from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.edge.syncer.identity.signing_request import Subject, signing_request
from skerry.kit.clock import SystemClock
from skerry.kit.ids import SystemIds
from skerry.runtime.client import Client
from skerry.server.security.pki import Authority, Credential
from skerry.server.workspaces.edge_certificates import EdgeIssuer

_DEPLOYMENTS = GroupVersionResource("apps", "v1", "deployments")
OBJECTS = int(os.environ.get("SKERRY_BENCH_OBJECTS", "20"))
_INVENTORY, _WORKLOAD = "root:storm-inventory", "root:storm-workload"
# What a hub has open besides its edges' connections: those of controllers, its own files, and
# connections that edges have given up while they waited.
_OTHER_FILES = 1000


class Hub:
    """A hub on one port and one folder."""

    def __init__(self, folder: Path) -> None:
        self._data = folder / "data"
        self._complete = folder / "complete"
        self._port = "0"
        self._process: subprocess.Popen[str] | None = None

    def has(self, edges: int, objects: int) -> bool:
        """Tell whether a fleet of that size was made here before."""
        made = self._complete.read_text() if self._complete.exists() else ""
        return made == f"{edges} x {objects}"

    def complete(self, edges: int, objects: int) -> None:
        """Note that a fleet of that size is there, whole."""
        self._complete.write_text(f"{edges} x {objects}")

    def start(self) -> Measured:
        """Start it; returns when it is ready."""
        began = time.perf_counter()
        process = self._process = subprocess.Popen(
            [sys.executable, "-m", "skerry.cli", "hub", "--init", "-v", "0",
             "--data-dir", str(self._data), "--port", self._port],
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert process.stdout is not None
        line = process.stdout.readline()
        if " ready at " not in line:
            raise RuntimeError(f"skerry hub did not start: {line!r}")
        kubeconfig = self._data / "admin.kubeconfig"
        server = from_kubeconfig(kubeconfig)
        self._port = str(server.port)
        return Measured(server, kubeconfig, process, time.perf_counter() - began)

    def end(self, how: signal.Signals) -> None:
        """End it, politely or not."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(60)

    def certified(self, mailboxes: Iterable[EdgeName]) -> list[Edge]:
        """Return edges with certificates of the hub's own authority, as enrolment issues them."""
        pki, clock = self._data / "pki", SystemClock()
        ca = Credential((pki / "ca.crt").read_bytes(), (pki / "ca.key").read_bytes())
        authority = Authority(ca, clock)
        issuer = EdgeIssuer(lambda: authority, clock, SystemIds(), timedelta(days=7))
        made = []
        for name in mailboxes:
            asked = signing_request(Subject(name.common_name, EDGES))
            request = x509.load_pem_x509_csr(asked.request.encode())
            made.append(Edge(name.mailbox, issuer.issue(request, None).decode(), asked.key))
        return made


def connectable() -> int:
    """Return how many edges a hub may have connected here: each takes two of its open files."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return sys.maxsize if hard == resource.RLIM_INFINITY else (hard - _OTHER_FILES) // 2


def tree_mb(process: Measured) -> float:
    """Return the proportional memory of a process and its workers, in megabytes."""
    pids, grown = {process.pid}, True
    parents = dict(_parents())
    while grown:
        more = {pid for pid, parent in parents.items() if parent in pids} - pids
        pids |= more
        grown = bool(more)
    return sum(_proportional_mb(pid) for pid in pids)


def _parents() -> Iterable[tuple[int, int]]:
    for each in Path("/proc").glob("[0-9]*/stat"):
        try:
            yield int(each.parent.name), int(each.read_text().rsplit(")", 1)[1].split()[1])
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has ended


def _proportional_mb(pid: int) -> float:
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1024
    return 0.0


# -- the fleet -----------------------------------------------------------------------------------


async def furnish(client: Client, edges: int, objects: int) -> None:
    """Make the inventory, the objects, and a placement that sends them everywhere."""
    for path in (_INVENTORY, _WORKLOAD):
        await make_workspace(client, "root", path.rpartition(":")[2])
    await bind(client, _WORKLOAD, "edge.kcp.io")
    await bind(client, _WORKLOAD, "kubernetes", COMPUTE)
    inventory, workload = client.at("", _INVENTORY), client.at("", _WORKLOAD)

    await make_edges(inventory, edges)
    metadata = {"labels": {"go": "yes"}}
    await _make(workload, NAMESPACES, body("v1", "Namespace", "shop", metadata=metadata))
    for number in range(objects - 1):
        made = body("v1", "ConfigMap", f"map-{number}", data={"text": "x" * 1000})
        await _make(workload, CONFIG_MAPS, made, "shop")
    await _make(workload, _DEPLOYMENTS, _deployment(), "shop")
    spec = {
        "locationSelectors": [{"matchLabels": {"env": "prod"}}],
        "namespaceSelector": {"matchLabels": {"go": "yes"}},
    }
    await _make(workload, EDGE_PLACEMENTS, body(EDGE, "EdgePlacement", "all", spec=spec))


async def _make(
    client: Client, gvr: GroupVersionResource, obj: Object, namespace: str = ""
) -> None:
    with contextlib.suppress(AlreadyExists):
        await client.create(gvr, obj, namespace)


def _deployment() -> Object:
    labels = {"app": "web"}
    container = {"name": "c", "image": "registry.example/app:1"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    spec = {"replicas": 2, "selector": {"matchLabels": labels}, "template": template}
    return body("apps/v1", "Deployment", "web", spec=spec)


async def mailboxes(client: Client, edges: int) -> list[EdgeName]:
    """Return as many mailboxes as there are edges."""
    await mailbox_clusters(client, edges)
    found = (await client.at("", PROVIDER).list(WORKSPACES)).items
    return [
        EdgeName(each["spec"]["cluster"], mailbox.uid)
        for each in found
        if (mailbox := mailbox_named(each["metadata"]["name"])) is not None
    ][:edges]


async def delivered(client: Client, names: Sequence[EdgeName], objects: int) -> None:
    """Wait until each mailbox has its objects."""

    async def filled(number: int) -> None:
        mailbox = client.at("", names[number].mailbox)
        # All but one are ConfigMaps, beside one of its own in each of its two namespaces.
        while len((await mailbox.list(CONFIG_MAPS)).items) < objects + 1:
            await asyncio.sleep(0.5)
        while not await _has_deployment(mailbox):
            await asyncio.sleep(0.5)

    await for_each(len(names), filled)


async def _has_deployment(mailbox: Client) -> bool:
    try:
        return bool((await mailbox.list(_DEPLOYMENTS)).items)
    except NotFound:
        return False  # the type comes with the first object


async def fill(hub: Hub, kubeconfig: Path, edges: int) -> list[EdgeName]:
    """Return the mailboxes of a whole fleet, made before or now."""
    async with connected(kubeconfig) as client:
        if hub.has(edges, OBJECTS):
            return await mailboxes(client, edges)
        await furnish(client, edges, OBJECTS)
        names = await mailboxes(client, edges)
        await delivered(client, names, OBJECTS)
    hub.complete(edges, OBJECTS)
    return names


def _main(folder: Path, edges: int) -> None:
    hub = Hub(folder)
    try:
        measured = hub.start()
        with controlling(measured):
            asyncio.run(fill(hub, measured.kubeconfig, edges))
    finally:
        hub.end(signal.SIGTERM)


if __name__ == "__main__":
    _main(Path(sys.argv[1]), int(sys.argv[2]))
