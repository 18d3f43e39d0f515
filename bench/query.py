"""Status queries: what a row costs, how small it is, how soon the answer is right.

The pure part runs in this process, in processor time: parts of whole objects, 135,000 rows that all
change, the memory of a row. The other drives a hub and the controllers as processes of their own: a
thousand mailboxes, single reports until the row shows them, then all of them at once.
"""

from __future__ import annotations

import asyncio
import gc
import time
import tracemalloc
from collections.abc import Callable, Sequence
from typing import Any

import orjson

from bench.edge_hub import EDGE, Shares, body, connected, controlling, for_each
from bench.report import Row, table
from bench.servers import ours
from bench.summary import _DEPLOYMENTS, _EDGES, _copy, _destination, _furnish, _uid
from skerry.api.edge import STATUS_QUERIES, edge_placement_ref
from skerry.api.objects import Object
from skerry.api.refs import ObjectRef
from skerry.controllers.status_queries.extraction import Layout
from skerry.controllers.summarizer.projections import Kind
from skerry.kit import garbage
from skerry.logic.fleet.query.plan import QueryPlan, plan_of
from skerry.logic.fleet.query.rows import Copy, Evaluator
from skerry.logic.fleet.query.tables import QueryTables
from skerry.runtime.client import Client

_SUITE = "query"
_KIND = Kind("apps", "v1", "deployments", "Deployment", has_status=True)
_PLACEMENT = edge_placement_ref("wmw", "p")
_QUERY = ObjectRef("wmw", "edge.kcp.io", "statusqueries", "", "q")
_FLIPPED = 135_000
_FIRST = 100_000
_OBJECTS = 10
_SINGLE = 40
_SPEC: Object = {
    "from": {"apiGroup": "apps", "resources": ["deployments"]},
    "filter": "has(status.replicas)",
    "groupBy": [{"name": "region", "value": "location.labels[?'region'].orValue('none')"}],
    "aggregates": [
        {"name": "edges", "function": "Count"},
        {"name": "ready", "function": "Sum", "of": "status.readyReplicas"},
        {"name": "seen", "function": "Max", "of": "status.?conditions[?0].optMap(c, 1).orValue(0)"},
    ],
}


def run() -> list[Row]:
    """Measure everything."""
    return [*_pure(), *asyncio.run(_whole())]


# -- in this process ---------------------------------------------------------------------------


def _plan(spec: Object) -> tuple[QueryPlan, Layout]:
    plan, errors = plan_of(spec)
    if plan is None:
        raise RuntimeError(errors)
    layout = Layout()
    layout.need(plan.parts())
    return plan, layout


def _object(number: int) -> Object:
    copy = _copy(number)
    copy["metadata"]["labels"] = {"edge.kcp.io/projected": "yes"}
    return copy


def _extract(layout: Layout, obj: Object) -> Copy:
    found = layout.extract(_KIND, obj, _KIND.project(obj))
    if found is None:
        raise RuntimeError("nothing was kept of a copy")
    return found


def _tables(rows: int) -> tuple[QueryTables, list[tuple[ObjectRef, str]]]:
    """Return tables that place ten objects everywhere, and every row there is then."""
    tables = QueryTables(lambda _: None)
    items = [ObjectRef("", "apps", "deployments", "shop", f"web-{n}") for n in range(_OBJECTS)]
    for item in items:
        tables.put_selected(_PLACEMENT, item, selected=True)
    edges = rows // _OBJECTS
    for number in range(edges):
        destination = _destination(number)
        tables.put_destination(_PLACEMENT, destination.uid, destination)
        place = (destination.cluster, destination.location)
        tables.put_location(place, {"region": f"r{number % 20}"})
    return tables, [(item, _uid(number)) for item in items for number in range(edges)]


def _pure() -> list[Row]:
    # As the controllers do when they have started.
    garbage.settle()
    return [*_one_row(), *_flip(), *_memory(), *_first()]


def _one_row() -> list[Row]:
    plan, layout = _plan(_SPEC)
    objects = [_object(number) for number in range(5000)]
    lean = [_KIND.project(obj) for obj in objects]
    pairs = list(zip(objects, lean, strict=True))
    keeping, copies = _timed(lambda: [layout.extract(_KIND, o, le) for o, le in pairs])
    tables, rows = _tables(5000)
    evaluator = Evaluator(plan, layout.positions())
    tables.start(_QUERY, "wmw", plan, evaluator)
    for (item, uid), copy in zip(rows, copies, strict=True):
        tables.put_copy(item, uid, copy)
    found = tables.rows(_QUERY)
    evaluating, _ = _timed(lambda: [evaluator.outcome(row) for row in found])
    each = (keeping + evaluating) * 1e6 / len(objects)
    note = "a filter, a group and two values; kept from the object, then evaluated"
    return [
        Row(_SUITE, "evaluate one row", each, "µs", "< 60", each < 60, note),
        Row(_SUITE, "of that, while the object is in hand", keeping * 1e6 / len(objects), "µs"),
    ]


def _flip() -> list[Row]:
    plan, layout = _plan(_SPEC)
    tables, rows = _tables(_FLIPPED)
    for number, (item, uid) in enumerate(rows):
        tables.put_copy(item, uid, _extract(layout, _object(number % 1000 + 1)))
    tables.start(_QUERY, "wmw", plan, Evaluator(plan, layout.positions()))
    changed = [_object(number) for number in range(0, 10_000, 10)]

    def flip() -> None:
        for number, (item, uid) in enumerate(rows):
            obj = changed[number % len(changed)]
            tables.put_copy(item, uid, _extract(layout, obj))

    taken, _ = _timed(flip)
    answering, answer = _timed(lambda: tables.answer(_QUERY, ""))
    if sum(row["values"][2] for row in answer.status["rows"]) != 2 * len(rows):
        raise RuntimeError(f"the answer is wrong: {answer}")
    note = "read, kept, taken out and in again, one core; the hub's part is not in it"
    name = f"{_FLIPPED:,} rows change, one query"
    return [
        Row(_SUITE, name, taken, "s", "< 30", taken < 30, note),
        Row(_SUITE, "one change, of that", taken * 1e6 / len(rows), "µs"),
        Row(_SUITE, "answer of 20 groups", answering * 1e3, "ms"),
    ]


def _memory() -> list[Row]:
    plan, layout = _plan(_SPEC)
    tables, rows = _tables(_FIRST)
    tables.start(_QUERY, "wmw", plan, Evaluator(plan, layout.positions()))
    reports = [_KIND.project(_object(number)) for number in range(1000)]
    gc.collect()
    tracemalloc.start()
    for number, (item, uid) in enumerate(rows):
        # Reports are the summarizer's and there anyway.
        obj = _object(number)
        copy = layout.extract(_KIND, obj, reports[number % 1000])
        tables.put_copy(item, uid, copy)
    gc.collect()
    size = tracemalloc.get_traced_memory()[0] / len(rows)
    tracemalloc.stop()
    estimate = tables.memory_of(_QUERY) / len(rows)
    return [
        Row(_SUITE, "memory of a row of a query", size, "B", "< 150", size < 150),
        Row(_SUITE, "as --query-memory counts it", estimate, "B"),
    ]


def _first() -> list[Row]:
    plan, layout = _plan(_SPEC)
    tables, rows = _tables(_FIRST)
    pages = [
        orjson.dumps({"items": [_object(number) for number in range(at, at + 500)]})
        for at in range(0, 10_000, 500)
    ]

    def first() -> Any:
        for at in range(0, len(rows), 500):
            objects = orjson.loads(pages[at // 500 % len(pages)])["items"]
            for (item, uid), obj in zip(rows[at : at + 500], objects, strict=True):
                tables.put_copy(item, uid, _extract(layout, obj))
        tables.start(_QUERY, "wmw", plan, Evaluator(plan, layout.positions()))
        return tables.answer(_QUERY, "")

    taken, _ = _timed(first)
    note = "pages decoded, kept, folded; a wildcard list of the hub takes 0.3 s besides"
    return [Row(_SUITE, f"first answer over {_FIRST:,} rows", taken, "s", "< 8", taken < 8, note)]


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Return processor time: the target is of one core, whatever else the machine does."""
    began = time.process_time()
    result = work()
    return time.process_time() - began, result


# -- hub and controllers as processes ------------------------------------------------------------


async def _whole() -> list[Row]:
    with ours("hub", ["--init"]) as hub:
        async with connected(hub.kubeconfig) as client:
            clusters = await _furnish(client)
            with controlling(hub, "summarizer", "status-queries") as controllers:
                return await _reports(client, clusters, Shares(hub, controllers))


async def _reports(client: Client, clusters: Sequence[str], shares: Shares) -> list[Row]:
    owner = client.at("", "root:wmw")
    spec = {
        "from": {"apiGroup": "apps", "resources": ["deployments"]},
        "aggregates": [
            {"name": "edges", "function": "Count"},
            {"name": "ready", "function": "Sum", "of": "status.?readyReplicas.orValue(0)"},
        ],
    }
    began = time.perf_counter()
    await owner.create(STATUS_QUERIES, body(EDGE, "StatusQuery", "q", spec=spec))
    await _until(owner, [_EDGES, 0])
    first = time.perf_counter() - began

    async def report(number: int, ready: int) -> None:
        status = {"replicas": 1, "readyReplicas": ready}
        await client.at("", clusters[number]).patch(
            _DEPLOYMENTS, "web", {"status": status}, "shop", subresource="status"
        )

    waits = []
    for number in range(_SINGLE):
        began = time.perf_counter()
        await report(number, 1)
        await _until(owner, [_EDGES, number + 1])
        waits.append(time.perf_counter() - began)
    shares.begin()
    began = time.perf_counter()
    async with asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(_until(owner, [_EDGES, 2 * _EDGES]))
        tasks.create_task(for_each(_EDGES, lambda number: report(number, 2)))
    taken, changes = time.perf_counter() - began, waiting.result()
    spent = shares.spent()
    worst = sorted(waits)[-1]
    return [
        Row(_SUITE, f"query created → complete answer, {_EDGES:,} rows", first, "s"),
        Row(_SUITE, "report → row, p50", sorted(waits)[_SINGLE // 2], "s"),
        Row(_SUITE, f"report → row, worst of {_SINGLE}", worst, "s", "< 1", worst < 1),
        Row(_SUITE, f"{_EDGES:,} edges report at once → answer exact", taken, "s"),
        Row(
            _SUITE, "answers a second meanwhile", changes / taken, "", "≤ 2.5",
            changes / taken <= 2.5,
        ),
        Row(_SUITE, "processor time meanwhile: hub", spent[0], "s"),
        Row(_SUITE, "processor time meanwhile: controllers", spent[1], "s"),
    ]  # fmt: skip


async def _until(owner: Client, wanted: list[int]) -> int:
    """Follow the query until its row is as wanted; returns how often it changed."""
    changes = 0
    async with owner.watch(STATUS_QUERIES) as events:
        async for event in events:
            changes += event.kind == "MODIFIED"
            rows = (event.object.get("status") or {}).get("rows") or ()
            if [row["values"] for row in rows] == [wanted]:
                return changes
    raise RuntimeError("the watch ended before the answer was right")


if __name__ == "__main__":
    print(table(run()))
