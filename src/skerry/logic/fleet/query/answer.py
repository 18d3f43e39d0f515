"""``answer``: the status of a query, from what its rows come to.

Total order, so equal rows give equal bytes: first what the query orders by, then the key of the
group or the row. Limits bound what is computed and written, whatever edges report: of groups the
first ten thousand by key are looked at, of rows as many are shown as fit into 256 KB.

Equal bytes matter because a status is written when it differs, and everybody who watches the query
hears of it. A hundred thousand reports that change nothing of the answer are then no write at all.

Three numbers must not be taken for each other. ``groups`` is how many groups the rows fall into;
``rowsOmitted`` how many lines the result has beyond those shown, whether for ``limit`` or for their
size; and what ``having`` leaves out is neither, as it is no line of the result. The four sorts of
rows (matched, filtered, excluded by an error, absent) add up to the destinations asked for, so a
reader can tell "nobody has this" from "nobody has answered yet".

    rows fall into seven regions                groups: 7
    having is true of four and fails for one    errors.groups: 1; two more are left out
    limit: 3                                    three rows, rowsOmitted: 1
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from heapq import nsmallest
from typing import Any, Final, NamedTuple

import orjson

from skerry.api.objects import Object
from skerry.logic.fleet.query.expressions import run
from skerry.logic.fleet.query.fold import Key, QueryFold, order_of
from skerry.logic.fleet.query.groups import Group
from skerry.logic.fleet.query.plan import Column, QueryPlan
from skerry.logic.fleet.query.rows import (
    ABSENT_ROW,
    EXCLUDED,
    FILTERED,
    MATCHED,
    Backwards,
    Evaluation,
    Ident,
    Row,
)
from skerry.logic.fleet.query.values import ordered, shown, type_name
from skerry.logic.machinery.cel.values import EvaluationError

MAX_GROUPS: Final = 10_000
MAX_BYTES: Final = 256 * 1024
MAX_SAMPLES: Final = 5

Find = Callable[[Ident], Row | None]


class Line(NamedTuple):
    """A row of the result: its place in the order, its values, which of them are approximate.

    The place ends with the group's key. No two groups share one, so no two lines share a place.
    """

    order: tuple[Any, ...]
    values: list[Any]
    approximate: list[bool]


@dataclass(frozen=True, slots=True)
class Answer:
    """What goes into the status, conditions apart."""

    status: Object
    # What was cut because of a limit; empty when nothing was.
    cut: str = ""


@dataclass(slots=True)
class Lines:
    """The groups of a query as rows of the result; only those that changed are computed anew.

    Known of a group is its line, the text with which ``having`` failed, or None where ``having``
    leaves it out. A report that changes one group of a thousand computes one line.
    """

    known: dict[Any, Line | str | None] = field(default_factory=dict)

    def of(self, fold: QueryFold) -> tuple[list[Line], list[str]]:
        """Return the groups that ``having`` lets through, and what it failed with for others."""
        for order in fold.touched:
            self.known.pop(order, None)
        fold.touched.clear()
        lines, failures = [], []
        for order in fold.group_order[:MAX_GROUPS]:
            line = self.known.get(order, _MISSING)
            if line is _MISSING:
                key, group = fold.groups[order]
                line = self.known[order] = _line(fold.plan, key, group)
            if isinstance(line, str):
                failures.append(line)
            elif line is not None:
                lines.append(line)
        return lines, failures


# None says that a group is left out, so it cannot say that nobody has computed it.
_MISSING: Any = object()


def _line(plan: QueryPlan, key: Key, group: Group) -> Line | str | None:
    """Return a group as a row; None when it is left out, a text when ``having`` fails."""
    values = [*key, *group.values()]
    approximate = [False] * len(key) + group.approximate()
    if plan.having is not None:
        scope = dict(zip((each.name for each in plan.columns), map(_plainly, values), strict=True))
        try:
            if run(plan.having, scope) is not True:
                return None
        except EvaluationError as error:
            return str(error)
    places = ((ordered(_orderly(values[each.column])), each.descending) for each in plan.order_by)
    own = tuple(Backwards(place) if down else place for place, down in places)
    return Line((own, order_of(key)), values, approximate)


def _plainly(value: Any) -> Any:
    """Return a value as ``having`` sees it: of a Top the numbers."""
    return [number for number, _ in value] if isinstance(value, list) else value


def _orderly(value: Any) -> Any:
    """Return what a value is ordered by: a Top by its first."""
    if isinstance(value, list):
        return value[0][0] if value else None
    return value


def answer(fold: QueryFold, lines: Lines, find: Find, cutoff: str) -> Answer:
    """Return what a query's status says; *cutoff* is the time before which a report is stale.

    *find* returns the row of an ident as it is now. Nothing but *cutoff* is about the present time:
    from the same rows comes the same answer, until one of their reports is stale.
    """
    plan, counts = fold.plan, fold.counts
    failures: list[str] = []
    approximate: list[bool] = []
    if plan.select:
        rows, total = list(_selected(fold, find)), len(fold.selected)
    else:
        found, failures = lines.of(fold)
        total = len(found) + max(0, len(fold.groups) - MAX_GROUPS)
        first = nsmallest(plan.limit, found, key=lambda line: line.order)
        rows = [_grouped(fold, line.values, find) for line in first]
        flags = (line.approximate for line in first)
        approximate = [any(each) for each in zip(*flags, strict=True)]
    fitting = _fitting(rows)
    matched, absent = counts.get(MATCHED, 0), counts.get(ABSENT_ROW, 0)
    asked = sum(counts.values())
    oldest, newest = fold.ages.ends()
    status: Object = {
        "columns": _columns(plan, fitting, approximate),
        "rows": [{"values": values} for values in fitting],
        "matched": matched,
        "filtered": counts.get(FILTERED, 0),
        "groups": len(fold.groups) if not plan.select else matched,
        "rowsOmitted": total - len(fitting),
        "sources": {
            "destinations": asked,
            "reporting": asked - absent,
            "stale": fold.ages.before(cutoff) if cutoff else 0,
            "absent": absent,
        },
        "errors": _errors(fold, failures, find),
    }
    times = {"newestReport": newest, "oldestReport": oldest}
    status["asOf"] = {name: time for name, time in times.items() if time}
    return Answer(status, _cut(fold, len(fitting) < len(rows)))


def rows_by_column(status: Object) -> list[Object]:
    """Return the rows of an answer as expressions see them: fields by column, and ``values``."""
    names = [str(each.get("name")) for each in status.get("columns") or ()]
    found: list[Object] = []
    for row in status.get("rows") or ():
        values = row.get("values") or []
        found.append({"values": values, **dict(zip(names, values, strict=False))})
    return found


def _selected(fold: QueryFold, find: Find) -> Iterator[list[Any]]:
    for _, ident in fold.selected[: fold.plan.limit]:
        row = find(ident)
        if row is not None:
            yield [shown(value) for value in fold.evaluator.selected(row)]


def _grouped(fold: QueryFold, values: Sequence[Any], find: Find) -> list[Any]:
    """Return the values of a group as they are shown; of a Top also what stands beside them.

    That is computed here, for lines that are shown, and not for every row that may come into one.
    """
    keys = len(fold.plan.group_by)
    rendered = [shown(value) for value in values[:keys]]
    for aggregate, value in zip(fold.plan.aggregates, values[keys:], strict=True):
        if aggregate.function == "Top":
            entries = [(number, find(ident)) for number, ident in value]
            rendered.append(
                [
                    {"value": shown(n), "show": shown(fold.evaluator.shown(row, aggregate.show))}
                    for n, row in entries
                    if row is not None
                ]
            )
        else:
            rendered.append(shown(value))
    return rendered


def _fitting(rows: Iterable[list[Any]]) -> list[list[Any]]:
    """Return the first rows that fit.

    The first one that does not fit ends the result, even where a later one would: what is shown is
    the beginning of the order and has no holes.
    """
    found, left = [], MAX_BYTES
    for row in rows:
        left -= len(orjson.dumps(row))
        if left < 0:
            break
        found.append(row)
    return found


def _columns(
    plan: QueryPlan, rows: Sequence[Sequence[Any]], approximate: Sequence[bool]
) -> list[Object]:
    found = []
    for number, column in enumerate(plan.columns):
        made: Object = {"name": column.name, "type": _type(column, [row[number] for row in rows])}
        if number < len(approximate) and approximate[number]:
            made["approximate"] = True
        found.append(made)
    return found


def _type(column: Any, values: Iterable[Any]) -> str:
    """Return the type of a column: as its expression says, or else as what is shown says.

    What is shown may be of another type in the next answer. Where it has none, or several, the
    column is ``dyn``; whole and broken numbers together are doubles.
    """
    if isinstance(column, Column) and column.value.type.name in ("int", "string", "bool", "double"):
        return column.value.type.name
    if not isinstance(column, Column) and column.function in ("Count", "Top"):
        return "int" if column.function == "Count" else "list"
    names = {type_name(value) for value in values if value is not None}
    if names == {"int", "double"}:
        return "double"
    return names.pop() if len(names) == 1 else "dyn"


def _errors(fold: QueryFold, failures: Sequence[str], find: Find) -> Object:
    """Return how much failed, and samples: the first by Location and object, then of ``having``.

    Not the latest, which would be another status with each report of a row that fails.
    """
    samples: list[Object] = []
    for ident in fold.failed[:MAX_SAMPLES]:
        row = find(ident)
        found = fold.evaluator.outcome(row).errors if row is not None else ()
        samples += [_sample(ident, error.column, error.message) for error in found]
    samples += [{"column": "having", "message": text} for text in sorted(failures)]
    errors: Object = {
        "rows": len(fold.failed),
        "excluded": fold.counts.get(EXCLUDED, 0),
        "samples": samples[:MAX_SAMPLES],
    }
    return {**errors, "groups": len(failures)} if failures else errors


def _sample(ident: Ident, column: str, message: str) -> Object:
    item = ident.item
    named = {"object": f"{item.namespace}/{item.name}" if item.namespace else item.name}
    found: Object = {"location": ident.location, "column": column, "message": message}
    return {**found, **named} if item.name else found


def _cut(fold: QueryFold, over_bytes: bool) -> str:
    if len(fold.groups) > MAX_GROUPS:
        return f"{len(fold.groups)} groups, {MAX_GROUPS} at most: group by fewer values"
    if over_bytes:
        return f"rows of more than {MAX_BYTES // 1024} KB: show fewer or shorter columns"
    return ""


def reference(plan: QueryPlan, evaluator: Evaluation, rows: Iterable[Row], cutoff: str) -> Answer:
    """Compute an answer from scratch, from all rows; what the incremental one must equal."""
    found = {row.ident: row for row in rows}
    fold = QueryFold(plan, evaluator)
    # Backwards, since the order in which rows come must not show.
    for ident in sorted(found, reverse=True):
        fold.add(found[ident])
    return answer(fold, Lines(), found.get, cutoff)
