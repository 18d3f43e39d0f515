"""Applying the plan reaches the goal, and a second plan is empty."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from skerry.api.edge import SOURCE_PLACEMENT, SliceOwner, edge_placement_ref
from skerry.api.objects import Object
from skerry.controllers.edge_scheduler.decide import decide
from skerry.controllers.edge_scheduler.observed import Gone, Observed, Result
from skerry.logic.fleet.placement.records import Destination
from skerry.logic.fleet.placement.slices import (
    lean_slice,
    member,
    new_slice,
    page_names,
    unpacked_members,
)
from skerry.logic.machinery.plan import Create, Delete, Plan, Update

PLACEMENT, OWNER = edge_placement_ref("wmw", "web"), SliceOwner("web", "uid-web")


def destinations(*names: str) -> tuple[Destination, ...]:
    return tuple(Destination("imw", name, name, f"uid-{name}") for name in names)


def cached(obj: Object, version: str = "7") -> Object:
    metadata = {"uid": f"uid-{obj['metadata']['name']}", "resourceVersion": version}
    return lean_slice({**obj, "metadata": {**obj["metadata"], **metadata}})


def piece(name: str, *members: str, owner: SliceOwner = OWNER) -> Object:
    return cached(new_slice(name, owner, destinations(*members)))


def ownerless(name: str, *members: str, **labels: str) -> Object:
    found = piece(name, *members)
    del found["metadata"]["ownerReferences"]
    found["metadata"]["labels"] = labels
    return found


def observed(*names: str, slices: tuple[Object, ...] = (), fresh: int = 0) -> Observed:
    present = {each["metadata"]["name"]: each for each in slices}
    allowed = page_names("web", present, fresh, lambda _: False)
    return Observed(PLACEMENT, OWNER, Result(1), destinations(*names), present, tuple(allowed))


def applied(before: Observed, plan: Plan) -> Observed:
    """Return what would be observed after *plan*."""
    present = dict(before.slices)
    for action in plan:
        if isinstance(action, Create | Update):
            present[action.target.name] = cached(action.object, "8")
        elif isinstance(action, Delete):
            del present[action.target.name]
    return replace(before, slices=present)


def test_a_missing_slice_is_created_with_its_owner() -> None:
    (action,) = decide(observed("a"))
    assert isinstance(action, Create)
    assert action.exclusive
    assert action.object["metadata"] == {"name": "web", "ownerReferences": [OWNER.reference()]}
    assert action.target.cluster == "wmw"


def test_a_placement_without_destinations_has_one_empty_slice() -> None:
    (action,) = decide(observed())
    assert isinstance(action, Create)
    assert (action.target.name, action.object["destinations"]) == ("web", [])


def test_a_slice_that_says_the_same_is_not_written() -> None:
    assert not decide(observed("a", "b", slices=(piece("web", "a", "b"),)))


def test_a_changed_destination_replaces_the_slice_as_it_was_read() -> None:
    (action,) = decide(observed("a", slices=(piece("web", "b"),)))
    assert isinstance(action, Update)
    assert not action.overwrite
    assert action.object["metadata"]["resourceVersion"] == "7"
    assert action.reason == "DestinationsChanged"


def test_order_is_part_of_what_a_slice_says() -> None:
    assert decide(observed("a", "b", slices=(piece("web", "b", "a"),)))


def test_a_slice_that_lost_its_owner_gets_it_back() -> None:
    (action,) = decide(observed("a", slices=(ownerless("web", "a"),)))
    assert isinstance(action, Update)
    assert action.reason == "OwnerChanged"
    assert action.object["destinations"] == [each.as_object() for each in destinations("a")]


def test_a_further_slice_that_lost_owner_and_label_is_restored_where_it_is() -> None:
    (action,) = decide(observed("a", "b", slices=(piece("web", "a"), ownerless("web-2", "b"))), 1)
    assert isinstance(action, Update)
    assert (action.target.name, action.reason) == ("web-2", "OwnerChanged")
    assert action.object["metadata"]["labels"] == {SOURCE_PLACEMENT: "web"}


def test_what_stands_on_a_page_that_nobody_reads_is_written_before_anything_goes() -> None:
    # To readers, "b" is on the foreign page only.
    foreign = piece("extra", "b")
    plan = decide(observed("a", "b", slices=(piece("web", "a"), foreign), fresh=1), 1)
    create, delete = plan
    assert isinstance(create, Create)
    assert isinstance(delete, Delete)
    assert (create.target.name, delete.target.name, plan.receivers) == ("web-2", "extra", 1)


def test_what_stands_twice_is_given_up_only_after_its_keeper_was_written_as_it_was_read() -> None:
    slices = (piece("web", "a", "b"), piece("web-2", "b", "c"), piece("web-3", "a"))
    plan = decide(observed("a", "b", "c", slices=slices))
    keeper, shrinking, surplus = plan.actions
    assert plan.receivers == 1, "the others come after it, one by one"
    assert isinstance(keeper, Update)
    assert (keeper.target.name, keeper.reason) == ("web", "DestinationsKept")
    assert keeper.object["metadata"]["resourceVersion"] == "7", "refused where it is not there"
    assert not keeper.overwrite
    assert isinstance(shrinking, Update)
    assert (shrinking.target.name, shrinking.reason) == ("web-2", "DestinationsChanged")
    assert [each["syncTargetName"] for each in shrinking.object["destinations"]] == ["c"]
    assert isinstance(surplus, Delete)
    assert surplus.target.name == "web-3"


def test_an_invalid_selector_touches_no_slice() -> None:
    before = observed(slices=(piece("web", "a"),))
    assert not decide(replace(before, result=Result(1, errors=("bad",))))


def test_the_slices_of_a_placement_that_is_gone_are_left_alone() -> None:
    plan = decide(Gone(PLACEMENT))
    assert not plan
    assert plan.observed == Gone(PLACEMENT)


def test_a_surplus_slice_of_ours_goes_and_a_strangers_stays() -> None:
    stranger = piece("web-3", "x", owner=SliceOwner("web", "another-life"))
    plan = decide(observed("a", slices=(piece("web", "a"), piece("web-2", "x"), stranger)))
    (action,) = plan
    assert isinstance(action, Delete)
    assert action.target.name == "web-2"
    assert (action.uid, action.resource_version) == ("uid-web-2", "7")


def test_an_ownerless_slice_goes_if_name_and_label_are_ours_and_stays_if_written_by_hand() -> None:
    label = {SOURCE_PLACEMENT: "web"}
    restored, by_hand = ownerless("web-2", "x", **label), ownerless("more", "x", **label)
    (action,) = decide(observed("a", slices=(piece("web", "a"), restored, by_hand)))
    assert isinstance(action, Delete)
    assert action.target.name == "web-2"


_names = st.lists(st.sampled_from("abcdefg"), unique=True).map(sorted)


@given(_names, _names, st.booleans(), st.integers(1, 3))
def test_the_plan_reaches_the_goal_and_the_next_one_is_empty(
    wanted: list[str], present: list[str], owned: bool, limit: int
) -> None:
    owner = OWNER if owned else SliceOwner("web", "another-life")
    names = page_names("web", (), len(present), lambda _: False)
    chunks = [present[at : at + limit] for at in range(0, max(len(present), 1), limit)]
    there = tuple(
        piece(name, *chunk, owner=owner) for name, chunk in zip(names, chunks, strict=False)
    )
    before = observed(*wanted, slices=there, fresh=len(wanted))
    after = applied(before, decide(before, limit))
    assert not decide(after, limit)
    owners = [OWNER.reference()]
    right = [e for e in after.slices.values() if e["metadata"]["ownerReferences"] == owners]
    members = sorted(number for each in right for number in unpacked_members(each["members"]))
    assert members == sorted(map(member, destinations(*wanted)))
