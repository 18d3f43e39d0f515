"""Labels find the selectors they satisfy as a scan would find them."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from skerry.logic.fleet.placement.demands import DemandIndex
from skerry.logic.fleet.placement.terms import Terms, matches, read_selector
from tests.kit.chain import building


def terms_of(selector: Any) -> Terms:
    found = read_selector(selector, "").terms
    assert found is not None
    return found


_owned = st.lists(st.tuples(building.selectors.map(terms_of), st.integers(0, 3)), max_size=8)


@given(_owned, st.data(), building.labels)
def test_labels_find_the_owners_of_what_they_satisfy(
    owned: list[tuple[Terms, int]], data: st.DataObject, labels: dict[str, str]
) -> None:
    index, there = DemandIndex(), set[tuple[Terms, int]]()
    numbers = {}
    for terms, owner in owned:
        numbers[terms] = index.add(terms, owner)
        there.add((terms, owner))
    for terms, owner in (
        data.draw(st.sets(st.sampled_from(sorted(there, key=repr)))) if there else ()
    ):
        index.remove(numbers[terms], owner)
        there.discard((terms, owner))
    satisfied = index.satisfied(labels)
    assert {index.terms(each) for each in satisfied} == {t for t, _ in there if matches(t, labels)}
    assert set(index.owners_of(satisfied)) == {o for t, o in there if matches(t, labels)}
    assert len(index) == len({terms for terms, _ in there}), "equal selectors are one"
    assert set(index) == {numbers[terms] for terms, _ in there}
