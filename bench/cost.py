"""What a request costs the server, beside what it cost at another commit.

Two servers of the same kind run at once, this tree's and that of ``--baseline TREE`` (a checkout
that needs the same dependencies), and are asked in turns, so that both have the same machine and
the same neighbours. Figures are processor microseconds of all threads, from the kernel's own
accounts; of the rounds the lower quartile counts, because neighbours only ever add. Each turn
opens its eight connections anew, some ten microseconds per request in both.

Without a baseline the costs are shown and nothing is judged.
"""

from __future__ import annotations

import asyncio
import contextlib
import statistics
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import orjson

from bench import load
from bench.report import Row
from bench.servers import Measured, ours

_SUITE = "cost"
_ROUNDS = 12
_CONNECTIONS = 8
_SPACE = "/api/v1/namespaces/default"
_MAPS = f"{_SPACE}/configmaps"
_PODS = f"{_SPACE}/pods"
_EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"
_BATCH = "/extensions/v1/batch"
# As many as a scheduler in a burst has waiting.
_TOGETHER = 32
_FILLING = {f"key-{i:02d}": "x" * 60 for i in range(18)}

# How many were done by one turn that began at a number of its own.
Turn = Callable[[Measured, str], int]


def _send(measured: Measured, requests: Sequence[tuple[str, str, bytes]]) -> None:
    def make(index: int) -> bytes:
        return measured.server.request(*requests[index])

    sent = load.run(measured.server, make, connections=_CONNECTIONS, count=len(requests))
    failures = asyncio.run(sent).failures
    if failures:
        raise RuntimeError(f"{failures} of {len(requests)} requests failed")


def _map(name: str) -> bytes:
    metadata = {"name": name, "labels": {"app": "bench", "tier": name[-1]}}
    return orjson.dumps(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": _FILLING}
    )


def _pod(name: str) -> bytes:
    resources = {"requests": {"cpu": "100m", "memory": "500Mi"}}
    container = {"name": "c", "image": "pause", "resources": resources}
    return orjson.dumps(
        {"metadata": {"name": name, "labels": {"app": "x"}}, "spec": {"containers": [container]}}
    )


def _binding(name: str) -> bytes:
    target = {"apiVersion": "v1", "kind": "Node", "name": "node-1"}
    return orjson.dumps({"metadata": {"name": name, "namespace": "default"}, "target": target})


def _event(name: str) -> bytes:
    about = {"apiVersion": "v1", "kind": "Pod", "name": name, "namespace": "default"}
    return orjson.dumps(
        {
            "metadata": {"name": f"{name}.17", "namespace": "default"},
            "eventTime": "2030-01-01T00:00:00.000000Z",
            "reportingController": "default-scheduler",
            "reportingInstance": "bench",
            "action": "Binding",
            "reason": "Scheduled",
            "type": "Normal",
            "regarding": about,
            "note": f"Successfully assigned default/{name} to node-1",
        }
    )


def _get(measured: Measured, _: str) -> int:
    _send(measured, [("GET", f"{_MAPS}/one", b"")] * 3000)
    return 3000


def _create(measured: Measured, mark: str) -> int:
    names = [f"{mark}-{number}" for number in range(1000)]
    _send(measured, [("POST", _MAPS, _map(name)) for name in names])
    return len(names)


def _pods_one_by_one(measured: Measured, mark: str) -> int:
    names = [f"{mark}-{number}" for number in range(320)]
    _send(measured, [("POST", _PODS, _pod(name)) for name in names])
    _send(measured, [("POST", f"{_PODS}/{name}/binding", _binding(name)) for name in names])
    _send(measured, [("POST", _EVENTS, _event(name)) for name in names])
    return len(names)


def _pods_together(measured: Measured, mark: str) -> int:
    """Send bindings and events as the scheduler does in a burst."""
    names = [f"{mark}-{number}" for number in range(320)]
    _send(measured, [("POST", _PODS, _pod(name)) for name in names])
    writes = [(f"{_PODS}/{name}/binding", _binding(name)) for name in names]
    writes += [(_EVENTS, _event(name)) for name in names]
    parts = [
        {"method": "POST", "path": path, "body": orjson.Fragment(body), "quiet": True}
        for path, body in writes
    ]
    some = [parts[at : at + _TOGETHER] for at in range(0, len(parts), _TOGETHER)]
    _send(measured, [("POST", _BATCH, orjson.dumps({"requests": each})) for each in some])
    return len(names)


def _cpu_us(measured: Measured) -> float:
    if measured.process is None:
        raise RuntimeError("the processor time of another machine's server is not known")
    threads = Path(f"/proc/{measured.process.pid}/task").iterdir()
    return sum(int((each / "schedstat").read_text().split()[0]) for each in threads) / 1000


def _cost(measured: Measured, turn: Turn, mark: str) -> float:
    before = _cpu_us(measured)
    done = turn(measured, mark)
    return (_cpu_us(measured) - before) / done


# What is measured here and at the baseline, and what the ratio must be below.
_REQUESTS: tuple[tuple[str, Turn, Turn, float], ...] = (
    ("GET", _get, _get, 1.0),
    ("create", _create, _create, 0.8),
    ("pod, its binding and its event", _pods_one_by_one, _pods_one_by_one, 0.75),
    ("pod, binding and event as the scheduler sends them", _pods_together, _pods_one_by_one, 0.75),
)


@contextlib.contextmanager
def _servers(baseline: Path | None) -> Iterator[list[Measured]]:
    with contextlib.ExitStack() as stack:
        trees = [None] if baseline is None else [None, baseline]
        servers = [stack.enter_context(ours(tree=tree)) for tree in trees]
        for measured in servers:
            load.ask(measured.server, "POST", _MAPS, _map("one"))
            _create(measured, "warm")
        yield servers


def run(baseline: Path | None = None) -> list[Row]:
    """Measure this tree, and *baseline* in turns with it; return the rows."""
    rows: list[Row] = []
    with _servers(baseline) as servers:
        for name, here, there, limit in _REQUESTS:
            costs: list[list[float]] = [[] for _ in servers]
            for number in range(_ROUNDS):
                order = list(enumerate(zip(servers, (here, there), strict=False)))
                for at, (measured, turn) in order if number % 2 else reversed(order):
                    mark = f"{turn.__name__.strip('_').replace('_', '-')}-{len(rows)}-{number}"
                    costs[at].append(_cost(measured, turn, mark))
            rows += _compared(name, costs, limit)
    return rows


def _compared(name: str, costs: list[list[float]], limit: float) -> list[Row]:
    quartiles = [statistics.quantiles(each, n=4)[0] for each in costs]
    spread = f"median {statistics.median(costs[0]):.0f}"
    rows = [Row(_SUITE, f"{name}, of the server", quartiles[0], "us", note=spread)]
    if len(costs) > 1:
        ratio = quartiles[0] / quartiles[1]
        pairs = [mine / other for mine, other in zip(*costs, strict=True)]
        note = f"baseline {quartiles[1]:.0f} us; median of pairs {statistics.median(pairs):.2f}"
        rows.append(
            Row(_SUITE, f"{name}, times the baseline", ratio, "x", f"≤ {limit:g} x",
                ratio <= limit, note)
        )  # fmt: skip
    return rows
