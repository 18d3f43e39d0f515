"""What is held is grouped by whom it concerns, and an id stands for exactly what is in a group."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from skerry.logic.placement.holds import Group, Holds, Refusal, Refusals

SHOP, BANK = Group("imw", "shop"), Group("imw", "bank")
_groups = st.sampled_from((SHOP, BANK, Group("other", "shop")))
_elements = st.frozensets(st.tuples(st.sampled_from("pq"), st.sampled_from("abc")), max_size=4)
_changes = st.lists(
    st.tuples(st.sampled_from(("one", "two")), st.dictionaries(_groups, _elements, max_size=2)),
    max_size=12,
)


def owned(owner: str, found: dict[Group, frozenset[Any]]) -> dict[Group, frozenset[Any]]:
    """Return what an owner brings: elements are its own."""
    return {g: frozenset((owner, *each) for each in e) for g, e in found.items() if e}


@given(_changes)
def test_groups_and_ids_depend_on_what_is_held_and_not_on_how_it_came_there(changes: Any) -> None:
    holds: Holds[str, tuple[str, ...]] = Holds("d-")
    last: dict[str, dict[Group, frozenset[Any]]] = {}
    for owner, found in changes:
        holds.replace(owner, owned(owner, found))
        last[owner] = owned(owner, found)
    afresh: Holds[str, tuple[str, ...]] = Holds("d-")
    for owner in sorted(last, reverse=True):
        afresh.replace(owner, last[owner])
    for inventory in ("imw", "other"):
        assert holds.groups(inventory) == afresh.groups(inventory)
        for group in holds.groups(inventory):
            assert holds.id(group) == afresh.id(group)
            assert holds.elements(group) == afresh.elements(group)
            assert holds.count(group) == len(holds.elements(group)) > 0


@given(_changes)
def test_an_inventory_is_told_of_exactly_when_something_of_it_differs(changes: Any) -> None:
    holds: Holds[str, tuple[str, ...]] = Holds("d-")
    for owner, found in changes:
        before = {i: [holds.id(g) for g in holds.groups(i)] for i in ("imw", "other")}
        changed = holds.replace(owner, owned(owner, found))
        for inventory, ids in before.items():
            if ids != [holds.id(g) for g in holds.groups(inventory)]:
                assert inventory in changed


def test_one_element_more_or_less_is_another_id() -> None:
    holds: Holds[str, tuple[str, ...]] = Holds("d-")
    ids = []
    for elements in ({("p", "a")}, {("p", "a"), ("p", "b")}, {("p", "b")}, {("p", "a")}):
        holds.replace("p", {SHOP: frozenset(elements)})
        ids.append(holds.id(SHOP))
    assert len(set(ids)) == 3
    assert ids[0] == ids[3]
    assert holds.id(SHOP) != holds.id(BANK)
    assert all(each.startswith("d-") for each in ids)


def test_elements_are_told_apart_by_their_members_and_not_by_their_text() -> None:
    holds: Holds[str, tuple[str, ...]] = Holds("d-")
    holds.replace("p", {SHOP: frozenset({("a", "bc")}), BANK: frozenset({("ab", "c")})})
    other: Holds[str, tuple[str, ...]] = Holds("d-")
    other.replace("p", {SHOP: frozenset({("ab", "c")})})
    assert holds.id(SHOP) != other.id(SHOP)


def test_refusals_are_counted_by_group() -> None:
    refusals: Refusals[str] = Refusals()
    assert refusals.replace("p", {SHOP: Refusal(3, ("a", "b")), BANK: Refusal(1)}) == {"imw"}
    refusals.replace("q", {SHOP: Refusal(2, ("c",))})
    assert (refusals.count(SHOP), refusals.owners(SHOP)) == (5, 2)
    assert refusals.names(SHOP, 5) == ["a", "b", "c"]
    assert refusals.names(SHOP, 1) == ["a"]
    assert refusals.replace("p", {SHOP: Refusal(3, ("a", "b")), BANK: Refusal(1)}) == set()
    refusals.replace("p", {})
    assert refusals.groups("imw") == [SHOP]
    assert (refusals.count(SHOP), refusals.names(SHOP, 5)) == (2, ["c"])
    refusals.replace("q", {})
    assert refusals.groups("imw") == []
