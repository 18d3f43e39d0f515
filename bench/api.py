"""The API suite: one object read, created, listed and watched, over TLS with RBAC.

Objects are ConfigMaps of 1.5 KB. Load comes from ``bench.generators``, the server is a process on
SQLite with durable commits. With a peer given by kubeconfig the same load goes there in the same
run, in turns, and the rows are ratios; machines are noisy and only figures of one round compare.
"""

from __future__ import annotations

import asyncio
import json
import random
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import orjson

from bench import generators, load
from bench.generators import Generator, Load
from bench.load import Outcome, Server
from bench.report import Row
from bench.servers import Measured, from_kubeconfig, ours

_SUITE = "api"
_SECONDS = 4.0
_ROUNDS = 5
_ROUND_SECONDS = 2.0
_NAMESPACE = "bench"
_COLLECTION = f"/api/v1/namespaces/{_NAMESPACE}/configmaps"
_FILLING = {f"key-{i:02d}": "x" * 60 for i in range(18)}


def _config_map(name: str) -> bytes:
    metadata = {"name": name, "labels": {"app": "bench", "tier": name[-1]}}
    return json.dumps(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": _FILLING}
    ).encode()


async def _prepare(server: Server) -> None:
    body = json.dumps({"metadata": {"name": _NAMESPACE}}).encode()
    request = server.request("POST", "/api/v1/namespaces", body)
    await load.run(server, lambda _: request, connections=1, count=1)
    one = server.request("POST", _COLLECTION, _config_map("one"))
    await load.run(server, lambda _: one, connections=1, count=1)


async def _get_any(server: Server, mark: str, count: int) -> Outcome:
    """Read objects ``<mark>-0`` to ``<mark>-<count - 1>`` in random order, so that no cache helps
    more than it would among as many."""
    drawn = random.Random(count)

    def make(_: int) -> bytes:
        return server.request("GET", f"{_COLLECTION}/{mark}-{drawn.randrange(count)}")

    return await load.run(server, make, seconds=_SECONDS)


async def _create(server: Server, mark: str, **bound: float) -> Outcome:
    def make(index: int) -> bytes:
        return server.request("POST", _COLLECTION, _config_map(f"{mark}-{index}"))

    count = bound.get("count")
    return await load.run(
        server,
        make,
        seconds=bound.get("seconds"),
        count=None if count is None else int(count),
    )


async def _list(server: Server, tries: int = 5) -> Outcome:
    request = server.request("GET", f"{_COLLECTION}?limit=10000")
    return await load.run(server, lambda _: request, connections=1, count=tries)


class _Watchers:
    """Many watches of one object, and when the last of them had each write."""

    def __init__(self, server: Server, count: int, writes: int) -> None:
        self._server = server
        self._count = count
        self._seen = [0] * writes
        self.arrived = [asyncio.Event() for _ in range(writes)]
        self._streams: list[asyncio.StreamWriter] = []

    async def open(self) -> list[asyncio.StreamReader]:
        return [await self._watch() for _ in range(self._count)]

    async def _watch(self) -> asyncio.StreamReader:
        server = self._server
        path = f"{_COLLECTION}?watch=1&fieldSelector=metadata.name%3Dwatched"
        reader, writer = await asyncio.open_connection(
            server.host, server.port, ssl=server.tls, limit=1 << 20
        )
        writer.write(server.request("GET", path))
        await reader.readuntil(b"\r\n\r\n")
        self._streams.append(writer)
        return reader

    async def follow(self, reader: asyncio.StreamReader) -> None:
        while line := await reader.readline():
            at = line.find(b'"write":"')
            if at >= 0:
                number = int(line[at + 9 : line.index(b'"', at + 9)])
                self._seen[number] += 1
                if self._seen[number] == self._count:
                    self.arrived[number].set()

    def close(self) -> None:
        for stream in self._streams:
            stream.close()


async def _write_watched(server: Server, number: int) -> None:
    body = {"metadata": {"name": "watched"}, "data": {"write": str(number)}}
    method, path = ("POST", _COLLECTION) if not number else ("PUT", f"{_COLLECTION}/watched")
    request = server.request(method, path, json.dumps(body).encode())
    written = await load.run(server, lambda _: request, connections=1, count=1)
    if written.failures:
        raise RuntimeError(f"write {number} failed")


async def _fan_out(server: Server, watchers: int = 1000, writes: int = 20) -> list[float]:
    """Return, for each write, the seconds until the last of the watchers had it."""
    watching = _Watchers(server, watchers, writes)
    readers = await watching.open()
    delays: list[float] = []
    async with asyncio.TaskGroup() as tasks:
        running = [tasks.create_task(watching.follow(reader)) for reader in readers]
        for number in range(writes):
            began = time.perf_counter()
            await _write_watched(server, number)
            await watching.arrived[number].wait()
            delays.append(time.perf_counter() - began)
        for task in running:
            task.cancel()
    watching.close()
    return delays


def _with_cpu(measured: Measured, action: Callable[[], Outcome]) -> tuple[Outcome, float]:
    before = measured.cpu_seconds()
    outcome = action()
    used = measured.cpu_seconds() - before
    return outcome, used / max(1, outcome.requests) * 1e6


@dataclass(slots=True)
class _Rounds:
    """What each round of one request saw of one server."""

    loads: list[Load] = field(default_factory=list)
    cpu_us: list[float] = field(default_factory=list)

    def add(self, measured: Measured, send: Callable[[], Load]) -> None:
        before = measured.cpu_seconds()
        made = send()
        self.loads.append(made)
        self.cpu_us.append((measured.cpu_seconds() - before) / max(1, made.requests) * 1e6)

    @property
    def rates(self) -> list[float]:
        return [each.rate for each in self.loads]

    def note(self, generator: Generator) -> str:
        """Say what a request took of the server, and of whoever sent it."""
        failed = sum(each.failures for each in self.loads)
        sending = statistics.median(each.generator_us for each in self.loads)
        note = f"{statistics.median(self.cpu_us):.0f} us of server CPU each, {sending:.0f} of "
        note += f"{generator.name}'s; {min(self.rates):,.0f} to {max(self.rates):,.0f}/s in "
        return note + f"{len(self.loads)} rounds" + (f"; {failed} FAILED" if failed else "")


def _in_turns(servers: list[Measured], generator: Generator) -> list[dict[str, _Rounds]]:
    """Load servers in turns, each round in the other order; return what each round saw."""
    seen = [{"get": _Rounds(), "create": _Rounds()} for _ in servers]
    known = [generators.with_token(each.server) for each in servers]
    body = _config_map(generators.NAME).decode()
    for number in range(_ROUNDS):
        order = range(len(servers)) if number % 2 else reversed(range(len(servers)))
        for at in order:
            server, measured, rounds = known[at], servers[at], seen[at]
            get = partial(generator.get, server, f"{_COLLECTION}/one", _ROUND_SECONDS)
            rounds["get"].add(measured, get)
            mark = f"round{number}"
            create = partial(generator.create, server, _COLLECTION, body, mark, _ROUND_SECONDS)
            rounds["create"].add(measured, create)
    return seen


def _listed(measured: Measured) -> dict[str, float]:
    """Measure a list of ten thousand objects."""
    missing = min(10_000, _missing(measured, 10_000))
    asyncio.run(_create(measured.server, "fill", count=missing))
    listed = asyncio.run(_list(measured.server))
    return {
        "ms": min(listed.latencies) * 1000,
        "mb": listed.bytes / max(1, listed.requests) / 1e6,
    }


def run(peer_kubeconfig: Path | None = None, *, large: bool = False) -> list[Row]:
    """Measure ours, and a peer if there is one; return the rows."""
    generator = generators.chosen()
    with ours() as measured:
        servers = [measured]
        if peer_kubeconfig is not None:
            servers.append(Measured(from_kubeconfig(peer_kubeconfig), peer_kubeconfig))
        for each in servers:
            asyncio.run(_prepare(each.server))
        idle_mb = measured.resident_mb()
        rounds = _in_turns(servers, generator)
        rows = _rates(rounds, generator) + _lists([_listed(each) for each in servers])
        ready, delays = measured.ready_seconds, asyncio.run(_fan_out(measured.server))
        asyncio.run(_create(measured.server, "more", count=_missing(measured, 100_000)))
        loaded_mb = measured.resident_mb()
        growth = []
        if large:
            growth = _growth(measured, statistics.median(rounds[0]["create"].cpu_us))
    return [
        *rows,
        _judged("1 write to 1,000 watchers, all delivered, worst of 20", max(delays) * 1000, "ms",
                100),
        _judged("ready after start, empty", ready, "s", 1.0),
        _judged("resident memory, idle", idle_mb, "MB", 100),
        _judged("resident memory, 100,000 objects", loaded_mb, "MB", 400),
        *growth,
    ]  # fmt: skip


def _rates(rounds: list[dict[str, _Rounds]], generator: Generator) -> list[Row]:
    rows = []
    mine = rounds[0]
    for name, key, factor in (("GET one object", "get", 5.0), ("create", "create", 2.5)):
        median = statistics.median(mine[key].rates)
        rows.append(Row(_SUITE, name, median, "/s", note=mine[key].note(generator)))
        if len(rounds) > 1:
            peers = rounds[1][key].rates
            ratios = [ours / peer for ours, peer in zip(mine[key].rates, peers, strict=True)]
            ratio = statistics.median(ratios)
            note = f"{min(ratios):.2f} to {max(ratios):.2f} in {len(ratios)} rounds; peer "
            rows.append(
                Row(_SUITE, f"{name}, times the peer", ratio, "x", f"{factor:g} x",
                    ratio >= factor, note + f"{statistics.median(peers):,.0f}/s")
            )  # fmt: skip
    if len(rounds) == 1:
        rows.append(Row(_SUITE, "peer", 0, "", note="no --peer-kubeconfig given: no ratios"))
    return rows


def _lists(listed: list[dict[str, float]]) -> list[Row]:
    name, mine = "list of 10,000 objects", listed[0]
    rows = [Row(_SUITE, name, mine["ms"], "ms", note=f"{mine['mb']:.1f} MB")]
    for peer in listed[1:]:
        ratio = peer["ms"] / mine["ms"]
        rows.append(
            Row(_SUITE, f"{name}, times the peer", ratio, "x", "5 x", ratio >= 5,
                f"peer {peer['ms']:,.0f} ms")
        )  # fmt: skip
    return rows


def _judged(name: str, value: float, unit: str, maximum: float) -> Row:
    return Row(_SUITE, name, value, unit, f"< {maximum:g} {unit}", value < maximum)


def _missing(measured: Measured, wanted: int) -> int:
    _, answer = load.ask(measured.server, "GET", f"{_COLLECTION}?limit=1")
    there = 1 + int(orjson.loads(answer)["metadata"].get("remainingItemCount") or 0)
    return max(0, wanted - there)


def _growth(measured: Measured, create_us_before: float) -> list[Row]:
    """Fill up to a million objects and measure again what one costs."""
    server = measured.server
    asyncio.run(_create(server, "few", count=1000))
    _, few_us = _with_cpu(measured, lambda: asyncio.run(_get_any(server, "few", 1000)))
    filled = _missing(measured, 1_000_000)
    asyncio.run(_create(server, "million", count=filled))
    _, get_us = _with_cpu(measured, lambda: asyncio.run(_get_any(server, "million", filled)))
    _, create_us = _with_cpu(
        measured, lambda: asyncio.run(_create(measured.server, "last", seconds=_SECONDS))
    )
    rows = []
    for name, now, before, limit in (
        ("GET", get_us, few_us, 1.4),
        ("create", create_us, create_us_before, 1.3),
    ):
        ratio = now / before
        title = f"CPU of a {name} with 1,000,000 objects, times that with few"
        rows.append(Row(_SUITE, title, ratio, "x", f"< {limit:g} x", ratio < limit))
    return rows
