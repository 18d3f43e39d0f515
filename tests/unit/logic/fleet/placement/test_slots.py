"""A slot is one destination's for ever, whatever comes, goes and is cut off between two writes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from skerry.api.edge import NEXT_SLOT, SliceOwner, edge_placement_ref
from skerry.api.objects import Object
from skerry.controllers.edge_scheduler.decide import decide
from skerry.controllers.edge_scheduler.observed import Observed, Result
from skerry.logic.fleet.placement.records import Destination
from skerry.logic.fleet.placement.slices import (
    Assigned,
    assigned_in,
    lean_slice,
    member,
    new_slice,
    page_names,
)
from skerry.logic.fleet.placement.slots import Slots, next_known, slots_in
from skerry.logic.machinery.plan import Action, Create, Delete, Update

OWNER = SliceOwner("web", "uid-web")


def destination(name: str) -> Destination:
    return Destination("imw", name, name, f"uid-{name}")


def lean(obj: Object) -> Object:
    name = obj["metadata"]["name"]
    return lean_slice({**obj, "metadata": {**obj["metadata"], "uid": name, "resourceVersion": "1"}})


def numbered(slots: Slots, wanted: Iterable[int]) -> Slots:
    """Return slots for exactly the members *wanted*: newcomers get new ones, in their order."""
    following = slots.next
    found: dict[int, Assigned] = {}
    for each in wanted:
        held = slots.assigned.get(each)
        if held is None:
            held, following = Assigned(following), following + 1
        found[each] = held
    return Slots(found, following)


def test_the_highest_number_counts_that_any_page_says_or_holds() -> None:
    a, b = destination("a"), destination("b")
    first = lean(new_slice("web", OWNER, [a], {a: Assigned(4, 2)}))
    second = lean(new_slice("web-2", OWNER, [b], {b: Assigned(2)}))
    assert slots_in([first, second]) == Slots(
        {member(a): Assigned(4, 2), member(b): Assigned(2)}, 5
    )
    second["metadata"]["annotations"] = {NEXT_SLOT: "12"}
    assert slots_in([first, second]).next == 12


def test_an_annotation_that_is_no_number_counts_as_none() -> None:
    for text in ("", "-3", "x", "²", "9" * 30):
        piece = lean(new_slice("web", OWNER, []))
        piece["metadata"]["annotations"] = {NEXT_SLOT: text}
        assert next_known(piece) == 1


def observed(names: list[str], slices: dict[str, Object]) -> Observed:
    allowed = page_names("web", slices, len(names), lambda _: False)
    where = tuple(map(destination, names))
    ref = edge_placement_ref("wmw", "web")
    return Observed(ref, OWNER, Result(1), where, slices, tuple(allowed))


def apply(slices: dict[str, Object], action: Action) -> None:
    if isinstance(action, Delete):
        del slices[action.target.name]
    elif isinstance(action, Create | Update):
        slices[action.target.name] = lean(action.object)


_wanted = st.lists(st.sampled_from("abcdefg"), unique=True).map(sorted)


@given(st.lists(st.tuples(_wanted, st.integers(0, 4)), max_size=12), st.integers(1, 3))
def test_no_number_is_ever_given_twice_though_writes_are_cut_off(
    steps: list[tuple[list[str], int]], limit: int
) -> None:
    slices: dict[str, Object] = {}
    owners: dict[int, int] = {}
    # Whoever leaves and returns is somebody new.
    generation: dict[str, int] = {}
    held: set[str] = set()
    for names, written in steps:
        union = {name for name in held if name in names}
        for name in set(names) - union:
            generation[name] = generation.get(name, 0) + 1
        known = [f"{name}{generation[name]}" for name in names]
        before = observed(known, slices)
        slots = numbered(slots_in(slices.values()), map(member, before.destinations))
        for action in list(decide(before, limit, slots.assigned))[:written]:
            apply(slices, action)
        for each, given_to in slots_in(slices.values()).assigned.items():
            assert owners.setdefault(given_to.slot, each) == each
        held = set(names)


@given(_wanted, st.integers(1, 3), st.integers(0, 3))
def test_with_slots_the_plan_reaches_the_goal_and_the_next_is_empty(
    names: list[str], limit: int, revision: int
) -> None:
    slices: dict[str, Object] = {}
    for action in decide(observed(names, slices), limit):
        apply(slices, action)
    before = observed(names, slices)
    slots = numbered(slots_in(slices.values()), map(member, before.destinations))
    wanted = {each: given._replace(revision=revision) for each, given in slots.assigned.items()}
    plan = decide(before, limit, wanted)
    pages = dict(slices)
    for action in plan:
        assert isinstance(action, Update)
        assert action.reason == "RevisionsChanged"
        apply(slices, action)
    assert not decide(observed(names, slices), limit, wanted)
    assert slots_in(slices.values()).assigned == wanted
    # Nobody moves, and slots are in order.
    assert {n: p["members"] for n, p in pages.items()} == {
        n: p["members"] for n, p in slices.items()
    }
    assert [wanted[member(destination(name))].slot for name in names] == list(
        range(1, len(names) + 1)
    )


def test_a_page_without_a_rollout_says_nothing_of_slots_any_more_but_which_comes_next() -> None:
    slices: dict[str, Object] = {}
    before = observed(["a"], slices)
    for action in decide(before, 5, {member(destination("a")): Assigned(6, 2)}):
        apply(slices, action)
    (action,) = decide(replace(before, slices=slices), 5)
    assert isinstance(action, Update)
    assert action.object["destinations"] == [destination("a").as_object()]
    assert action.object["metadata"]["annotations"] == {NEXT_SLOT: "7"}


def test_the_first_page_learns_what_comes_next_before_another_goes() -> None:
    a, b = destination("a"), destination("b")
    first = lean(new_slice("web", OWNER, [a], {a: Assigned(1)}))
    second = lean(new_slice("web-2", OWNER, [b], {b: Assigned(2)}))
    plan = decide(observed(["a"], {"web": first, "web-2": second}), 1, {member(a): Assigned(1)})
    update, delete = plan
    assert isinstance(update, Update)
    assert isinstance(delete, Delete)
    assert (update.object["metadata"]["annotations"], plan.receivers) == ({NEXT_SLOT: "3"}, 1)


@given(st.sampled_from([2**31, 2**40, 2**63 - 1, -1, 0]))
def test_a_number_that_no_placement_comes_to_is_no_slot(slot: int) -> None:
    """Anybody may write a slice."""
    obj = new_slice("web", OWNER, [destination("a"), destination("b")])
    obj["destinations"][0] |= {"slot": slot, "revision": 3}
    obj["destinations"][1] |= {"slot": 2**31 - 1}
    assert assigned_in(obj) == [None, Assigned(2**31 - 1)]
    obj["destinations"][1] |= {"slot": 7}
    obj["metadata"]["annotations"] = {NEXT_SLOT: str(2**31)}
    assert slots_in([lean(obj)]) == Slots({member(destination("b")): Assigned(7)}, 8)
