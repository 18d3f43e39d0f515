"""A query that makes no sense is refused, and the refusal names the field."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.api.objects import Object
from skerry.api.refs import ObjectRef
from skerry.logic.fleet.query.plan import plan_of, query_errors

DEPLOYMENTS: Object = {"apiGroup": "apps", "resources": ["deployments"]}
COUNT: Object = {"name": "edges", "function": "Count"}
COLUMN: Object = {"name": "where", "value": "location.name"}


def spec(**more: Any) -> Object:
    return {"from": DEPLOYMENTS, "aggregates": [COUNT], **more}


def aggregate(**more: Any) -> Object:
    return spec(aggregates=[{"name": "a", **more}])


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        (spec(select=[COLUMN]), "spec.select: Forbidden"),
        ({"from": DEPLOYMENTS, "groupBy": [COLUMN]}, "spec.aggregates: Required"),
        ({"from": DEPLOYMENTS, "select": [COLUMN], "groupBy": [COLUMN]}, "spec.groupBy: Forbidden"),
        ({"from": DEPLOYMENTS, "select": [COLUMN], "having": "true"}, "spec.having: Forbidden"),
        ({"from": {}, "aggregates": [COUNT]}, "spec.from.resources: Required"),
        (spec(**{"from": {**DEPLOYMENTS, "rows": "Destinations"}}), "spec.from.resources: Forbid"),
        (spec(filter="1 +"), "spec.filter: Invalid value"),
        (spec(filter="status.x + 'y' + nothing"), "undeclared reference to 'nothing'"),
        (spec(filter="1"), "must evaluate to bool, not int"),
        (spec(filter="now > timestamp('2030-01-01T00:00:00Z')"), "undeclared reference to 'now'"),
        (spec(filter="report.nothing"), "undefined field 'nothing'"),
        (spec(filter=f"size([{', '.join(['{}'] * 100)}]) > 0"), "units for one row: want 1000"),
        (spec(groupBy=[{"name": "x", "value": "[1]"}]), "spec.groupBy[0].value: Invalid value"),
        (spec(groupBy=[{"name": "edges", "value": "1"}]), "Duplicate value"),
        (spec(having="nothing > 1"), "spec.having: Invalid value"),
        (spec(having="edges"), "spec.having: Invalid value"),
        (spec(orderBy=[{"column": "x"}]), "spec.orderBy[0].column: Invalid value"),
        (spec(staleAfter="1d"), "spec.staleAfter: Invalid value"),
        (aggregate(function="Sum"), "spec.aggregates[0].of: Required"),
        (aggregate(function="Count", of="status.x"), "spec.aggregates[0].of: Forbidden"),
        (aggregate(function="Sum", of="'x'"), "spec.aggregates[0].of: Invalid value"),
        (aggregate(function="Sum", of="1", k=3), "spec.aggregates[0].k: Forbidden"),
        (aggregate(function="Percentile", of="1"), "spec.aggregates[0].percentile: Required"),
        (aggregate(function="Top", of="1", show="[1]"), "spec.aggregates[0].show: Invalid value"),
    ],
)
def test_a_query_that_makes_no_sense_is_refused_by_field(asked: Object, field: str) -> None:
    assert field in "; ".join(map(str, query_errors({"spec": asked})))


def test_edges_have_no_status_to_ask_for() -> None:
    asked = {"from": {"rows": "Destinations"}, "aggregates": [COUNT], "filter": "status.x == 1"}
    assert "undeclared reference to 'status'" in str(query_errors({"spec": asked})[0])


def test_a_plan_says_what_has_to_be_kept_of_each_object_once() -> None:
    plan, errors = plan_of(
        spec(
            filter="status.x > 1 && location.name != 'oslo'",
            aggregates=[
                {"name": "a", "function": "Sum", "of": "status.x"},
                {"name": "b", "function": "Top", "of": "status.x", "k": 3},
            ],
            staleAfter="1m30s",
        )
    )
    assert not errors
    assert plan is not None
    assert len(plan.parts()) == 2
    assert (plan.reads("location"), plan.reads("report")) == (True, False)
    assert (plan.stale_seconds, plan.limit) == (90, 100)
    assert [column.name for column in plan.columns] == ["a", "b"]


def test_what_is_not_named_is_meant_too() -> None:
    web = ObjectRef("", "apps", "deployments", "shop", "web")
    plan, _ = plan_of(spec())
    assert plan is not None
    assert plan.source.takes(web)
    assert not plan.source.takes(web._replace(resource="daemonsets"))
    plan, _ = plan_of(spec(**{"from": {**DEPLOYMENTS, "namespaces": ["shop"], "names": ["api"]}}))
    assert plan is not None
    assert not plan.source.takes(web)
