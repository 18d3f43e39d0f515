"""What a syncer costs and how fast it is: a hub, an edge and a syncer as processes, over TLS.

Three runs: 1,000 objects (time to place them, latency at an idle edge, memory, idle traffic at a
heartbeat of 30 s), and twice 10,000 objects of which 100 change while the line is cut. In the
second of those the hub has meanwhile forgotten its history, as it has after an hour.

Objects are ConfigMaps with 1.2 KB of random text, which packs badly, as secrets and archives do.
Their size is that of their JSON without managedFields.

    python -m bench syncer
"""

from __future__ import annotations

import asyncio
import base64
import random
import signal
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import orjson
from tests.kit.e2e.places import CONFIG_MAPS, NAMESPACES, Places, SyncerProcess

from bench.meter import Meter
from bench.report import Row, table
from skerry.api.edge import PROJECTED, PROJECTED_VALUE
from skerry.kit.clock import SystemClock
from skerry.kit.ids import SystemIds
from skerry.runtime.client import Selection, WriteOptions
from skerry.store.open import StoreSettings, open_store

_SUITE = "syncer"
_IDLE_SECONDS = 120.0
_ROUNDS = 100
_PLACED = 1000
_MANY = 10_000
_CHANGED = 100
_TRANSLATOR = WriteOptions(field_manager="placement-translator")
# An edge is shown copies alone.
_COPY = {PROJECTED: PROJECTED_VALUE}


def content(number: int) -> dict[str, object]:
    """Return the content of one object."""
    text = base64.b64encode(random.Random(number).randbytes(900)).decode()
    return {"data": {"index.html": text}}


class Line:
    """Places with a metered line between syncer and hub."""

    def __init__(self, places: Places, meter: Meter) -> None:
        self.places = places
        self.meter = meter

    @property
    def pid(self) -> int:
        process = self.places.syncer.process
        assert process is not None
        return process.pid

    async def fill(self, count: int, offset: int = 0) -> None:
        """Put so many objects into the mailbox."""
        await self.places.in_mailbox.patch(
            NAMESPACES,
            "shop",
            {
                "apiVersion": "v1",
                "kind": "Namespace",
                "metadata": {"name": "shop", "labels": _COPY},
            },
            kind="apply",
            options=_TRANSLATOR,
        )
        room = asyncio.Semaphore(16)

        async def one(number: int) -> None:
            body = {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": f"page-{number}", "namespace": "shop", "labels": _COPY},
                **content(number + offset),
            }
            async with room:
                await self.places.in_mailbox.patch(
                    CONFIG_MAPS,
                    f"page-{number}",
                    body,
                    "shop",
                    kind="apply",
                    force=True,
                    options=_TRANSLATOR,
                )

        await asyncio.gather(*(one(number) for number in range(count)))

    async def settled(self, count: int, seconds: float = 600.0) -> None:
        """Wait until so many objects are at the edge and nothing passes any more."""
        async with asyncio.timeout(seconds):
            await self.arrived(count)
            await self.quiet()

    async def arrived(self, count: int) -> None:
        """Wait until so many objects are at the edge."""
        edge = self.places.at_edge
        while True:
            # A page of one says how many more there are: counting costs the edge little.
            page = await edge.call("GET", edge.path(CONFIG_MAPS, "shop"), {"limit": "1"})
            if 1 + page["metadata"].get("remainingItemCount", 0) >= count:
                return
            await asyncio.sleep(0.05)

    async def quiet(self) -> None:
        """Wait until nothing has passed for some seconds."""
        before = -1
        while before != self.meter.bytes:
            before = self.meter.bytes
            await asyncio.sleep(4)


@asynccontextmanager
async def lines(*flags: str) -> AsyncIterator[Line]:
    """Have a hub, an edge, a mailbox and a metered way to it; the syncer is not started."""
    with tempfile.TemporaryDirectory(prefix="skerry-bench-") as folder:
        places = Places(Path(folder))
        async with places.running():
            await places.configure()
            port = int(places.hub.url.rpartition(":")[2])
            meter = Meter(port)
            async with meter.listening() as proxy:
                metered = Path(folder) / "metered.kubeconfig"
                text = places.hub_kubeconfig.read_text()
                metered.write_text(text.replace(f":{port}/", f":{proxy}/"))
                places.syncer = SyncerProcess(Path(folder), metered, places.edge.kubeconfig, *flags)
                try:
                    yield Line(places, meter)
                finally:
                    places.syncer.stop(signal.SIGTERM)


async def latencies(places: Places, rounds: int) -> list[float]:
    """Return seconds from the start of a write in the mailbox to its event at the edge."""
    selection = Selection(namespace="shop", fields="metadata.name=page-0")
    start = (await places.at_edge.list(CONFIG_MAPS, selection)).resource_version
    taken: list[float] = []
    async with places.at_edge.watch(CONFIG_MAPS, selection, resource_version=start) as events:
        for number in range(100_000, 100_000 + rounds):
            began = time.perf_counter()
            wanted = content(number)
            await places.put(CONFIG_MAPS, "page-0", wanted)
            async for event in events:
                if event.object.get("data") == wanted["data"]:
                    break
            taken.append(time.perf_counter() - began)
            await asyncio.sleep(0.15)  # an idle edge: marks of the round before have been written
    return sorted(taken)


def resident(pid: int) -> float:
    """Return a process' resident memory in MB."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    return 0.0


async def small() -> list[Row]:
    """Measure an edge of 1,000 objects."""
    async with lines() as line:
        await line.fill(_PLACED)
        began = time.perf_counter()
        await asyncio.to_thread(line.places.syncer.start)
        rows = [await placing(line, began)]
        taken = await latencies(line.places, _ROUNDS)
        p99 = taken[int(len(taken) * 0.99) - 1] * 1000
        rows.append(
            row(
                "mailbox write to edge event, p99", p99, "ms", 150.0, f"p50 {_middle(taken):.0f} ms"
            )
        )
        rows.append(row("syncer memory, 1,000 objects", resident(line.pid), "MB", 80.0))
        await line.quiet()
        before = line.meter.with_headers()
        await asyncio.sleep(_IDLE_SECONDS)
        rate = (line.meter.with_headers() - before) * 8 / _IDLE_SECONDS / 1000
        note = f"{line.meter.open} connections, headers included"
        rows.append(row("idle traffic, heartbeat 30 s", rate, "kbit/s", 1.0, note))
        return rows


async def placing(line: Line, began: float) -> Row:
    """Wait for the first 1,000 objects."""
    async with asyncio.timeout(120):
        await line.arrived(_PLACED)
    seconds = time.perf_counter() - began
    await line.places.condition("Synced", "True")
    await line.quiet()
    return row("1,000 objects placed", seconds, "s", 10.0, "from the start of the process")


async def partition(*, forgotten: bool) -> list[Row]:
    """Cut the line, change 100 of 10,000 objects, and count what passes when it is mended."""
    async with lines() as line:
        places = line.places
        await line.fill(_MANY)
        await asyncio.to_thread(places.syncer.start)
        await line.settled(_MANY)
        line.meter.cut()
        await line.fill(_CHANGED, offset=500_000)
        if forgotten:
            await _forget(places)
        size = await _size(places)
        before, plain = line.meter.with_headers(), line.meter.bytes
        line.meter.mend()
        wanted = content(500_000 + _CHANGED - 1)["data"]
        await places.arrives(
            CONFIG_MAPS, f"page-{_CHANGED - 1}", lambda obj: bool(obj["data"] == wanted)
        )
        await line.quiet()
        passed, plain = line.meter.with_headers() - before, line.meter.bytes - plain
        when = "history forgotten" if forgotten else "history kept"
        note = f"{plain:,} bytes, {passed:,} with headers, for {size:,} of objects"
        return [row(f"after a partition, {when}", passed / size, "x", 2.0, note)]


async def _size(places: Places) -> int:
    """Return the bytes of the changed objects, without managedFields."""
    total = 0
    for number in range(_CHANGED):
        obj = await places.in_mailbox.get(CONFIG_MAPS, f"page-{number}", "shop")
        obj["metadata"].pop("managedFields", None)
        total += len(orjson.dumps(obj))
    return total


async def _forget(places: Places) -> None:
    """Have the hub forget its history: what an hour does, done at once while it is down."""
    places.hub.stop()
    settings = StoreSettings(path=places.hub.data_dir / "store.db")
    store = await open_store(settings, SystemClock(), SystemIds())
    try:
        await store.compact(await store.revision())
    finally:
        await store.close()
    await asyncio.to_thread(places.hub.start)


def row(name: str, value: float, unit: str, limit: float, note: str = "") -> Row:
    """Return one figure that is to stay below a bound."""
    return Row(_SUITE, name, value, unit, f"< {limit:g} {unit}", value < limit, note)


def _middle(taken: list[float]) -> float:
    return taken[len(taken) // 2] * 1000


def run() -> list[Row]:
    """Measure everything."""

    async def all_of_it() -> list[Row]:
        return [
            *await small(),
            *await partition(forgotten=False),
            *await partition(forgotten=True),
        ]

    return asyncio.run(all_of_it())


if __name__ == "__main__":
    print(table(run()))
