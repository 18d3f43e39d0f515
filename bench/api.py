"""The API suite: one object read, created, listed and watched, over TLS with RBAC.

Objects are ConfigMaps of 1.5 KB. Load comes from this process, the server is another one on
SQLite with durable commits. With a peer given by kubeconfig the same load goes there in the same
run, and the rows are ratios; machines are noisy and only figures of one run compare.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import Callable
from pathlib import Path

import orjson

from bench import load
from bench.load import Outcome, Server
from bench.report import Row
from bench.servers import Measured, from_kubeconfig, ours

_SUITE = "api"
_SECONDS = 4.0
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


async def _get(server: Server, seconds: float = _SECONDS) -> Outcome:
    request = server.request("GET", f"{_COLLECTION}/one")
    return await load.run(server, lambda _: request, seconds=seconds)


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


def _one(measured: Measured) -> dict[str, float]:
    """Measure one server; return its figures by name."""
    server = measured.server
    asyncio.run(_prepare(server))
    figures: dict[str, float] = {"idle_mb": measured.resident_mb()}
    got, figures["get_us"] = _with_cpu(measured, lambda: asyncio.run(_get(server)))
    made, figures["create_us"] = _with_cpu(
        measured, lambda: asyncio.run(_create(server, "c", seconds=_SECONDS))
    )
    figures |= {"get": got.rate, "create": made.rate}
    figures["failures"] = got.failures + made.failures
    have = made.requests
    if have < 10_000:
        asyncio.run(_create(server, "fill", count=10_000 - have))
    listed = asyncio.run(_list(server))
    figures["list_ms"] = min(listed.latencies) * 1000
    figures["list_mb"] = listed.bytes / max(1, listed.requests) / 1e6
    return figures


def run(peer_kubeconfig: Path | None = None, *, large: bool = False) -> list[Row]:
    """Measure ours, and a peer if there is one; return the rows."""
    with ours() as measured:
        figures = _one(measured)
        ready, delays = measured.ready_seconds, asyncio.run(_fan_out(measured.server))
        asyncio.run(_create(measured.server, "more", count=_missing(measured, 100_000)))
        loaded_mb = measured.resident_mb()
        growth = _growth(measured, figures) if large else None
    peer = None
    if peer_kubeconfig is not None:
        peer = _one(Measured(from_kubeconfig(peer_kubeconfig), peer_kubeconfig))
    rows = _rates(figures, peer)
    rows += [
        _judged("1 write to 1,000 watchers, all delivered, worst of 20", max(delays) * 1000, "ms",
                100),
        _judged("ready after start, empty", ready, "s", 1.0),
        _judged("resident memory, idle", figures["idle_mb"], "MB", 100),
        _judged("resident memory, 100,000 objects", loaded_mb, "MB", 400),
    ]  # fmt: skip
    if growth is not None:
        rows += growth
    return rows


def _rates(figures: dict[str, float], peer: dict[str, float] | None) -> list[Row]:
    rows = []
    for name, key, unit, factor in (
        ("GET one object", "get", "/s", 5.0),
        ("create", "create", "/s", 3.0),
        ("list of 10,000 objects", "list_ms", "ms", 5.0),
    ):
        rows.append(Row(_SUITE, name, figures[key], unit, note=_cpu_note(figures, key)))
        if peer is not None:
            ratio = figures[key] / peer[key] if unit == "/s" else peer[key] / figures[key]
            rows.append(
                Row(_SUITE, f"{name}, times the peer", ratio, "x", f"{factor:g} x",
                    ratio >= factor, f"peer {peer[key]:,.0f} {unit}")
            )  # fmt: skip
    if peer is None:
        rows.append(Row(_SUITE, "peer", 0, "", note="no --peer-kubeconfig given: no ratios"))
    return rows


def _cpu_note(figures: dict[str, float], key: str) -> str:
    if f"{key}_us" in figures:
        return f"{figures[f'{key}_us']:.0f} us of server CPU each"
    return f"{figures['list_mb']:.1f} MB"


def _judged(name: str, value: float, unit: str, maximum: float) -> Row:
    return Row(_SUITE, name, value, unit, f"< {maximum:g} {unit}", value < maximum)


def _missing(measured: Measured, wanted: int) -> int:
    server = measured.server
    request = server.request("GET", f"{_COLLECTION}?limit=1")
    found: list[bytes] = []

    async def count() -> int:
        reader, writer = await asyncio.open_connection(server.host, server.port, ssl=server.tls)
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        found.append(await reader.readexactly(length))
        writer.close()
        listed = orjson.loads(found[0])
        return 1 + int(listed["metadata"].get("remainingItemCount") or 0)

    return max(0, wanted - asyncio.run(count()))


def _growth(measured: Measured, figures: dict[str, float]) -> list[Row]:
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
    for name, now, before in (
        ("GET", get_us, few_us),
        ("create", create_us, figures["create_us"]),
    ):
        ratio = now / before
        title = f"CPU of a {name} with 1,000,000 objects, times that with few"
        rows.append(Row(_SUITE, title, ratio, "x", "< 1.3 x", ratio < 1.3))
    return rows
