"""Things are found by their labels as a scan would find them, whatever their history."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap

from skerry.logic.fleet.placement.labels import LabelIndex
from skerry.logic.fleet.placement.terms import matches, read_selector
from tests.kit.chain import building

_edits = st.lists(st.tuples(st.integers(0, 4), st.one_of(st.none(), building.labels)), max_size=12)


@given(_edits, building.selectors, st.sets(st.integers(0, 4)))
def test_a_selector_finds_what_a_scan_finds(
    edits: list[tuple[int, Any]], selector: Any, within: set[int]
) -> None:
    index, there = LabelIndex(), dict[int, Any]()
    for number, labels in edits:
        if labels is not None:
            index.put(number, labels)
            there[number] = labels
        elif number in there:
            index.remove(number)
            del there[number]
    terms = read_selector(selector, "").terms
    assert terms is not None
    wanted = {number for number, labels in there.items() if matches(terms, labels)}
    assert set(index.select(terms)) == wanted
    assert set(index.select(terms, BitMap(within & there.keys()))) == wanted & within
    assert {number: index.labels(number) for number in there} == there


def test_what_is_found_may_be_changed_without_harm() -> None:
    index = LabelIndex()
    index.put(1, {})
    index.select(()).add(7)
    assert set(index.select(())) == {1}
