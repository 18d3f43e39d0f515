"""Summaries: what one report costs, how small ten thousand destinations are, how soon it is right.

The pure part runs in this process. The other drives a hub and the summarizer as processes of their
own by kubeconfig: a thousand mailboxes, one report each, until the summary says so.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import orjson

from bench.report import Row, table
from bench.servers import Measured, ours
from skerry.api.kinds import GroupVersionResource
from skerry.logic.placement.records import Destination, Place
from skerry.logic.placement.slices import EDGE_PLACEMENTS, SLICES
from skerry.logic.summary.accumulator import Accumulator, total
from skerry.logic.summary.content import MOST_DETAILS, NAMESPACED, Subject, summary_content
from skerry.logic.summary.ledger import Ledger, Source
from skerry.logic.summary.report import Report, report_of
from skerry.logic.translation.items import Item
from skerry.logic.translation.what import mailbox_name
from skerry.runtime.client import Client, WatchEvent
from skerry.runtime.kubeconfig import Overrides, connect, load

_SUITE = "summary"
_DESTINATIONS = 10_000
_EDGES = int(os.environ.get("SKERRY_BENCH_EDGES", "1000"))
_SIDE_BY_SIDE = 16
_WEB = Subject("apps", "v1", "deployments", "Deployment", "shop", "web")
_WORKSPACES = GroupVersionResource("tenancy.kcp.io", "v1alpha1", "workspaces")
_BINDINGS = GroupVersionResource("apis.kcp.io", "v1alpha1", "apibindings")
_NAMESPACES = GroupVersionResource("", "v1", "namespaces")
_DEPLOYMENTS = GroupVersionResource("apps", "v1", "deployments")
_PROVIDER = "root:espw"
Object = dict[str, Any]


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
    return Destination("imw", f"loc-{number:05}", f"st-{number:05}", f"uid-{number:05}")


def _pure() -> list[Row]:
    copies = [_copy(number) for number in range(_DESTINATIONS)]
    reading, reports = _timed(lambda: [report_of("apps", "Deployment", copy) for copy in copies])
    destinations = [_destination(number) for number in range(_DESTINATIONS)]
    accumulator = Accumulator(zip(destinations, reports, strict=True))
    turned = reports[1:] + reports[:1]

    def change() -> None:
        for destination, report in zip(destinations, turned, strict=True):
            accumulator.put(destination, report)

    changing, _ = _timed(change)
    telling, totals = _timed(lambda: accumulator.totals(MOST_DETAILS))
    scratch, _ = _timed(lambda: total(dict(zip(destinations, turned, strict=True)), MOST_DETAILS))
    size = len(orjson.dumps(summary_content("everywhere", _WEB, totals)))
    note = f"{_DESTINATIONS:,} destinations"
    each = changing * 1e6 / _DESTINATIONS
    through = _through_ledger(turned) * 1e6
    return [
        Row(_SUITE, "read one copy", reading * 1e6 / _DESTINATIONS, "µs"),
        Row(_SUITE, "one report into its totals", each, "µs", "< 100", each < 100, note),
        Row(_SUITE, "one report through the ledger", through, "µs", "", None, note),
        Row(_SUITE, "tell the totals", telling * 1e3, "ms", "", None, note),
        Row(_SUITE, "the same from scratch", scratch * 1e3, "ms", "", None, note),
        Row(_SUITE, "summary object", size / 1e3, "kB", "< 100", size < 100_000, note),
    ]


def _through_ledger(reports: Sequence[Report]) -> float:
    ledger, place = Ledger(), Place("wmw", "p")
    item = Item("apps", "deployments", "shop", "web")
    ledger.put_placement(place, lambda *_: True)
    ledger.set_destinations(place, [_destination(number) for number in range(_DESTINATIONS)])
    ledger.put_namespace("wmw", "shop", {})
    ledger.put_source("wmw", item, Source({}))

    def report() -> None:
        for number, each in enumerate(reports):
            ledger.put_copy(f"uid-{number:05}", item, each)

    return _timed(report)[0] / _DESTINATIONS


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    began = time.perf_counter()
    result = work()
    return time.perf_counter() - began, result


# -- hub and summarizer as processes -----------------------------------------------------------


async def _whole() -> list[Row]:
    with ours("hub", ["--init"]) as measured:
        config = load([measured.kubeconfig], Overrides(context="base"))
        transport = connect(config)
        client = Client(transport)
        try:
            clusters = await _furnish(client)
            process = _summarizer(measured)
            try:
                return await _reports(client, clusters, measured, process)
            finally:
                process.terminate()
                process.wait(30)
        finally:
            await transport.close()


def _summarizer(measured: Measured) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "skerry.cli", "controllers", "--only", "summarizer"]
    flags = ["--espw-path", _PROVIDER, "--kubeconfig", str(measured.kubeconfig), "-v", "0"]
    return subprocess.Popen([*command, *flags, "--server-bind-address", "127.0.0.1:0"], text=True)


async def _furnish(client: Client) -> list[str]:
    """Make a workload, its placement and a mailbox with a copy for each of a thousand edges."""
    root, owner = client.for_cluster("root"), client.for_cluster("root:wmw")
    await root.create(_WORKSPACES, _workspace("wmw"))
    await owner.create(_BINDINGS, _binding("edge.kcp.io", _PROVIDER))
    await owner.create(_BINDINGS, _binding("kubernetes", "root:compute"))
    await owner.create(_NAMESPACES, _named("v1", "Namespace", "shop"))
    await owner.create(_DEPLOYMENTS, _deployment(), "shop")
    clusters = [""] * _EDGES

    async def edge(number: int) -> None:
        name = mailbox_name("imw", f"uid-{number:05}")
        made = await client.for_cluster(_PROVIDER).create(_WORKSPACES, _workspace(name))
        cluster = (
            made["spec"].get("cluster")
            or (await client.for_cluster(_PROVIDER).get(_WORKSPACES, name))["spec"]["cluster"]
        )
        clusters[number] = cluster
        mailbox = client.for_cluster(cluster)
        await mailbox.create(_BINDINGS, _binding("kubernetes", "root:compute"))
        await mailbox.create(_NAMESPACES, _named("v1", "Namespace", "shop"))
        copy = _deployment()
        copy["metadata"]["labels"] = {"edge.kcp.io/projected": "yes"}
        await mailbox.create(_DEPLOYMENTS, copy, "shop")

    await _each(edge)
    placement = _named("edge.kcp.io/v1alpha1", "EdgePlacement", "p")
    placement["spec"] = {"locationSelectors": [{}], "namespaceSelector": {}}
    made = await owner.create(EDGE_PLACEMENTS, placement)
    piece = _named("edge.kcp.io/v1alpha1", "SinglePlacementSlice", "p")
    reference = {"apiVersion": "edge.kcp.io/v1alpha1", "kind": "EdgePlacement", "name": "p"}
    piece["metadata"]["ownerReferences"] = [{**reference, "uid": made["metadata"]["uid"]}]
    piece["destinations"] = [_destination(number).as_object() for number in range(_EDGES)]
    await owner.create(SLICES, piece)
    return clusters


async def _reports(
    client: Client, clusters: Sequence[str], measured: Measured, process: subprocess.Popen[str]
) -> list[Row]:
    owner = client.for_cluster("root:wmw")
    began = time.perf_counter()
    await _until(owner, lambda summary: summary.get("destinations") == _EDGES)
    starting = time.perf_counter() - began
    before = await owner.get(NAMESPACED, "p-deployments-web", "shop")
    written: list[float] = []

    async def report(number: int) -> None:
        status = {"replicas": 1, "updatedReplicas": 1, "availableReplicas": 1}
        await client.for_cluster(clusters[number]).patch(
            _DEPLOYMENTS, "web", {"status": status}, "shop", subresource="status"
        )
        written.append(time.perf_counter())

    watched = Measured(measured.server, measured.kubeconfig, process)
    used = measured.cpu_seconds(), watched.cpu_seconds(), time.process_time()
    began = time.perf_counter()
    async with asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(_until(owner, lambda s: s.get("healthy") == _EDGES))
        tasks.create_task(_each(report))
    after = waiting.result()
    taken, writes = time.perf_counter() - began, max(written) - began
    spent = (
        measured.cpu_seconds() - used[0],
        watched.cpu_seconds() - used[1],
        time.process_time() - used[2],
    )
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
        Row(_SUITE, "summarizer resident", watched.resident_mb(), "MB"),
        Row(_SUITE, "hub resident", measured.resident_mb(), "MB"),
    ]


async def _until(owner: Client, wanted: Callable[[Object], bool]) -> Object:
    """Follow the summary until it says what is *wanted*."""
    async with owner.watch(NAMESPACED) as events:
        async for event in events:
            if _about(event) and wanted(event.object):
                return event.object
    raise RuntimeError("the watch ended before the summary was right")


def _about(event: WatchEvent) -> bool:
    return bool(event.object["metadata"].get("name") == "p-deployments-web")


async def _each(work: Callable[[int], Awaitable[None]]) -> None:
    """Do the same for every edge, some at a time."""
    numbers = iter(range(_EDGES))

    async def worker() -> None:
        for number in numbers:
            await work(number)

    async with asyncio.TaskGroup() as tasks:
        for _ in range(_SIDE_BY_SIDE):
            tasks.create_task(worker())


def _named(api_version: str, kind: str, name: str) -> Object:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}}


def _workspace(name: str) -> Object:
    return {**_named("tenancy.kcp.io/v1alpha1", "Workspace", name), "spec": {}}


def _binding(export: str, path: str) -> Object:
    reference = {"export": {"path": path, "name": export}}
    binding = _named("apis.kcp.io/v1alpha1", "APIBinding", f"bind-{export}")
    return {**binding, "spec": {"reference": reference}}


def _deployment() -> Object:
    labels = {"app": "web"}
    container = {"name": "c", "image": "registry.example/app:1"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    spec = {"selector": {"matchLabels": labels}, "template": template}
    return {**_named("apps/v1", "Deployment", "web"), "spec": spec}


if __name__ == "__main__":
    print(table(run()))
