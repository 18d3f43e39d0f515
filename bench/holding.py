"""What an edge costs: bytes of each cache and table of hub and controllers, by looking at them.

Hub and controllers run in this process, on a store of their own, with so many Locations and
SyncTargets and no syncer; the mailbox controller makes a mailbox for each. Then every informer is
walked, and what it holds is added up: objects, keys and indexes, each counted once. So are large
tables of controllers, by the attribute that holds them. What is left of the process's memory is
the interpreter, the store's own caches, which have bounds, and what the allocator keeps.

Memory per edge does not depend on how many there are, so a few hundred tell what 10,000 need.
"""

from __future__ import annotations

import asyncio
import collections
import gc
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.edge_hub import PROVIDER, connected, mailbox_clusters, make_edges, make_workspace
from bench.report import Row, table
from skerry.app.edge_controllers import ControllerSettings, _until_stopped
from skerry.app.hub import hub_flavor
from skerry.app.settings import ServerSettings, StoreSettings
from skerry.app.standalone import serving
from skerry.kit import log
from skerry.runtime.client import Client
from skerry.runtime.informer import Informer

_SUITE = "holding"
EDGES = int(os.environ.get("SKERRY_BENCH_EDGES", "500"))
_SHOWN = 24
# Tables with fewer entries than this, for each edge, do not grow with the fleet.
_GROWING = 0.9
# Caches with bounds of their own, and what is the same without any edge.
_BOUNDED = frozenset(
    {
        "store.feed.Feed._events",
        "store.recent.RecentEntries._entries",
        "server.watch.dispatcher.Dispatcher._history",
        "kit.caching.WeightedCache._kept",
        "api.schema.Definitions.raw",
    }
)


async def _furnish(client: Client) -> None:
    await make_workspace(client, "root", "inventory")
    await make_edges(client.at("", "root:inventory"), EDGES)
    await mailbox_clusters(client, EDGES)


class Walk:
    """Adds up what objects take, each object once."""

    def __init__(self) -> None:
        self._seen: set[int] = set()

    def bytes_of(self, root: Any) -> int:
        """Return the bytes of *root* and of all below it that was not counted before."""
        total, waiting = 0, [root]
        while waiting:
            each = waiting.pop()
            if id(each) in self._seen or isinstance(each, type) or callable(each):
                continue
            self._seen.add(id(each))
            # Before what the garbage collector follows there are two words of its own.
            total += sys.getsizeof(each) + (16 if gc.is_tracked(each) else 0)
            waiting.extend(_below(each))
        return total


def _below(each: Any) -> Iterator[Any]:
    if isinstance(each, dict):
        yield from each
        yield from each.values()
    elif isinstance(each, list | tuple | set | frozenset | collections.deque):
        yield from each
    elif type(each).__module__.startswith("skerry."):
        yield from _attributes(each).values()


def _attributes(each: Any) -> dict[str, Any]:
    found = dict(getattr(each, "__dict__", {}))
    names = [name for kind in type(each).__mro__ for name in _slots(kind)]
    for name in (*names, *getattr(type(each), "__struct_fields__", ())):
        if hasattr(each, name):
            found[name] = getattr(each, name)
    return found


def _slots(kind: type) -> tuple[str, ...]:
    names = kind.__dict__.get("__slots__", ())
    return (names,) if isinstance(names, str) else tuple(names)


def _held() -> list[tuple[str, int]]:
    """Return what holds how many bytes, most first."""
    # What a server puts aside when it has started is meant as well.
    gc.unfreeze()
    gc.collect()
    walk, sizes = Walk(), collections.Counter[str]()
    everything = gc.get_objects()
    for each in everything:
        if isinstance(each, Informer):
            form = "packed" if each.index._packed else "objects"
            name = f"informer of {each.gvr.resource}, {form}, {_transform(each)}"
            for part in (each.index._held, each.index._indexes):
                sizes[name] += walk.bytes_of(part)
    for each in everything:
        kind = type(each)
        # Classes are objects too, and have no tables.
        if (
            isinstance(each, type)
            or not kind.__module__.startswith("skerry.")
            or isinstance(each, Informer)
        ):
            continue
        for name, value in _attributes(each).items():
            if isinstance(value, dict | list | set) and len(value) >= _GROWING * EDGES:
                owner = f"{kind.__module__.removeprefix('skerry.')}.{kind.__name__}.{name}"
                counted = walk.bytes_of(value)
                sizes[owner] += 0 if owner in _BOUNDED else counted
    return sizes.most_common()


def _transform(informer: Informer) -> str:
    made = informer._reflector._transform
    return f"{made.__module__.removeprefix('skerry.')}.{made.__qualname__}"


async def _measured(folder: Path) -> list[Row]:
    settings = ServerSettings(
        data_dir=folder, port=0, store=StoreSettings(path=folder / "store.db"), verbosity=0
    )
    async with serving(settings, hub_flavor(with_edge_provider=True)) as hub:
        control = ControllerSettings(
            kubeconfig=str(hub.kubeconfig),
            provider=PROVIDER,
            bind_address="127.0.0.1:0",
            verbosity=0,
        )
        running = asyncio.create_task(_until_stopped(control, lambda _: None, lambda: None))
        async with connected(hub.kubeconfig) as client:
            await _furnish(client)
        found = _held()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    total = sum(size for _, size in found)
    rows = [Row(_SUITE, f"held for {EDGES:,} edges, per edge", total / EDGES / 1024, "KB")]
    rows += [Row(_SUITE, name, size / EDGES, "B per edge") for name, size in found[:_SHOWN] if size]
    return rows


def run() -> list[Row]:
    """Measure hub and controllers in this process."""
    log.configure(verbosity=0)
    with tempfile.TemporaryDirectory(prefix="skerry-bench-") as folder:
        return asyncio.run(_measured(Path(folder)))


if __name__ == "__main__":
    print(table(run()))
