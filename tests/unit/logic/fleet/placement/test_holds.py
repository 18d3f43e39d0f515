"""What is held is grouped by whom it concerns, and an id stands for exactly what is in a group."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from skerry.logic.fleet.placement.holds import Group, Holds, Refusal, Refusals

SHOP, BANK = Group("imw", "shop"), Group("imw", "bank")
_groups = st.sampled_from((SHOP, BANK, Group("other", "shop"), None))
_elements = st.tuples(st.sampled_from("pq"), st.sampled_from("abc"))
_changes = st.lists(st.tuples(_elements, _groups), max_size=15)
Element = tuple[str, ...]


@given(_changes)
def test_groups_and_ids_depend_on_what_is_held_and_not_on_how_it_came_there(changes: Any) -> None:
    holds: Holds[Element] = Holds("d-")
    last: dict[Element, Group] = {}
    for element, group in changes:
        before = {i: [holds.id(g) for g in holds.groups(i)] for i in ("imw", "other")}
        changed = holds.put(element, group)
        last[element] = group
        for inventory, ids in before.items():
            assert (ids != [holds.id(g) for g in holds.groups(inventory)]) == (inventory in changed)
    afresh: Holds[Element] = Holds("d-")
    for element in sorted(last, reverse=True):
        afresh.put(element, last[element])
    for inventory in ("imw", "other"):
        assert holds.groups(inventory) == afresh.groups(inventory)
        for each in holds.groups(inventory):
            assert holds.id(each) == afresh.id(each)
            assert holds.elements(each) == {e for e, g in last.items() if g == each}


def test_one_element_more_or_less_is_another_id() -> None:
    holds: Holds[Element] = Holds("d-")
    a, b = ("p", "a"), ("p", "b")
    ids = []
    for element, group in ((a, SHOP), (b, SHOP), (a, None), (b, None), (a, SHOP)):
        holds.put(element, group)
        ids.append(holds.id(SHOP))
    assert len(set(ids)) == 4
    assert ids[0] == ids[4]
    assert holds.id(SHOP) != holds.id(BANK)
    assert all(each.startswith("d-") for each in ids)


def test_elements_are_distinguished_by_their_members_and_not_by_their_text() -> None:
    one: Holds[Element] = Holds("d-")
    one.put(("a", "bc"), SHOP)
    other: Holds[Element] = Holds("d-")
    other.put(("ab", "c"), SHOP)
    assert one.id(SHOP) != other.id(SHOP)


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
