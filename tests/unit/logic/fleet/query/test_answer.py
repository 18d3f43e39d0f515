"""What an answer says, how it is ordered, and what is cut."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.api.objects import Object
from skerry.api.refs import ObjectRef
from skerry.logic.fleet.placement.records import Destination
from skerry.logic.fleet.query.answer import (
    MAX_BYTES,
    MAX_GROUPS,
    MAX_SAMPLES,
    Answer,
    Lines,
    answer,
    reference,
    rows_by_column,
)
from skerry.logic.fleet.query.expressions import kept
from skerry.logic.fleet.query.fold import QueryFold
from skerry.logic.fleet.query.plan import plan_of
from skerry.logic.fleet.query.rows import Evaluator, Ident, Row
from skerry.logic.fleet.summary.report import Report
from tests.kit.chain.query_rows import Asked

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


TOTAL: Object = {"name": "n", "function": "Sum", "of": "status.n"}


@pytest.mark.parametrize("descending", [False, True])
def test_groups_of_every_type_are_ordered_by_a_column_and_then_by_key(descending: bool) -> None:
    statuses: list[Object | None] = [
        {"key": "a", "n": 2}, {"key": "b", "n": 1}, {"key": "c"}, {"key": "d", "n": 2},
    ]  # fmt: skip
    order = [{"column": "n", "descending": descending}]
    found = asked(statuses, groupBy=[KEY], aggregates=[TOTAL], orderBy=order)
    keys = [row["values"][0] for row in found.status["rows"]]
    assert keys == (["a", "d", "b", "c"] if descending else ["c", "b", "a", "d"])


def test_a_top_shows_values_with_what_stands_beside_them_and_orders_by_the_first() -> None:
    statuses: list[Object | None] = [
        {"key": "a", "n": 3}, {"key": "a", "n": 5}, {"key": "b", "n": 9}, {"key": "c"},
    ]  # fmt: skip
    top = {"name": "worst", "function": "Top", "of": "status.n", "k": 2, "show": "status.key"}
    order = [{"column": "worst", "descending": True}]
    found = asked(statuses, groupBy=[KEY], aggregates=[top], orderBy=order)
    assert [row["values"] for row in found.status["rows"]] == [
        ["b", [{"value": 9, "show": "b"}]],
        ["a", [{"value": 5, "show": "a"}, {"value": 3, "show": "a"}]],
        ["c", []],
    ]
    assert found.status["columns"][1] == {"name": "worst", "type": "list"}


def test_having_sees_the_numbers_of_a_top() -> None:
    top = {"name": "worst", "function": "Top", "of": "status.n", "k": 3}
    statuses: list[Object | None] = [
        {"key": "a", "n": 3},
        {"key": "a", "n": 9},
        {"key": "b", "n": 1},
    ]
    found = asked(statuses, groupBy=[KEY], aggregates=[top], having="worst.all(n, n > 2)")
    assert [row["values"][0] for row in found.status["rows"]] == ["a"]
    assert found.status["groups"] == 2
    assert found.status["rowsOmitted"] == 0, "what having leaves out is no row of the result"


def test_selected_rows_come_in_order_with_null_where_an_expression_failed() -> None:
    statuses: list[Object | None] = [{"key": 2, "n": 1}, {"key": 1}, None, {"key": 3, "n": [1]}]
    columns = [KEY, {"name": "n", "value": "status.n"}]
    order = [{"column": "key", "descending": True}]
    found = asked(statuses, select=columns, orderBy=order)
    assert [row["values"] for row in found.status["rows"]] == [[3, None], [2, 1], [1, None]]
    assert (found.status["groups"], found.status["matched"]) == (3, 3)
    assert found.status["errors"]["rows"] == 2


def test_not_more_failures_are_shown_than_a_person_reads_and_all_are_counted() -> None:
    found = asked([{} for _ in range(MAX_SAMPLES + 4)], aggregates=[TOTAL])
    errors = found.status["errors"]
    assert (errors["rows"], errors["excluded"], len(errors["samples"])) == (9, 0, MAX_SAMPLES)
    assert [each["location"] for each in errors["samples"]] == [
        f"loc-{number:06}" for number in range(MAX_SAMPLES)
    ]
    found = asked([{}, {"key": 1}], groupBy=[KEY], aggregates=[COUNT])
    assert (found.status["errors"]["rows"], found.status["errors"]["excluded"]) == (1, 1)
    assert "groups" not in found.status["errors"]


def test_every_row_asked_for_is_counted_once_whatever_became_of_it() -> None:
    statuses: list[Object | None] = [
        {"on": True, "key": "a"}, {"on": False}, {}, None, {"on": True}, None,
    ]  # fmt: skip
    found = asked(statuses, filter="status.on", groupBy=[KEY], aggregates=[COUNT]).status
    excluded, absent = found["errors"]["excluded"], found["sources"]["absent"]
    assert (found["matched"], found["filtered"], excluded, absent) == (1, 1, 2, 2)
    assert found["sources"]["destinations"] == len(statuses)
    assert found["sources"]["reporting"] == 4


@pytest.mark.parametrize(
    ("cutoff", "stale"),
    [
        ("", 0),
        ("2030-01-01T00:00:00Z", 0),
        ("2030-01-01T00:00:02Z", 2),
        ("2031-01-01T00:00:00Z", 4),
    ],
)
def test_a_report_is_stale_when_it_is_older_than_the_moment_asked_for(
    cutoff: str, stale: int
) -> None:
    found = asked([{"n": 1}] * 4, cutoff, aggregates=[COUNT])
    assert found.status["sources"]["stale"] == stale


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, 2], "int"),
        ([1.5], "double"),
        ([1, 2.5], "double"),
        ([1, "x"], "dyn"),
        (["x", None], "string"),
        ([True], "bool"),
        ([None], "dyn"),
        ([2**60], "string"),
        ([], "dyn"),
    ],
)
def test_a_column_has_the_type_of_what_is_shown_in_it(values: list[Any], kind: str) -> None:
    found = asked([{"key": value} for value in values], select=[KEY])
    assert found.status["columns"] == [{"name": "key", "type": kind}]


def test_a_column_has_the_type_that_its_expression_has_for_certain() -> None:
    columns = [
        {"name": "where", "value": "location.name"},
        {"name": "ready", "value": "syncTarget.ready"},
        {"name": "labels", "value": "location.labels.size()"},
        {"name": "half", "value": "0.5"},
    ]
    none: list[Object | None] = []
    for statuses in (none, [*none, {}]):
        found = asked(statuses, select=columns)
        kinds = [each["type"] for each in found.status["columns"]]
        assert kinds == ["string", "bool", "int", "double"]


def test_what_is_cut_for_its_size_says_so_and_what_just_fits_does_not() -> None:
    text = "x" * 250
    columns = [{"name": f"c{n}", "value": "status.key"} for n in range(10)]
    line = len(b"[]") + 10 * len(f'"{text}"') + 9
    fitting = MAX_BYTES // line
    assert fitting < 1000
    just = asked([{"key": text}] * fitting, select=columns, limit=1000)
    assert (just.cut, just.status["rowsOmitted"]) == ("", 0)
    over = asked([{"key": text}] * (fitting + 1), select=columns, limit=1000)
    assert f"{MAX_BYTES // 1024} KB" in over.cut
    assert over.status["rowsOmitted"] == 1


def test_rows_with_more_values_than_columns_are_read_as_far_as_they_go() -> None:
    status = {"columns": [{"name": "a"}, {}], "rows": [{"values": [1, 2, 3]}, {}, {"values": [4]}]}
    assert rows_by_column(status) == [
        {"a": 1, "None": 2, "values": [1, 2, 3]},
        {"values": []},
        {"a": 4, "values": [4]},
    ]


GROUPED = Asked(
    filter="status.?on.orValue(true)",
    groupBy=[{"name": "region", "value": "location.labels.region"}],
    aggregates=[COUNT, TOTAL, {"name": "best", "function": "Top", "of": "status.n", "k": 2}],
    having="edges > 1 || n > 2",
    orderBy=[{"column": "n", "descending": True}],
    limit=2,
)
statuses = st.none() | st.fixed_dictionaries(
    {}, optional={"on": st.booleans(), "n": st.integers(-2, 3) | st.just("x")}
)


@given(
    st.lists(st.tuples(st.integers(0, 7), st.none() | st.just(...) | statuses), max_size=25),
    st.randoms(use_true_random=False),
)
def test_an_answer_kept_up_row_by_row_equals_the_one_from_scratch_at_every_step(
    events: list[tuple[int, Any]], order: random.Random
) -> None:
    fold, lines, rows = QueryFold(GROUPED.plan, GROUPED.evaluator), Lines(), dict[Ident, Row]()
    for number, event in events:
        row = GROUPED.row(
            None if event is ... else event,
            location=f"loc-{number}",
            region=("north", "south", "east")[number % 3],
        )
        old = rows.pop(row.ident, None)
        if old is not None:
            fold.remove(old)
        if event is not ...:
            fold.add(row)
            rows[row.ident] = row
        shuffled = list(rows.values())
        order.shuffle(shuffled)
        wanted = reference(GROUPED.plan, GROUPED.evaluator, shuffled, "")
        assert answer(fold, lines, rows.get, "") == wanted
    for row in rows.values():
        fold.remove(row)
    assert not fold
    assert answer(fold, lines, rows.get, "").status["rows"] == []


def test_a_group_that_changed_is_computed_anew_and_one_that_went_is_not_shown() -> None:
    fold, lines = QueryFold(GROUPED.plan, GROUPED.evaluator), Lines()
    rows = {row.ident: row for row in (GROUPED.row({"n": n}, location=f"l{n}") for n in (1, 2, 3))}
    shown = []
    for row in rows.values():
        fold.add(row)
        found = answer(fold, lines, rows.get, "").status
        shown.append([each["values"][:3] for each in found["rows"]])
    # One row alone, with so small a number, is left out by having.
    assert shown == [[], [["north", 2, 3]], [["north", 3, 6]]]
    for row in rows.values():
        fold.remove(row)
    assert answer(fold, lines, rows.get, "").status["rows"] == []
