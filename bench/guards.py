"""What guards add to a write at the hub: 10,000 Locations, 1,000 placements, one guard for all.

Admission itself is measured, on the index it keeps and a store in memory: what a guarded relabel
and a guarded edit of a placement cost more than unguarded ones, charges to books included. Each is
admitted, so the worst case is measured: every placement touched is charged. Processor time, which
is all the time it takes where nobody else wants the processor: nothing in it waits.

Then a careless script against a hub and an edge scheduler, each a process: it relabels 4,000
Locations of one placement, one after another.

    python -m bench guards
"""

from __future__ import annotations

import asyncio
import gc
import random
import resource
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from bench.edge_hub import EDGE, Shares, body, connected, controlling, for_each
from bench.placement_hub import Bench
from bench.report import Row
from bench.servers import ours
from skerry.api.edge import EDGE_PLACEMENTS, PLACEMENT_GUARDS, SINGLE_PLACEMENT_SLICES
from skerry.api.errors import Conflict, ServiceUnavailable
from skerry.api.kcp.resources import LOCATIONS, SYNC_TARGETS
from skerry.api.keys import ObjectKey
from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.app.guard_admission import GuardAdmission
from skerry.app.guard_index import GuardedPlacements
from skerry.app.guard_requests import GuardedRequests
from skerry.kit import garbage
from skerry.kit.clock import SystemClock
from skerry.runtime.client import Client
from skerry.scheduler.placement import location_chooser
from skerry.server.admission.operation import Operation, Verb
from skerry.server.codec import encode
from skerry.server.user import User
from skerry.server.watch.dispatcher import Dispatcher
from skerry.server.workspaces.state import HubState
from skerry.store.base import Write
from skerry.store.memory import MemoryStore

_SUITE = "guards"
_LOCATIONS, _PLACEMENTS, _ROUNDS = 10_000, 1_000, 2_000
_SITES = 500
_SCRIPTED, _BUDGET = 4_000, 50
_IMW, _SHOP = "imw", "shop"


def run() -> list[Row]:
    """Measure everything."""
    return [*asyncio.run(_measured()), *_script()]


async def _measured() -> list[Row]:
    source = random.Random(7)
    store = MemoryStore("bench")
    await _filled(store, source)
    before = _kilobytes()
    index = GuardedPlacements(HubState(), store, location_chooser)
    await index.follow(Dispatcher(store))
    reading = asyncio.create_task(index.run())
    while not index.is_complete:
        await asyncio.sleep(0.01)
    reading.cancel()
    memory = (_kilobytes() - before) / 1024
    # As a hub does when it has started.
    garbage.settle()
    admission = GuardAdmission(GuardedRequests(index, store, SystemClock()))

    async def relabel() -> None:
        number = source.randrange(_LOCATIONS)
        old, new = _location(number, number), _location(number, source.randrange(_SITES))
        await admission.admit(_operation(LOCATIONS, "UPDATE", new, old, _IMW))

    async def edit() -> None:
        number = source.randrange(_PLACEMENTS)
        old = _placement(number, number % _SITES)
        new = _placement(number, number % _SITES + source.randrange(5))
        await admission.admit(_operation(EDGE_PLACEMENTS, "UPDATE", new, old, _SHOP))

    async def heartbeat() -> None:
        old = _sync_target(1)
        beat = _operation(SYNC_TARGETS, "UPDATE", old, old, _IMW)
        beat.subresource = "status"
        await admission.admit(beat)

    return [
        _row("relabel of a Location, p99", await _p99(relabel), 2.0),
        _row("edit of a placement, p99", await _p99(edit), 10.0),
        _row("heartbeat of a SyncTarget, p99", await _p99(heartbeat), 0.1),
        Row(_SUITE, "index in the server", memory, "MB", "< 60 MB", met=memory < 60),
    ]


def _row(name: str, milliseconds: float, limit: float) -> Row:
    target = f"< {limit:g} ms"
    return Row(_SUITE, f"added: {name}", milliseconds, "ms", target, met=milliseconds < limit)


async def _p99(work: Callable[[], Awaitable[None]]) -> float:
    """Return the 99th percentile, in milliseconds."""
    taken = []
    for _ in range(_ROUNDS):
        began = time.process_time_ns()
        await work()
        taken.append(time.process_time_ns() - began)
    return sorted(taken)[int(_ROUNDS * 0.99)] / 1e6


async def _filled(store: MemoryStore, source: random.Random) -> None:
    guard = _object("PlacementGuard", "fleet", {})
    budget = {"of": "DestinationsRemoved", "max": 100_000, "window": "10m", "action": "Confirm"}
    guard["spec"] = {"budgets": [budget]}
    await _put(store, PLACEMENT_GUARDS, guard, _SHOP)
    for number in range(_LOCATIONS):
        await _put(store, LOCATIONS, _location(number, number), _IMW)
        await _put(store, SYNC_TARGETS, _sync_target(number), _IMW)
    for number in range(_PLACEMENTS):
        await _put(store, EDGE_PLACEMENTS, _placement(number, number % _SITES), _SHOP)


async def _put(store: MemoryStore, gvr: GroupVersionResource, obj: Object, cluster: str) -> None:
    key = ObjectKey(gvr.group, gvr.resource, cluster, "", obj["metadata"]["name"])
    await store.commit([Write(key.path(), encode(obj))])


def _object(kind: str, name: str, labels: dict[str, str]) -> Object:
    return {
        "apiVersion": "v1alpha1",
        "kind": kind,
        "metadata": {"name": name, "uid": f"uid-{name}", "labels": labels, "annotations": {}},
    }


def _location(number: int, site: int) -> Object:
    """A Location whose site, one of many, is what placements select by."""
    labels = {"site": f"s{site % _SITES}", "id": f"l{number}", "env": "prod"}
    selector = {"matchLabels": {"id": f"l{number}"}}
    return {**_object("Location", f"l{number}", labels), "spec": {"instanceSelector": selector}}


def _sync_target(number: int) -> Object:
    return {**_object("SyncTarget", f"t{number}", {"id": f"l{number}"}), "spec": {}}


def _placement(number: int, site: int) -> Object:
    """Half of the placements select one site, half of them ten: eleven go to each Location."""
    sites = [f"s{(site + n) % _SITES}" for n in range(1 if number % 2 else 10)]
    expression = {"key": "site", "operator": "In", "values": sites}
    selector = {"matchLabels": {"env": "prod"}, "matchExpressions": [expression]}
    return {
        **_object("EdgePlacement", f"p{number}", {}),
        "spec": {"locationSelectors": [selector]},
        "status": {"destinationCount": 20 * len(sites)},
    }


def _operation(
    gvr: GroupVersionResource, verb: Verb, new: Object, old: Object, cluster: str
) -> Operation:
    call = SimpleNamespace(
        resource=SimpleNamespace(info=gvr),
        info=SimpleNamespace(cluster=cluster),
        user=User("ann"),
        warnings=[],
    )
    return Operation(cast(Any, call), verb, new, old)


def _script() -> list[Row]:
    """Measure what of a placement is left when a script has relabelled all it goes to."""
    with ours("hub", ["--init"]) as hub, controlling(hub, "edge-scheduler") as scheduler:
        return asyncio.run(_relabelled(hub.kubeconfig, Shares(hub, scheduler)))


async def _relabelled(kubeconfig: Path, shares: Shares) -> list[Row]:
    async with connected(kubeconfig) as client:
        bench = Bench(client, "root:inventory", "root:workload", shares)
        await bench.prepare()
        await for_each(_SCRIPTED, lambda number: _sited(bench, number), 32)
        budget = {"of": "DestinationsRemoved", "max": _BUDGET, "window": "1h"}
        guard = body(EDGE, "PlacementGuard", "fleet", spec={"budgets": [budget]})
        async with bench.following():
            await bench.place("web", {"group": "all"}, _SCRIPTED)
            owner = client.at("", bench.workload)
            await owner.create(PLACEMENT_GUARDS, guard)
            refused = 0
            began = time.perf_counter()
            for number in range(_SCRIPTED):
                refused += not await _moved(client.at("", bench.inventory), number)
            taken = time.perf_counter() - began
            # Admitted, refused or held: the scheduler has had the time to do what it will do.
            await asyncio.sleep(5)
            pieces = (await owner.list(SINGLE_PLACEMENT_SLICES)).items
    lost = _SCRIPTED - sum(len(each.get("destinations") or ()) for each in pieces)
    name = f"lost by a script that relabels {_SCRIPTED:,} Locations"
    note = f"{refused:,} requests refused, {taken / _SCRIPTED * 1e3:.1f} ms each"
    return [Row(_SUITE, name, lost, "", f"≤ {_BUDGET}", lost <= _BUDGET, note)]


async def _sited(bench: Bench, number: int) -> None:
    await bench.site(number, "all")


async def _moved(client: Client, number: int) -> bool:
    """Relabel a Location; return whether that was admitted."""
    change = {"metadata": {"labels": {"group": "none"}}}
    try:
        await client.patch(LOCATIONS, f"site-{number}", change)
    except (Conflict, ServiceUnavailable):
        return False
    return True


def _kilobytes() -> int:
    """Return what the process holds now."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() // 1024
