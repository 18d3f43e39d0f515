"""Placement: matching at the design point, pure; then slices by a hub and a scheduler process.

The pure part is 10,000 placements over 100,000 Locations on one core. The rest is in
``bench.placement_hub``, which also measures another hub by its kubeconfig.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from bench import placement_hub
from bench.report import Row, table
from skerry.api.edge import edge_placement_ref, location_ref
from skerry.api.objects import Object
from skerry.logic.fleet.placement.destination import DestinationTable
from skerry.logic.fleet.placement.records import Location, location_of, placement_of, sync_target_of
from skerry.logic.fleet.placement.whatif import Put, what_if

# Labels as inventories have them: a few keys of few values, one of many, one that is unique.
_FEW = {"env": 3, "tier": 4, "region": 20, "country": 60, "model": 12, "os": 5}
_CLUSTERS = 100


def _labels(source: random.Random, number: int) -> dict[str, str]:
    labels = {key: f"v{source.randrange(count)}" for key, count in _FEW.items()}
    return labels | {"site": f"s{number // 10}", "id": f"l{number}"}


def _location(number: int, labels: dict[str, str]) -> Location:
    metadata = {
        "name": f"l{number}",
        "labels": labels,
        "annotations": {"kcp.io/cluster": f"c{number % _CLUSTERS}"},
    }
    selector = {"matchLabels": {"id": f"l{number}"}}
    return location_of({"metadata": metadata, "spec": {"instanceSelector": selector}})


def _sync_target(number: int) -> Object:
    return {
        "metadata": {
            "name": f"l{number}",
            "uid": f"uid-{number}",
            "labels": {"id": f"l{number}"},
            "annotations": {"kcp.io/cluster": f"c{number % _CLUSTERS}"},
        }
    }


def _selector(source: random.Random) -> Object:
    keys = source.sample(sorted(_FEW), 2)
    selector: Object = {"matchLabels": {keys[0]: f"v{source.randrange(_FEW[keys[0]])}"}}
    values = [f"v{source.randrange(_FEW[keys[1]])}" for _ in range(2)]
    operator = source.choice(["In", "In", "NotIn"])
    selector["matchExpressions"] = [{"key": keys[1], "operator": operator, "values": values}]
    if source.random() < 0.2:
        selector["matchLabels"]["site"] = f"s{source.randrange(1000)}"
    return selector


def _placement(source: random.Random, number: int) -> Object:
    return {
        "metadata": {"name": f"p{number}", "annotations": {"kcp.io/cluster": "wmw"}},
        "spec": {"locationSelectors": [_selector(source)]},
    }


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    began = time.perf_counter()
    result = work()
    return time.perf_counter() - began, result


def run() -> list[Row]:
    """Return every row of the suite."""
    return [*run_pure(), *placement_hub.run()]


def run_pure(
    placements: int = 10_000, locations: int = 100_000, relabels: int = 1_000
) -> list[Row]:
    """Return rows of matching alone."""
    source = random.Random(5)
    index = DestinationTable()
    found = [_location(number, _labels(source, number)) for number in range(locations)]
    targets = [sync_target_of(_sync_target(number)) for number in range(locations)]
    wanted = [placement_of(_placement(source, number)) for number in range(placements)]
    rows: list[Row] = []

    def row(name: str, value: float, unit: str = "s", limit: float | None = None) -> None:
        target = "" if limit is None else f"< {limit:g} {unit}"
        rows.append(
            Row("placement", name, value, unit, target, None if limit is None else value < limit)
        )

    row("index locations", _timed(lambda: [index.put_location(each) for each in found])[0])
    row("index targets", _timed(lambda: [index.put_sync_target(each) for each in targets])[0])
    row("index placements", _timed(lambda: [index.put_placement(e) for e in wanted])[0])
    full, counts = _timed(lambda: [len(index.matching(each.ref)) for each in wanted])
    row("full match", full, limit=5.0)
    row("locations per placement", sum(counts) / len(counts), "mean")
    times, touched = _relabels(source, index, relabels, locations)
    row("one label change, median", times[len(times) // 2], limit=0.005)
    row("one label change, p99", times[int(len(times) * 0.99)], limit=0.005)
    row("placements touched by it", touched, "mean")
    moved = _location(7, _labels(source, 8))
    spent, differences = _timed(lambda: what_if(index, [Put(moved)]))
    row(f"what if, {len(differences)} placements change", spent)
    widest = edge_placement_ref("wmw", f"p{counts.index(max(counts))}")
    spent, there = _timed(lambda: index.destinations(widest))
    row(f"destinations of the largest, {len(there)}, first", spent)
    row("and again", _timed(lambda: index.destinations(widest))[0])
    return rows


def _relabels(
    source: random.Random, index: DestinationTable, count: int, locations: int
) -> tuple[list[float], float]:
    times, touched = [], 0
    for _ in range(count):
        number = source.randrange(locations)
        location = index.inventory.location(location_ref(f"c{number % _CLUSTERS}", f"l{number}"))
        assert location is not None
        key = source.choice(sorted(_FEW))
        labels = dict(location.labels) | {key: f"v{source.randrange(_FEW[key])}"}
        changed = _location(number, labels)
        spent, refs = _timed(partial(index.put_location, changed))
        times.append(spent)
        touched += len(refs)
    return sorted(times), touched / count


if __name__ == "__main__":
    print(table(run()))
