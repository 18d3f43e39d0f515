"""What a request costs the server, beside what it cost at another commit.

Two servers of the same kind run at once, this tree's and that of ``--baseline TREE`` (a checkout
that needs the same dependencies), and are asked in turns, so that both have the same machine and
the same neighbours. Figures are processor microseconds of all threads, from the kernel's own
accounts, or with ``--instructions`` what callgrind counts; of the rounds the lower quartile counts,
because neighbours, and what a server does by the clock, only ever add.

Without a baseline the costs are shown and nothing is judged.
"""

from __future__ import annotations

import contextlib
import statistics
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple, Protocol

import orjson

from bench import load
from bench.instructions import Callgrind
from bench.report import Row
from bench.servers import Measured, ours

_SUITE = "cost"
_ROUNDS = 10
# Fewer rounds, of fewer requests: each takes fifty times as long, and says as much.
_COUNTED_ROUNDS = 5
_COUNTED_PART = 8
_CONNECTIONS = 8
_SPACE = "/api/v1/namespaces/default"
_MAPS = f"{_SPACE}/configmaps"
_PODS = f"{_SPACE}/pods"
_EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"
_BATCH = "/extensions/v1/batch"
# As many as a scheduler in a burst has waiting.
_TOGETHER = 32
_FILLING = {f"key-{i:02d}": "x" * 60 for i in range(18)}

# Does something a number of times, under names that begin with a mark of its own.
Turn = Callable[[load.Kept, str, int], None]


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


def _posts(kept: load.Kept, requests: list[tuple[str, bytes]]) -> None:
    kept.send([kept.server.request("POST", *each) for each in requests])


def _get(kept: load.Kept, _: str, count: int) -> None:
    kept.send([kept.server.request("GET", f"{_MAPS}/one")] * count)


def _create(kept: load.Kept, mark: str, count: int) -> None:
    _posts(kept, [(_MAPS, _map(f"{mark}-{number}")) for number in range(count)])


def _pods_one_by_one(kept: load.Kept, mark: str, count: int) -> None:
    names = [f"{mark}-{number}" for number in range(count)]
    _posts(kept, [(_PODS, _pod(name)) for name in names])
    _posts(kept, [(f"{_PODS}/{name}/binding", _binding(name)) for name in names])
    _posts(kept, [(_EVENTS, _event(name)) for name in names])


def _pods_together(kept: load.Kept, mark: str, count: int) -> None:
    """Send bindings and events as the scheduler does in a burst."""
    names = [f"{mark}-{number}" for number in range(count)]
    _posts(kept, [(_PODS, _pod(name)) for name in names])
    writes = [(f"{_PODS}/{name}/binding", _binding(name)) for name in names]
    writes += [(_EVENTS, _event(name)) for name in names]
    parts = [
        {"method": "POST", "path": path, "body": orjson.Fragment(body), "quiet": True}
        for path, body in writes
    ]
    some = [parts[at : at + _TOGETHER] for at in range(0, len(parts), _TOGETHER)]
    _posts(kept, [(_BATCH, orjson.dumps({"requests": each})) for each in some])


class _Meter(Protocol):
    """Tells what a server has spent since it was last asked."""

    unit: str

    def taken(self) -> float: ...


class _Processor:
    unit = "us"

    def __init__(self, measured: Measured) -> None:
        self._tasks = Path(f"/proc/{measured.pid}/task")
        self._before = self._now()

    def taken(self) -> float:
        before, self._before = self._before, self._now()
        return self._before - before

    def _now(self) -> float:
        spent = [(each / "schedstat").read_text().split()[0] for each in self._tasks.iterdir()]
        return sum(map(int, spent)) / 1000


class _Instructions:
    unit = "instructions"

    def __init__(self, measured: Measured, callgrind: Callgrind) -> None:
        self._callgrind, self._pid = callgrind, measured.pid
        callgrind.begin(measured.pid)

    def taken(self) -> float:
        return self._callgrind.taken(self._pid)


class _Asked(NamedTuple):
    """A server that is asked, and what tells its costs."""

    kept: load.Kept
    meter: _Meter

    def cost(self, turn: Turn, mark: str, count: int) -> float:
        self.meter.taken()
        turn(self.kept, mark, count)
        return self.meter.taken() / count


class _Request(NamedTuple):
    """What is measured here and at the baseline, how often in a round, and the ratio wanted."""

    name: str
    here: Turn
    there: Turn
    times: int
    limit: float


_REQUESTS = (
    _Request("GET", _get, _get, 2000, 1.0),
    _Request("create", _create, _create, 512, 0.8),
    _Request("pod, binding and event", _pods_one_by_one, _pods_one_by_one, 256, 0.75),
    _Request(
        "pod, binding and event as the scheduler sends them",
        _pods_together,
        _pods_one_by_one,
        256,
        0.75,
    ),
)


@contextlib.contextmanager
def _asked(tree: Path | None, counted: bool) -> Iterator[_Asked]:
    with contextlib.ExitStack() as stack:
        callgrind = stack.enter_context(contextlib.closing(Callgrind())) if counted else None
        under = callgrind.under if callgrind is not None else ()
        measured = stack.enter_context(ours(tree=tree, under=under))
        kept = stack.enter_context(load.Kept(measured.server, _CONNECTIONS))
        kept.send([kept.server.request("POST", _MAPS, _map("one"))])
        # What is met for the first time is compiled or remembered, which is no request's cost.
        _create(kept, "warm", 512)
        for name, turn in (("one-by-one", _pods_one_by_one), ("together", _pods_together)):
            turn(kept, f"warm-{name}", 64)
        if callgrind is None:
            yield _Asked(kept, _Processor(measured))
        else:
            yield _Asked(kept, _Instructions(measured, callgrind))


def run(baseline: Path | None = None, *, instructions: bool = False) -> list[Row]:
    """Measure this tree, and *baseline* in turns with it; return the rows."""
    rounds, part = (_COUNTED_ROUNDS, _COUNTED_PART) if instructions else (_ROUNDS, 1)
    rows: list[Row] = []
    with contextlib.ExitStack() as stack:
        trees = [None] if baseline is None else [None, baseline]
        servers = [stack.enter_context(_asked(tree, instructions)) for tree in trees]
        for request in _REQUESTS:
            costs: list[list[float]] = [[] for _ in servers]
            for number in range(rounds):
                turns = list(zip(servers, (request.here, request.there), costs, strict=False))
                for asked, turn, into in turns if number % 2 else reversed(turns):
                    mark = f"{turn.__name__.strip('_').replace('_', '-')}-{len(rows)}-{number}"
                    into.append(asked.cost(turn, mark, request.times // part))
            rows += _compared(request, costs, servers[0].meter.unit)
    return rows


def _compared(request: _Request, costs: list[list[float]], unit: str) -> list[Row]:
    quartiles = [statistics.quantiles(each, n=4)[0] for each in costs]
    spread = f"median {statistics.median(costs[0]):,.0f}"
    rows = [Row(_SUITE, f"{request.name}, of the server", quartiles[0], unit, note=spread)]
    if len(costs) > 1:
        ratio, limit = quartiles[0] / quartiles[1], request.limit
        pairs = [mine / other for mine, other in zip(*costs, strict=True)]
        note = f"baseline {quartiles[1]:,.0f}; median of pairs {statistics.median(pairs):.2f}"
        rows.append(
            Row(_SUITE, f"{request.name}, times the baseline", ratio, "x", f"≤ {limit:g} x",
                ratio <= limit, note)
        )  # fmt: skip
    return rows
