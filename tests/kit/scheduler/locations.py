"""A few Locations, what may be asked of them, and that plugins say of many what they say of one."""

from __future__ import annotations

from typing import Any

from skerry.api.edge import location_ref, sync_target_ref
from skerry.logic.fleet.placement.inventory import Inventory
from skerry.logic.fleet.placement.records import Location, SyncTarget
from skerry.logic.fleet.placement.strategy import Spread, Strategy, taints_of
from skerry.logic.machinery.taints import Toleration
from skerry.scheduler.framework.state import CycleState
from skerry.scheduler.placement.table import LocationTable
from skerry.scheduler.placement.wish import Wish

TOLERANT = (Toleration("k", "Exists", "", ""),)
WISHES = [Wish(Strategy(), held=held) for held in (False, True)] + [
    Wish(Strategy(only_ready=True)),
    Wish(Strategy(tolerations=TOLERANT)),
    Wish(Strategy(2, (Spread("region", 1),))),
]


def table() -> LocationTable:
    inventory = Inventory()
    for number, taints in enumerate(
        ["", "k=v:NoSchedule", "k:NoExecute", "k:PreferNoSchedule,j:PreferNoSchedule"]
    ):
        cluster, name = f"c{number}", f"l{number}"
        target = SyncTarget(sync_target_ref(cluster, name), name, {}, available=number % 2 == 0)
        labels = {"region": "north"} if number else {}
        inventory.put_sync_target(target)
        inventory.put_location(
            Location(location_ref(cluster, name), labels, (), (), taints_of(taints))
        )
    return LocationTable(inventory)


def assert_many_as_each(plugin: Any, wish: Wish) -> None:
    """Check that a filter and a score of many Locations are those of each."""
    rows = table()
    found, state = plugin({}, rows), CycleState()
    every = rows.rows()
    verdicts = found.filter_all(state, wish, every)
    for row in every.tolist():
        single = found.filter(state, wish, rows.target(row))
        code = 0 if verdicts is None else int(verdicts.codes[row])
        together = None if verdicts is None or code == 0 else verdicts.statuses[code - 1]
        assert single == together
    scores = [found.score(state, wish, rows.target(row)) for row in every.tolist()]
    assert found.score_all(state, wish, every).tolist() == scores
