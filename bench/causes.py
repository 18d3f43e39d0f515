"""From a reason at an edge to the eyes of the workload's owner, at an idle edge.

A hub with the summarizer, a plain server as edge and a syncer are processes. The edge's controllers
and kubelet are played here: a Deployment is not well, and in each round the container of its pod
waits for another reason. The time ends when the StatusSummary in the owner's workspace says it.

    python -m bench causes
"""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import time
from typing import Any

import orjson
from tests.kit.e2e.places import DEPLOYMENTS, Places, deployment, until

from bench.edge_hub import COMPUTE, EDGE, NAMESPACES, PROVIDER, bind, body, make_workspace, slice_of
from bench.report import Row, table
from bench.syncer import lines, resident
from skerry.api.edge import (
    CAUSE,
    EDGE_PLACEMENTS,
    SINGLE_PLACEMENT_SLICES,
    STATUS_SUMMARIES,
    mailbox_named,
)
from skerry.api.kcp.resources import SYNC_TARGETS
from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.logic.fleet.placement.records import Destination
from skerry.runtime.client import Client, Selection

_SUITE = "causes"
_ROUNDS = 100
_PODS = GroupVersionResource("", "v1", "pods")
_ACCOUNTS = GroupVersionResource("", "v1", "serviceaccounts")
_STUCK = {"replicas": 1, "updatedReplicas": 1, "unavailableReplicas": 1}
_WELL = {"replicas": 1, "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1}


def run() -> list[Row]:
    """Measure everything."""
    return asyncio.run(_whole())


async def _whole() -> list[Row]:
    async with lines() as line:
        places = line.places
        summarizer = subprocess.Popen(
            [sys.executable, "-m", "skerry.cli", "controllers", "--only", "summarizer",
             "--espw-path", PROVIDER, "-v", "0", "--server-bind-address", "127.0.0.1:0",
             "--kubeconfig", str(places.hub.kubeconfig)],
        )  # fmt: skip
        try:
            owner = await _place(places)
            await asyncio.to_thread(places.syncer.start)
            await places.arrives(DEPLOYMENTS, "web")
            before = resident(line.pid)
            await _fail(places)
            rows = [_times("pod's reason → StatusSummary, p99", await _latencies(places, owner))]
            added = resident(line.pid) - before
            rows.append(Row(_SUITE, "syncer memory, watching pods", added, "MB"))
            rows.append(await _size(places))
            rows.append(_times("status is well → cause gone, p99", await _healing(places, owner)))
        finally:
            summarizer.send_signal(signal.SIGTERM)
            await asyncio.to_thread(summarizer.wait, 30)
        return rows


async def _place(places: Places) -> Client:
    """Have a source, its placement and its copy; return the owner's workspace."""
    hub = places.access.client
    path = await make_workspace(hub, "root", "wmw")
    owner = hub.at("", path)
    await bind(hub, path, "edge.kcp.io")
    await bind(hub, path, "kubernetes", COMPUTE)
    await owner.create(NAMESPACES, body("v1", "Namespace", "shop"))
    await owner.create(DEPLOYMENTS, body("apps/v1", "Deployment", "web", **deployment()), "shop")
    spec: Object = {"locationSelectors": [{}], "namespaceSelector": {}}
    made = await owner.create(EDGE_PLACEMENTS, body(EDGE, "EdgePlacement", "p", spec=spec))
    target = await places.access.at("root:imw").get(SYNC_TARGETS, places.name)
    cluster = target["metadata"]["annotations"]["kcp.io/cluster"]
    uid = target["metadata"]["uid"]
    assert mailbox_named(f"{cluster}-mb-{uid}") is not None
    destination = Destination(cluster, places.name, places.name, uid)
    await owner.create(SINGLE_PLACEMENT_SLICES, slice_of(made, [destination.as_object()]))
    await places.put(DEPLOYMENTS, "web", deployment())
    return owner


async def _fail(places: Places) -> None:
    """Have a pod that belongs to the Deployment, which is not well."""
    edge = places.at_edge
    await until(edge, _ACCOUNTS, "default", "shop", lambda account: account is not None)
    web = await edge.get(DEPLOYMENTS, "web", "shop")
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web",
                 "uid": web["metadata"]["uid"], "controller": True}  # fmt: skip
    spec = web["spec"]["template"]["spec"]
    metadata = {"ownerReferences": [reference], "labels": {"app": "web"}}
    await edge.create(_PODS, body("v1", "Pod", "web-1", metadata=metadata, spec=spec), "shop")
    await _status(edge, _STUCK)


async def _status(edge: Client, status: Object) -> None:
    patch = [{"op": "add", "path": "/status", "value": status}]
    await edge.patch(DEPLOYMENTS, "web", patch, "shop", kind="json", subresource="status")


async def _wait_for(edge: Client, message: str) -> None:
    state = {"waiting": {"reason": "ImagePullBackOff", "message": message}}
    container = {"name": "web", "image": "httpd", "imageID": "", "ready": False,
                 "restartCount": 0, "state": state}  # fmt: skip
    status = {"phase": "Pending", "containerStatuses": [container]}
    await edge.patch(_PODS, "web-1", {"status": status}, "shop", subresource="status")


async def _latencies(places: Places, owner: Client) -> list[float]:
    """Return seconds from another reason at the edge to the summary that has it."""
    taken = []
    selection = Selection(namespace="shop", fields="metadata.name=p-deployments-web")
    async with owner.watch(STATUS_SUMMARIES, selection) as events:
        for number in range(_ROUNDS):
            message = f"image {number} is not in the registry"
            began = time.perf_counter()
            await _wait_for(places.at_edge, message)
            async for event in events:
                if _detail(event.object).get("message") == message:
                    break
            taken.append(time.perf_counter() - began)
            await asyncio.sleep(0.6)  # idle: a summary is written twice a second at most
    return sorted(taken)


async def _healing(places: Places, owner: Client) -> list[float]:
    """Return seconds from a status that is well to the summary without a cause."""
    taken = []
    selection = Selection(namespace="shop", fields="metadata.name=p-deployments-web")
    async with owner.watch(STATUS_SUMMARIES, selection) as events:
        for _ in range(_ROUNDS // 10):
            for status, healthy in ((_WELL, "True"), (_STUCK, "False")):
                began = time.perf_counter()
                await _status(places.at_edge, status)
                async for event in events:
                    if _detail(event.object).get("healthy") == healthy:
                        break
                if healthy == "True":
                    taken.append(time.perf_counter() - began)
                await asyncio.sleep(0.6)
    return sorted(taken)


async def _size(places: Places) -> Row:
    """Return what a cause adds to a report, in bytes of JSON."""
    copy = await places.in_mailbox.get(DEPLOYMENTS, "web", "shop")
    cause = {CAUSE: copy["metadata"]["annotations"][CAUSE]}
    size = len(orjson.dumps(cause)) - 2
    return Row(_SUITE, "bytes added to a report", size, "B", "< 200", size < 200, str(cause[CAUSE]))


def _detail(summary: Any) -> dict[str, Any]:
    found = summary.get("details") or [{}]
    return dict(found[0])


def _times(name: str, taken: list[float]) -> Row:
    p99 = taken[max(0, int(len(taken) * 0.99) - 1)]
    note = f"p50 {taken[len(taken) // 2] * 1000:.0f} ms of {len(taken)}"
    return Row(_SUITE, name, p99, "s", "< 1", p99 < 1, note)


if __name__ == "__main__":
    print(table(run()))
