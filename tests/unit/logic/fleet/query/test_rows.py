"""What a row contributes, and that what fails is counted."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.logic.fleet.placement.records import Destination
from skerry.logic.fleet.query.plan import plan_of
from skerry.logic.fleet.query.rows import (
    ABSENT_ROW,
    EXCLUDED,
    FILTERED,
    MATCHED,
    Backwards,
    Evaluator,
    Ident,
    KindEvaluators,
    Row,
    own_copy,
)
from skerry.logic.fleet.summary.freshness import lapsed
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
