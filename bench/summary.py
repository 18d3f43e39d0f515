"""Summaries: what one report costs, how small ten thousand destinations are, how soon it is right.

The pure part runs in this process. The other drives a hub and the summarizer as processes of their
own by kubeconfig: a thousand mailboxes, one report each, until the summary says so; then all their
Leases run out within a second, until summary and placement call every destination unknown.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import orjson

from bench.edge_hub import (
    COMPUTE,
    EDGE,
    NAMESPACES,
    PROVIDER,
    Shares,
    bind,
    body,
    connected,
    controlling,
    for_each,
    make_workspace,
    slice_of,
)
from bench.report import Row, table
from bench.servers import ours
from skerry.api.edge import (
    EDGE_PLACEMENTS,
    HEARTBEAT_LEASE,
    HEARTBEAT_NAMESPACE,
    MAX_LEASE_SECONDS,
    SINGLE_PLACEMENT_SLICES,
    STATUS_SUMMARIES,
    Mailbox,
    edge_placement_ref,
)
from skerry.api.kcp.resources import WORKSPACES
from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.api.refs import ObjectRef, namespace_ref
from skerry.kit.timestamps import rfc3339_micro
from skerry.logic.fleet.placement.heartbeat import LEASES, MIN_LEASE_SECONDS
from skerry.logic.fleet.placement.records import Destination
from skerry.logic.fleet.summary.content import MAX_DETAILS, Subject, summary_content
from skerry.logic.fleet.summary.freshness import LIVE
from skerry.logic.fleet.summary.report import Report, report_of
from skerry.logic.fleet.summary.standing import Detail
from skerry.logic.fleet.summary.tables import Source, SummaryTables
from skerry.logic.fleet.summary.tally import Tally, total
from skerry.runtime.answers import WatchEvent
from skerry.runtime.client import Client

_SUITE = "summary"
_DESTINATIONS = 10_000
_EDGES = int(os.environ.get("SKERRY_BENCH_EDGES", "1000"))
# The shortest that counts.
_LEASE_SECONDS = MIN_LEASE_SECONDS
_WEB = Subject("apps", "v1", "deployments", "Deployment", "shop", "web")
_DEPLOYMENTS = GroupVersionResource("apps", "v1", "deployments")


def run() -> list[Row]:
    """Measure everything."""
    return [*_pure(), *asyncio.run(_whole())]


# -- in this process ---------------------------------------------------------------------------


def _copy(number: int) -> Object:
    ready = number % 10 != 0
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": "web",
            "generation": 1,
            "managedFields": [
                {"subresource": "status", "time": f"2030-01-01T00:{number % 60:02}:00Z"}
            ],
        },
        "spec": {"replicas": 3},
        "status": {
            "replicas": 3,
            "updatedReplicas": 3,
            "readyReplicas": 3 if ready else 2,
            "availableReplicas": 3 if ready else 2,
            "observedGeneration": number,
            "conditions": [
                {"type": "Available", "status": "True" if ready else "False"},
                {"type": "Progressing", "status": "True"},
            ],
        },
    }


def _destination(number: int) -> Destination:
    return Destination("imw", f"loc-{number:05}", f"st-{number:05}", _uid(number))


def _uid(number: int) -> str:
    return f"00000000-0000-4000-8000-{number:012}"


def _pure() -> list[Row]:
    copies = [_copy(number) for number in range(_DESTINATIONS)]
    reading, reports = _timed(lambda: [report_of("apps", "Deployment", copy) for copy in copies])
    destinations = [_destination(number) for number in range(_DESTINATIONS)]
    details = list(map(Detail, destinations, reports))
    tally = Tally((detail.destination.uid, detail) for detail in details)
    turned = reports[1:] + reports[:1]
    changed = list(map(Detail, destinations, turned))

    def change() -> None:
        for old, new in zip(details, changed, strict=True):
            tally.replace(old.destination.uid, old, new)

    changing, _ = _timed(change)
    seconds, totals = _timed(lambda: tally.totals(MAX_DETAILS))
    scratch, _ = _timed(lambda: total(changed, MAX_DETAILS))
    size = len(orjson.dumps(summary_content("everywhere", _WEB, totals)))
    note = f"{_DESTINATIONS:,} destinations"
    each = changing * 1e6 / _DESTINATIONS
    through = _through_tables(turned) * 1e6
    return [
        Row(_SUITE, "read one copy", reading * 1e6 / _DESTINATIONS, "µs"),
        Row(_SUITE, "one report into its totals", each, "µs", "< 100", each < 100, note),
        Row(_SUITE, "one report through the tables", through, "µs", "", None, note),
        Row(_SUITE, "tell the totals", seconds * 1e3, "ms", "", None, note),
        Row(_SUITE, "the same from scratch", scratch * 1e3, "ms", "", None, note),
        Row(_SUITE, "summary object", size / 1e3, "kB", "< 100", size < 100_000, note),
    ]


def _through_tables(reports: Sequence[Report]) -> float:
    tables, placement = SummaryTables(), edge_placement_ref("wmw", "p")
    item = ObjectRef("", "apps", "deployments", "shop", "web")
    tables.placements.put(placement, lambda *_: True)
    found = [_destination(number) for number in range(_DESTINATIONS)]
    tables.set_destinations(placement, found)
    for destination in found:
        tables.leases.put(destination.uid, LIVE)
    tables.namespaces.put(namespace_ref("shop", "wmw"), {})
    tables.sources.put(item.at("wmw"), Source({}))
    tables.settle()

    def report() -> None:
        for destination, each in zip(found, reports, strict=True):
            tables.reports.put_pair(item, destination.uid, each)
            tables.settle()

    return _timed(report)[0] / _DESTINATIONS


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    began = time.perf_counter()
    result = work()
    return time.perf_counter() - began, result


# -- hub and summarizer as processes -----------------------------------------------------------


async def _whole() -> list[Row]:
    with ours("hub", ["--init"]) as hub:
        async with connected(hub.kubeconfig) as client:
            clusters = await _furnish(client)
            with controlling(hub, "summarizer") as summarizer:
                shares = Shares(hub, summarizer)
                reported = await _reports(client, clusters, shares)
                return [*reported, *await _lapses(client, clusters, shares)]


async def _furnish(client: Client) -> list[str]:
    """Make a workload, its placement and a mailbox with a copy for each of a thousand edges."""
    owner = client.at("", await make_workspace(client, "root", "wmw"))
    await bind(client, "root:wmw", "edge.kcp.io")
    await bind(client, "root:wmw", "kubernetes", COMPUTE)
    await owner.create(NAMESPACES, body("v1", "Namespace", "shop"))
    await owner.create(_DEPLOYMENTS, _deployment(), "shop")
    clusters = [""] * _EDGES

    async def edge(number: int) -> None:
        name = Mailbox("imw", _uid(number)).workspace
        path = await make_workspace(client, PROVIDER, name)
        made = await client.at("", PROVIDER).get(WORKSPACES, name)
        clusters[number] = made["spec"]["cluster"]
        await bind(client, path, "kubernetes", COMPUTE)
        mailbox = client.at("", clusters[number])
        await mailbox.create(NAMESPACES, body("v1", "Namespace", "shop"))
        await mailbox.create(LEASES, _lease(MAX_LEASE_SECONDS), HEARTBEAT_NAMESPACE)
        copy = _deployment()
        copy["metadata"]["labels"] = {"edge.kcp.io/projected": "yes"}
        await mailbox.create(_DEPLOYMENTS, copy, "shop")

    await for_each(_EDGES, edge)
    spec: Object = {"locationSelectors": [{}], "namespaceSelector": {}}
    made = await owner.create(EDGE_PLACEMENTS, body(EDGE, "EdgePlacement", "p", spec=spec))
    destinations = [_destination(number).as_object() for number in range(_EDGES)]
    await owner.create(SINGLE_PLACEMENT_SLICES, slice_of(made, destinations))
    status = {"specGeneration": 1, "matchingLocationCount": _EDGES, "destinationCount": _EDGES}
    await owner.patch(EDGE_PLACEMENTS, "p", {"status": status}, subresource="status")
    return clusters


async def _reports(client: Client, clusters: Sequence[str], shares: Shares) -> list[Row]:
    owner = client.at("", "root:wmw")
    began = time.perf_counter()
    await _until(owner, lambda summary: summary.get("destinations") == _EDGES)
    starting = time.perf_counter() - began
    before = await owner.get(STATUS_SUMMARIES, "p-deployments-web", "shop")
    written: list[float] = []

    async def report(number: int) -> None:
        status = {"replicas": 1, "updatedReplicas": 1, "availableReplicas": 1}
        await client.at("", clusters[number]).patch(
            _DEPLOYMENTS, "web", {"status": status}, "shop", subresource="status"
        )
        written.append(time.perf_counter())

    shares.begin()
    began = time.perf_counter()
    async with asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(_until(owner, lambda s: s.get("healthy") == _EDGES))
        tasks.create_task(for_each(_EDGES, report))
    after = waiting.result()
    taken, writes = time.perf_counter() - began, max(written) - began
    spent = shares.spent()
    generations = after["metadata"]["generation"] - before["metadata"]["generation"]
    note = f"the reports themselves took {writes:.2f} s to write"
    name = f"{_EDGES:,} status reports → summary correct"
    return [
        Row(_SUITE, f"start → first summary of {_EDGES:,} copies", starting, "s"),
        Row(_SUITE, name, taken, "s", "< 2", taken < 2, note),
        Row(_SUITE, "last report written → summary correct", taken - writes, "s"),
        Row(_SUITE, "writes of the summary meanwhile", generations, ""),
        Row(_SUITE, "processor time meanwhile: hub", spent[0], "s"),
        Row(_SUITE, "processor time meanwhile: summarizer", spent[1], "s"),
        Row(_SUITE, "processor time meanwhile: this driver", spent[2], "s"),
        *(
            Row(_SUITE, f"{name} resident", process.resident_mb(), "MB")
            for name, process in (("summarizer", shares.controllers), ("hub", shares.hub))
            if process is not None
        ),
    ]


async def _lapses(client: Client, clusters: Sequence[str], shares: Shares) -> list[Row]:
    """Let every Lease run out at nearly the same time."""
    owner, seen = client.at("", "root:wmw"), asyncio.Event()
    before = await owner.get(STATUS_SUMMARIES, "p-deployments-web", "shop")
    writes = 0

    async def count_placement_writes() -> None:
        nonlocal writes
        async with owner.watch(EDGE_PLACEMENTS) as events:
            async for event in events:
                writes += event.kind == "MODIFIED"
                if (event.object.get("status") or {}).get("unknownDestinations") == _EDGES:
                    seen.set()

    async def renew(number: int) -> None:
        mailbox = client.at("", clusters[number])
        await mailbox.patch(LEASES, HEARTBEAT_LEASE, _lease(_LEASE_SECONDS), HEARTBEAT_NAMESPACE)

    counting = asyncio.create_task(count_placement_writes())
    await for_each(_EDGES, renew)
    renewed = time.perf_counter()
    shares.begin()
    after = await _until(owner, lambda summary: summary.get("unknown") == _EDGES)
    await seen.wait()
    taken = time.perf_counter() - renewed - _LEASE_SECONDS
    counting.cancel()
    spent = shares.spent()
    generations = after["metadata"]["generation"] - before["metadata"]["generation"]
    name = f"{_EDGES:,} Leases run out → summary and placement say unknown"
    return [
        Row(_SUITE, name, taken, "s", "< 2", taken < 2, "after the last of them"),
        Row(_SUITE, "writes of the summary for that", generations, ""),
        Row(_SUITE, "writes of the placement for that", writes, ""),
        Row(_SUITE, "processor time for that: hub", spent[0], "s"),
        Row(_SUITE, "processor time for that: summarizer", spent[1], "s"),
    ]


def _lease(seconds: int) -> Object:
    now = rfc3339_micro(datetime.now(UTC))
    spec = {"leaseDurationSeconds": seconds, "renewTime": now, "holderIdentity": "bench"}
    return body("coordination.k8s.io/v1", "Lease", HEARTBEAT_LEASE, spec=spec)


async def _until(owner: Client, wanted: Callable[[Object], bool]) -> Object:
    """Follow the summary until it says what is *wanted*."""
    async with owner.watch(STATUS_SUMMARIES) as events:
        async for event in events:
            if _about(event) and wanted(event.object):
                return event.object
    raise RuntimeError("the watch ended before the summary was right")


def _about(event: WatchEvent) -> bool:
    return bool(event.object["metadata"].get("name") == "p-deployments-web")


def _deployment() -> Object:
    labels = {"app": "web"}
    container = {"name": "c", "image": "registry.example/app:1"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    spec = {"selector": {"matchLabels": labels}, "template": template}
    return body("apps/v1", "Deployment", "web", spec=spec)


if __name__ == "__main__":
    print(table(run()))
