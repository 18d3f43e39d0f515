"""``rows``: one copy at one edge, and what a query makes of it.

A row knows the copy (its report and the parts kept of it), the edge (destination, Location,
SyncTarget, Lease) and the placement that leads there. What it contributes is a pure function of
those, so nothing is remembered of a contribution: to take one out it is computed once more.

What fails costs as little as it can. A filter or a key that fails excludes the row, since nobody
knows where it would belong; an aggregate that fails loses this row for that column alone; what is
merely shown beside a value is null. Nothing is ever zero for want of a value, because a zero would
be added and averaged as if an edge had said it.

    what fails             the row then                       counted as
    filter, a group's key  contributes nothing                excluded, with an error
    an aggregate           counts, without a value there      matched, with an error
    a selected column      is shown, with null there          matched, with an error
    what a Top shows       is shown, with null there          matched

An edge whose Lease has lapsed keeps its row: its report gives way to one that says so, and what was
kept of the object stays, since that is the last that is known. A query that wants none of it says
so in its filter (``report.delivered``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from skerry.api.kinds import GroupResource
from skerry.api.refs import ClusterName, ObjectRef
from skerry.logic.fleet.placement.records import Destination
from skerry.logic.fleet.query.expressions import MAX_MESSAGE, Compiled, Failure, run
from skerry.logic.fleet.query.plan import QueryPlan
from skerry.logic.fleet.query.values import Number, Scalar, ValueRefusal, number, ordered, scalar
from skerry.logic.fleet.summary.freshness import LIVE, Lease, fresh_report
from skerry.logic.fleet.summary.health import HEALTHY
from skerry.logic.fleet.summary.report import Report
from skerry.logic.machinery.cel.values import EvaluationError

Labels = Mapping[str, str]
Copy = tuple[Any, ...]
"""What is kept of a copy: its report, then the value of each part."""

_NO_LABELS: Labels = {}


class Target(NamedTuple):
    """What is known of a SyncTarget."""

    ready: bool = False
    labels: Labels = _NO_LABELS


UNKNOWN_TARGET: Final = Target()


class Ident(NamedTuple):
    """Which row: ordered as people read, by Location, then object."""

    location: str
    item: ObjectRef
    uid: str


class Row(NamedTuple):
    """``copy`` None: the edge's mailbox has no copy, or none of the workspace's own.

    ``lease`` None: the edge has no Lease, so it was never heard of. ``revision`` is the one that
    the mailbox is settled at; 0 without a Rollout.
    """

    ident: Ident
    destination: Destination
    placement: str
    copy: Copy | None
    labels: Labels = _NO_LABELS
    target: Target = UNKNOWN_TARGET
    lease: Lease | None = LIVE
    revision: int = 0


class RowError(NamedTuple):
    """An expression that failed for a row."""

    column: str
    message: str


class Outcome(NamedTuple):
    """What a row contributes.

    ``verdict`` is one of the constants below; only a row that counts has a key and values, and a
    value is None where its expression failed. ``time`` is that of the report as it was written,
    whatever has become of the edge's Lease since.
    """

    verdict: str
    time: str = ""
    key: tuple[Scalar, ...] = ()
    values: tuple[Number | None, ...] = ()
    errors: tuple[RowError, ...] = ()


ABSENT_ROW: Final = "absent"
FILTERED: Final = "filtered"
EXCLUDED: Final = "excluded"
MATCHED: Final = "matched"


def own_copy(copy: Copy | None, cluster: ClusterName) -> Copy | None:
    """Return the copy as far as it is a workspace's own; an empty name stands for all."""
    if copy is None or (cluster and cluster in copy[0].withheld_from):
        return None
    return copy


class Evaluator:
    """A plan, applied to rows. *positions* says where in a copy the value of each part is.

    It remembers nothing of a row: the same row has the same outcome, whenever it is asked for.
    """

    def __init__(self, plan: QueryPlan, positions: Mapping[str, int]) -> None:
        self._plan = plan
        self._report = plan.reads("report")
        self._location = plan.reads("location")
        self._target = plan.reads("syncTarget")
        # What is a whole expression needs no scope.
        mixed = {part.tree for each in plan.expressions() if not each.only for part in each.parts}
        self._parts = [(tree, positions[tree]) for tree in sorted(mixed)]
        self._positions = positions

    def outcome(self, row: Row) -> Outcome:
        """Return what a row contributes."""
        if row.copy is None:
            return Outcome(ABSENT_ROW)
        plan, scope, time = self._plan, _Lazy(self, row), row.copy[0].time
        try:
            if plan.filter is not None and self._value(plan.filter, row, scope) is not True:
                return Outcome(FILTERED, time)
        except EvaluationError as error:
            return Outcome(EXCLUDED, time, errors=(_failed("filter", error),))
        key = []
        for column in plan.group_by:
            try:
                key.append(scalar(self._value(column.value, row, scope)))
            except (EvaluationError, ValueRefusal) as error:
                return Outcome(EXCLUDED, time, errors=(_failed(column.name, error),))
        errors: list[RowError] = []
        values = tuple(
            None if each.of is None else self._number(each.name, each.of, row, scope, errors)
            for each in plan.aggregates
        )
        for column in plan.select:
            self._shown(column.value, row, scope, errors, column.name)
        return Outcome(MATCHED, time, tuple(key), values, tuple(errors))

    def _number(
        self, name: str, of: Compiled, row: Row, scope: _Lazy, errors: list[RowError]
    ) -> Number | None:
        try:
            return number(self._value(of, row, scope))
        except (EvaluationError, ValueRefusal) as error:
            errors.append(_failed(name, error))
            return None

    def selected(self, row: Row) -> tuple[Scalar, ...]:
        """Return the selected columns of a row; null where an expression fails."""
        scope = _Lazy(self, row)
        return tuple(self._shown(column.value, row, scope) for column in self._plan.select)

    def shown(self, row: Row, show: Compiled | None) -> Scalar:
        """Return what stands beside a value of the row in a Top; the Location unless said."""
        return row.ident.location if show is None else self._shown(show, row, _Lazy(self, row))

    def order_key(self, row: Row) -> tuple[Any, ...]:
        """Return what selected rows are ordered by."""
        scope, plan = _Lazy(self, row), self._plan
        values = (
            (self._shown(plan.select[order.column].value, row, scope), order.descending)
            for order in plan.order_by
        )
        return tuple(Backwards(ordered(v)) if down else ordered(v) for v, down in values)

    def _shown(
        self,
        expression: Compiled,
        row: Row,
        scope: _Lazy,
        errors: list[RowError] | None = None,
        name: str = "",
    ) -> Scalar:
        try:
            return scalar(self._value(expression, row, scope))
        except (EvaluationError, ValueRefusal) as error:
            if errors is not None:
                errors.append(_failed(name, error))
            return None

    def _value(self, expression: Compiled, row: Row, scope: _Lazy) -> Any:
        if expression.only:
            value = row.copy[self._positions[expression.only]] if row.copy else None
            if isinstance(value, Failure):
                raise EvaluationError(value.message)
            return value
        return run(expression.rest, scope.variables())

    def variables(self, row: Row) -> dict[str, Any]:
        """Return the scope of a row: what its query reads, and nothing else."""
        scope = _Scope(placement=row.placement)
        if self._report and row.copy is not None:
            scope["report"] = _report(fresh_report(row.copy[0], row.lease), row.revision)
        if self._location:
            scope["location"] = {
                "name": row.destination.location,
                "cluster": row.destination.cluster,
                "labels": row.labels,
            }
        if self._target:
            scope["syncTarget"] = {
                "name": row.destination.sync_target,
                "ready": row.target.ready,
                "labels": row.target.labels,
            }
        for tree, position in self._parts:
            value = row.copy[position] if row.copy is not None else None
            if isinstance(value, Failure):
                scope.failures[tree] = value
            else:
                scope[tree] = value
        return scope


class KindEvaluators:
    """A plan about several kinds, of whose copies different parts are kept."""

    def __init__(self, by_kind: Mapping[GroupResource, Evaluator]) -> None:
        self._by_kind = by_kind

    def _of(self, row: Row) -> Evaluator:
        return self._by_kind[row.ident.item.group_resource]

    def outcome(self, row: Row) -> Outcome:
        return self._of(row).outcome(row)

    def selected(self, row: Row) -> tuple[Scalar, ...]:
        return self._of(row).selected(row)

    def shown(self, row: Row, show: Compiled | None) -> Scalar:
        return self._of(row).shown(row, show)

    def order_key(self, row: Row) -> tuple[Any, ...]:
        return self._of(row).order_key(row)


Evaluation = Evaluator | KindEvaluators


class _Scope(dict[str, Any]):
    """Variables of a row. Reading a part that failed fails, and not before it is read."""

    def __init__(self, **known: Any) -> None:
        super().__init__(**known)
        self.failures: dict[str, Failure] = {}

    def __missing__(self, name: str) -> Any:
        raise EvaluationError(self.failures[name].message)


class _Lazy:
    """The scope of a row, made when the first expression needs one.

    A query about content alone never does: each of its expressions is a part, whose value is kept.
    """

    __slots__ = ("_evaluator", "_made", "_row")

    def __init__(self, evaluator: Evaluator, row: Row) -> None:
        self._evaluator = evaluator
        self._row = row
        self._made: dict[str, Any] | None = None

    def variables(self) -> dict[str, Any]:
        if self._made is None:
            self._made = self._evaluator.variables(self._row)
        return self._made


class Backwards:
    """Orders the other way round: texts too, which have no negative, and one column of several."""

    __slots__ = ("of",)

    def __init__(self, of: Any) -> None:
        self.of = of

    def __lt__(self, other: Backwards) -> bool:
        return bool(other.of < self.of)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Backwards) and bool(other.of == self.of)

    def __hash__(self) -> int:
        return hash(self.of)


def _report(report: Report, revision: int) -> dict[str, Any]:
    return {
        "delivered": report.delivered,
        "healthy": report.health.status,
        "reason": report.health.reason,
        "revision": revision,
        "time": report.time,
    }


def _failed(column: str, error: Exception) -> RowError:
    return RowError(column, str(error)[:MAX_MESSAGE])


# What stands for the copy of a row of Destinations, which has none: the Lease says how it fares.
EDGE: Final[Copy] = (Report(delivered=True, health=HEALTHY),)
