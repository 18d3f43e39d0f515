"""A hypothetical batch is answered by the table itself, and leaves no trace."""

from __future__ import annotations

import pytest

from skerry.api.edge import edge_placement_ref, location_ref, sync_target_ref
from skerry.logic.fleet.placement.destination import DestinationTable
from skerry.logic.fleet.placement.grants import grant_of
from skerry.logic.fleet.placement.records import (
    Location,
    Placement,
    SyncTarget,
    location_of,
    placement_of,
    sync_target_of,
)
from skerry.logic.fleet.placement.whatif import (
    Change,
    LabelWorkspace,
    Put,
    Remove,
    hypothetical,
    what_if,
)
from tests.kit.chain import building
from tests.kit.chain.building import equal

P = edge_placement_ref("wmw", "p")


def table() -> DestinationTable:
    found = DestinationTable()
    for name in ("dev", "prod"):
        found.put_location(location_of(building.location(name, {"env": name}, equal(env=name))))
        found.put_sync_target(sync_target_of(building.sync_target(name, {"env": name})))
    found.put_placement(placement_of(building.placement("p", equal(env="dev"))))
    return found


def relabelled() -> Put:
    return Put(location_of(building.location("prod", {"env": "dev"}, equal(env="prod"))))


CHANGES: dict[str, list[Change]] = {
    "Location relabelled": [relabelled()],
    "Location gone": [Remove(Location, location_ref("imw", "dev"))],
    "SyncTarget gone": [Remove(SyncTarget, sync_target_ref("imw", "dev"))],
    "SyncTarget new": [Put(sync_target_of(building.sync_target("new", {"env": "dev"})))],
    "placement gone": [Remove(Placement, P)],
    "placement changed": [Put(placement_of(building.placement("p", {})))],
    "several": [relabelled(), Remove(Location, location_ref("imw", "dev"))],
}


@pytest.mark.parametrize("changes", CHANGES.values(), ids=CHANGES)
def test_the_difference_is_what_the_change_itself_would_make(changes: list[Change]) -> None:
    index = table()
    before = set(index.destinations(P))
    (difference,) = what_if(index, changes)
    assert set(index.destinations(P)) == before, "nothing was changed"
    with hypothetical(index, changes):
        after = set(index.destinations(P))
    assert difference.placement == P
    assert set(difference.added) == after - before
    assert set(difference.removed) == before - after


def test_a_change_that_touches_no_placement_makes_no_difference() -> None:
    unused = location_of(building.location("unused", {"env": "test"}, {}))
    assert what_if(table(), [Put(unused), LabelWorkspace("imw", {"org": "a"})]) == []


@pytest.mark.parametrize("changes", CHANGES.values(), ids=CHANGES)
def test_a_batch_is_rolled_back_even_if_asking_fails(changes: list[Change]) -> None:
    index = table()
    before = index.destinations(P)
    with pytest.raises(RuntimeError), hypothetical(index, changes):
        raise RuntimeError
    assert index.destinations(P) == before
    assert index.placement(P) == table().placement(P)
    assert list(index.inventory.locations()) or not before


def test_what_a_grant_would_refuse_is_held_where_it_runs() -> None:
    index = table()
    running = frozenset(index.destinations(P))
    nobody = Put(grant_of(building.grant("g", "imw", paths=["root:nobody"], selector={})))
    (difference,) = what_if(index, [nobody], lambda _: running)
    assert set(difference.held) == running
    assert difference.removed == ()
    assert not index.consent.is_used
