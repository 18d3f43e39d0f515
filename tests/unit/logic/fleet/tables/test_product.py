"""Products that are never stored, and folds over them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.logic.fleet.tables.flow import Dataflow
from skerry.logic.fleet.tables.relation import Relation
from skerry.logic.fleet.tables.table import Change, Table
from tests.kit.chain.table_model import MarkSums, Sum, marks_of

_placement, _item, _edge = (st.sampled_from(each) for each in (["p", "q"], ["api", "web"], "fgk"))
_number = st.one_of(st.none(), st.integers(0, 3))
# Writes to the factors, to what is known of a pair, and of an edge; None drops.
_write = st.one_of(
    st.tuples(st.just("items"), st.tuples(_placement, _item), _number),
    st.tuples(st.just("edges"), st.tuples(_placement, _edge), _number),
    st.tuples(st.just("reports"), st.tuples(_item, _edge), _number),
    st.tuples(st.just("away"), _edge, st.sampled_from([None, True])),
)
histories = st.lists(st.lists(_write, max_size=5), max_size=8)
Batch = list[tuple[str, Any, Any]]


class Placed:
    """Items times edges, for each placement."""

    def __init__(self) -> None:
        self.flow = Dataflow()
        self.items: Relation[str, str, int] = self.flow.relation("items")
        self.edges: Relation[str, str, int] = self.flow.relation("edges")
        self.reports: Relation[str, str, int] = self.flow.relation("reports")
        self.route = self.flow.product("route", self.items, self.edges)
        self.away: Table[str, bool] = self.flow.table("away")
        self.tally, self.summed = self.flow.fold(
            "tally",
            self.route,
            self.reports,
            self.away,
            row=lambda _, edge, report, away: 0 if away else 100 * edge + (report or 0),
            fold=lambda _, __, ___, rows: Sum(rows),
            mark=lambda _, row: row % 100,
            sums=MarkSums,
        )
        self.absent = self.flow.attach(
            "absent", self.edges, self.away, lambda edge, row, away: edge if away else None
        )
        self.items.replace("p", {"web": 1, "api": 1})
        self.edges.replace("p", {"florin": 1, "guilder": 1})
        self.items.put_pair("q", "web", 1)
        self.edges.put_pair("q", "florin", 1)
        self.flow.settle()

    def settle(self, batch: Batch) -> Any:
        for name, key, row in batch:
            table: Table[Any, Any] = getattr(self, name)
            if row is None:
                table.drop(key)
            else:
                table.put(key, row)
        return self.flow.settle()

    def expected(self) -> dict[tuple[str, str], dict[str, int]]:
        """Return the rows of each fold, from the inputs alone."""
        return {
            (j, a): {
                b: 0 if self.away.get(b) else 100 * edge + (self.reports.at(a, b) or 0)
                for b, edge in self.edges.of(j).items()
            }
            for j, a in self.items
        }

    def marks(self) -> dict[tuple[str, str], int]:
        return marks_of(self.summed)

    def sums(self) -> dict[tuple[str, str], int]:
        found = {key: self.tally.get(key) for key in self.tally}
        return {key: fold.sum for key, fold in found.items() if fold is not None}


def test_a_row_is_put_together_when_asked_for() -> None:
    placed = Placed()

    assert placed.route.get("p", "web", "florin") == (1, 1)
    assert placed.route.get("q", "web", "guilder") is None
    assert len(placed.route) == 5


def test_whoever_sends_an_item_to_an_edge_is_found_from_the_two() -> None:
    placed = Placed()

    assert placed.route.joining("web", "florin") == ["p", "q"]
    assert placed.route.joining("web", "guilder") == ["p"]
    assert placed.route.joining("web", "krone") == []


def test_an_item_that_goes_touches_every_edge_it_went_to_even_one_that_goes_too() -> None:
    placed = Placed()

    placed.items.drop_pair("p", "api")
    placed.edges.drop_pair("p", "guilder")
    settled = placed.flow.settle()

    assert list(settled.keys(placed.route)) == [
        ("p", "api", "florin"),
        ("p", "api", "guilder"),
        ("p", "web", "guilder"),
    ]


def test_a_report_is_folded_wherever_its_pair_is_routed() -> None:
    placed = Placed()

    placed.reports.put_pair("web", "florin", 7)
    settled = placed.flow.settle()

    assert settled.groups(placed.tally) == [("p", "web"), ("q", "web")]
    assert placed.sums() == {("p", "api"): 200, ("p", "web"): 207, ("q", "web"): 107}


def test_a_report_on_what_is_not_routed_is_kept_for_when_it_is() -> None:
    placed = Placed()
    placed.reports.put_pair("web", "guilder", 5)
    placed.flow.settle()

    placed.edges.put_pair("q", "guilder", 1)
    placed.flow.settle()

    assert placed.sums()["q", "web"] == 205


def test_an_item_without_a_destination_has_a_fold_of_nothing() -> None:
    placed = Placed()

    placed.edges.replace("p", {})
    placed.flow.settle()

    assert placed.sums() == {("p", "api"): 0, ("p", "web"): 0, ("q", "web"): 100}


def test_a_left_row_that_becomes_another_one_begins_its_fold_anew() -> None:
    placed = Placed()
    before = placed.tally.get(("p", "web"))

    placed.items.put_pair("p", "web", 2)
    placed.reports.put_pair("web", "florin", 3)
    placed.flow.settle()

    assert placed.tally.get(("p", "web")) is not before
    assert placed.sums()["p", "web"] == 203


def test_a_fact_of_an_edge_is_folded_wherever_something_goes_there() -> None:
    placed = Placed()

    placed.away.put("florin", True)
    settled = placed.flow.settle()

    assert settled.groups(placed.tally) == [("p", "api"), ("p", "web"), ("q", "web")]
    assert placed.sums() == {("p", "api"): 100, ("p", "web"): 100, ("q", "web"): 0}


def test_marks_are_summed_for_each_edge_and_none_are_stored_where_there_are_none() -> None:
    placed = Placed()

    placed.reports.put_pair("web", "florin", 7)
    placed.reports.put_pair("api", "florin", 5)
    placed.flow.settle()

    assert placed.marks() == {("p", "florin"): 12, ("q", "florin"): 7}

    placed.reports.put_pair("api", "florin", 0)
    placed.away.put("florin", True)
    placed.flow.settle()

    assert placed.marks() == {}


def test_when_nothing_goes_any_more_its_marks_go_without_a_pass_over_the_edges() -> None:
    placed = Placed()
    placed.edges.replace("p", {f"edge-{n}": 1 for n in range(100)})
    placed.reports.put_pair("web", "edge-5", 7)
    placed.flow.settle()
    before = placed.flow.touched

    placed.items.replace("p", {})
    placed.flow.settle()

    assert placed.marks() == {}
    assert placed.flow.touched - before < 10


def test_only_pairs_that_come_to_something_are_attached() -> None:
    placed = Placed()

    placed.away.put("florin", True)
    placed.flow.settle()
    assert dict(placed.absent.items()) == {("p", "florin"): "florin", ("q", "florin"): "florin"}

    placed.edges.drop_pair("q", "florin")
    placed.away.put("florin", False)
    placed.flow.settle()
    assert dict(placed.absent.items()) == {}


# -- against the product multiplied out ----------------------------------------------------------


@given(histories)
def test_a_fold_is_of_its_rows_as_they_are_whatever_changed_together(
    history: list[Batch],
) -> None:
    placed = Placed()
    for batch in history:
        placed.settle(batch)

        expected = placed.expected()
        assert placed.sums() == {key: sum(rows.values()) for key, rows in expected.items()}
        folds = {key: placed.tally.get(key) for key in placed.tally}
        assert {key: fold.count for key, fold in folds.items() if fold is not None} == {
            key: len(rows) for key, rows in expected.items()
        }


@given(histories)
def test_marks_are_those_of_all_rows_and_a_sum_of_nothing_is_not_stored(
    history: list[Batch],
) -> None:
    placed = Placed()
    for batch in history:
        before = placed.marks()
        settled = placed.settle(batch)

        expected: dict[tuple[str, str], int] = {}
        for (j, _), rows in placed.expected().items():
            for b, row in rows.items():
                expected[j, b] = expected.get((j, b), 0) + row % 100
        after = placed.marks()
        assert after == {key: mark for key, mark in expected.items() if mark}
        assert list(placed.summed) == sorted({j for j, _ in after})
        moved = {key[0] for key in {*before, *after} if before.get(key) != after.get(key)}
        assert moved <= set(settled.groups(placed.summed))


@given(histories)
def test_what_is_attached_is_asked_of_each_pair_and_the_fact_of_its_edge(
    history: list[Batch],
) -> None:
    placed = Placed()
    for batch in history:
        placed.settle(batch)

        assert dict(placed.absent.items()) == {
            (j, b): b for j, b in placed.edges if placed.away.get(b)
        }


@given(histories)
def test_the_keys_a_batch_touches_come_in_order_and_none_twice(history: list[Batch]) -> None:
    placed = Placed()

    def rows() -> dict[tuple[str, str, str], tuple[int, int] | None]:
        edges = [(j, a, b) for j, a in placed.items for b in placed.edges.of(j)]
        return {key: placed.route.get(*key) for key in edges}

    for batch in history:
        before = rows()
        settled = placed.settle(batch)
        after = rows()

        assert len(placed.route) == len(after)
        keys = list(settled.keys(placed.route))
        assert len(keys) == len(set(keys))
        assert {key for key in {*before, *after} if before.get(key) != after.get(key)} <= {*keys}
        # What changed on the left comes first, then what changed on the right alone.
        lefts = {change.key for change in settled.changes(placed.items)}
        first = [key for key in keys if key[:2] in lefts]
        second = [(j, b, a) for j, a, b in keys if (j, a) not in lefts]
        assert keys[: len(first)] == sorted(first)
        assert second == sorted(second)


# -- surprises -----------------------------------------------------------------------------------


@pytest.mark.parametrize("missing", ["left", "right"])
def test_half_a_row_of_a_product_is_no_row(missing: str) -> None:
    placed = Placed()
    if missing == "left":
        placed.items.drop_pair("p", "web")
    else:
        placed.edges.drop_pair("p", "florin")

    assert placed.route.get("p", "web", "florin") is None
    assert placed.route.joining("web", "florin") == ["q"]


@pytest.mark.parametrize("many", ["items", "edges"])
def test_whoever_joins_two_keys_is_found_through_the_side_that_has_fewer(many: str) -> None:
    placed = Placed()
    crowd: Relation[str, str, int] = getattr(placed, many)
    crowded = "web" if many == "items" else "florin"
    for number in range(100):
        crowd.put_pair(f"other-{number:02}", crowded, 1)
    placed.flow.settle()
    before = placed.flow.touched

    assert placed.route.joining("web", "florin") == ["p", "q"]

    assert placed.flow.touched - before == 2


def test_an_edge_that_leaves_in_the_batch_that_counts_it_out_is_taken_out_as_it_was_in() -> None:
    placed = Placed()
    placed.reports.put_pair("web", "florin", 7)
    placed.flow.settle()

    # Its report and its fact change in the moment in which it goes, and so does the item's row.
    placed.reports.put_pair("web", "florin", 9)
    placed.away.put("florin", True)
    placed.edges.drop_pair("p", "florin")
    placed.items.put_pair("p", "web", 2)
    placed.flow.settle()

    assert placed.marks() == {}
    assert placed.sums() == {("p", "api"): 100, ("p", "web"): 100, ("q", "web"): 0}


def test_a_report_that_comes_with_the_news_of_its_edge_is_counted_once() -> None:
    placed = Placed()
    placed.away.put("florin", True)
    placed.flow.settle()

    placed.reports.put_pair("web", "florin", 7)
    placed.away.drop("florin")
    placed.flow.settle()

    assert placed.sums() == {("p", "api"): 200, ("p", "web"): 207, ("q", "web"): 107}
    assert placed.marks() == {("p", "florin"): 7, ("q", "florin"): 7}


def test_a_pair_that_comes_to_something_else_is_attached_anew() -> None:
    flow = Dataflow()
    pairs: Relation[str, str, int] = flow.relation("pairs")
    facts: Table[str, int] = flow.table("facts")
    made = flow.attach("made", pairs, facts, lambda b, pair, fact: (b, pair, fact))
    pairs.put_pair("p", "x", 1)
    flow.settle()

    facts.put("x", 5)
    pairs.put_pair("p", "x", 2)
    settled = flow.settle()
    assert settled.changes(made) == [Change(("p", "x"), ("x", 1, None), ("x", 2, 5))]

    facts.drop("x")
    pairs.drop_pair("p", "x")
    flow.settle()
    assert len(made) == 0
