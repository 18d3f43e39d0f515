"""A hypothetical batch is answered by the table itself, and leaves no trace."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.api.edge import edge_placement_ref, location_ref, sync_target_ref
from skerry.api.refs import ObjectRef
from skerry.logic.fleet.placement.destination import DestinationTable
from skerry.logic.fleet.placement.grants import Grant, grant_of
from skerry.logic.fleet.placement.records import (
    Destination,
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
from skerry.scheduler.placement import location_chooser
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


Q = edge_placement_ref("wmw", "q")
NOBODY = grant_of(building.grant("g", "imw", paths=["root:nobody"], selector={}))


def labels_of(index: DestinationTable) -> dict[str, object]:
    """Return everything that a change could have left behind."""
    return {
        "locations": sorted((each.ref, dict(each.labels)) for each in index.inventory.locations()),
        "targets": sorted((e.ref, dict(e.labels), e.uid) for e in index.inventory.sync_targets()),
        "placements": sorted(each.ref for each in index.placements()),
        "workspace": dict(index.workspace_labels("imw")),
        "grants": index.consent.is_used,
        "destinations": {each.ref: index.destinations(each.ref) for each in index.placements()},
    }


def put_location(name: str, labels: dict[str, str]) -> Put:
    return Put(location_of(building.location(name, labels, equal(env="dev"))))


changes = st.lists(
    st.one_of(
        st.builds(put_location, st.sampled_from(["dev", "prod", "new"]), building.labels),
        st.builds(
            lambda name, labels: Put(sync_target_of(building.sync_target(name, labels))),
            st.sampled_from(["dev", "prod", "new"]),
            building.labels,
        ),
        st.builds(
            lambda name, selector: Put(placement_of(building.placement(name, selector))),
            st.sampled_from("pq"),
            building.selectors,
        ),
        st.builds(lambda labels: LabelWorkspace("imw", labels), building.labels),
        st.sampled_from(
            [
                Put(NOBODY),
                Remove(Grant, NOBODY.ref),
                Remove(Location, location_ref("imw", "dev")),
                Remove(Location, location_ref("imw", "never")),
                Remove(SyncTarget, sync_target_ref("imw", "dev")),
                Remove(Placement, P),
                Remove(Placement, Q),
            ]
        ),
    ),
    max_size=6,
)


@given(changes)
def test_whatever_is_wondered_about_leaves_no_trace(batch: list[Change]) -> None:
    index = table()
    before = labels_of(index)
    first = what_if(index, batch)
    assert labels_of(index) == before
    assert what_if(index, batch) == first, "a second time it is the same"


@given(changes)
def test_what_would_happen_is_what_happens(batch: list[Change]) -> None:
    index = table()
    running = {each.ref: frozenset(index.destinations(each.ref)) for each in index.placements()}
    foreseen = {
        each.placement: (set(each.added), set(each.removed))
        for each in what_if(index, batch, lambda ref: running.get(ref, frozenset()))
        if each.added or each.removed
    }
    with hypothetical(index, batch):
        happened = dict[ObjectRef, tuple[set[Destination], set[Destination]]]()
        for ref in {*running, P, Q}:
            before = running.get(ref, frozenset())
            there = {each.location_ref for each in before}
            chosen = index.chosen(ref, there, there)
            after = set(index.destinations_of(chosen, before)) if index.placement(ref) else set()
            if after != before:
                happened[ref] = (after - before, set(before - after))
    assert foreseen == happened


def test_a_change_and_its_opposite_make_no_difference() -> None:
    index = table()
    old = location_of(building.location("prod", {"env": "prod"}, equal(env="prod")))
    assert what_if(index, [relabelled(), Put(old)]) == []


def test_the_same_change_made_twice_is_undone_as_a_whole() -> None:
    index = table()
    before = labels_of(index)
    with hypothetical(
        index, [relabelled(), relabelled(), Remove(Location, relabelled().record.ref)]
    ):
        assert [each.ref.name for each in index.inventory.locations()] == ["dev"]
    assert labels_of(index) == before


def test_differences_come_by_the_names_of_placements() -> None:
    index = table()
    for name in ("z", "a", "m"):
        index.put_placement(placement_of(building.placement(name, equal(env="dev"))))
    found = what_if(index, [Remove(Location, location_ref("imw", "dev"))])
    assert [each.placement.name for each in found] == ["a", "m", "p", "z"]


def test_a_label_of_a_workspace_matters_to_who_asks_for_it() -> None:
    index = table()
    picky = building.placement("q", equal(env="dev"), locationWorkspaceSelector=equal(org="a"))
    index.put_placement(placement_of(picky))
    assert index.destinations(Q) == []
    (found,) = what_if(index, [LabelWorkspace("imw", {"org": "a"})])
    assert found.placement == Q
    assert [each.location for each in found.added] == ["dev"]
    assert index.workspace_labels("imw") == {}


def test_who_chooses_is_asked_for_everything_since_one_place_takes_anothers() -> None:
    index = DestinationTable(location_chooser)
    for name in ("a", "b"):
        index.put_location(location_of(building.location(name, {"env": name}, equal(env=name))))
        index.put_sync_target(sync_target_of(building.sync_target(name, {"env": name})))
    index.put_placement(
        placement_of(building.placement("p", {}, strategy={"numberOfLocations": 1}))
    )
    present = frozenset(index.destinations_of(index.chosen(P)))
    assert [each.location for each in present] == ["a"]
    (found,) = what_if(index, [Remove(Location, location_ref("imw", "a"))], lambda _: present)
    assert [each.location for each in found.added] == ["b"]
    assert [each.location for each in found.removed] == ["a"]


def test_of_many_locations_the_answer_is_the_same_as_of_few() -> None:
    index = table()
    many = [put_location(f"l{n:02}", {"env": "dev"}) for n in range(20)]
    (found,) = what_if(index, many)
    assert [each.location for each in found.added] == [f"l{n:02}" for n in range(20)]
    few = [each for put in many[:2] for each in what_if(index, [put])]
    assert [each.added[0].location for each in few] == ["l00", "l01"]


def test_what_is_held_now_and_would_be_confirmed_is_freed() -> None:
    index = table()
    running = frozenset(index.destinations(P))
    index.put_grant(NOBODY)
    (found,) = what_if(index, [Remove(Grant, NOBODY.ref)], lambda _: running)
    assert set(found.freed) == running
    assert (found.added, found.removed, found.held) == ((), (), ())
    assert index.consent.is_used


def test_what_a_grant_refuses_and_does_not_run_is_neither_added_nor_held() -> None:
    index = table()
    index.remove_placement(P)
    new = Put(placement_of(building.placement("p", equal(env="dev"))))
    assert what_if(index, [Put(NOBODY), new]) == []
    (found,) = what_if(index, [new])
    assert [each.location for each in found.added] == ["dev"]
