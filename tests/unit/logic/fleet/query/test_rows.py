"""What a row contributes, and that what fails is counted."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.logic.fleet.placement.records import Destination
from skerry.logic.fleet.query.expressions import MAX_MESSAGE
from skerry.logic.fleet.query.plan import plan_of
from skerry.logic.fleet.query.rows import (
    ABSENT_ROW,
    EDGE,
    EXCLUDED,
    FILTERED,
    MATCHED,
    Backwards,
    Evaluator,
    Ident,
    KindEvaluators,
    Row,
    Target,
    own_copy,
)
from skerry.logic.fleet.summary.freshness import LIVE, lapsed
from skerry.logic.fleet.summary.report import Report
from tests.kit.chain.query_rows import REPORT, WEB, Asked

COUNT = [{"name": "n", "function": "Count"}]
SUM = [{"name": "n", "function": "Sum", "of": "status.n"}]


def test_a_row_without_a_copy_is_absent() -> None:
    asked = Asked(aggregates=COUNT)
    assert asked.evaluator.outcome(asked.row(None)).verdict == ABSENT_ROW


def test_a_row_counts_where_the_filter_is_exactly_true() -> None:
    asked = Asked(filter="status.on", aggregates=COUNT)
    verdicts = [asked.evaluator.outcome(asked.row({"on": on})).verdict for on in (True, False, 1)]
    assert verdicts == [MATCHED, FILTERED, FILTERED]


def test_a_filter_that_fails_excludes_the_row_and_says_why() -> None:
    asked = Asked(filter="status.on && report.delivered", aggregates=COUNT)
    outcome = asked.evaluator.outcome(asked.row({}))
    assert outcome.verdict == EXCLUDED
    assert outcome.errors == (("filter", "no such key: on"),)


def test_a_part_that_failed_matters_only_where_it_is_read() -> None:
    asked = Asked(filter="report.delivered || status.on", aggregates=COUNT)
    assert asked.evaluator.outcome(asked.row({})).verdict == MATCHED


@pytest.mark.parametrize("value", ["3", float("nan"), float("inf"), [3], {"a": 3}, True, None])
def test_what_is_no_number_is_an_error_and_never_a_zero(value: Any) -> None:
    asked = Asked(aggregates=SUM)
    outcome = asked.evaluator.outcome(asked.row({"n": value}))
    assert (outcome.verdict, outcome.values) == (MATCHED, (None,))
    assert [error.column for error in outcome.errors] == ["n"]


@pytest.mark.parametrize("value", [[1], {"a": 1}])
def test_a_key_that_is_no_scalar_excludes_the_row(value: Any) -> None:
    asked = Asked(groupBy=[{"name": "key", "value": "status.key"}], aggregates=COUNT)
    outcome = asked.evaluator.outcome(asked.row({"key": value}))
    assert (outcome.verdict, outcome.errors[0].column) == (EXCLUDED, "key")


def test_a_key_of_a_megabyte_is_cut() -> None:
    asked = Asked(groupBy=[{"name": "key", "value": "obj.kind + status.key"}], aggregates=COUNT)
    key = asked.evaluator.outcome(asked.row({"key": "x" * 4000})).key
    assert isinstance(key[0], str)
    assert len(key[0]) == 256


def test_a_selected_column_that_fails_is_null_and_an_error() -> None:
    asked = Asked(
        select=[{"name": "a", "value": "status.n"}, {"name": "b", "value": "location.name"}],
        orderBy=[{"column": "a", "descending": True}],
    )
    row = asked.row({"n": [1]})
    assert asked.evaluator.selected(row) == (None, "oslo")
    assert [error.column for error in asked.evaluator.outcome(row).errors] == ["a"]
    low, high = asked.row({"n": 1}), asked.row({"n": 2})
    assert asked.evaluator.order_key(high) < asked.evaluator.order_key(low)


def test_an_edge_that_was_not_heard_of_is_unknown() -> None:
    asked = Asked(groupBy=[{"name": "h", "value": "report.healthy"}], aggregates=COUNT)
    assert asked.evaluator.outcome(asked.row({})).key == ("True",)
    gone = asked.row({}, lapsed("2030-01-01T00:00:00Z"))
    assert asked.evaluator.outcome(gone).key == ("Unknown",)


def test_a_row_knows_its_place() -> None:
    text = "[location.name, location.cluster, location.labels.region, syncTarget.name, placement]"
    asked = Asked(
        groupBy=[{"name": "k", "value": f"{text}.join('/') + string(syncTarget.ready)"}],
        aggregates=COUNT,
    )
    assert asked.evaluator.outcome(asked.row({})).key == ("oslo/inv/north/st/webtrue",)


def test_a_copy_withheld_from_a_workspace_is_not_its_own() -> None:
    copy = (Report(withheld_from=("shop",)),)
    assert own_copy(copy, "shop") is None
    assert own_copy(copy, "bank") == own_copy(copy, "") == copy
    assert own_copy(None, "") is None


def test_backwards_orders_the_other_way_round() -> None:
    assert sorted([Backwards(1), Backwards(3), Backwards(2)])[0] == Backwards(3)
    assert hash(Backwards(1)) == hash(Backwards(1))


def test_copies_of_several_kinds_keep_different_parts() -> None:
    spec = {"from": {"apiGroup": "apps", "resources": ["deployments", "daemonsets"]}}
    plan, _ = plan_of({**spec, "aggregates": SUM, "select": []})
    assert plan is not None
    [part] = plan.parts()
    other = WEB._replace(resource="daemonsets")
    both = KindEvaluators(
        {
            WEB.group_resource: Evaluator(plan, {part.tree: 1}),
            other.group_resource: Evaluator(plan, {part.tree: 2}),
        }
    )
    where = Destination("inv", "oslo", "st", "u1")
    rows = [
        Row(Ident("oslo", WEB, "u1"), where, "web", (REPORT, 3)),
        Row(Ident("oslo", other, "u1"), where, "web", (REPORT, 9, 4)),
    ]
    assert [both.outcome(row).values for row in rows] == [(3,), (4,)]
    assert both.shown(rows[0], None) == "oslo"
    assert both.selected(rows[1]) == both.order_key(rows[1]) == ()


def test_a_copy_that_is_not_there_is_nobodys_own() -> None:
    assert own_copy(None, "shop") is None


def test_of_a_target_that_is_not_known_nothing_good_is_said() -> None:
    asked = Asked(
        groupBy=[
            {"name": "t", "value": "string(syncTarget.ready) + string(syncTarget.labels.size())"}
        ],
        aggregates=COUNT,
    )
    row = asked.row({})
    assert asked.evaluator.outcome(row).key == ("true0",)
    assert asked.evaluator.outcome(row._replace(target=Target())).key == ("false0",)


def test_a_top_shows_the_location_unless_it_is_asked_for_something_else() -> None:
    asked = Asked(
        aggregates=[
            {"name": "a", "function": "Top", "of": "status.n"},
            {
                "name": "b",
                "function": "Top",
                "of": "status.n",
                "show": "obj.kind + '/' + placement",
            },
            {"name": "c", "function": "Top", "of": "status.n", "show": "status.nothing"},
        ]
    )
    row = asked.row({"n": 1})
    shown = [asked.evaluator.shown(row, each.show) for each in asked.plan.aggregates]
    assert shown == ["oslo", "Deployment/web", None]


def test_what_is_shown_beside_a_value_is_no_error_of_the_row() -> None:
    top = {"name": "a", "function": "Top", "of": "status.n", "show": "status.nothing"}
    asked = Asked(aggregates=[top])
    outcome = asked.evaluator.outcome(asked.row({"n": 1}))
    assert (outcome.verdict, outcome.values, outcome.errors) == (MATCHED, (1,), ())


def test_each_column_fails_for_itself() -> None:
    asked = Asked(
        aggregates=[
            {"name": "a", "function": "Sum", "of": "status.a"},
            {"name": "n", "function": "Count"},
            {"name": "b", "function": "Max", "of": "status.b"},
            {"name": "c", "function": "Min", "of": "status.c"},
        ]
    )
    outcome = asked.evaluator.outcome(asked.row({"b": 4, "c": "x"}))
    assert outcome.values == (None, None, 4, None)
    assert [error.column for error in outcome.errors] == ["a", "c"]


def test_the_first_key_that_fails_excludes_a_row_and_is_the_only_one_named() -> None:
    keys = [{"name": name, "value": f"status.{name}"} for name in "abc"]
    asked = Asked(groupBy=keys, aggregates=COUNT)
    outcome = asked.evaluator.outcome(asked.row({"a": 1}))
    assert (outcome.verdict, outcome.key) == (EXCLUDED, ())
    assert [error.column for error in outcome.errors] == ["b"]


def test_a_row_that_does_not_count_still_says_how_old_its_report_is() -> None:
    asked = Asked(
        filter="status.on", groupBy=[{"name": "k", "value": "status.k"}], aggregates=COUNT
    )
    outcomes = [
        asked.evaluator.outcome(asked.row(status)) for status in ({"on": False}, {}, {"on": True})
    ]
    assert [outcome.verdict for outcome in outcomes] == [FILTERED, EXCLUDED, EXCLUDED]
    assert {outcome.time for outcome in outcomes} == {REPORT.time}
    assert asked.evaluator.outcome(asked.row(None)).time == ""


def test_a_message_is_no_longer_than_a_status_has_room_for() -> None:
    asked = Asked(
        aggregates=[{"name": "n", "function": "Sum", "of": "{'a': 1}[status.key + placement]"}]
    )
    [error] = asked.evaluator.outcome(asked.row({"key": "x" * 3000})).errors
    assert len(error.message) == MAX_MESSAGE


def test_a_part_that_failed_is_an_error_of_what_reads_it() -> None:
    texts = ("status.n", "status.n + size(placement)")
    asked = Asked(aggregates=[{"name": text, "function": "Sum", "of": text} for text in texts])
    outcome = asked.evaluator.outcome(asked.row({}))
    assert outcome.values == (None, None)
    assert [error.message for error in outcome.errors] == ["no such key: n"] * 2


@pytest.mark.parametrize(
    ("text", "reads"),
    [
        ("status.n", set()),
        ("report.delivered", {"report"}),
        ("location.name", {"location"}),
        ("syncTarget.ready", {"syncTarget"}),
        ("placement", set()),
    ],
)
def test_a_scope_has_what_its_query_reads_and_nothing_else(text: str, reads: set[str]) -> None:
    asked = Asked(groupBy=[{"name": "k", "value": text}], aggregates=COUNT)
    scope = asked.evaluator.variables(asked.row({"n": 1}))
    assert set(scope) == {"placement", *reads}


def test_a_report_says_which_revision_its_mailbox_is_settled_at() -> None:
    asked = Asked(aggregates=[{"name": "n", "function": "Max", "of": "report.revision"}])
    row = asked.row({})
    assert asked.evaluator.outcome(row).values == (0,)
    assert asked.evaluator.outcome(row._replace(revision=41)).values == (41,)


def test_an_edge_is_delivered_and_healthy_as_long_as_it_is_heard_of() -> None:
    asked = Asked(groupBy=[{"name": "k", "value": "report.healthy"}], aggregates=COUNT)
    row = asked.row({})._replace(copy=EDGE)
    assert asked.evaluator.outcome(row).key == ("True",)
    assert asked.evaluator.outcome(row._replace(lease=lapsed(""))).key == ("Unknown",)
    assert row.lease == LIVE


def test_rows_are_ordered_as_they_are_shown() -> None:
    columns = [{"name": name, "value": f"status.{name}"} for name in ("a", "b")]
    order = [{"column": "a", "descending": True}, {"column": "b"}]
    asked = Asked(select=columns, orderBy=order)
    pairs = ((1, 2), (2, 1), (2, 0), ("x", 0))
    statuses: list[dict[str, Any]] = [{"b": 9}, *({"a": a, "b": b} for a, b in pairs)]
    rows = sorted((asked.row(status) for status in statuses), key=asked.evaluator.order_key)
    assert [asked.evaluator.selected(row) for row in rows] == [
        ("x", 0), (2, 0), (2, 1), (1, 2), (None, 9),
    ]  # fmt: skip


@given(st.lists(st.integers()))
def test_backwards_is_the_order_from_the_other_end(values: list[int]) -> None:
    found = sorted(map(Backwards, values))
    assert [each.of for each in found] == sorted(values, reverse=True)
    assert all(Backwards(value) != value for value in values)
    assert not any(Backwards(value) < Backwards(value) for value in values)


def test_a_row_by_itself_contributes_the_same_however_often_it_is_asked() -> None:
    asked = Asked(
        filter="status.on || report.delivered",
        groupBy=[{"name": "k", "value": "location.labels.region"}],
        aggregates=SUM,
    )
    for status in (None, {}, {"n": 1}, {"on": True, "n": "x"}):
        row = asked.row(status)
        assert asked.evaluator.outcome(row) == asked.evaluator.outcome(row)
