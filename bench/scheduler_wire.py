"""How fast pods are scheduled end to end: a real API server, a real scheduler, pods created by us.

Three processes share the machine: server, scheduler, and this one, which creates the pods and
watches them being bound. The figure is scheduler_perf's: the mean of one-second samples of bound
pods, from the first bound pod on. Processor time per pod is printed beside it: on a busy machine
only that is stable.

``python -m bench.scheduler_wire --kubeconfig F`` measures on another server, which is cleared of
nodes and of our namespace's content after each workload; ``--scheduler COMMAND`` measures another
scheduler, ``{kubeconfig}`` in the command being where the server is.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import re
import shlex
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Container,
    Iterable,
    Iterator,
    Sequence,
)
from dataclasses import dataclass, replace
from pathlib import Path

import orjson

from bench import load
from bench.load import Server
from bench.report import Row, save, table
from bench.scheduler_workloads import (
    LARGE,
    NAMESPACE,
    PRIORITY,
    PRIORITY_CLASS,
    THROUGH_A_SERVER,
    Workload,
    chosen,
    hopeless,
    important,
    node,
    nodes,
    plain,
    pod,
)
from bench.servers import Measured, from_kubeconfig, ours
from skerry.api.objects import Object

_SUITE = "scheduler-wire"
_SPACE = f"/api/v1/namespaces/{NAMESPACE}"
_PODS = f"{_SPACE}/pods"
_NODES = "/api/v1/nodes"
_MARK = "bench.skerry.io/measured"
_MEASURED = {_MARK: "true"}
# From any revision: a server that is behind need not catch up first.
_BOUND = (
    f"{_PODS}?watch=1&resourceVersion=0&labelSelector={_MARK}&fieldSelector=spec.nodeName%21%3D"
)
# Measured pods are numbered; the first is only there to see that the scheduler works.
_NUMBER = re.compile(rb'"name":"(?:new|high)-(\d+)"')
_MAX_NAME = 32
_FIRST = 999_999
# A scheduler must have bound its first pod, and then all pods, within this time.
_PATIENCE_SECONDS = 600.0
OURS = (
    f"{shlex.quote(sys.executable)} -m skerry.cli scheduler --kubeconfig {{kubeconfig}} "
    "--leader-elect=false --secure-port 0"
)
# Pods per second to reach: five times what kube-scheduler 1.32 does on two cores, or its newest
# published threshold where that is more (where only the latter is known, it is the workload's).
_FIVE_TIMES = {
    ("SchedulingBasic", 500): 5 * 322,
    ("SchedulingBasic", LARGE): 1200,
    ("SchedulingNodeAffinity", LARGE): 5 * 244,
    ("SchedulingPodAntiAffinity", LARGE): 5 * 84,
    ("TopologySpreading", LARGE): 5 * 68,
    ("PreemptionBasic", 500): 5 * 43,
}
_MEMORY_TARGET = 300
_TICKS = os.sysconf("SC_CLK_TCK")

Request = tuple[str, str, Object | None]


class Progress:
    """How many of the wanted pods are bound, and when."""

    def __init__(self, wanted: Container[int], count: int) -> None:
        self._wanted, self._count = wanted, count
        self._seen: set[int] = set()
        self.samples: list[float] = []
        self.done = asyncio.Event()

    @property
    def bound(self) -> int:
        return len(self._seen)

    def saw(self, numbers: Iterable[bytes]) -> None:
        """Take note of pods by number; reported twice, they count once."""
        self._seen.update(number for number in map(int, numbers) if number in self._wanted)
        if self.bound >= self._count:
            self.done.set()

    async def sample(self) -> None:
        """Take a sample every second once something is bound."""
        while not self.bound:
            await asyncio.sleep(0.01)
        last, moment = self.bound, time.perf_counter()
        while True:
            await asyncio.sleep(1.0)
            now = time.perf_counter()
            self.samples.append((self.bound - last) / (now - moment))
            last, moment = self.bound, now


@dataclass(frozen=True, slots=True)
class Outcome:
    """One measured workload."""

    per_second: float
    seconds: float
    pods: int
    server_cpu: float
    scheduler_cpu: float
    scheduler_mb: float

    def note(self) -> str:
        each = 1e6 / self.pods
        server = f", server {self.server_cpu * each:.0f}" if self.server_cpu else ""
        return (
            f"{self.pods} pods in {self.seconds:.1f} s; CPU µs/pod: "
            f"scheduler {self.scheduler_cpu * each:.0f}{server}; "
            f"scheduler {self.scheduler_mb:.0f} MB"
        )


def _created(item: Object, node_name: str = "", labels: Object | None = None) -> bytes:
    """Return a workload's pod as a client would create it."""
    metadata = {name: value for name, value in item["metadata"].items() if name != "uid"}
    metadata["labels"] = {**metadata["labels"], **(labels or {})}
    spec = {name: value for name, value in item["spec"].items() if name != "priority"}
    if node_name:
        spec["nodeName"] = node_name
    return orjson.dumps({**item, "metadata": metadata, "spec": spec, "status": {}})


async def _post(server: Server, path: str, bodies: Sequence[bytes], connections: int = 8) -> None:
    def make(index: int) -> bytes:
        return server.request("POST", path, bodies[index])

    outcome = await load.run(server, make, connections=connections, count=len(bodies))
    if outcome.failures:
        raise RuntimeError(f"{outcome.failures} of {len(bodies)} creations at {path} failed")


async def _try(server: Server, requests: Sequence[Request]) -> None:
    """Send requests one after the other; what is there already or gone already is fine."""

    def make(index: int) -> bytes:
        method, path, body = requests[index]
        return server.request(method, path, b"" if body is None else orjson.dumps(body))

    await load.run(server, make, connections=1, count=len(requests))


async def _prepare(server: Server, workload: Workload, size: int) -> None:
    """Create the nodes and the pods that are there before."""
    priority = {"metadata": {"name": PRIORITY_CLASS}, "value": PRIORITY}
    await _try(
        server,
        [
            ("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}}),
            ("POST", f"{_SPACE}/serviceaccounts", {"metadata": {"name": "default"}}),
            ("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", priority),
        ],
    )
    await _post(server, _NODES, [orjson.dumps(item) for item in nodes(size)])
    # Without a kubelet nobody finds them ready and takes off what the server tainted them with.
    await _try(server, [("PUT", f"{_NODES}/{n['metadata']['name']}", n) for n in nodes(size)])
    before, _ = workload.counts(size)
    pods = [
        _created(item, f"node-{index % size}")
        for index, item in enumerate(workload.existing(before))
    ]
    await _post(server, _PODS, pods)


async def _clear(server: Server) -> None:
    """Remove what the workloads make."""
    now = {"gracePeriodSeconds": 0}
    events = f"/apis/events.k8s.io/v1/namespaces/{NAMESPACE}/events"
    await _try(
        server,
        [
            ("DELETE", _PODS, now),
            ("DELETE", _NODES, None),
            ("DELETE", events, None),
            ("DELETE", f"{_SPACE}/services/churn", None),
        ],
    )


@contextlib.contextmanager
def _process(command: str, kubeconfig: Path) -> Iterator[subprocess.Popen[bytes]]:
    arguments = shlex.split(command.format(kubeconfig=shlex.quote(str(kubeconfig))))
    process = subprocess.Popen(
        arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


async def _first_pod_bound(server: Server) -> None:
    """Wait until the scheduler does its work: whoever binds one pod is ready for more."""
    progress = Progress({_FIRST}, 1)
    first = f"new-{_FIRST}"
    async with _watching(server, progress):
        await _post(server, _PODS, [_created(pod(first), labels=_MEASURED)], 1)
        async with asyncio.timeout(_PATIENCE_SECONDS):
            await progress.done.wait()
    await _try(server, [("DELETE", f"{_PODS}/{first}", {"gracePeriodSeconds": 0})])


def _cpu_seconds(process: subprocess.Popen[bytes]) -> float:
    fields = Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def _resident_mb(process: subprocess.Popen[bytes]) -> float:
    for line in Path(f"/proc/{process.pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return 0.0


@contextlib.asynccontextmanager
async def _watching(server: Server, progress: Progress) -> AsyncIterator[None]:
    """Count measured pods as they get their node: to this watch, they appear then."""
    begun = asyncio.Event()
    following = asyncio.get_running_loop().create_task(_follow(server, progress, begun))
    try:
        await begun.wait()
        yield
    finally:
        following.cancel()
        await asyncio.wait([following])


async def _follow(server: Server, progress: Progress, begun: asyncio.Event) -> None:
    """Watch, for ever: a busy server may end a watch, or not be ready for one yet."""
    closing = replace(server, headers=f"{server.headers}Connection: close\r\n")
    while True:
        reader, writer = await asyncio.open_connection(
            server.host, server.port, ssl=server.tls, limit=1 << 22
        )
        try:
            writer.write(closing.request("GET", _BOUND))
            await reader.readuntil(b"\r\n\r\n")
            begun.set()
            tail = b""
            async for chunk in _chunks(reader):
                data = tail + chunk
                progress.saw(_NUMBER.findall(data))
                # A name cut in two is seen with the next chunk.
                tail = data[-_MAX_NAME:]
        finally:
            writer.close()
        await asyncio.sleep(0.2)


async def _chunks(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    """Yield the body's chunks, freed of what frames them; ends with the body or the connection."""
    while size := int((await reader.readline()).strip() or b"0", 16):
        try:
            yield (await reader.readexactly(size + 2))[:-2]
        except asyncio.IncompleteReadError:
            return


# What goes on while pods are measured, with scheduler_perf's intervals.


async def _hopeless_pods(server: Server) -> None:
    number = 0
    while True:
        await _post(server, _PODS, [_created(hopeless(f"hopeless-{number}"))], 1)
        number += 1
        await asyncio.sleep(0.2)


async def _churn(server: Server) -> None:
    service = {"metadata": {"name": "churn"}, "spec": {"ports": [{"port": 80}]}}
    large = orjson.loads(_created(important("churn", cpu="9")))
    while True:
        await _try(
            server,
            [
                ("POST", _NODES, node("churn")),
                ("POST", _PODS, large),
                ("POST", f"{_SPACE}/services", service),
            ],
        )
        await asyncio.sleep(1.0)
        await _try(
            server,
            [
                ("DELETE", f"{_NODES}/churn", None),
                ("DELETE", f"{_PODS}/churn", {"gracePeriodSeconds": 0}),
                ("DELETE", f"{_SPACE}/services/churn", None),
            ],
        )


_MEANWHILE: dict[str, Callable[[Server], Awaitable[None]]] = {
    "hopeless": _hopeless_pods,
    "churn": _churn,
}


@contextlib.asynccontextmanager
async def _meanwhile(server: Server, workload: Workload, progress: Progress) -> AsyncIterator[None]:
    async def happen() -> None:
        await _MEANWHILE[workload.meanwhile](server)

    loop = asyncio.get_running_loop()
    tasks = [loop.create_task(progress.sample())]
    if workload.meanwhile:
        tasks.append(loop.create_task(happen()))
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        for ended in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(ended, Exception):
                raise ended


async def _measured(target: Measured, command: str, workload: Workload, size: int) -> Outcome:
    server = target.server
    await _prepare(server, workload, size)
    _, count = workload.counts(size)
    bodies = [_created(item, labels=_MEASURED) for item in workload.measured(count)]
    with _process(command, target.kubeconfig) as scheduler:
        await _first_pod_bound(server)
        progress = Progress(range(count), count)
        async with _watching(server, progress):
            begun = target.cpu_seconds(), _cpu_seconds(scheduler)
            began = time.perf_counter()
            async with (
                _meanwhile(server, workload, progress),
                asyncio.timeout(_PATIENCE_SECONDS),
            ):
                await _post(server, _PODS, bodies, connections=16)
                await progress.done.wait()
            seconds = time.perf_counter() - began
        used = target.cpu_seconds() - begun[0], _cpu_seconds(scheduler) - begun[1]
        resident = _resident_mb(scheduler)
    samples = progress.samples
    mean = statistics.fmean(samples) if len(samples) > 1 else count / seconds
    return Outcome(mean, seconds, count, *used, resident)


def _target(workload: Workload, size: int) -> int:
    newest = workload.newest if size == LARGE else 0
    return max(_FIVE_TIMES.get((workload.name, size), 0), newest)


def _row(workload: Workload, size: int, outcome: Outcome) -> Row:
    target = _target(workload, size)
    return Row(
        _SUITE,
        f"{workload.name}, {size} nodes",
        round(outcome.per_second, 1),
        "pods/s",
        f"≥ {target:,}" if target else "",
        outcome.per_second >= target if target else None,
        outcome.note(),
    )


# Memory: a scheduler beside a large cluster, after it has bound something.

_CROWD = Workload("Memory", plain("old"), plain("new"), 200, 30_000, 0)


def _memory_row(outcome: Outcome) -> Row:
    return Row(
        _SUITE,
        "resident scheduler, 5000 nodes, 30000 pods",
        round(outcome.scheduler_mb, 1),
        "MB",
        f"< {_MEMORY_TARGET}",
        outcome.scheduler_mb < _MEMORY_TARGET,
        outcome.note(),
    )


def run(
    only: str = "",
    sizes: Sequence[int] = (500, LARGE),
    kubeconfig: Path | None = None,
    command: str = OURS,
    *,
    memory: bool = True,
) -> list[Row]:
    """Run the workloads whose name contains *only*, each on a server of its own; then *memory*."""

    def outcome(workload: Workload, size: int) -> Outcome:
        with _server(kubeconfig) as target:
            if kubeconfig is not None:
                # Whatever a run that was cut short has left.
                asyncio.run(_clear(target.server))
            try:
                return asyncio.run(_measured(target, command, workload, size))
            finally:
                if kubeconfig is not None:
                    asyncio.run(_clear(target.server))

    rows = [
        _printed(_row(workload, size, outcome(workload, size)))
        for workload in chosen(THROUGH_A_SERVER, only)
        for size in workload.sizes
        if size in sizes
    ]
    if memory and chosen((_CROWD,), only) and LARGE in sizes:
        rows.append(_printed(_memory_row(outcome(_CROWD, LARGE))))
    return rows


def _printed(row: Row) -> Row:
    """Say at once what was measured: the whole suite takes many minutes."""
    print(f"{row.name}: {row.value} {row.unit} ({row.note})", file=sys.stderr, flush=True)
    return row


@contextlib.contextmanager
def _server(kubeconfig: Path | None) -> Iterator[Measured]:
    if kubeconfig is not None:
        yield Measured(from_kubeconfig(kubeconfig), kubeconfig)
        return
    with ours("serve", ["--controllers", "none"]) as measured:
        yield measured


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="part of a workload's name; or memory")
    parser.add_argument("--nodes", type=int, nargs="*", default=[500, LARGE])
    parser.add_argument("--kubeconfig", type=Path, help="another server, with nothing in it")
    parser.add_argument("--scheduler", default=OURS, help="command of another scheduler")
    parser.add_argument("--no-memory", action="store_true", help="leave the memory row out")
    parser.add_argument("--json", type=Path, help="write the rows to this file")
    options = parser.parse_args()
    rows = run(
        options.only,
        options.nodes,
        options.kubeconfig,
        options.scheduler,
        memory=not options.no_memory,
    )
    print(table(rows))
    if options.json:
        save(rows, options.json)


if __name__ == "__main__":
    main()
