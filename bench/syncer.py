"""What a syncer costs and how fast it is: a hub, an edge and a syncer as processes, over TLS.

    python -m bench.syncer [--objects 1000] [--idle-seconds 65]

Prints one line per quantity. Traffic is what passes a proxy between syncer and hub: TLS records
and everything inside, both ways; each TCP segment costs some 40 to 60 bytes more, which the
second figure estimates from the number of pieces that passed.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.e2e.syncer.places import CONFIG_MAPS, Places, SyncerProcess

from skerry.runtime.client import Selection

_SEGMENT_BYTES = 52


class Meter:
    """A proxy that counts what passes."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.total = 0
        self.pieces = 0
        self.connections = 0
        self.open = 0

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[int]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        async with server:
            yield server.sockets[0].getsockname()[1]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.open += 1
        onward, back = await asyncio.open_connection("127.0.0.1", self._port)
        try:
            await asyncio.gather(self._copy(reader, back), self._copy(onward, writer))
        except ConnectionError:
            pass
        finally:
            self.open -= 1
            writer.close()
            back.close()

    async def _copy(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        while chunk := await source.read(65536):
            self.total += len(chunk)
            self.pieces += 1
            sink.write(chunk)
            await sink.drain()
        sink.close()


def content(number: int) -> dict[str, object]:
    return {"data": {"index.html": f"{number:08} " + "x" * 1200}}


async def fill(places: Places, count: int) -> None:
    room = asyncio.Semaphore(16)

    async def one(number: int) -> None:
        async with room:
            await places.put(CONFIG_MAPS, f"page-{number}", content(number))

    await asyncio.gather(*(one(number) for number in range(count)))


async def arrived(places: Places, count: int) -> None:
    selection = Selection(namespace="shop")
    async with asyncio.timeout(120):
        while True:
            found = await places.at_edge.list(CONFIG_MAPS, selection)
            if len(found.items) >= count:
                return
            await asyncio.sleep(0.05)


async def latencies(places: Places, rounds: int) -> list[float]:
    """Return seconds from the start of a write in the mailbox to its event at the edge."""
    seen: dict[str, float] = {}
    wake = asyncio.Event()

    async def watch() -> None:
        selection = Selection(namespace="shop", fields="metadata.name=page-0")
        start = (await places.at_edge.list(CONFIG_MAPS, selection)).resource_version
        async with places.at_edge.watch(CONFIG_MAPS, selection, resource_version=start) as events:
            ready.set()
            async for event in events:
                if event.kind == "MODIFIED":
                    seen[event.object["data"]["index.html"][:8]] = time.perf_counter()
                    wake.set()

    ready = asyncio.Event()
    watching = asyncio.create_task(watch())
    await ready.wait()
    taken: list[float] = []
    for number in range(100_000, 100_000 + rounds):
        began = time.perf_counter()
        await places.put(CONFIG_MAPS, "page-0", content(number))
        while f"{number:08}" not in seen:
            wake.clear()
            await wake.wait()
        taken.append(seen[f"{number:08}"] - began)
        await asyncio.sleep(0.15)  # an idle edge: marks of the round before have been written
    watching.cancel()
    return sorted(taken)


def resident(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    return 0.0


async def measure(objects: int, idle_seconds: float, rounds: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        places = Places(Path(folder))
        async with places.running():
            await places.configure()
            await fill(places, objects)
            port = int(places.hub.url.rpartition(":")[2])
            meter = Meter(port)
            async with meter.listening() as proxy:
                metered = Path(folder) / "metered.kubeconfig"
                text = places.hub_kubeconfig.read_text()
                metered.write_text(text.replace(f":{port}/", f":{proxy}/"))
                places.syncer = SyncerProcess(Path(folder), metered, places.edge.kubeconfig)
                await asyncio.to_thread(places.syncer.start)
                began = time.perf_counter()
                await arrived(places, objects)
                print(f"{objects} objects placed: {time.perf_counter() - began:.2f} s after start")
                await places.condition("Synced", "True")
                await asyncio.sleep(3)
                taken = await latencies(places, rounds)
                print(
                    f"mailbox write -> edge event: p50 {taken[len(taken) // 2] * 1000:.0f} ms, "
                    f"p99 {taken[int(len(taken) * 0.99) - 1] * 1000:.0f} ms ({rounds} writes)"
                )
                assert places.syncer.process is not None
                megabytes = resident(places.syncer.process.pid)
                print(f"syncer resident memory: {megabytes:.0f} MB with {objects} objects")
                await asyncio.sleep(5)
                bytes_before, pieces_before = meter.total, meter.pieces
                await asyncio.sleep(idle_seconds)
                idle = meter.total - bytes_before
                pieces = meter.pieces - pieces_before
                rate = idle * 8 / idle_seconds / 1000
                with_tcp = (idle + 2 * pieces * _SEGMENT_BYTES) * 8 / idle_seconds / 1000
                print(
                    f"idle traffic, heartbeat 30 s: {rate:.2f} kbit/s ({with_tcp:.2f} with TCP/IP "
                    f"headers) over {meter.open} connections"
                )
                await changed_objects(places, meter, objects)


async def changed_objects(places: Places, meter: Meter, objects: int) -> None:
    """Change one object in ten and count the bytes that pass."""
    changed = max(1, objects // 10)
    before = meter.total
    for number in range(changed):
        await places.put(CONFIG_MAPS, f"page-{number}", content(number + 500_000))
    await asyncio.sleep(8)
    size = changed * 1500
    print(
        f"{changed} objects changed: {(meter.total - before) / size:.1f} times their size "
        "passed, marks and their echo included"
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--objects", type=int, default=1000)
    parser.add_argument("--idle-seconds", type=float, default=65)
    parser.add_argument("--rounds", type=int, default=100)
    given = parser.parse_args()
    asyncio.run(measure(given.objects, given.idle_seconds, given.rounds))


if __name__ == "__main__":
    """Read the flags and measure."""
    """Measure everything and print it."""
    """Return a process' resident memory in MB."""
    """Wait until so many objects are at the edge."""
    """Put so many objects into the mailbox."""
    """Return the content of one object of about 1.5 KB."""
    main()
