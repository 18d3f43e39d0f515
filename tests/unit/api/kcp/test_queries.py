"""A malformed StatusQuery is refused by its schema, and the refusal names the field."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from skerry.api.kcp import edge
from skerry.api.objects import Object
from skerry.logic.machinery import crd
from skerry.logic.machinery.schema.defaulting import apply_defaults

_KIND = next(d for d in edge.definitions() if d["spec"]["names"]["kind"] == "StatusQuery")
[_SERVED] = crd.resources_of(_KIND)
COUNT: Object = {"name": "edges", "function": "Count"}


def query(**spec: Any) -> Object:
    usual = {"from": {"apiGroup": "apps", "resources": ["deployments"]}, "aggregates": [COUNT]}
    return {"metadata": {"name": "q"}, "spec": {**usual, **spec}}


def errors(obj: Object) -> str:
    return "; ".join(str(error) for error in _SERVED.validate_create(copy.deepcopy(obj)))


def percentile(number: float) -> Object:
    of = {"name": "p", "function": "Percentile", "of": "status.x", "percentile": number}
    return {"aggregates": [of]}


def top(k: int) -> Object:
    return {"aggregates": [{"name": "t", "function": "Top", "of": "status.x", "k": k}]}


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"from": {"rows": "Pods"}}, "spec.from.rows"),
        ({"from": {"resources": ["*"]}}, "spec.from.resources[0]"),
        ({"from": {"resources": ["Deployment"]}}, "spec.from.resources[0]"),
        ({"limit": 1001}, "spec.limit"),
        ({"limit": 0}, "spec.limit"),
        ({"staleAfter": "soon"}, "spec.staleAfter"),
        ({"ttlSeconds": 0}, "spec.ttlSeconds"),
        ({"filter": ""}, "spec.filter"),
        ({"filter": "x" * 4097}, "spec.filter"),
        ({"aggregates": []}, "spec.aggregates"),
        ({"aggregates": [COUNT] * 17}, "spec.aggregates"),
        ({"aggregates": [{**COUNT, "function": "Median"}]}, "spec.aggregates[0].function"),
        ({"aggregates": [{**COUNT, "name": "a-b"}]}, "spec.aggregates[0].name"),
        ({"groupBy": [{"name": "a", "value": "1"}] * 5}, "spec.groupBy"),
        ({"groupBy": [{"name": "a"}]}, "spec.groupBy[0].value"),
        ({"orderBy": [{}]}, "spec.orderBy[0].column"),
        (percentile(0), "spec.aggregates[0].percentile"),
        (percentile(100), "spec.aggregates[0].percentile"),
        (percentile(-1), "spec.aggregates[0].percentile"),
        (top(101), "spec.aggregates[0].k"),
        (top(0), "spec.aggregates[0].k"),
    ],
)
def test_a_malformed_query_is_refused_by_field(spec: Object, field: str) -> None:
    assert field in errors(query(**spec))


def test_a_query_without_a_question_is_refused() -> None:
    assert "spec: Required value" in errors({"metadata": {"name": "q"}})
    assert "spec.from: Required value" in errors({"metadata": {"name": "q"}, "spec": {}})


def test_a_query_asks_for_a_hundred_rows_of_copies_unless_it_says_otherwise() -> None:
    obj = query()
    apply_defaults(_SERVED.schema, obj)
    assert obj["spec"]["limit"] == 100
    assert obj["spec"]["from"]["rows"] == "Copies"


def test_rows_may_hold_any_value_and_null() -> None:
    values = [None, 1, 0.5, "x", True, [{"value": 3, "show": "oslo"}]]
    obj = {**query(**percentile(99.9)), "status": {"rows": [{"values": values}]}}
    assert errors(obj) == ""
