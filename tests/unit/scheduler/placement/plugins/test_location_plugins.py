"""Each plugin says of many Locations what it says of one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from skerry.api.edge import location_ref, sync_target_ref
from skerry.logic.fleet.placement.inventory import Inventory
from skerry.logic.fleet.placement.records import Location, SyncTarget
from skerry.logic.fleet.placement.strategy import Spread, Strategy, taints_of
from skerry.logic.fleet.placement.terms import EVERYTHING
from skerry.logic.machinery.taints import Toleration
from skerry.scheduler.framework.state import CycleState
from skerry.scheduler.framework.status import SKIP
from skerry.scheduler.placement.plugins.location_ready import LocationReady
from skerry.scheduler.placement.plugins.location_spread import LocationSpread
from skerry.scheduler.placement.plugins.location_taints import LocationTaints
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
            Location(location_ref(cluster, name), labels, EVERYTHING, (), taints_of(taints))
        )
    return LocationTable(inventory)


@pytest.mark.parametrize("plugin", [LocationReady, LocationTaints])
@pytest.mark.parametrize("wish", WISHES, ids=str)
def test_a_filter_and_a_score_of_many_are_those_of_each(plugin: Any, wish: Wish) -> None:
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


def test_who_holds_a_workload_is_driven_out_by_no_execute_only() -> None:
    rows = table()
    plugin, state = LocationTaints({}, rows), CycleState()

    def passes(*, held: bool) -> list[int]:
        wish = Wish(Strategy(), held)
        return [
            r for r in rows.rows().tolist() if plugin.filter(state, wish, rows.target(r)) is None
        ]

    assert passes(held=False) == [0, 3]
    assert passes(held=True) == [0, 1, 3]


def test_only_newcomers_to_a_number_of_locations_need_the_labels_of_the_spread() -> None:
    rows = table()
    plugin, state = LocationSpread({}, rows), CycleState()
    spread = Strategy(2, (Spread("region", 1),))
    assert plugin.pre_filter(state, Wish(spread)) == (None, None)
    assert plugin.pre_filter(state, Wish(spread, held=True)) == (None, SKIP)
    assert plugin.pre_filter(state, Wish(Strategy(None, spread.spread))) == (None, SKIP)
    refused = plugin.filter(state, Wish(spread), rows.target(0))
    assert refused is not None
    assert refused.message == "location(s) had no label region"
    assert plugin.filter(state, Wish(spread), rows.target(1)) is None


def test_a_row_follows_the_inventory_when_it_is_read() -> None:
    inventory = Inventory()
    rows = LocationTable(inventory)
    assert (len(rows), rows.rows().tolist()) == (0, [])
    ref = location_ref("c", "l")
    number = inventory.put_location(Location(ref, {}, EVERYTHING))
    rows.read(number)
    assert rows.row("c|l") == number
    assert rows.target(number).ref == ref
    assert np.array_equal(rows.rows(), [number])
    inventory.remove_location(ref)
    rows.read(number)
    assert len(rows) == 0
    with pytest.raises(LookupError, match="holds no Location"):
        rows.target(number)
