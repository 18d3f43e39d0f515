"""Applying the plan reaches the goal, and a second plan is empty."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from skerry.api.edge import SliceOwner, edge_placement_ref
from skerry.api.objects import Object
from skerry.controllers.edge_scheduler.decide import decide
from skerry.controllers.edge_scheduler.observe import Observed, Result
from skerry.controllers.edge_scheduler.written import HeldSlice
from skerry.logic.fleet.placement.records import Destination
from skerry.logic.fleet.placement.slices import digest_of, new_slice, wanted_slices
from skerry.logic.machinery.plan import Create, Delete, Plan, Update

PLACE, OWNER = edge_placement_ref("wmw", "web"), SliceOwner("web", "uid-web")


def destinations(*names: str) -> tuple[Destination, ...]:
    return tuple(Destination("imw", name, name, f"uid-{name}") for name in names)


def held(obj: Object, version: str = "7") -> HeldSlice:
    metadata = {"uid": f"uid-{obj['metadata']['name']}", "resourceVersion": version}
    return HeldSlice({**obj["metadata"], **metadata}, digest_of(obj["destinations"]))


def observed(*names: str, **present: HeldSlice) -> Observed:
    found = {name.replace("_", "-"): value for name, value in present.items()}
    return Observed(PLACE, OWNER, Result(1), destinations(*names), found)


def right(*names: str) -> HeldSlice:
    return held(new_slice(wanted_slices("web", destinations(*names))[0], OWNER))


def applied(before: Observed, plan: Plan) -> Observed:
    """Return what would be observed after *plan*."""
    present = dict(before.slices)
    for action in plan:
        if isinstance(action, Create | Update):
            present[action.target.name] = held(action.object, "8")
        elif isinstance(action, Delete):
            del present[action.target.name]
    return replace(before, slices=present)


def test_a_missing_slice_is_created_with_its_owner() -> None:
    (action,) = decide(observed("a"))
    assert isinstance(action, Create)
    assert action.exclusive
    assert action.object["metadata"] == {
        "name": "web",
        "ownerReferences": [OWNER.reference()],
    }
    assert action.target.cluster == "wmw"


def test_a_slice_that_says_the_same_is_not_written() -> None:
    assert not decide(observed("a", "b", web=right("a", "b")))


def test_a_changed_destination_replaces_the_slice_as_it_was_read() -> None:
    (action,) = decide(observed("a", web=right("b")))
    assert isinstance(action, Update)
    assert not action.overwrite
    assert action.object["metadata"]["resourceVersion"] == "7"
    assert action.reason == "DestinationsChanged"


def test_order_is_part_of_what_a_slice_says() -> None:
    wrong = new_slice(wanted_slices("web", destinations("b", "a"))[0], OWNER)
    assert decide(observed("a", "b", web=held(wrong)))


def test_a_slice_that_lost_its_owner_gets_it_back() -> None:
    obj = new_slice(wanted_slices("web", destinations("a"))[0], OWNER)
    del obj["metadata"]["ownerReferences"]
    (action,) = decide(observed("a", web=held(obj)))
    assert isinstance(action, Update)
    assert action.reason == "OwnerChanged"


def test_an_invalid_selector_touches_no_slice() -> None:
    broken = replace(observed(web=right("a")), result=Result(1, errors=("bad",)))
    assert not decide(broken)


def test_a_surplus_slice_of_ours_goes_and_a_strangers_stays() -> None:
    obj = new_slice(wanted_slices("web", destinations("x"))[0], OWNER)
    obj["metadata"]["name"] = "web-2"
    stranger = new_slice(
        wanted_slices("web", destinations("x"))[0], SliceOwner("web", "another-life")
    )
    stranger["metadata"]["name"] = "web-3"
    plan = decide(observed("a", web=right("a"), web_2=held(obj), web_3=held(stranger)))
    (action,) = plan
    assert isinstance(action, Delete)
    assert action.target.name == "web-2"
    assert (action.uid, action.resource_version) == ("uid-web-2", "7")


_names = st.lists(st.sampled_from("abcdefg"), unique=True).map(sorted)


@given(_names, _names, st.booleans(), st.integers(1, 3), st.sets(st.sampled_from(["web-2"])))
def test_the_plan_reaches_the_goal_and_the_next_one_is_empty(
    wanted: list[str], present: list[str], owned: bool, per_slice: int, taken: set[str]
) -> None:
    owner = OWNER if owned else SliceOwner("web", "another-life")
    there = wanted_slices("web", destinations(*present), per_slice=per_slice)
    before = Observed(
        PLACE,
        OWNER,
        Result(1),
        destinations(*wanted),
        {each.name: held(new_slice(each, owner)) for each in there},
        frozenset(taken),
    )
    after = applied(before, decide(before, per_slice))
    assert not decide(after, per_slice)
    ours = wanted_slices("web", destinations(*wanted), frozenset(taken), per_slice)
    goal = {each.name: each.digest for each in ours}
    assert goal.items() <= {name: each.digest for name, each in after.slices.items()}.items()
