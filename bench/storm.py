"""Ten thousand edges: what connected syncers cost, and what happens when the hub comes back.

    python -m bench storm --edges 10000

Hub and controllers are processes of their own, and so are the syncers: some hundreds to a process,
each with its own certificate and connections, the watches of the real one in the way it holds
them, and a Lease that it renews every thirty seconds. They apply nothing anywhere. When all follow
their mailboxes the hub is left alone for a while, to see what heartbeats cost. Then it is killed
and started again on the same port, and it is measured how long it takes until all follow again and
as many watches are open as before, until each edge's heartbeat was answered, what was refused
meanwhile, and how long others wait for a GET.

``SKERRY_BENCH_EDGES`` and ``SKERRY_BENCH_OBJECTS`` say how many edges there are and how many
objects each has. What was made in ``SKERRY_BENCH_FOLDER`` stays there for the next run. A hub has
two connections of each edge: where it may not have as many open files, fewer are connected.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec

from bench.edge_hub import Shares, controlling
from bench.load import ask
from bench.report import Row, table
from bench.servers import Measured
from bench.storm_hub import OBJECTS, Hub, connectable, fill, tree_mb
from bench.storm_syncers import Edge, Fleet, Standing

_SUITE = "storm"
EDGES = int(os.environ.get("SKERRY_BENCH_EDGES", "1000"))
_FOLDER = os.environ.get("SKERRY_BENCH_FOLDER", "")
_WANTED_EDGES = 10_000
_PER_PROCESS = 1000
HEARTBEAT_SECONDS = float(os.environ.get("SKERRY_BENCH_HEARTBEAT_SECONDS", "30"))
_IDLE_SECONDS = float(os.environ.get("SKERRY_BENCH_IDLE_SECONDS", "60"))
# Edges of a fleet start one after the other, not in one moment.
_STARTS_PER_SECOND = float(os.environ.get("SKERRY_BENCH_STARTS_PER_SECOND", "150"))
_PATIENCE_SECONDS = float(os.environ.get("SKERRY_BENCH_PATIENCE_SECONDS", "1800"))
# Controllers that take less of a core than this have read all there is.
_SETTLED_SHARE = 0.05
_SETTLING_SECONDS = 3.0
_WATCHES = "apiserver_registered_watchers "
# All edges come from one address here. People and controllers do not come from that of edges.
_OTHERS = "127.0.0.2"


class SyncerProcess:
    """A process of syncers, and what it said last."""

    def __init__(self, kubeconfig: Path, fleet: Fleet) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bench.storm_syncers", str(kubeconfig), f"{HEARTBEAT_SECONDS}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(msgspec.json.encode(fleet) + b"\n")
        self._process.stdin.close()
        self._lines = self._process.stdout
        self.standing = Standing()

    async def listen(self) -> None:
        """Take note of what it says until it ends."""
        while line := await asyncio.to_thread(self._lines.readline):
            self.standing = msgspec.json.decode(line, type=Standing)

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(60)
        self._lines.close()


@dataclass
class Syncers:
    """All syncers, in their processes."""

    processes: list[SyncerProcess]
    count: int

    @classmethod
    def start(cls, kubeconfig: Path, edges: list[Edge]) -> Syncers:
        parts = [edges[at : at + _PER_PROCESS] for at in range(0, len(edges), _PER_PROCESS)]
        spacing = len(parts) / _STARTS_PER_SECOND
        return cls([SyncerProcess(kubeconfig, Fleet(part, spacing)) for part in parts], len(edges))

    async def all_follow(self) -> None:
        """Wait until every one follows its mailbox."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while (count := sum(each.standing.following for each in self.processes)) < self.count:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{count} of {self.count} syncers follow, {self.again()}")
            await asyncio.sleep(0.1)

    async def all_heard(self, since: float) -> None:
        """Wait until the hub has answered a heartbeat of every one since a time."""
        async with asyncio.timeout(_PATIENCE_SECONDS):
            while min(each.standing.heard for each in self.processes) < since:
                await asyncio.sleep(0.1)

    def again(self) -> tuple[int, int]:
        """Return how many heartbeats had to be sent again so far, and what was refused."""
        standings = [each.standing for each in self.processes]
        return sum(s.failed for s in standings), sum(s.refused for s in standings)


@dataclass
class Found:
    """What was measured, with so many edges."""

    edges: int
    connected: int = 0
    made_seconds: float = 0.0
    made_cpu: str = ""
    joined_seconds: float = 0.0
    alone_mb: tuple[float, float] = (0.0, 0.0)
    held_mb: tuple[float, float] = (0.0, 0.0)
    idle: tuple[float, float] = (0.0, 0.0)
    start_seconds: float = 0.0
    followed_seconds: float = 0.0
    watched_seconds: float = 0.0
    heard_seconds: float = 0.0
    return_cpu: tuple[float, float] = (0.0, 0.0)
    again: tuple[int, int] = (0, 0)
    latencies: list[float] = field(default_factory=list)
    lost: int = 0


async def _watches(hub: Measured) -> int:
    """Return how many watches the hub has open."""
    whole = replace(hub.server, prefix="")
    _, text = await asyncio.to_thread(ask, whole, "GET", "/metrics", source=_OTHERS)
    (line,) = (row for row in text.decode().splitlines() if row.startswith(_WATCHES))
    return int(float(line.rpartition(" ")[2]))


async def _all_watch(hub: Measured, wanted: int) -> None:
    async with asyncio.timeout(_PATIENCE_SECONDS):
        while True:
            # A hub that everybody returns to may have no place for one more question.
            with contextlib.suppress(OSError):
                if await _watches(hub) >= wanted:
                    return
            await asyncio.sleep(0.2)


async def _probe(server: Measured, found: Found) -> None:
    """Ask for an object over and over, each time over a connection of its own.

    It comes from another address than the edges: addresses take turns.
    """
    while True:
        began = time.perf_counter()
        try:
            path = "/api/v1/namespaces/default"
            await asyncio.to_thread(ask, server.server, "GET", path, source=_OTHERS)
            found.latencies.append(time.perf_counter() - began)
        except OSError:
            found.lost += 1
        await asyncio.sleep(0.05)


def _memory(hub: Measured, controllers: Measured) -> tuple[float, float]:
    return tree_mb(hub), tree_mb(controllers)


async def _settled(hub: Measured, controllers: Measured) -> None:
    """Wait until controllers that begin with a fleet in a folder have read it."""
    async with asyncio.timeout(_PATIENCE_SECONDS):
        busy = 1.0
        while busy > _SETTLED_SHARE:
            shares = Shares(hub, controllers)
            shares.begin()
            await asyncio.sleep(_SETTLING_SECONDS)
            busy = sum(shares.spent()[:2]) / _SETTLING_SECONDS


async def _measured(hub: Hub, measured: Measured, controllers: Measured, count: int) -> Found:
    found, began, shares = Found(count), time.perf_counter(), Shares(measured, controllers)
    shares.begin()
    names = await fill(hub, measured.kubeconfig, count)
    found.made_seconds, found.made_cpu = time.perf_counter() - began, shares.summary()
    await _settled(measured, controllers)
    found.alone_mb = _memory(measured, controllers)
    edges = hub.certified(names[: connectable()])
    found.connected = len(edges)
    began = time.perf_counter()
    syncers = Syncers.start(measured.kubeconfig, edges)
    listening = [asyncio.create_task(each.listen()) for each in syncers.processes]
    try:
        await syncers.all_follow()
        found.joined_seconds = time.perf_counter() - began
        await syncers.all_heard(1.0)
        shares.begin()
        await asyncio.sleep(_IDLE_SECONDS)
        spent = shares.spent()
        found.idle = spent[0] / _IDLE_SECONDS, spent[1] / _IDLE_SECONDS
        found.held_mb = _memory(measured, controllers)
        print(f"idle: {found}", file=sys.stderr, flush=True)
        await _storm(hub, measured, controllers, syncers, found)
        return found
    finally:
        for task in listening:
            task.cancel()
        for each in syncers.processes:
            each.stop()


async def _storm(
    hub: Hub, measured: Measured, controllers: Measured, syncers: Syncers, found: Found
) -> None:
    """Kill the hub, start it again, and wait for everybody."""
    watches, before = await _watches(measured), syncers.again()
    killed = time.time()
    hub.end(signal.SIGKILL)
    again = await asyncio.to_thread(hub.start)
    found.start_seconds = again.ready_seconds
    ready = time.perf_counter()

    async def followed() -> None:
        await syncers.all_follow()
        found.followed_seconds = time.perf_counter() - ready

    async def watched() -> None:
        await _all_watch(again, watches)
        found.watched_seconds = time.perf_counter() - ready

    async def heard() -> None:
        await syncers.all_heard(killed)
        found.heard_seconds = time.perf_counter() - ready

    probing = asyncio.create_task(_probe(again, found))
    shares = Shares(again, controllers)
    shares.begin()
    await asyncio.gather(followed(), watched(), heard())
    found.return_cpu = shares.spent()[:2]
    probing.cancel()
    failed, refused = syncers.again()
    found.again = failed - before[0], refused - before[1]


def _rows(found: Found) -> list[Row]:
    name = f"{found.edges:,} edges x {OBJECTS} objects, {found.connected:,} connected"
    held, alone, idle = found.held_mb, found.alone_mb, found.idle
    growth = 1024 * (sum(held) - sum(alone)) / max(1, found.connected)
    ordered = sorted(found.latencies)
    p99 = ordered[min(len(ordered) - 1, int(0.99 * len(ordered)))] if ordered else 0.0
    back = max(found.followed_seconds, found.watched_seconds)

    def row(what: str, value: float, unit: str, note: str = "", target: float = 0.0) -> Row:
        met = value < target if target and found.edges >= _WANTED_EDGES else None
        wanted = f"< {target:g} {unit} at 10,000" if target else ""
        return Row(_SUITE, f"{name}: {what}", value, unit, wanted, met, note)

    return [
        row("made and delivered", found.made_seconds, "s", found.made_cpu),
        row("all syncers connected", found.joined_seconds, "s"),
        row("hub + controllers, PSS", sum(held), "MB",
            f"hub {held[0]:.0f}, controllers {held[1]:.0f}; without syncers {alone[0]:.0f} and "
            f"{alone[1]:.0f}; {growth:.0f} KB a connected edge", 2560),
        row(f"idle {_IDLE_SECONDS:g} s, heartbeats every {HEARTBEAT_SECONDS:g} s",
            100 * sum(idle), "% of a core",
            f"hub {100 * idle[0]:.1f}, controllers {100 * idle[1]:.1f}", 60),
        row("hub killed: ready again", found.start_seconds, "s"),
        row("all back after it is ready", back, "s",
            f"edges {found.followed_seconds:.1f}, with controllers {found.watched_seconds:.1f}; "
            f"CPU s: hub {found.return_cpu[0]:.1f}, controllers {found.return_cpu[1]:.1f}", 60),
        row("every heartbeat answered after it is ready", found.heard_seconds, "s",
            f"{found.again[0]} sent again, {found.again[1]} requests answered 429 or 503"),
        row(f"others' GET meanwhile, p99 of {len(ordered)}", 1000 * p99, "ms",
            f"p50 {1000 * statistics.median(ordered or [0]):.0f} ms, longest "
            f"{1000 * max(ordered or [0]):.0f} ms, {found.lost} without an answer", 200),
    ]  # fmt: skip


@contextlib.contextmanager
def _hub() -> Iterator[tuple[Hub, Measured]]:
    with contextlib.ExitStack() as stack:
        folder = _FOLDER or stack.enter_context(tempfile.TemporaryDirectory(prefix="skerry-bench-"))
        hub = Hub(Path(folder))
        try:
            yield hub, hub.start()
        finally:
            hub.end(signal.SIGTERM)


def run(edges: int | None = None) -> list[Row]:
    """Measure a hub and controllers of our own."""
    with _hub() as (hub, measured), controlling(measured) as controllers:
        return _rows(asyncio.run(_measured(hub, measured, controllers, edges or EDGES)))


if __name__ == "__main__":
    print(table(run()))
