"""``plan``: a StatusQuery's spec, read, compiled and judged.

One function reads it for everybody: the hub refuses a query whose spec has errors, and where
another hub let it in the controller says the same in the condition ``Valid``.

A query either groups rows and says what each group comes to, or selects columns of single rows;
mixing them has no meaning, and is an error and not a guess. Expressions are compiled here, once,
and each knows which parts of an object it reads: ``parts`` of all of them together is what is kept
of a copy, so a query about one number of a status does not keep statuses.

All errors are found, not the first: the reader goes on with what is left out in place of what is
wrong, and a plan with errors is never returned.

Types are what CEL knows for certain. A status has no schema here, so ``status.x`` is ``dyn``, which
passes wherever anything would: whether it is a number is seen row by row, and a row of which it is
none is an error of that row. What is certainly wrong, such as a sum of ``location.name``, is wrong
for every row, and is refused while somebody is still looking. ``having`` is one step further on: it
reads columns of the result, of which an aggregate may have no value (nothing was reported, or every
row failed), so of aggregates only a count is known to be an int, and a Top to be a list.

The price of an expression is estimated when it is compiled and bounded again when it runs. The
first refuses what no row could afford; the second is needed since an edge decides how long its
lists are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from skerry.api.errors import FieldError
from skerry.api.kcp.queries import DEFAULT_LIMIT, MAX_TOP
from skerry.api.kinds import GroupResource
from skerry.api.objects import Object
from skerry.api.refs import ObjectRef
from skerry.logic.fleet.query.expressions import (
    Compiled,
    ExpressionError,
    Part,
    compiled,
    compiled_over,
)
from skerry.logic.machinery.cel import types
from skerry.logic.machinery.cel.compiler import Program
from skerry.logic.machinery.cel.types import CelType
from skerry.logic.machinery.durations import DurationError, parse_duration

COPIES: Final = "Copies"
UPSYNCED: Final = "Upsynced"
DESTINATIONS: Final = "Destinations"

_NUMBERS = ("int", "uint", "double", "dyn")
_SCALARS = (*_NUMBERS, "string", "bool", "null")
_USUAL_TOP = 5


class Source(NamedTuple):
    """Which rows a query is about; None stands for all.

    ``kinds`` is empty for rows of Destinations, which are edges and not objects.
    """

    rows: str
    kinds: frozenset[GroupResource]
    namespaces: frozenset[str] | None
    names: frozenset[str] | None
    placements: frozenset[str] | None

    def takes(self, item: ObjectRef) -> bool:
        """Tell whether an object is asked about."""
        return (
            item.group_resource in self.kinds
            and (self.namespaces is None or item.namespace in self.namespaces)
            and (self.names is None or item.name in self.names)
        )


class Column(NamedTuple):
    """A column that is computed row by row."""

    name: str
    value: Compiled


class Aggregate(NamedTuple):
    """A column that a group comes to.

    ``of`` is None for Count only. ``percentile`` is for Percentile, ``k`` and ``show`` for Top;
    ``show`` None: the Location stands beside each value.
    """

    name: str
    function: str
    of: Compiled | None = None
    percentile: float = 0
    k: int = 0
    show: Compiled | None = None


class Order(NamedTuple):
    """A column of the result, by number, and its direction."""

    column: int
    descending: bool


@dataclass(frozen=True, slots=True)
class QueryPlan:
    """A query that makes sense. There are either aggregates or selected columns.

    ``having``, ``order_by`` and ``limit`` are about the result and no row depends on them, so they
    are not among ``expressions``, and nothing is kept of an object for their sake.
    """

    source: Source
    filter: Compiled | None
    group_by: tuple[Column, ...]
    aggregates: tuple[Aggregate, ...]
    select: tuple[Column, ...]
    having: Program | None
    order_by: tuple[Order, ...]
    limit: int
    stale_seconds: int | None

    @property
    def columns(self) -> tuple[Column | Aggregate, ...]:
        """The columns of the result, in order."""
        return self.select or (*self.group_by, *self.aggregates)

    def expressions(self) -> Iterator[Compiled]:
        """Yield everything that is computed for a row."""
        if self.filter is not None:
            yield self.filter
        for column in (*self.group_by, *self.select):
            yield column.value
        for aggregate in self.aggregates:
            yield from (each for each in (aggregate.of, aggregate.show) if each is not None)

    def parts(self) -> list[Part]:
        """Return what has to be kept of each object, without repeats."""
        return list(dict.fromkeys(part for each in self.expressions() for part in each.parts))

    def reads(self, variable: str) -> bool:
        """Tell whether any row depends on a variable of ``OF_ROW``.

        Where none does, a change of it (a Location's labels, a Lease that lapses) costs nothing.
        """
        return any(each.reads(variable) for each in self.expressions())


def plan_of(spec: Mapping[str, Any]) -> tuple[QueryPlan | None, list[FieldError]]:
    """Return the plan of a spec that its schema accepts, or what is wrong with it."""
    reader = _Reader(spec)
    plan = reader.plan()
    return (None if reader.errors else plan), reader.errors


def query_errors(query: Object) -> list[FieldError]:
    """Return the errors in a StatusQuery that its schema cannot find."""
    return plan_of(query.get("spec") or {})[1]


class _Reader:
    """Reads one spec; what is wrong with it gathers in ``errors``."""

    def __init__(self, spec: Mapping[str, Any]) -> None:
        self._spec = spec
        self._rows = (spec.get("from") or {}).get("rows") or COPIES
        self.errors: list[FieldError] = []

    def plan(self) -> QueryPlan:
        """Return the plan; of no use when there are errors.

        Columns come first, as ``having`` and ``orderBy`` name them. A column that does not compile
        is missing there, so one mistake may be found twice; none is overlooked.
        """
        spec = self._spec
        select, aggregates = spec.get("select") or [], spec.get("aggregates") or []
        self._check_form(select, aggregates)
        filtered = self._compiled("spec.filter", spec.get("filter"), ("bool", "dyn"))
        group_by = self._columns("spec.groupBy", spec.get("groupBy") or [])
        read = tuple(self._aggregate(n, each) for n, each in enumerate(aggregates))
        selected = self._columns("spec.select", select)
        columns: tuple[Column | Aggregate, ...] = selected or (*group_by, *read)
        self._check_names(columns)
        return QueryPlan(
            self._source(),
            filtered,
            group_by,
            read,
            selected,
            self._having(columns),
            self._order(columns),
            spec.get("limit") or DEFAULT_LIMIT,
            self._stale_seconds(),
        )

    def _invalid(self, path: str, value: Any, detail: str) -> None:
        self.errors.append(FieldError.invalid(path, value, detail))

    def _required(self, path: str, detail: str) -> None:
        self.errors.append(FieldError.required(path, detail))

    def _forbidden(self, path: str, detail: str) -> None:
        self.errors.append(FieldError.forbidden(path, detail))

    def _check_form(self, select: Sequence[Any], aggregates: Sequence[Any]) -> None:
        """Check that the query is one of the two sorts: groups and aggregates, or single rows."""
        if select and aggregates:
            self._forbidden("spec.select", "may not be combined with aggregates")
        if select and self._spec.get("groupBy"):
            self._forbidden("spec.groupBy", "may not be combined with select")
        if select and self._spec.get("having"):
            self._forbidden("spec.having", "may not be combined with select; use filter")
        if not select and not aggregates:
            self._required("spec.aggregates", "say what groups come to, or select columns")

    def _check_names(self, columns: Sequence[Column | Aggregate]) -> None:
        seen: set[str] = set()
        for column in columns:
            if column.name in seen:
                self.errors.append(FieldError.duplicate("spec", column.name))
            seen.add(column.name)

    def _source(self) -> Source:
        section = self._spec.get("from") or {}
        resources = section.get("resources") or []
        if self._rows == DESTINATIONS:
            for name in ("apiGroup", "resources", "namespaces", "names"):
                if section.get(name):
                    self._forbidden(f"spec.from.{name}", "rows of Destinations are edges")
        elif not resources:
            self._required("spec.from.resources", "name the resources that are asked about")
        group = section.get("apiGroup", "")
        return Source(
            self._rows,
            frozenset(GroupResource(group, each) for each in resources),
            *(_some(section.get(name)) for name in ("namespaces", "names", "placements")),
        )

    def _compiled(self, path: str, text: str | None, wanted: Sequence[str]) -> Compiled | None:
        """Return an expression; None for none, and for one that means nothing.

        One of the wrong type is returned, its error noted: its column is there for ``having``. Rows
        of Destinations have no object, so ``obj`` and ``status`` are unknown names there.
        """
        if text is None:
            return None
        try:
            found = compiled(text, with_object=self._rows != DESTINATIONS)
        except ExpressionError as error:
            self._invalid(path, text, str(error))
            return None
        if found.type.name not in wanted:
            self._invalid(path, text, f"must evaluate to {_sentence(wanted)}, not {found.type}")
        return found

    def _columns(self, path: str, entries: Sequence[Mapping[str, Any]]) -> tuple[Column, ...]:
        found = (
            (entry["name"], self._compiled(f"{path}[{number}].value", entry["value"], _SCALARS))
            for number, entry in enumerate(entries)
        )
        return tuple(Column(name, value) for name, value in found if value is not None)

    def _aggregate(self, number: int, entry: Mapping[str, Any]) -> Aggregate:
        path, function = f"spec.aggregates[{number}]", entry["function"]
        of = self._compiled(f"{path}.of", entry.get("of"), _NUMBERS)
        show = self._compiled(f"{path}.show", entry.get("show"), _SCALARS)
        if function == "Count" and entry.get("of"):
            self._forbidden(f"{path}.of", "Count counts rows; use filter")
        if function != "Count" and not entry.get("of"):
            self._required(f"{path}.of", f"{function} needs the expression of a number")
        if function == "Percentile" and "percentile" not in entry:
            self._required(f"{path}.percentile", "say which, such as 99")
        for name, owner in (("percentile", "Percentile"), ("k", "Top"), ("show", "Top")):
            if function != owner and name in entry:
                self._forbidden(f"{path}.{name}", f"is for {owner} only")
        k = min(entry.get("k") or _USUAL_TOP, MAX_TOP)
        return Aggregate(
            entry["name"], function, of, entry.get("percentile", 0), k if function == "Top" else 0,
            show,
        )  # fmt: skip

    def _having(self, columns: Sequence[Column | Aggregate]) -> Program | None:
        text = self._spec.get("having")
        if text is None:
            return None
        variables = {column.name: _result_type(column) for column in columns}
        try:
            program = compiled_over(text, variables)
        except ExpressionError as error:
            self._invalid("spec.having", text, str(error))
            return None
        if program.type.name not in ("bool", "dyn"):
            self._invalid("spec.having", text, f"must evaluate to bool, not {program.type}")
        return program

    def _order(self, columns: Sequence[Column | Aggregate]) -> tuple[Order, ...]:
        names = [column.name for column in columns]
        found = []
        for number, entry in enumerate(self._spec.get("orderBy") or ()):
            name = entry["column"]
            if name in names:
                found.append(Order(names.index(name), bool(entry.get("descending"))))
            else:
                wanted = f"want a column of the result: {', '.join(names)}"
                self._invalid(f"spec.orderBy[{number}].column", name, wanted)
        return tuple(found)

    def _stale_seconds(self) -> int | None:
        text = self._spec.get("staleAfter")
        if text is None:
            return None
        try:
            return parse_duration(text) // 1_000_000_000
        except DurationError as error:
            self._invalid("spec.staleAfter", text, str(error))
            return None


def _result_type(column: Column | Aggregate) -> CelType:
    """Return the type by which ``having`` knows a column.

    A sum or a maximum has none: it is null for a group none of whose rows had a value, and then
    ``total > 3`` fails for that group alone.
    """
    if isinstance(column, Column):
        return column.value.type
    if column.function == "Count":
        return types.INT
    return types.list_of(types.DYN) if column.function == "Top" else types.DYN


def _some(names: Sequence[str] | None) -> frozenset[str] | None:
    return frozenset(names) if names else None


def _sentence(wanted: Sequence[str]) -> str:
    """Return types as a person would write them: nobody writes ``dyn``, or means null."""
    named = [name for name in wanted if name not in ("dyn", "null", "uint")]
    return named[0] if len(named) == 1 else f"{', '.join(named[:-1])} or {named[-1]}"


def resources_read(query: Object) -> list[tuple[str, str, str]]:
    """Return group, resource and namespace of what a query shows; no namespace stands for all.

    Its answer stands in its status, where RBAC on the objects no longer applies. So admission asks
    whether whoever writes the query may read all of this.
    """
    section = (query.get("spec") or {}).get("from") or {}
    group = section.get("apiGroup", "")
    return [
        (group, resource, namespace)
        for resource in section.get("resources") or ()
        for namespace in section.get("namespaces") or ("",)
    ]
