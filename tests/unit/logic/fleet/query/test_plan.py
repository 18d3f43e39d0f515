"""A query that makes no sense is refused, and the refusal names the field."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.api.kcp.queries import DEFAULT_LIMIT, MAX_TOP
from skerry.api.objects import Object
from skerry.api.refs import ObjectRef
from skerry.logic.fleet.query.expressions import run
from skerry.logic.fleet.query.plan import (
    COPIES,
    Order,
    QueryPlan,
    plan_of,
    query_errors,
    resources_read,
)

DEPLOYMENTS: Object = {"apiGroup": "apps", "resources": ["deployments"]}
COUNT: Object = {"name": "edges", "function": "Count"}
COLUMN: Object = {"name": "where", "value": "location.name"}


def spec(**more: Any) -> Object:
    return {"from": DEPLOYMENTS, "aggregates": [COUNT], **more}


def aggregate(**more: Any) -> Object:
    return spec(aggregates=[{"name": "a", **more}])


def planned(asked: Object) -> QueryPlan:
    plan, errors = plan_of(asked)
    assert plan is not None, errors
    return plan


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


WEB = ObjectRef("", "apps", "deployments", "shop", "web")


@pytest.mark.parametrize(
    ("named", "takes"),
    [
        ({}, True),
        ({"namespaces": ["shop", "bank"]}, True),
        ({"namespaces": ["bank"]}, False),
        ({"names": ["web"]}, True),
        ({"names": ["api"]}, False),
        ({"namespaces": ["bank"], "names": ["web"]}, False),
        ({"apiGroup": "batch"}, False),
        # An empty list stands for everything, as an absent one does.
        ({"namespaces": [], "names": []}, True),
    ],
)
def test_an_object_is_asked_about_if_everything_that_is_named_is_its_own(
    named: Object, takes: bool
) -> None:
    source = planned(spec(**{"from": {**DEPLOYMENTS, **named}})).source
    assert source.takes(WEB) is takes


def test_rows_are_copies_unless_it_says_otherwise() -> None:
    assert planned(spec()).source.rows == COPIES
    edges = planned({"from": {"rows": "Destinations"}, "aggregates": [COUNT]})
    assert (edges.source.rows, edges.source.kinds) == ("Destinations", frozenset())
    assert edges.source.placements is None
    upsynced = planned(spec(**{"from": {**DEPLOYMENTS, "rows": "Upsynced", "placements": ["web"]}}))
    assert (upsynced.source.rows, upsynced.source.placements) == (
        "Upsynced", frozenset(["web"]),
    )  # fmt: skip


def test_a_plan_with_nothing_wrong_says_what_it_was_asked() -> None:
    plan = planned(
        spec(
            filter="status.on",
            groupBy=[{"name": "region", "value": "location.labels.region"}],
            aggregates=[COUNT, {"name": "n", "function": "Max", "of": "status.n"}],
            orderBy=[{"column": "n", "descending": True}, {"column": "region"}],
            limit=7,
        )
    )
    assert [column.name for column in plan.columns] == ["region", "edges", "n"]
    assert plan.order_by == (Order(2, True), Order(0, False))
    assert (plan.limit, plan.stale_seconds, plan.having) == (7, None, None)
    assert [each.text for each in plan.expressions()] == [
        "status.on", "location.labels.region", "status.n",
    ]  # fmt: skip


def test_selected_columns_stand_in_place_of_groups() -> None:
    plan = planned({"from": DEPLOYMENTS, "select": [COLUMN, {"name": "n", "value": "status.n"}]})
    assert [column.name for column in plan.columns] == ["where", "n"]
    assert (plan.aggregates, plan.group_by, plan.filter) == ((), (), None)
    assert plan.limit == DEFAULT_LIMIT
    assert plan.reads("location")


@pytest.mark.parametrize(
    ("given_", "function", "k"),
    [({}, "Top", 5), ({"k": 3}, "Top", 3), ({"k": 10**6}, "Top", MAX_TOP), ({}, "Sum", 0)],
)
def test_a_top_shows_five_unless_asked_and_never_more_than_there_may_be(
    given_: Object, function: str, k: int
) -> None:
    [found] = planned(aggregate(function=function, of="status.n", **given_)).aggregates
    assert (found.k, found.percentile, found.show) == (k, 0, None)


def test_what_is_for_one_function_is_kept_for_that_one() -> None:
    p99, top = planned(
        spec(
            aggregates=[
                {"name": "p", "function": "Percentile", "of": "status.n", "percentile": 99},
                {"name": "t", "function": "Top", "of": "status.n", "show": "obj.kind"},
            ]
        )
    ).aggregates
    assert (p99.percentile, p99.show) == (99, None)
    assert top.show is not None
    assert top.show.text == "obj.kind"


@pytest.mark.parametrize("function", ["Sum", "Min", "Max", "Avg", "Count"])
@pytest.mark.parametrize(("name", "value"), [("percentile", 9), ("k", 2), ("show", "placement")])
def test_what_is_for_another_function_is_refused_by_name(
    function: str, name: str, value: Any
) -> None:
    of = {} if function == "Count" else {"of": "status.n"}
    [error] = query_errors({"spec": aggregate(function=function, **of, **{name: value})})
    assert error.field == f"spec.aggregates[0].{name}"


def test_all_errors_are_found_and_not_the_first() -> None:
    plan, errors = plan_of(
        spec(
            filter="1 +",
            groupBy=[{"name": "x", "value": "[1]"}, {"name": "y", "value": "nothing"}],
            aggregates=[COUNT, {"name": "s", "function": "Sum"}],
            having="nothing",
            orderBy=[{"column": "edges"}, {"column": "z"}],
            staleAfter="soon",
        )
    )
    assert plan is None
    assert [error.field for error in errors] == [
        "spec.filter",
        "spec.groupBy[0].value",
        "spec.groupBy[1].value",
        "spec.aggregates[1].of",
        "spec.having",
        "spec.orderBy[1].column",
        "spec.staleAfter",
    ]


def test_an_order_by_a_column_that_is_not_there_is_refused_with_those_there_are() -> None:
    [error] = query_errors({"spec": spec(groupBy=[COLUMN], orderBy=[{"column": "x"}])})
    assert "want a column of the result: where, edges" in str(error)


def test_a_wrong_type_is_refused_with_all_that_would_do() -> None:
    [error] = query_errors({"spec": aggregate(function="Sum", of="'x'")})
    assert "must evaluate to int or double, not string" in str(error)
    [error] = query_errors({"spec": spec(groupBy=[{"name": "x", "value": "[1]"}])})
    assert "must evaluate to int, double, string or bool, not list" in str(error)


def test_of_edges_no_object_may_be_named_in_any_way() -> None:
    section = {"rows": "Destinations", "apiGroup": "apps", "namespaces": ["a"], "names": ["b"]}
    errors = query_errors({"spec": {"from": section, "aggregates": [COUNT]}})
    assert [error.field for error in errors] == [
        "spec.from.apiGroup", "spec.from.namespaces", "spec.from.names",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("having", "row", "holds"),
    [
        ("edges > 2", {"where": "oslo", "edges": 3, "best": []}, True),
        ("edges > 2 && where == 'rome'", {"where": "oslo", "edges": 3, "best": []}, False),
        ("best.exists(n, n > 8)", {"where": "oslo", "edges": 1, "best": [9, 1]}, True),
    ],
)
def test_having_reads_every_column_of_the_result(having: str, row: Object, holds: bool) -> None:
    top = {"name": "best", "function": "Top", "of": "status.n"}
    plan = planned(spec(groupBy=[COLUMN], aggregates=[COUNT, top], having=having))
    assert plan.having is not None
    assert run(plan.having, row) is holds


@pytest.mark.parametrize(
    ("having", "words"),
    [("edges == 'x'", "no matching overload"), ("where > 1", "no matching overload")],
)
def test_having_knows_the_types_that_columns_have_for_certain(having: str, words: str) -> None:
    [error] = query_errors({"spec": spec(groupBy=[COLUMN], having=having)})
    assert error.field == "spec.having"
    assert words in str(error)


def test_an_empty_query_is_refused_and_does_not_crash() -> None:
    fields = {"spec.aggregates", "spec.from.resources"}
    for query in ({}, {"spec": None}, {"spec": {"from": None}}):
        assert {error.field for error in query_errors(query)} == fields


@pytest.mark.parametrize(
    ("section", "read"),
    [
        (DEPLOYMENTS, [("apps", "deployments", "")]),
        ({"resources": ["pods"], "namespaces": ["b", "a"]},
         [("", "pods", "b"), ("", "pods", "a")]),
        ({"apiGroup": "apps", "resources": ["deployments", "daemonsets"], "namespaces": ["a"]},
         [("apps", "deployments", "a"), ("apps", "daemonsets", "a")]),
        ({"rows": "Destinations"}, []),
        (None, []),
    ],
)  # fmt: skip
def test_who_may_ask_is_decided_by_what_is_shown(
    section: Object | None, read: list[tuple[str, str, str]]
) -> None:
    assert resources_read({"spec": {"from": section}}) == read
    assert resources_read({}) == []


EXPRESSIONS = ["status.n", "status.m", "status.n + status.m", "obj.spec.replicas"]


@given(st.lists(st.sampled_from(EXPRESSIONS), min_size=1, max_size=8))
def test_what_is_kept_of_an_object_depends_on_what_is_asked_and_not_on_how_often(
    asked: list[str],
) -> None:
    def parts(texts: list[str]) -> set[str]:
        found = planned(
            spec(
                aggregates=[
                    {"name": f"c{n}", "function": "Sum", "of": text} for n, text in enumerate(texts)
                ]
            )
        ).parts()
        assert len(found) == len({part.tree for part in found})
        return {part.tree for part in found}

    assert parts(asked) == parts(sorted(set(asked)))
    assert len(parts(asked)) == len(set(asked))
