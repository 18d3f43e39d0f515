"""The adversary suite: bodies made to stop a server, and what everybody else notices of them.

A hub and a plain server run as processes of their own, their loops watched (``bench.watched``).
A user without any grant sends each body of ``adversary_bodies`` from her home workspace; another
user reads an object of his in the meantime. For each body: how it was answered, the longest turn
of the loop in processor time of its thread, and the other user's 99th percentile. At the end, what
ten thousand hostile requests left in the memory of the hub.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from bench.adversary_bodies import (
    ATTACKS,
    BATCH,
    CRDS,
    MAPS,
    NAMESPACE,
    NETWORK,
    RBAC,
    SMALL_BYTES,
    THINGS,
    THINGS_SCHEMA,
    Attack,
    definition,
)
from bench.report import Row
from bench.servers import Measured, from_kubeconfig
from bench.watched import Hold

_SUITE = "adversary"
_TOKENS = "mallory-token,mallory,mallory-uid\nalice-token,alice,alice-uid\n"
_HOME = "/clusters/root/apis/tenancy.kcp.io/v1alpha1/workspaces/~"
_SMALL_MS, _LARGE_MS, _OTHERS_MS, _MEMORY_MB = 20.0, 60.0, 150.0, 10.0
_HOSTILE_REQUESTS = 10_000
_CONNECTIONS = 8
# Answered sooner than this, an attack is one of those that are repeated thousands of times.
_QUICK_SECONDS = 0.03
# How often somebody who was asked to come back does so, once a second.
_PATIENCE = 60


class Client:
    """One user's connection: a request at a time, opened again when the server closes it."""

    def __init__(self, measured: Measured, token: str, prefix: str) -> None:
        self._measured = measured
        self._token = token
        self._prefix = prefix
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(
        self, method: str, path: str, media: str = "", body: bytes = b"", accept: str = ""
    ) -> tuple[int, bytes]:
        """Return the status and the body of an answer; 0 when the connection broke."""
        head = f"{method} {self._prefix}{path} HTTP/1.1\r\nHost: bench\r\n"
        head += f"Authorization: Bearer {self._token}\r\n"
        for name, value in (("Content-Type", media), ("Accept", accept)):
            head += f"{name}: {value}\r\n" if value else ""
        if body or method != "GET":
            head += f"Content-Length: {len(body)}\r\n"
        try:
            reader, writer = await self._open()
            writer.write(head.encode() + b"\r\n" + body)
            return await self._answer(reader)
        except (ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
            self.close()
            return 0, b""

    async def _open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self._streams is None:
            server = self._measured.server
            self._streams = await asyncio.open_connection(
                server.host, server.port, ssl=server.tls, limit=1 << 26
            )
        return self._streams

    async def _answer(self, reader: asyncio.StreamReader) -> tuple[int, bytes]:
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        status = int(head[9:12])
        if b"transfer-encoding: chunked" in head:
            body = b""
            while size := int(await reader.readuntil(b"\r\n"), 16):
                body += (await reader.readexactly(size + 2))[:-2]
            await reader.readexactly(2)
        else:
            at = head.find(b"content-length:")
            length = int(head[at + 15 :].split(b"\r\n", 1)[0]) if at >= 0 else 0
            body = await reader.readexactly(length)
        if b"connection: close" in head:
            self.close()
        return status, body

    def close(self) -> None:
        """Let go of the connection."""
        if self._streams is not None:
            self._streams[1].close()
        self._streams = None


@dataclass
class Target:
    """A server under attack: whom it serves, and how its loop fares."""

    measured: Measured
    hold: Hold
    hostile_prefix: str = ""
    other_prefix: str = ""

    def hostile(self) -> Client:
        return Client(self.measured, "mallory-token", self.hostile_prefix)

    def other(self) -> Client:
        return Client(self.measured, "alice-token", self.other_prefix)


@contextlib.contextmanager
def _started(command: str, folder: Path) -> Iterator[Target]:
    """Start a watched server; stop it at the end."""
    tokens, data, shared = folder / "tokens.csv", folder / command, folder / f"{command}.hold"
    tokens.write_text(_TOKENS)
    hold = Hold(shared)
    flags = ["--data-dir", str(data), "--port", "0", "-v", "0", "--token-auth-file", str(tokens)]
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.watched", str(shared), command, *flags],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        if " ready at " not in line:
            raise RuntimeError(f"skerry {command} did not start: {line!r}")
        kubeconfig = data / "admin.kubeconfig"
        yield Target(Measured(from_kubeconfig(kubeconfig), kubeconfig, process), hold)
    finally:
        process.terminate()
        process.wait(30)


async def _settle_hub(target: Target) -> None:
    """Give both users their home workspaces; they need no other right."""
    homes = {}
    for client in (target.hostile(), target.other()):
        for _ in range(100):
            status, text = await client.ask("GET", _HOME)
            found = json.loads(text) if status == 200 else {}
            if (found.get("status") or {}).get("phase") == "Ready":
                homes[client] = found["spec"]["cluster"]
                break
            await asyncio.sleep(0.1)
        client.close()
    target.hostile_prefix, target.other_prefix = (f"/clusters/{name}" for name in homes.values())


async def _settle_plain(target: Target) -> None:
    """Let both users do everything, as administrators would be let."""
    group = {"apiGroup": "rbac.authorization.k8s.io"}
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "bench"},
        "roleRef": {**group, "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{**group, "kind": "User", "name": name} for name in ("mallory", "alice")],
    }
    server, body = target.measured.server, json.dumps(binding).encode()
    reader, writer = await asyncio.open_connection(server.host, server.port, ssl=server.tls)
    writer.write(server.request("POST", f"{RBAC}/clusterrolebindings", body))
    await reader.readuntil(b"\r\n\r\n")
    writer.close()


async def _furnish(target: Target) -> None:
    """Make what reads and custom objects need."""
    hostile, other = target.hostile(), target.other()
    things = definition(THINGS_SCHEMA, name="things")
    large = {"metadata": {"name": "large"}, "data": {f"k{i}": "v" for i in range(20_000)}}
    for client, path, obj in (
        (other, MAPS, {"metadata": {"name": "mine"}, "data": {"k": "v" * 1000}}),
        (hostile, CRDS, things),
        (hostile, MAPS, large),
        *((hostile, MAPS, {"metadata": {"name": f"m{i}"}, "data": {"k": "v"}}) for i in range(50)),
    ):
        status, text = await client.ask("POST", path, "application/json", json.dumps(obj).encode())
        if status not in (201, 409):
            raise RuntimeError(f"cannot furnish {path}: {status} {text[:300]!r}")
    hostile.close()
    other.close()


@dataclass
class Other:
    """What the other user sees meanwhile."""

    latencies: list[float] = field(default_factory=list)

    def p99_ms(self) -> float:
        ordered = sorted(self.latencies)
        return ordered[int(0.99 * (len(ordered) - 1))] * 1000 if ordered else 0.0


@contextlib.asynccontextmanager
async def _reading(target: Target) -> AsyncIterator[Other]:
    """Have the other user read an object again and again."""
    seen, client = Other(), target.other()

    async def read() -> None:
        while True:
            began = time.perf_counter()
            status, _ = await client.ask("GET", f"{MAPS}/mine")
            seen.latencies.append(time.perf_counter() - began if status == 200 else 10.0)
            await asyncio.sleep(0.002)

    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(read())
        await asyncio.sleep(0.05)
        yield seen
        running.cancel()
    client.close()


async def _send(attack: Attack, client: Client) -> int:
    """Send an attack until it is let in: who has used up her share has to wait."""
    for _ in range(_PATIENCE):
        status, _ = await client.ask(
            attack.method, attack.path, attack.media, attack.body(), attack.accept
        )
        if status != 429:
            break
        await asyncio.sleep(1)
    return status


async def _one(target: Target, attack: Attack) -> tuple[Row, float]:
    """Send one attack; return its row, and how long an answer took."""
    clients = [target.hostile() for _ in range(attack.times)]
    size = len(attack.body())
    await _forget(target, attack)
    async with _reading(target) as other:
        target.hold.seconds = 0.0
        began = time.perf_counter()
        statuses = Counter([await _send(attack, client) for client in clients])
        took = (time.perf_counter() - began) / attack.times
        await asyncio.sleep(0.1)
        hold_ms = target.hold.seconds * 1000
    for client in clients:
        client.close()
    limit = _SMALL_MS if size <= SMALL_BYTES else _LARGE_MS
    p99 = other.p99_ms()
    answered = all(0 < status < 500 for status in statuses)
    counts = ", ".join(f"{times} x {status}" for status, times in sorted(statuses.items()))
    note = f"{size:,} bytes; {counts}; {took * 1000:,.0f} ms each; others' p99 {p99:.0f} ms"
    met = hold_ms < limit and p99 < _OTHERS_MS and answered
    name = f"{attack.part}: {attack.name}"
    return Row(_SUITE, name, hold_ms, "ms", f"< {limit:g} ms", met, note), took


async def _forget(target: Target, attack: Attack) -> None:
    """Remove what an attack before may have left, so that each begins alike."""
    client = target.hostile()
    rest = ("pods", "services", "resourcequotas")
    left = (f"{MAPS}/hostile", f"{CRDS}/hostiles.example.org", f"{RBAC}/clusterroles/hostile",
            f"{RBAC}/clusterrolebindings/hostile",
            f"{THINGS}/hostile", f"{BATCH}/cronjobs/hostile", f"{NETWORK}/networkpolicies/hostile",
            *(f"{NAMESPACE}/{resource}/hostile" for resource in rest))  # fmt: skip
    for path in left:
        while (await client.ask("DELETE", path))[0] == 429:
            await asyncio.sleep(1)
    if attack.method in ("PUT", "PATCH"):
        body = json.dumps({"metadata": {"name": "hostile"}}).encode()
        await client.ask("POST", MAPS, "application/json", body)
    client.close()


async def _many(target: Target, attacks: list[Attack]) -> list[Row]:
    """Send ten thousand of the quickest, and see what stays in memory."""
    bodies = {attack: attack.body() for attack in attacks}

    async def send(count: int) -> Counter[int]:
        seen: Counter[int] = Counter()
        left = iter(range(count))

        async def work(client: Client) -> None:
            for index in left:
                attack = attacks[index % len(attacks)]
                status, _ = await client.ask(
                    attack.method, attack.path, attack.media, bodies[attack], attack.accept
                )
                seen[status] += 1
            client.close()

        await asyncio.gather(*(work(target.hostile()) for _ in range(_CONNECTIONS)))
        return seen

    # The first of each fill what is bounded: caches, pools, the heap's own spare room.
    await send(10 * len(attacks))
    before = target.measured.resident_mb()
    async with _reading(target) as other:
        target.hold.seconds = 0.0
        began = time.perf_counter()
        seen = await send(_HOSTILE_REQUESTS)
        seconds = time.perf_counter() - began
    grown = target.measured.resident_mb() - before
    failed = sum(times for status, times in seen.items() if not 0 < status < 500)
    note = (
        f"{before:.0f} MB before; {len(attacks)} attacks over {_CONNECTIONS} connections in "
        f"{seconds:.0f} s, {failed} failed; others' p99 {other.p99_ms():.0f} ms; "
        f"longest turn {target.hold.seconds * 1000:.0f} ms"
    )
    name = f"growth of the hub after {_HOSTILE_REQUESTS:,} hostile requests"
    met = grown <= _MEMORY_MB and not failed
    return [Row(_SUITE, name, grown, "MB", f"<= {_MEMORY_MB:g} MB", met, note)]


async def _all(hub: Target, plain: Target) -> list[Row]:
    await _settle_hub(hub)
    await _settle_plain(plain)
    for target in (hub, plain):
        await _furnish(target)
    rows: list[Row] = []
    quick: list[Attack] = []
    for attack in ATTACKS:
        target = hub if attack.where == "hub" else plain
        row, took = await _one(target, attack)
        rows.append(row)
        if target is hub and took < _QUICK_SECONDS and attack.part != "batch":
            quick.append(attack)
    return rows + await _many(hub, quick)


def run() -> list[Row]:
    """Attack both servers; return the rows, the worst of each limit last."""
    with (
        tempfile.TemporaryDirectory(prefix="skerry-bench-") as folder,
        _started("hub", Path(folder)) as hub,
        _started("serve", Path(folder)) as plain,
    ):
        rows = asyncio.run(_all(hub, plain))
    return [*rows, _worst(rows, _SMALL_MS), _worst(rows, _LARGE_MS)]


def _worst(rows: list[Row], limit: float) -> Row:
    of = [row for row in rows if row.target == f"< {limit:g} ms"]
    worst = max(of, key=lambda row: row.value)
    name = f"longest turn of {len(of)} bodies {'up to' if limit == _SMALL_MS else 'above'} 256 KB"
    return Row(_SUITE, name, worst.value, "ms", worst.target, worst.value < limit, worst.name)
