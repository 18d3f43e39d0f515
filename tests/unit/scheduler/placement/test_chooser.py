"""Choosing some of the Locations that match, on the scheduling framework."""

from __future__ import annotations

from collections import Counter
from importlib.metadata import EntryPoint
from typing import Any

import pytest
from examples.placement_plugin.prefer_capacity import PreferCapacity
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap

from skerry.api.edge import edge_placement_ref, location_ref, sync_target_ref
from skerry.api.refs import ObjectRef
from skerry.logic.fleet.placement.choosing import Choice
from skerry.logic.fleet.placement.destination import DestinationTable
from skerry.logic.fleet.placement.inventory import Inventory
from skerry.logic.fleet.placement.records import (
    Location,
    SyncTarget,
    location_of,
    placement_of,
    sync_target_of,
)
from skerry.logic.fleet.placement.strategy import Candidate, Spread, Strategy, taints_of
from skerry.logic.fleet.placement.whatif import Remove, what_if
from skerry.logic.machinery.taints import Toleration
from skerry.scheduler.framework.plugin import PreFilterResult
from skerry.scheduler.framework.registry import Registry
from skerry.scheduler.framework.runner import PluginRaised
from skerry.scheduler.framework.status import Status, unresolvable
from skerry.scheduler.placement.chooser import LocationChooser
from skerry.scheduler.placement.registry import (
    ENTRY_POINT_GROUP,
    IN_TREE,
    placement_profile,
    placement_registry,
)
from skerry.scheduler.placement.wish import Wish
from tests.kit.chain import building
from tests.kit.scheduler import placement_reference as reference

NOBODY: frozenset[ObjectRef] = frozenset()


def candidate(name: str, *, available: bool = True, taints: str = "", **labels: str) -> Candidate:
    # A workspace for each, so that each is as available as its only SyncTarget.
    return Candidate(location_ref(f"c-{name}", name), labels, available, taints_of(taints))


def put(inventory: Inventory, each: Candidate) -> int:
    ref = sync_target_ref(each.ref.cluster, each.ref.name)
    inventory.put_sync_target(SyncTarget(ref, f"uid-{ref.name}", {}, each.available))
    return inventory.put_location(Location(each.ref, each.labels, (), (), each.taints))


def choice(
    strategy: Strategy, candidates: list[Candidate], present: Any = NOBODY, *more: Any
) -> Choice:
    inventory = Inventory()
    numbers = {put(inventory, each): each for each in candidates}
    registry = Registry({plugin.name: plugin for plugin in [*(p for p, _ in IN_TREE), *more]})
    return LocationChooser(inventory, registry).choose(strategy, BitMap(numbers), present)


def choose(
    strategy: Strategy, candidates: list[Candidate], present: Any = NOBODY, *more: Any
) -> set[ObjectRef]:
    found = choice(strategy, candidates, present, *more)
    return {candidates[number].ref for number in found.locations}


def names(chosen: set[ObjectRef]) -> list[str]:
    return sorted(ref.name for ref in chosen)


_labels = st.fixed_dictionaries(
    {},
    optional={
        "region": st.sampled_from(["north", "south", "west"]),
        "rack": st.sampled_from(["1", "2"]),
    },
)
_taints = st.sampled_from(
    [
        "",
        "",
        "k=v:NoSchedule",
        "k:NoExecute",
        "k:PreferNoSchedule",
        "k:PreferNoSchedule,l:PreferNoSchedule",
    ]
)
_candidates = st.lists(
    st.builds(
        lambda name, available, taints, labels: candidate(
            name, available=available, taints=taints, **labels
        ),
        st.sampled_from([f"l{n}" for n in range(12)]),
        st.booleans(),
        _taints,
        _labels,
    ),
    unique_by=lambda each: each.ref,
)
_spreads = st.sampled_from(
    [
        (),
        (Spread("region", 1),),
        (Spread("region", 2),),
        (Spread("region", 1), Spread("rack", 1)),
        (Spread("rack", 1), Spread("region", 2)),
    ]
)
_strategies = st.builds(
    Strategy,
    st.one_of(st.none(), st.integers(1, 8)),
    _spreads,
    st.sampled_from(
        [(), (Toleration("", "Exists", "", ""),), (Toleration("k", "Equal", "v", ""),)]
    ),
    st.booleans(),
)


@given(_strategies, _candidates, st.data())
def test_the_framework_chooses_as_the_simple_twin_does(
    strategy: Strategy, candidates: list[Candidate], data: st.DataObject
) -> None:
    refs = [each.ref for each in candidates]
    present = data.draw(st.sets(st.sampled_from(refs)) if refs else st.just(set[Any]()))
    assert choose(strategy, candidates, present) == reference.choose(strategy, candidates, present)


@given(_strategies, _candidates, st.randoms())
def test_the_choice_depends_on_the_facts_only(
    strategy: Strategy, candidates: list[Candidate], shuffling: Any
) -> None:
    chosen = choose(strategy, candidates)
    shuffled = list(candidates)
    shuffling.shuffle(shuffled)
    assert choose(strategy, shuffled) == chosen


@given(_strategies, _candidates)
def test_who_was_chosen_and_still_passes_stays(
    strategy: Strategy, candidates: list[Candidate]
) -> None:
    chosen = choose(strategy, candidates)
    assert choose(strategy, candidates, chosen) == chosen
    more = [*candidates, candidate("a-newcomer", region="north", rack="1")]
    assert chosen <= choose(strategy, more, chosen)


@given(_strategies, st.lists(st.tuples(_candidates, _candidates), min_size=1, max_size=4))
def test_what_is_remembered_of_locations_follows_their_changes(
    strategy: Strategy, steps: list[tuple[list[Candidate], list[Candidate]]]
) -> None:
    inventory = Inventory()
    chooser = LocationChooser(inventory)
    there: dict[int, Candidate] = {}
    for removed, changed in steps:
        for each in removed:
            if inventory.location(each.ref) is not None:
                number = inventory.remove_location(each.ref)
                del there[number]
                chooser.changed(number)
        for each in changed:
            number = put(inventory, each)
            there[number] = each
            chooser.changed(number)
        found = chooser.choose(strategy, BitMap(there), NOBODY).locations
        wanted = reference.choose(strategy, list(there.values()), NOBODY)
        assert {there[number].ref for number in found} == wanted


@given(st.integers(1, 9))
def test_newcomers_are_spread_evenly_over_domains(number: int) -> None:
    candidates = [
        candidate(f"l{n}", region=region)
        for n, region in enumerate(["north"] * 5 + ["south"] * 5 + ["west"] * 5)
    ]
    chosen = choose(Strategy(number, (Spread("region", 1),)), candidates)
    counts = Counter(each.labels["region"] for each in candidates if each.ref in chosen)
    assert len(chosen) == number
    assert max(counts.values()) - min(counts[r] for r in ("north", "south", "west")) <= 1


def test_a_domain_without_candidates_left_holds_no_other_back() -> None:
    candidates = [candidate("a", region="north")]
    candidates += [candidate(f"b{n}", region="south") for n in range(5)]
    chosen = choose(Strategy(4, (Spread("region", 1),)), candidates)
    assert names(chosen) == ["a", "b0", "b1", "b2"]


def test_who_lacks_the_spread_label_is_passed_over_unless_there_already() -> None:
    candidates = [candidate("a"), candidate("b", region="x"), candidate("c", region="x")]
    strategy = Strategy(2, (Spread("region", 1),))
    assert names(choose(strategy, candidates)) == ["b", "c"]
    assert names(choose(strategy, candidates, {candidates[0].ref})) == ["a", "b"]


def test_ready_newcomers_come_before_others_and_soft_taints_last() -> None:
    candidates = [
        candidate("a", available=False),
        candidate("b", taints="x:PreferNoSchedule"),
        candidate("c"),
        candidate("d"),
    ]
    assert names(choose(Strategy(3), candidates)) == ["a", "c", "d"]


def test_no_schedule_keeps_newcomers_away_and_no_execute_everybody() -> None:
    kept = candidate("a", taints="k=v:NoSchedule")
    driven = candidate("b", taints="k=v:NoExecute")
    present = {kept.ref, driven.ref}
    assert names(choose(Strategy(), [kept, driven], present)) == ["a"]
    assert names(choose(Strategy(), [kept, driven])) == []


def test_fewer_wished_for_keeps_the_spread() -> None:
    candidates = [candidate(name, region=name[0]) for name in ("a1", "a2", "b1", "b2", "c1")]
    present = {each.ref for each in candidates}
    strategy = Strategy(3, (Spread("region", 1),))
    assert names(choose(strategy, candidates, present)) == ["a1", "b1", "c1"]


def test_a_shortage_is_reported_by_reasons() -> None:
    candidates = [
        candidate("a"),
        candidate("b", available=False),
        candidate("c", taints="k=v:NoSchedule"),
        candidate("d", taints="k=v:NoSchedule"),
    ]
    found = choice(Strategy(3, only_ready=True), candidates)
    assert found.shortage == (
        "1 location(s) had no ready and schedulable SyncTarget, "
        "2 location(s) had untolerated taint {k=v:NoSchedule}"
    )
    assert choice(Strategy(1), candidates).shortage == ""


# -- plugins of others -------------------------------------------------------------------------


class Plugin:
    def __init__(self, args: Any, table: Any) -> None:
        self.table = table


class Named(Plugin):
    name = "Named"

    def pre_filter(self, state: Any, wish: Wish) -> tuple[PreFilterResult, None]:
        return PreFilterResult(frozenset({"c-b|b", "nowhere|x"})), None


class Unwilling(Plugin):
    name = "Unwilling"

    def pre_filter(self, state: Any, wish: Wish) -> tuple[None, Status]:
        return None, unresolvable("nothing goes anywhere today")


class Broken(Plugin):
    name = "Broken"

    def filter(self, state: Any, wish: Wish, location: Candidate) -> Status | None:
        raise ZeroDivisionError("oh")


def test_the_example_filters_and_scores_with_the_rest() -> None:
    candidates = [
        candidate("a", capacity="10"),
        candidate("b", capacity="90"),
        candidate("c", capacity="0"),
        candidate("d", capacity="100", taints="k:NoSchedule"),
    ]
    assert names(choose(Strategy(1), candidates, NOBODY, PreferCapacity)) == ["b"]
    text = choice(Strategy(3), candidates, NOBODY, PreferCapacity).shortage
    assert text == (
        "1 location(s) had untolerated taint {k:NoSchedule}, 1 location(s) were being emptied"
    )


def test_installing_a_plugin_is_what_enables_it() -> None:
    entry = EntryPoint(
        "PreferCapacity",
        "examples.placement_plugin.prefer_capacity:PreferCapacity",
        ENTRY_POINT_GROUP,
    )
    registry = placement_registry([entry])
    refs = placement_profile(registry).at("multiPoint").enabled
    assert [(ref.name, ref.weight) for ref in refs] == [
        ("LocationReady", 1),
        ("LocationTaints", 3),
        ("LocationSpread", 1),
        ("PreferCapacity", 1),
    ]


def test_a_plugin_may_name_the_only_locations_worth_a_look_or_refuse_at_all() -> None:
    candidates = [candidate(name) for name in "abc"]
    assert names(choose(Strategy(), candidates, NOBODY, Named)) == ["b"]
    assert choice(Strategy(2), candidates, NOBODY, Unwilling) == (
        [],
        "3 nothing goes anywhere today",
    )


def test_what_a_plugin_raises_says_whose_fault_it_was() -> None:
    with pytest.raises(PluginRaised, match=r'plugin "Broken" raised in Filter: ZeroDivisionError'):
        choose(Strategy(), [candidate("a")], NOBODY, Broken)


# -- in the index ------------------------------------------------------------------------------


def test_nothing_is_made_before_a_placement_asks() -> None:
    made: list[Inventory] = []

    def making(inventory: Inventory) -> LocationChooser:
        made.append(inventory)
        return LocationChooser(inventory)

    index = DestinationTable(making)
    index.put_location(location_of(building.location("a", {}, {})))
    index.put_placement(placement_of(building.placement("plain", {})))
    assert not made
    some = building.placement("some", {}, strategy={"numberOfLocations": 1})
    index.put_placement(placement_of(some))
    index.put_placement(placement_of({**some, "metadata": {**some["metadata"], "name": "more"}}))
    assert made == [index.inventory]


def test_the_index_reports_the_chooser_of_everything_it_depends_on() -> None:
    index = DestinationTable(LocationChooser)
    strategy = {"numberOfLocations": 1, "onlyReady": True}
    index.put_placement(placement_of(building.placement("one", {}, strategy=strategy)))
    where = edge_placement_ref("wmw", "one")
    for name in ("a", "b"):
        index.put_location(location_of(building.location(name, {}, {"matchLabels": {"id": name}})))
        index.put_sync_target(sync_target_of(building.sync_target(name, {"id": name})))
    assert index.destinations(where) == []
    alive = building.sync_target("b", {"id": "b"}, ready=True)
    assert index.put_sync_target(sync_target_of(alive)) == {where}
    assert [each.location for each in index.destinations(where)] == ["b"]
    assert index.chosen(where).shortage == ""
    assert index.remove_sync_target(sync_target_ref("imw", "b")) == {where}
    assert index.destinations(where) == []
    index.put_sync_target(sync_target_of(alive))
    index.remove_location(location_ref("imw", "b"))
    assert index.chosen(where).shortage == "1 location(s) had no ready and schedulable SyncTarget"


def test_what_an_edit_would_change_is_reported_of_choices_too_and_leaves_no_trace() -> None:
    index = DestinationTable(LocationChooser)
    strategy = {"numberOfLocations": 1}
    index.put_placement(placement_of(building.placement("one", {}, strategy=strategy)))
    where = edge_placement_ref("wmw", "one")
    for name in ("a", "b"):
        index.put_location(location_of(building.location(name, {}, {"matchLabels": {"id": name}})))
        index.put_sync_target(sync_target_of(building.sync_target(name, {"id": name})))
    before = index.destinations(where)
    assert [each.location for each in before] == ["a"]
    gone = Remove(Location, location_ref("imw", "a"))
    (difference,) = what_if(index, [gone], lambda _: frozenset(before))
    assert [each.location for each in difference.added] == ["b"]
    assert [each.location for each in difference.removed] == ["a"]
    assert index.destinations(where) == before
