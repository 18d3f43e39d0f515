"""Ordinary churn for minutes: a hub, its controllers, two embedded edges and their syncers.

200 ConfigMaps of one namespace are applied and deleted at random, forty times a second, as their
owner would, and the edges are to follow. Measured: how long after the end both edges have exactly
what is wanted, errors on the way, and the memory of every process while it lasts.

    python -m bench churn --seconds 600
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import NamedTuple

from bench.edge_hub import (
    CONFIG_MAPS,
    EDGE,
    NAMESPACES,
    bind,
    body,
    connected,
    make_workspace,
)
from bench.report import Row, table
from skerry.api.edge import EDGE_PLACEMENTS
from skerry.api.errors import ApiError
from skerry.api.kcp.resources import SYNC_TARGETS
from skerry.logic.machinery.conditions import is_true
from skerry.runtime.client import Client, Selection, WriteOptions
from skerry.runtime.kubeconfig import connect, load
from skerry.runtime.transport import TransportError

_SUITE = "churn"
SECONDS = 600.0
_RATE = 40.0
_NAMES = 200
_EDGES = ("north", "south")
_OWNER = WriteOptions(field_manager="owner")
_PATIENCE_SECONDS = 120.0
_SAMPLE_SECONDS = 10.0
# Memory is to be flat after this time: caches are full, and pools have found their size.
_WARM_SECONDS = 120.0
_TOLERANCE = 0.05
# By which our processes are found again, however they were started.
_MARK = "SKERRY_BENCH_RUN"
_ROLES = {
    "hub": "hub",
    "controllers": "controllers",
    "syncer": "syncers",
    "skerry.app.edge_run": "edges",
}
_SKERRY = [sys.executable, "-m", "skerry.cli"]


class Usage(NamedTuple):
    """Resident MB and open files; nearly all of those are connections, whose TLS takes memory."""

    mb: float = 0.0
    files: int = 0


Curve = list[tuple[float, dict[str, Usage]]]


class Fleet:
    """Everything as processes, in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.kubeconfig = folder / "hub" / "admin.kubeconfig"
        self.environment = {
            **os.environ,
            "HOME": str(folder),
            "SKERRY_HOME": str(folder / ".skerry"),
            "KUBECONFIG": str(self.kubeconfig),
            _MARK: str(folder),
        }

    def skerry(self, *words: str) -> str:
        """Run a command to its end."""
        done = subprocess.run(
            [*_SKERRY, *words], env=self.environment, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise SystemExit(f"skerry {' '.join(words)}: {done.stdout}{done.stderr}")
        return done.stdout

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Have a hub with its controllers; the edges join later."""
        hub = ("--data-dir", str(self.folder / "hub"))
        self.skerry("up", "--init", "--detach", "--port", "0", *hub)
        try:
            yield
        finally:
            for edge in _EDGES:
                with contextlib.suppress(SystemExit):
                    self.skerry("edge", "delete", edge)
            self.skerry("down", *hub)

    def join(self) -> None:
        """Have the edges join."""
        for edge in _EDGES:
            self.skerry("edge", "join", edge, "env=prod", "--imw", "root:imw")

    def at_edge(self, edge: str) -> Client:
        """Return a client of one edge."""
        path = self.folder / f"{edge}.kubeconfig"
        path.write_text(self.skerry("edge", "kubeconfig", edge))
        return Client(connect(load([path])))

    def usage(self) -> dict[str, Usage]:
        """Return what all our processes take, by what they do."""
        found: dict[str, Usage] = {}
        mark = f"{_MARK}={self.folder}".encode()
        for process in Path("/proc").iterdir():
            if not process.name.isdecimal() or int(process.name) == os.getpid():
                continue
            with contextlib.suppress(OSError):
                if mark not in (process / "environ").read_bytes().split(b"\0"):
                    continue
                role = _role((process / "cmdline").read_bytes().decode().split("\0"))
                if role:
                    files = len(list((process / "fd").iterdir()))
                    before = found.get(role, Usage())
                    found[role] = Usage(before.mb + _resident(process), before.files + files)
        return found


def _role(words: list[str]) -> str:
    if any(word.endswith("supervisor.py") for word in words):
        return ""  # it names whom it supervises
    return next((role for word, role in _ROLES.items() if word in words), "")


def _resident(process: Path) -> float:
    for line in (process / "status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    return 0.0


@contextlib.asynccontextmanager
async def furnished(folder: Path) -> AsyncIterator[tuple[Fleet, Client]]:
    """Have the fleet and its owner's client, with everything placed on both edges."""
    fleet = Fleet(folder)
    with fleet.running():
        async with connected(fleet.kubeconfig) as hub:
            await make_workspace(hub, "root", "imw")
            await asyncio.to_thread(fleet.join)
            shop = await make_workspace(hub, "root", "shop")
            await bind(hub, shop, "kubernetes", "root:compute")
            await bind(hub, shop, "edge.kcp.io")
            owner = hub.at("", shop)
            space = body("v1", "Namespace", "web", metadata={"labels": {"goes": "out"}})
            await owner.create(NAMESPACES, space)
            spec = {
                "locationSelectors": [{"matchLabels": {"env": "prod"}}],
                "namespaceSelector": {"matchLabels": {"goes": "out"}},
            }
            await owner.create(EDGE_PLACEMENTS, body(EDGE, "EdgePlacement", "all", spec=spec))
            yield fleet, owner


class Churn:
    """Applies and deletes at random, at a steady pace, and remembers what is wanted."""

    def __init__(self, owner: Client) -> None:
        self._owner = owner
        self._chance = random.Random(13)
        self.wanted: dict[str, str] = {}
        self.operations = 0
        self.errors: list[str] = []

    async def run(self, seconds: float) -> None:
        """Go on for so long; an operation that is late is not left out."""
        began = time.monotonic()
        busy: set[str] = set()
        async with asyncio.TaskGroup() as tasks:
            for number in range(int(seconds * _RATE)):
                await asyncio.sleep(max(0.0, began + number / _RATE - time.monotonic()))
                name = f"page-{self._chance.randrange(_NAMES)}"
                while name in busy:
                    await asyncio.sleep(0.001)
                busy.add(name)
                tasks.create_task(self._one(name, number, busy))

    async def _one(self, name: str, number: int, busy: set[str]) -> None:
        try:
            if name in self.wanted:
                del self.wanted[name]
                await self._owner.delete(CONFIG_MAPS, name, "web")
            else:
                text = base64.b64encode(random.Random(number).randbytes(600)).decode()
                self.wanted[name] = text
                page = body("v1", "ConfigMap", name, metadata={"namespace": "web"})
                await self._owner.create(
                    CONFIG_MAPS, {**page, "data": {"text": text}}, "web", options=_OWNER
                )
            self.operations += 1
        except (ApiError, TransportError) as error:
            self.errors.append(f"{name}: {error}")
        finally:
            busy.discard(name)


async def converged(edges: list[Client], wanted: dict[str, str]) -> float | None:
    """Wait until every edge has exactly what is wanted; return how long that took."""
    began = time.monotonic()
    while time.monotonic() - began < _PATIENCE_SECONDS:
        found = [await _pages(edge) for edge in edges]
        if all(pages == wanted for pages in found):
            return time.monotonic() - began
        await asyncio.sleep(0.1)
    return None


async def _pages(edge: Client) -> dict[str, str]:
    items = (await edge.list(CONFIG_MAPS, Selection(namespace="web"))).items
    pages = {item["metadata"]["name"]: item for item in items}
    return {
        name: (item.get("data") or {}).get("text", "")
        for name, item in pages.items()
        if name.startswith("page-")
    }


async def sampled(fleet: Fleet, curve: Curve) -> None:
    """Note the memory of all processes now and then, until cancelled."""
    began = time.monotonic()
    while True:
        curve.append((time.monotonic() - began, await asyncio.to_thread(fleet.usage)))
        await asyncio.sleep(_SAMPLE_SECONDS)


def memory_rows(curve: Curve) -> list[Row]:
    """Return how much each kind of process has grown since everything was warm.

    Whoever is kept waiting opens further connections, 64 at most of each client, so open files
    that rise with the memory mean a machine that was too busy for a while.
    """
    rows = []
    for role in sorted({role for _, found in curve for role in found}):
        used = [(when, found.get(role, Usage())) for when, found in curve]
        points = [(when, each.mb) for when, each in used]
        warm = [size for when, size in points if when >= _WARM_SECONDS]
        shown = used[:: max(1, len(used) // 10)]
        note = "MB/files " + " ".join(
            f"{when:.0f}s:{each.mb:.0f}/{each.files}" for when, each in shown
        )
        if len(warm) < 2:
            rows.append(Row(_SUITE, f"memory of {role}", points[-1][1], "MB", note=note))
            continue
        growth = max(warm) / warm[0] - 1
        target = f"< {_TOLERANCE:.0%} after {_WARM_SECONDS:g} s"
        name = f"memory of {role}, growth"
        rows.append(Row(_SUITE, name, growth * 100, "%", target, growth < _TOLERANCE, note))
    return rows


async def measured(seconds: float) -> list[Row]:
    """Churn for so long, and look at what is left of it."""
    with tempfile.TemporaryDirectory(prefix="skerry-churn-") as folder:
        async with furnished(Path(folder)) as (fleet, owner):
            edges = [await asyncio.to_thread(fleet.at_edge, edge) for edge in _EDGES]
            curve: Curve = []
            sampling = asyncio.create_task(sampled(fleet, curve))
            churn = Churn(owner)
            began = time.monotonic()
            await churn.run(seconds)
            lasted = time.monotonic() - began
            taken = await converged(edges, churn.wanted)
            sampling.cancel()
            targets = (await owner.at("", "root:imw").list(SYNC_TARGETS)).items
            held = sum(is_true(target, "Held") for target in targets)
            for edge in edges:
                await edge.transport.close()
    rate = churn.operations / lasted
    note = f"{churn.operations:,} operations in {lasted:.0f} s, {len(churn.wanted)} left"
    value = _PATIENCE_SECONDS if taken is None else taken
    met = taken is not None and taken < 5.0
    errors = len(churn.errors)
    return [
        Row(_SUITE, "converged after the end", value, "s", "< 5 s", met, note),
        Row(_SUITE, "operations", rate, "1/s", f"> {_RATE * 0.95:g} 1/s", rate > _RATE * 0.95),
        Row(_SUITE, "errors", errors, "", "0", not errors, "; ".join(churn.errors[:3])),
        Row(_SUITE, "edges that hold deletions", held, "", "0", not held),
        *memory_rows(curve),
    ]


def run(seconds: float = SECONDS) -> list[Row]:
    """Measure everything."""
    return asyncio.run(measured(seconds))


if __name__ == "__main__":
    print(table(run()))
