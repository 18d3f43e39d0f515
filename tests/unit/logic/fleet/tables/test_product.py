"""Products that are never stored, and folds over them."""

from __future__ import annotations

from skerry.logic.fleet.tables.flow import Dataflow
from skerry.logic.fleet.tables.relation import Relation
from skerry.logic.fleet.tables.table import Table
from tests.kit.chain.table_model import MarkSums, Sum, marks_of


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
