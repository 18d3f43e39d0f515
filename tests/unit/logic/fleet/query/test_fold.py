"""What rows come to, against a few lines of Python that read them all."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from skerry.api.objects import Object
from skerry.logic.fleet.query.answer import Lines, answer
from skerry.logic.fleet.query.fold import Ages, QueryFold, order_of
from skerry.logic.fleet.query.rows import Ident, Row
from tests.kit.chain.query_rows import REPORT, Asked

times = st.integers(0, 59).map(lambda second: f"2030-01-01T00:00:{second:02}Z")


@given(st.lists(times), st.lists(times), times)
def test_how_many_reports_are_older_than_a_time(
    there: list[str], gone: list[str], cutoff: str
) -> None:
    ages = Ages()
    for time in (*there, *gone):
        ages.add(time)
    for time in gone:
        ages.remove(time)
    assert ages.before(cutoff) == sum(time < cutoff for time in there)
    assert ages.first_from(cutoff) == min((t for t in there if t >= cutoff), default="")
    assert ages.ends() == (min(there, default=""), max(there, default=""))
    assert bool(ages) == bool(there)


def test_true_and_one_are_different_groups() -> None:
    assert order_of((True,)) != order_of((1,))
    assert order_of((1,)) == order_of((1.0,))


@dataclass(frozen=True)
class Edge:
    """What one edge reports; ``n`` None: nothing of that name, ``on`` None: no copy at all."""

    name: str
    region: str
    on: bool | None
    n: int | None
    second: int

    @property
    def time(self) -> str:
        return f"2030-01-01T00:00:{self.second:02}Z"


edges = st.lists(
    st.builds(
        Edge,
        st.sampled_from([f"edge-{number}" for number in range(12)]),
        st.sampled_from(["north", "south", ""]),
        st.sampled_from([True, True, True, False, None]),
        st.none() | st.integers(-3, 5),
        st.integers(0, 3),
    ),
    max_size=12,
    unique_by=lambda edge: edge.name,
)
GROUPED = Asked(
    filter="status.on",
    groupBy=[{"name": "region", "value": "location.labels.region"}],
    aggregates=[
        {"name": "edges", "function": "Count"},
        {"name": "total", "function": "Sum", "of": "status.n"},
        {"name": "least", "function": "Min", "of": "status.n"},
        {"name": "peak", "function": "Max", "of": "status.n"},
        {"name": "mean", "function": "Avg", "of": "status.n"},
        {"name": "best", "function": "Top", "of": "status.n", "k": 2, "show": "location.name"},
    ],
    orderBy=[{"column": "edges", "descending": True}],
)
SELECTED = Asked(
    filter="status.on",
    select=[{"name": "where", "value": "location.name"}, {"name": "n", "value": "status.n"}],
    orderBy=[{"column": "n"}],
    limit=4,
)


def row(asked: Asked, edge: Edge) -> Row:
    status = None
    if edge.on is not None:
        status = {"on": edge.on, **({"n": edge.n} if edge.n is not None else {})}
    report = replace(REPORT, time=edge.time)
    return asked.row(status, location=edge.name, region=edge.region, report=report)


def status_of(asked: Asked, there: list[Edge], gone: list[Edge], cutoff: str = "") -> Object:
    """Return the answer after *gone* have been there too."""
    fold, rows = QueryFold(asked.plan, asked.evaluator), dict[Ident, Row]()
    lines = Lines()
    for edge in (*gone, *there):
        fold.add(row(asked, edge))
        answer(fold, lines, rows.get, cutoff)
    for edge in gone:
        fold.remove(row(asked, edge))
    rows = {found.ident: found for found in (row(asked, each) for each in there)}
    found = answer(fold, lines, rows.get, cutoff).status
    for each in rows.values():
        fold.remove(each)
    assert not fold, "something is held though nothing is there"
    return found


def expected(group: list[Edge]) -> list[Any]:
    """Return the values of a group, as SQL would: what is null is no value."""
    numbers = [each.n for each in group if each.n is not None]
    best = sorted((e for e in group if e.n is not None), key=lambda e: (-(e.n or 0), e.name))[:2]
    mean = sum(numbers) / len(numbers) if numbers else None
    return [
        group[0].region,
        len(group),
        sum(numbers) if numbers else None,
        min(numbers, default=None),
        max(numbers, default=None),
        mean,
        [{"value": each.n, "show": each.name} for each in best],
    ]


@given(edges, edges)
def test_groups_come_to_what_a_few_lines_of_python_say(there: list[Edge], gone: list[Edge]) -> None:
    known = {each.name for each in there}
    found = status_of(GROUPED, there, [each for each in gone if each.name not in known])
    groups = defaultdict(list)
    for edge in there:
        if edge.on:
            groups[edge.region].append(edge)
    wanted = [expected(group) for group in groups.values()]
    wanted.sort(key=lambda values: (-values[1], values[0]))
    shown = [each["values"] for each in found["rows"]]
    assert [each[:5] + each[6:] for each in shown] == [each[:5] + each[6:] for each in wanted]
    for values, other in zip(shown, wanted, strict=True):
        assert (values[5] is None) == (other[5] is None)
        assert values[5] is None or abs(values[5] - other[5]) < 1e-9
    assert found["groups"] == len(groups)


@given(edges, edges, st.integers(0, 4))
def test_every_row_is_counted_as_exactly_one_sort(
    there: list[Edge], gone: list[Edge], second: int
) -> None:
    known = {each.name for each in there}
    cutoff = f"2030-01-01T00:00:{second:02}Z"
    found = status_of(GROUPED, there, [e for e in gone if e.name not in known], cutoff)
    reporting = [each for each in there if each.on is not None]
    matched = [each for each in reporting if each.on]
    assert found["matched"] == len(matched)
    assert found["filtered"] == len(reporting) - len(matched)
    assert found["sources"] == {
        "destinations": len(there),
        "reporting": len(reporting),
        "stale": sum(each.second < second for each in reporting),
        "absent": len(there) - len(reporting),
    }
    # A number that is missing is an error of its column, and no zero.
    assert found["errors"]["rows"] == sum(each.n is None for each in matched)
    assert found["errors"]["excluded"] == 0
    times = [each.time for each in reporting]
    assert found["asOf"].get("oldestReport", "") == min(times, default="")
    assert found["asOf"].get("newestReport", "") == max(times, default="")


@given(edges, edges)
def test_selected_rows_are_the_first_in_the_order_that_is_asked_for(
    there: list[Edge], gone: list[Edge]
) -> None:
    known = {each.name for each in there}
    found = status_of(SELECTED, there, [each for each in gone if each.name not in known])
    matched = [each for each in there if each.on]
    numbers = sorted((e for e in matched if e.n is not None), key=lambda e: (e.n or 0, e.name))
    shown = [each["values"] for each in found["rows"]]
    assert [each for each in shown if each[1] is not None] == [
        [each.name, each.n] for each in numbers if [each.name, each.n] in shown
    ]
    assert len(shown) == min(4, len(matched))
    assert found["rowsOmitted"] == len(matched) - len(shown)
    # Who has no number stands together, before or behind all numbers.
    nulls = [each[1] is None for each in shown]
    assert nulls in (sorted(nulls), sorted(nulls, reverse=True))
