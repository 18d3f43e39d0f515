"""What an answer says, how it is ordered, and what is cut."""

from __future__ import annotations

from typing import Any

from skerry.api.objects import Object
from skerry.api.refs import ObjectRef
from skerry.logic.fleet.placement.records import Destination
from skerry.logic.fleet.query.answer import MAX_BYTES, MAX_GROUPS, Answer, reference, rows_by_column
from skerry.logic.fleet.query.expressions import kept
from skerry.logic.fleet.query.plan import plan_of
from skerry.logic.fleet.query.rows import Evaluator, Ident, Row
from skerry.logic.fleet.summary.report import Report

WEB = ObjectRef("", "apps", "deployments", "shop", "web")
COUNT: Object = {"name": "edges", "function": "Count"}
KEY: Object = {"name": "key", "value": "status.key"}


def asked(statuses: list[Object | None], cutoff: str = "", **spec: Any) -> Answer:
    whole = {"from": {"apiGroup": "apps", "resources": ["deployments"]}, **spec}
    plan, errors = plan_of(whole)
    assert plan is not None, errors
    parts = plan.parts()
    rows = []
    for number, status in enumerate(statuses):
        copy = None
        if status is not None:
            report = Report(time=f"2030-01-01T00:00:{number % 60:02}Z")
            values = (kept(part.program, {"status": status, "obj": {}}) for part in parts)
            copy = (report, *values)
        where = Destination("inv", f"loc-{number:06}", "st", str(number))
        rows.append(Row(Ident(where.location, WEB, where.uid), where, "web", copy))
    positions = {part.tree: number for number, part in enumerate(parts, 1)}
    return reference(plan, Evaluator(plan, positions), rows, cutoff)


def test_an_answer_has_columns_rows_and_where_they_come_from() -> None:
    found = asked(
        [{"key": "a", "n": 1}, {"key": "b", "n": 5}, {"key": "b"}, None],
        cutoff="2030-01-01T00:00:01Z",
        groupBy=[KEY],
        aggregates=[COUNT, {"name": "n", "function": "Sum", "of": "status.n"}],
        orderBy=[{"column": "n", "descending": True}],
    )
    assert found == Answer(
        {
            "columns": [
                {"name": "key", "type": "string"},
                {"name": "edges", "type": "int"},
                {"name": "n", "type": "int"},
            ],
            "rows": [{"values": ["b", 2, 5]}, {"values": ["a", 1, 1]}],
            "matched": 3,
            "filtered": 0,
            "groups": 2,
            "rowsOmitted": 0,
            "sources": {"destinations": 4, "reporting": 3, "stale": 1, "absent": 1},
            "errors": {
                "rows": 1,
                "excluded": 0,
                "samples": [
                    {
                        "location": "loc-000002",
                        "object": "shop/web",
                        "column": "n",
                        "message": "no such key: n",
                    }
                ],
            },
            "asOf": {
                "newestReport": "2030-01-01T00:00:02Z",
                "oldestReport": "2030-01-01T00:00:00Z",
            },
        }
    )


def test_groups_of_an_equal_column_are_in_the_order_of_keys() -> None:
    statuses: list[Object | None] = [{"key": key} for key in ("c", True, 1, None, "a")]
    found = asked(statuses, groupBy=[KEY], aggregates=[COUNT], orderBy=[{"column": "edges"}])
    assert [row["values"][0] for row in found.status["rows"]] == [None, True, 1, "a", "c"]


def test_having_leaves_groups_out_and_its_failures_are_shown() -> None:
    statuses: list[Object | None] = [{"key": "a", "n": 3}, {"key": "b", "n": 1}, {"key": "c"}]
    total = {"name": "n", "function": "Sum", "of": "status.n"}
    found = asked(statuses, groupBy=[KEY], aggregates=[total], having="n > 2")
    assert [row["values"] for row in found.status["rows"]] == [["a", 3]]
    assert found.status["errors"]["groups"] == 1
    assert found.status["errors"]["samples"][-1]["column"] == "having"


def test_rows_beyond_the_limit_are_counted() -> None:
    statuses: list[Object | None] = [{"key": key} for key in range(5)]
    found = asked(statuses, groupBy=[KEY], aggregates=[COUNT], limit=2)
    assert (len(found.status["rows"]), found.status["rowsOmitted"], found.cut) == (2, 3, "")
    found = asked(statuses, select=[KEY], limit=2)
    assert (len(found.status["rows"]), found.status["rowsOmitted"]) == (2, 3)


def test_more_groups_than_there_may_be_are_cut_with_a_hint() -> None:
    statuses: list[Object | None] = [{"key": number} for number in range(MAX_GROUPS + 1)]
    found = asked(statuses, groupBy=[KEY], aggregates=[COUNT])
    assert "group by fewer values" in found.cut
    assert found.status["groups"] == MAX_GROUPS + 1
    assert found.status["rowsOmitted"] == MAX_GROUPS + 1 - 100


def test_no_answer_exceeds_its_size_whatever_edges_report() -> None:
    statuses: list[Object | None] = [{"key": f"{n:04}" + "€" * 2000} for n in range(1000)]
    columns = [{"name": f"c{n}", "value": "status.key"} for n in range(4)]
    found = asked(statuses, select=columns, limit=1000)
    assert "fewer or shorter columns" in found.cut
    size = sum(len(str(row["values"]).encode()) for row in found.status["rows"])
    assert MAX_BYTES * 0.9 < size < MAX_BYTES * 1.1
    assert found.status["rowsOmitted"] == 1000 - len(found.status["rows"])


def test_long_integers_are_exact_and_strings() -> None:
    total = {"name": "n", "function": "Sum", "of": "status.n"}
    found = asked([{"n": 2**64}, {"n": 1}], aggregates=[total])
    assert found.status["rows"] == [{"values": [str(2**64 + 1)]}]


def test_a_percentile_of_many_values_is_marked() -> None:
    p99 = {"name": "p", "function": "Percentile", "percentile": 99, "of": "status.n"}
    found = asked([{"n": number} for number in range(3000)], aggregates=[p99])
    assert found.status["columns"] == [{"name": "p", "type": "double", "approximate": True}]


def test_no_rows_come_to_no_groups() -> None:
    found = asked([], aggregates=[COUNT])
    assert (found.status["rows"], found.status["asOf"]) == ([], {})


def test_expressions_see_rows_by_the_names_of_their_columns() -> None:
    found = asked([{"key": "a"}, {"key": "b"}], groupBy=[KEY], aggregates=[COUNT])
    assert rows_by_column(found.status) == [
        {"key": "a", "edges": 1, "values": ["a", 1]},
        {"key": "b", "edges": 1, "values": ["b", 1]},
    ]
    assert rows_by_column({}) == []
