"""Workspaces: how fast they come and go, what each costs, and how views and wildcards scale.

``python -m bench.workspaces [--large] [--peer-kubeconfig F]``. The driver speaks to any server
given by a kubeconfig, so that a real kcp can stand beside ours; what needs the server's process
(memory, start) is measured of ours alone. ``--large`` goes to 10,000 workspaces.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import yaml

from bench.load import Outcome, Server
from bench.load import run as load
from bench.report import Row, table
from bench.servers import Measured, from_kubeconfig

_SUITE = "workspaces"
_WORKSPACES = "/apis/tenancy.kcp.io/v1alpha1/workspaces"
_BIN = Path(sys.executable).parent


def _row(name: str, value: float, unit: str, target: str, met: bool | None, note: str = "") -> Row:
    return Row(_SUITE, name, value, unit, target, met, note)


class _Hub:
    """A hub on a folder that outlives it, so that restarts can be measured."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.measured: Measured | None = None

    def start(self) -> Measured:
        began = time.perf_counter()
        command = [sys.executable, "-m", "skerry.cli", "hub", "--init"]
        process = subprocess.Popen(
            [*command, "--data-dir", str(self.folder), "--port", "0", "-v", "0"],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        line = process.stdout.readline()
        if " ready at " not in line:
            raise RuntimeError(f"skerry hub did not start: {line!r}")
        ready = time.perf_counter() - began
        kubeconfig = self.folder / "admin.kubeconfig"
        self.measured = Measured(from_kubeconfig(kubeconfig), kubeconfig, process, ready)
        return self.measured

    def stop(self) -> None:
        if self.measured is not None and self.measured.process is not None:
            self.measured.process.terminate()
            self.measured.process.wait(30)


# -- one request at a time -------------------------------------------------------------------


class _Client:
    """A keep-alive connection; answers as objects."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._reader: asyncio.StreamReader
        self._writer: asyncio.StreamWriter
        self._chunked = False

    async def open(self) -> _Client:
        server = self._server
        self._reader, self._writer = await asyncio.open_connection(
            server.host, server.port, ssl=server.tls, limit=1 << 28
        )
        return self

    async def ask(self, method: str, path: str, obj: Any = None) -> tuple[int, bytes]:
        await self.send(method, path, obj)
        status, length = await self.head()
        if self._chunked:
            return status, b"".join([chunk async for chunk in self.chunks()])
        return status, await self._reader.readexactly(length) if length else b""

    async def send(self, method: str, path: str, obj: Any = None) -> None:
        body = json.dumps(obj).encode() if obj is not None else b""
        self._writer.write(self._server.request(method, path, body))

    async def head(self) -> tuple[int, int]:
        head = (await self._reader.readuntil(b"\r\n\r\n")).lower()
        self._chunked = b"\r\ntransfer-encoding: chunked" in head
        at = head.find(b"content-length:")
        length = int(head[at + 15 :].split(b"\r\n", 1)[0]) if at >= 0 else 0
        return int(head[9:12]), length

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield the pieces of an answer whose length was not known from the start."""
        while chunk := await self.line():
            yield chunk

    async def line(self) -> bytes:
        """Return the next event of a chunked watch, or the next piece of an answer."""
        size = int(await self._reader.readuntil(b"\r\n"), 16)
        return (await self._reader.readexactly(size + 2))[:-2]


def _at(server: Server, prefix: str) -> Server:
    return Server(server.host, server.port, server.tls, server.headers, prefix)


def _workspace(name: str) -> bytes:
    spec = {"type": {"name": "universal", "path": "root"}}
    return json.dumps(
        {
            "apiVersion": "tenancy.kcp.io/v1alpha1",
            "kind": "Workspace",
            "metadata": {"name": name},
            "spec": spec,
        }
    ).encode()


async def _create(server: Server, prefix: str, count: int, at_once: int) -> Outcome:
    """Create workspaces and wait until all of them are Ready."""

    def make(index: int) -> bytes:
        return server.request("POST", _WORKSPACES, _workspace(f"{prefix}-{index}"))

    began = time.perf_counter()
    outcome = await load(server, make, connections=at_once, count=count)
    client = await _Client(server).open()
    while True:
        _, body = await client.ask("GET", f"{_WORKSPACES}?limit={count + 10_000}")
        items = [i for i in json.loads(body)["items"] if i["metadata"]["name"].startswith(prefix)]
        if all((item.get("status") or {}).get("phase") == "Ready" for item in items):
            break
        await asyncio.sleep(0.05)
    # Until the last one was seen Ready, however soon the creates were answered.
    outcome.seconds = time.perf_counter() - began
    return outcome


async def _rates(server: Server, label: str, measured: Measured | None = None) -> list[Row]:
    rows = []
    for at_once, target, count in ((1, 200.0, 200), (8, 300.0, 400)):
        used = measured.cpu_seconds() if measured is not None else 0.0
        outcome = await _create(server, f"{label}{at_once}", count, at_once)
        # On a machine others use too, this is the figure that can be compared.
        cpu = ""
        if measured is not None:
            cpu = f", {(measured.cpu_seconds() - used) / count * 1e3:.1f} ms of CPU each"
        how = "one at a time" if at_once == 1 else "8 at once"
        rate = outcome.rate
        rows.append(
            _row(
                f"{label} create, {how}",
                rate,
                "/s",
                f"{target:g} /s",
                rate >= target and not outcome.failures,
                f"p50 {outcome.quantile(0.5) * 1e3:.1f} ms, p99 {outcome.quantile(0.99) * 1e3:.1f}"
                f" ms, {outcome.failures} failed{cpu}",
            )
        )
    return rows


async def _deletions(measured: Measured, prefix: str, names: list[str], what: str) -> list[Row]:
    """Delete one at a time, then all of *names* at once, each until it is gone."""
    server = measured.server
    client = await _Client(server).open()
    alone = []
    for index in range(20):
        began = time.perf_counter()
        await client.ask("DELETE", f"{_WORKSPACES}/{prefix}1-{index}")
        while (await client.ask("GET", f"{_WORKSPACES}/{prefix}1-{index}"))[0] != 404:
            await asyncio.sleep(0)
        alone.append(time.perf_counter() - began)
    middle = statistics.median(alone) * 1e3
    left = await _count(client) - len(names)
    began, used = time.perf_counter(), measured.cpu_seconds()

    def make(index: int) -> bytes:
        return server.request("DELETE", f"{_WORKSPACES}/{names[index]}")

    outcome = await load(server, make, connections=8, count=len(names))
    # The other connection may have been idle for too long.
    client = await _Client(server).open()
    while await _count(client) > left:
        await asyncio.sleep(0.01)
    many = time.perf_counter() - began
    cpu = (measured.cpu_seconds() - used) / len(names) * 1e3
    projected = many / len(names) * 10_000
    how = f"{cpu:.1f} ms of CPU each, {outcome.failures} failed"
    if len(names) != 10_000:
        how = f"from {len(names)} in {many:.2f} s, {how}"
    return [
        _row("delete one, until it is gone", middle, "ms", "20 ms", middle < 20),
        _row(f"delete 10,000 {what}", projected, "s", "60 s",
             projected < 60 and not outcome.failures, how),
    ]  # fmt: skip


async def _count(client: _Client) -> int:
    """Return how many workspaces there are, those going away included."""
    _, body = await client.ask("GET", f"{_WORKSPACES}?limit=1")
    page = json.loads(body)
    return len(page["items"]) + int(page["metadata"].get("remainingItemCount") or 0)


def _binding(name: str, path: str, export: str) -> dict[str, Any]:
    return {
        "apiVersion": "apis.kcp.io/v1alpha1",
        "kind": "APIBinding",
        "metadata": {"name": name},
        "spec": {"reference": {"export": {"path": path, "name": export}}},
    }


async def _binding_to_object(server: Server) -> Row:
    """A binding and the first object of the kind it brings, one right after the other."""
    root = await _Client(server).open()
    times = []
    for index in range(20):
        name = f"bind-{index}"
        await root.ask("POST", _WORKSPACES, json.loads(_workspace(name)))
        inside = await _Client(_at(server, f"/clusters/root:{name}")).open()
        began = time.perf_counter()
        first, _ = await inside.ask(
            "POST",
            "/apis/apis.kcp.io/v1alpha1/apibindings",
            _binding("kube", "root:compute", "kubernetes"),
        )
        service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"},
                   "spec": {"ports": [{"port": 80}]}}  # fmt: skip
        second, body = await inside.ask("POST", "/api/v1/namespaces/default/services", service)
        assert (first, second) == (201, 201), body
        times.append(time.perf_counter() - began)
    middle = statistics.median(times) * 1e3
    return _row("binding create → first object accepted", middle, "ms", "no retry", True)


async def _fill(server: Server, names: list[str], each: int) -> None:
    """Put *each* ConfigMaps into every workspace named."""

    def make(index: int) -> bytes:
        workspace, number = names[index // each], index % each
        obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"c{number}"}}
        path = "/api/v1/namespaces/default/configmaps"
        return _at(server, f"/clusters/root:{workspace}").request(
            "POST", path, json.dumps(obj).encode()
        )

    await load(server, make, connections=16, count=len(names) * each)


async def _wildcard_list(measured: Measured, admin: Server, names: list[str], each: int) -> Row:
    # With kube-root-ca.crt, which every workspace has, they are *each*.
    await _fill(measured.server, names, each - 1)
    client = await _Client(_at(admin, "/clusters/*")).open()
    before = measured.resident_mb()
    began = time.perf_counter()
    await client.send("GET", "/api/v1/configmaps?limit=0")
    status, length = await client.head()
    assert status == 200
    read = 0
    if not length:
        # A large list comes in chunks.
        read = sum([len(chunk) async for chunk in client.chunks()])
    else:
        read = len(await client._reader.readexactly(length))
    took = time.perf_counter() - began
    grown = measured.resident_mb() - before
    objects = len(names) * each
    return _row(
        f"wildcard list of {objects:,} objects in {len(names):,} workspaces",
        took,
        "s",
        "3 s for 100,000",
        took / objects * 100_000 < 3,
        f"{read / 1e6:.0f} MB, memory grew by {grown:.0f} MB",
    )


async def _view_latency(admin: Server, server: Server, names: list[str]) -> Row:
    """One change in one of many bound workspaces, until a watch on the export's view has it."""
    view = "/services/apiexport/root/workload.kcp.io/clusters/*"
    watcher = await _Client(_at(admin, view)).open()
    path = "/apis/workload.kcp.io/v1alpha1/synctargets"
    await watcher.send("GET", f"{path}?watch=true")
    await watcher.head()
    times = []
    for index in range(200):
        name = names[index % len(names)]
        writer = await _Client(_at(server, f"/clusters/root:{name}")).open()
        target = {"apiVersion": "workload.kcp.io/v1alpha1", "kind": "SyncTarget",
                  "metadata": {"name": f"t{index}"}}  # fmt: skip
        began = time.perf_counter()
        asked = asyncio.create_task(writer.ask("POST", path, target))
        while f'"name":"t{index}"'.encode() not in await watcher.line():
            pass
        times.append(time.perf_counter() - began)
        await asked
    times.sort()
    worst = times[int(len(times) * 0.99)] * 1e3
    return _row(
        f"change → watch on a view, {len(names):,} bound workspaces, p99",
        worst,
        "ms",
        "50 ms",
        worst < 50,
        f"p50 {times[len(times) // 2] * 1e3:.1f} ms, create included",
    )


def _felt(kubeconfig: Path) -> Row:
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "kubeconfig"
        shutil.copy(kubeconfig, copy)
        environment = {
            "PATH": f"{_BIN}:{os.environ['PATH']}", "HOME": folder, "KUBECONFIG": str(copy)
        }  # fmt: skip
        times = []
        for index in range(7):
            began = time.perf_counter()
            subprocess.run(
                ["kubectl", "ws", "create", f"felt-{index}", "--enter"],
                env=environment,
                check=True,
                capture_output=True,
            )
            times.append(time.perf_counter() - began)
            subprocess.run(["kubectl", "ws", ".."], env=environment, check=True,
                           capture_output=True)  # fmt: skip
    middle = statistics.median(times)
    return _row("kubectl ws create --enter, as felt", middle, "s", "0.4 s", middle < 0.4)


def _as_admin(kubeconfig: Path) -> Server:
    """Return the server as the one who may read across clusters."""
    config = yaml.safe_load(kubeconfig.read_text())
    config["current-context"] = "system:admin"
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        yaml.safe_dump(config, file)
        file.flush()
        return from_kubeconfig(Path(file.name))


async def _ours(hub: _Hub, count: int) -> list[Row]:
    measured = hub.start()
    # The controllers come up behind the answers; memory is reported with them in it.
    await asyncio.sleep(2)
    rows = [
        _row("ready after start, empty", measured.ready_seconds, "s", "1.5 s",
             measured.ready_seconds < 1.5),
        _row("resident after start", measured.resident_mb(), "MB", "120 MB",
             measured.resident_mb() < 120),
    ]  # fmt: skip
    server, admin = measured.server, _as_admin(measured.kubeconfig)
    rows += await _rates(server, "w", measured)
    # By the first half caches of fixed size are full; what the second half adds, workspaces cost.
    await _create(server, "m", count // 2, 8)
    before = measured.resident_mb()
    await _create(server, "n", count // 2, 8)
    await asyncio.sleep(1)
    each = (measured.resident_mb() - before) * 1024 / (count // 2)
    rows.append(_row(f"memory per empty workspace, of {count:,}", each, "KB", "40 KB", each < 40))
    rows.append(await _binding_to_object(server))
    names = [f"{half}-{index}" for half in "mn" for index in range(count // 2)]
    rows.append(await _view_latency(admin, server, names))
    rows.append(await _wildcard_list(measured, admin, names, 10))
    rows.append(_felt(measured.kubeconfig))
    hub.stop()
    again = hub.start()
    caught_up = await _until_quiet(again)
    rows.append(_row(f"restart with {count:,} workspaces and {count * 10:,} objects in them",
                     again.ready_seconds, "s", "", None,
                     f"controllers had read everything {caught_up:.0f} s later"))  # fmt: skip
    rows.append(_row("resident after that", again.resident_mb(), "MB", "", None))
    rows += await _deletions(again, "w", names, "with 10 objects each")
    rows.append(_row("resident after that", again.resident_mb(), "MB", "", None))
    hub.stop()
    return rows


async def _until_quiet(measured: Measured) -> float:
    """Wait until the server has nothing to do of its own; return the seconds that took."""
    began, used = time.perf_counter(), measured.cpu_seconds()
    while True:
        await asyncio.sleep(1)
        now = measured.cpu_seconds()
        if now - used < 0.05 or time.perf_counter() - began > 120:
            return time.perf_counter() - began
        used = now


def _restart() -> list[Row]:
    with tempfile.TemporaryDirectory(prefix="skerry-bench-") as folder:
        hub = _Hub(Path(folder) / "data")
        measured = hub.start()
        asyncio.run(_create(measured.server, "r", 200, 8))
        hub.stop()
        again = hub.start()
        try:
            asyncio.run(asyncio.sleep(2))
            memory = again.resident_mb()
            return [
                _row("restart with 200 workspaces", again.ready_seconds, "s", "2 s",
                     again.ready_seconds < 2),
                _row("resident after that", memory, "MB", "140 MB", memory < 140),
            ]  # fmt: skip
        finally:
            hub.stop()


def run(peer: Path | None = None, *, large: bool = False) -> list[Row]:
    """Measure ours, and the creates of a peer if there is one."""
    with tempfile.TemporaryDirectory(prefix="skerry-bench-") as folder:
        hub = _Hub(Path(folder) / "data")
        try:
            rows = asyncio.run(_ours(hub, 10_000 if large else 1000))
        finally:
            hub.stop()
    rows += _restart()
    if peer is not None:
        rows += asyncio.run(_rates(from_kubeconfig(peer), "peer"))
    return rows


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m bench.workspaces", description=__doc__)
    parser.add_argument("--large", action="store_true", help="10,000 workspaces")
    parser.add_argument("--peer-kubeconfig", type=Path, help="a server to compare with")
    arguments = parser.parse_args()
    print(table(run(arguments.peer_kubeconfig, large=arguments.large)))
