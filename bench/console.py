"""The console with 10,000 edges and 20 placements: bytes, time, memory.

Everything here is what the hub's process does for one viewer, in time of the processor; what a
browser makes of it is measured in a real one (``console_browser``) and follows in the table.

    python -m bench console
    python -m bench console --seconds 3600    # an hour of churn before an open tab
"""

from __future__ import annotations

import asyncio
import gc
import gzip
import re
import resource
import statistics
import time
from collections.abc import Callable
from typing import Any

import orjson

from bench import console_browser
from bench.report import Row, table
from skerry.api.refs import CLUSTER_ANNOTATION
from skerry.server.user import User
from skerry.web.assets import read_assets
from skerry.web.eyes import Eyes, Rights
from skerry.web.feed import Feed
from skerry.web.fleet_view import FleetView

_SUITE = "console"
_EDGES = 10_000
_PLACEMENTS = 20
_PAGE = 500
_INVENTORIES = 4
_ROUNDS = 50
_VIEWER = User("viewer")
_FILTERS = ("", "env=prod", "region=r3 status:away", "edge-12", "env!=prod placement:root:w/p3")


def _target(number: int, *, lost: bool = False, minute: int = 0) -> dict[str, Any]:
    ready = {"type": "Ready", "status": "False" if lost else "True", "message": "lease lapsed"}
    labels = {
        "region": f"r{number % 20}",
        "env": "prod" if number % 3 else "stage",
        "site": f"s{number % 500}",
    }
    return {
        "metadata": {
            "name": f"edge-{number:05}",
            "uid": f"uid-{number}",
            "labels": labels,
            "annotations": {CLUSTER_ANNOTATION: f"imw-{number % _INVENTORIES}"},
        },
        "spec": {},
        "status": {
            "conditions": [ready],
            "lastSyncerHeartbeatTime": f"2026-03-01T12:{minute:02}:00Z",
            "objects": {"wanted": 20, "applied": 20, "unhealthy": 0},
        },
    }


def _slice(placement: int, page: int) -> dict[str, Any]:
    first = page * _PAGE
    return {
        "metadata": {
            "name": f"p{placement}-{page}",
            "labels": {"edge.kcp.io/source-placement": f"p{placement}"},
            "annotations": {CLUSTER_ANNOTATION: "w"},
        },
        "destinations": [
            {
                "cluster": f"imw-{number % _INVENTORIES}",
                "locationName": f"edge-{number:05}",
                "syncTargetName": f"edge-{number:05}",
                "syncTargetUID": f"uid-{number}",
            }
            for number in range(first, first + _PAGE)
        ],
    }


async def _filled() -> tuple[Feed, Eyes]:
    feed = Feed()
    for number in range(_EDGES):
        feed.edges.put_sync_target(_target(number, lost=number % 200 == 0))
    for placement in range(_PLACEMENTS):
        for page in range(_EDGES // _PAGE):
            feed.edges.put_slice(_slice(placement, page))
    rights = Rights(
        lambda *_: True, lambda: 0, lambda each: f"root:{each}", lambda p: p.removeprefix("root:")
    )
    return feed, Eyes(feed, rights)


def _view(feed: Feed, eyes: Eyes, **view: Any) -> FleetView:
    return FleetView(feed, eyes, _VIEWER, {"rows": [0, 50], **view}, lambda: 0.0)


def _high_ms(work: Callable[[int], Any]) -> float:
    """Return the 99th percentile of *work*, in milliseconds."""
    taken = []
    for number in range(_ROUNDS):
        began = time.process_time()
        work(number)
        taken.append(1000 * (time.process_time() - began))
    return statistics.quantiles(taken, n=100)[98]


def _row(name: str, value: float, unit: str, limit: float, note: str = "") -> Row:
    return Row(_SUITE, name, value, unit, f"< {limit:g} {unit}", value < limit, note)


def _rss_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _first_view_kb() -> float:
    """Return what a browser fetches before it shows the fleet, compressed."""
    assets = read_assets()
    text = assets.page.body.decode()
    names = set(re.findall(r'(?:src|href)="(/console/assets/[^"]+)"', text))
    files = [assets.page, *(assets.files[name] for name in names)]
    return sum(len(each.gzipped or each.body) for each in files) / 1000


def run(churn_seconds: float = console_browser.CHURN_SECONDS) -> list[Row]:
    """Measure everything."""
    gc.collect()
    before = _rss_mb()
    began = time.perf_counter()
    feed, eyes = asyncio.run(_filled())
    filling = time.perf_counter() - began
    memory = _rss_mb() - before
    whole = _view(feed, eyes, by="region")
    first = orjson.dumps({"id": 1, "rev": 1, "set": whole.content()})
    rows = [
        _row("first view, code", _first_view_kb(), "kB", 150, "compressed"),
        _row("first view, data", len(first) / 1000, "kB", 60, "as sent, not compressed"),
        Row(_SUITE, "first view, data", len(gzip.compress(first)) / 1000, "kB", note="if it were"),
        _row("index, memory", memory, "MB", 64, f"filled in {filling:.2g} s"),
    ]
    for text in _FILTERS:
        taken = _high_ms(lambda _, q=text: _view(feed, eyes, q=q, by="region").content())  # type: ignore[misc]
        rows.append(_row(f"filter {text or '(none)'}, p99", taken, "ms", 100))
    taken = _high_ms(lambda at: _view(feed, eyes, by=("region", "env", "site")[at % 3]).content())
    rows.append(_row("regroup, p99", taken, "ms", 100))
    rows += _updates(feed, eyes)
    return rows + console_browser.run(churn_seconds)


def _updates(feed: Feed, eyes: Eyes) -> list[Row]:
    view = _view(feed, eyes, by="region", rows=[0, 40])
    before = view.content()
    # Spread over the regions, and behind the window of rows.
    for number in range(9_000, 10_000, 10):
        feed.edges.put_sync_target(_target(number, lost=True))
    after = view.content()
    patch = orjson.dumps({"id": 1, "rev": 2, "patch": view.patch(before, after)})
    cells = orjson.dumps(view.patch(before, after)["cells"])
    heartbeat = _high_ms(lambda at: feed.edges.put_sync_target(_target(at, minute=1)))
    version = _high_ms(lambda _: view.version())
    turn = _high_ms(lambda _: view.patch(after, view.content()))
    return [
        _row("update of 100 edges", len(patch) / 1000, "kB", 2,
             f"of that the map {len(cells) / 1000:.2g} kB"),
        Row(_SUITE, "a turn with changes, p99", turn, "ms", note="at most four a second"),
        _row("idle viewer", 4 * version / 10, "% of a core", 1, "four looks a second"),
        Row(_SUITE, "one heartbeat taken in, p99", heartbeat, "ms"),
    ]  # fmt: skip


if __name__ == "__main__":
    print(table(run()))
