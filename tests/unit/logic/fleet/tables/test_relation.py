from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skerry.kit.invariant import InvariantError
from skerry.logic.fleet.tables.flow import Dataflow
from skerry.logic.fleet.tables.relation import Relation
from skerry.logic.fleet.tables.table import Change

Pair = tuple[str, str]
pairs = st.tuples(st.sampled_from("abc"), st.sampled_from("xyz"))


def relation(*, reverse: bool = True) -> Relation[str, str, int]:
    found: Relation[str, str, int] = Dataflow().relation("pairs", reverse=reverse)
    return found


@settings(deadline=None)
@given(st.lists(st.tuples(pairs, st.one_of(st.none(), st.integers(0, 3)))))
def test_a_relation_is_the_same_from_either_side(writes: list[tuple[Pair, int | None]]) -> None:
    found, expected = relation(), dict[Pair, int]()
    for (a, b), row in writes:
        if row is None:
            found.drop_pair(a, b)
            expected.pop((a, b), None)
        else:
            found.put_pair(a, b, row)
            expected[a, b] = row

    assert dict(found.items()) == expected
    assert list(found) == sorted(expected)
    assert len(found) == len(expected)
    assert found.firsts() == sorted({a for a, _ in expected})
    for a in "abc":
        assert dict(found.of(a)) == {b: row for (x, b), row in expected.items() if x == a}
    for b in "xyz":
        assert set(found.having(b)) == {a for a, y in expected if y == b}
    for pair in [(a, b) for a in "abc" for b in "xyz"]:
        assert found.get(pair) == expected.get(pair)
        assert (pair in found) == (pair in expected)


def test_the_rows_of_one_key_are_replaced_by_exactly_those_given() -> None:
    found = relation()
    found.replace("a", {"x": 1, "y": 2})
    found.put_pair("b", "x", 1)
    found.before.clear()

    found.replace("a", {"y": 3, "z": 4})

    assert found.changes() == [
        Change(("a", "x"), 1, None),
        Change(("a", "y"), 2, 3),
        Change(("a", "z"), None, 4),
    ]
    assert found.at("b", "x") == 1


def test_what_is_no_pair_is_in_no_relation() -> None:
    assert "a" not in relation()
    assert ("a",) not in relation()


def test_the_way_back_is_only_asked_where_it_is_kept() -> None:
    with pytest.raises(InvariantError, match="pairs keeps no index"):
        relation(reverse=False).having("x")


def test_the_way_back_is_asked_for_before_there_are_rows() -> None:
    found = relation(reverse=False)
    found.put_pair("a", "x", 1)

    with pytest.raises(InvariantError, match="pairs has rows"):
        found.keep_reverse()


def test_a_derived_relation_is_written_by_its_operator_alone() -> None:
    flow = Dataflow()
    left, right = flow.table("left"), flow.table("right")
    joined = flow.join("joined", left, right, lambda *_: 0, lambda *_: 0, lambda *_: 1)

    with pytest.raises(InvariantError, match="joined is derived"):
        joined.put_pair("a", "b", 1)
    with pytest.raises(InvariantError, match="joined is derived"):
        joined.drop_pair("a", "b")
