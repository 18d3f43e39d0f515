"""The rows there are, kept up one object at a time, and what they come to.

A screen shows a few dozen of ten thousand rows, and is drawn again with every change. So a change
replaces one row and nothing else, and the worst rows are found when somebody looks: choosing the
first *n* takes one pass and no sorting of all.

An order kept up with every change was the other way. It would cost every heartbeat a search, for
screens that are drawn twice a second at most and often by nobody.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, Self, TypeVar

from skerry.api.refs import ClusterName
from skerry.logic.fleet.overview.rows import (
    EDGE_STATES,
    EdgeRow,
    EdgeState,
    PlacementRow,
    edge_row,
    placement_row,
    row_key,
)


class Row(Protocol):
    """What both kinds of row have."""

    @property
    def key(self) -> tuple[ClusterName, str]: ...

    @property
    def is_problem(self) -> bool: ...

    def order(self) -> tuple[int, int, int, str, str]: ...


R = TypeVar("R", bound=Row)


@dataclass(frozen=True, slots=True)
class Part(Generic[R]):
    """The worst rows, and how many more there are of the kind asked for."""

    rows: Sequence[R]
    omitted: int = 0

    @classmethod
    def of(cls, rows: Mapping[tuple[ClusterName, str], R], limit: int, *, problems: bool) -> Self:
        """Choose *limit* rows (0 means all), of those with problems only or of all."""
        meant = [row for row in rows.values() if row.is_problem or not problems]
        if limit and len(meant) > limit:
            return cls(heapq.nsmallest(limit, meant, key=_order), len(meant) - limit)
        return cls(sorted(meant, key=_order))


def _order(row: Row) -> tuple[int, int, int, str, str]:
    return row.order()


@dataclass(frozen=True, slots=True)
class Counts:
    """How many edges are in each state, and how many placements are ready."""

    edges: Mapping[EdgeState, int]
    ready: int
    not_ready: int
    not_judged: int


class Overview:
    """Rows of all edges and placements."""

    def __init__(self) -> None:
        self._edges: dict[tuple[ClusterName, str], EdgeRow] = {}
        self._placements: dict[tuple[ClusterName, str], PlacementRow] = {}

    def put_edge(self, obj: Mapping[str, object]) -> None:
        """Take a SyncTarget, new or changed."""
        row = edge_row(obj)
        self._edges[row.key] = row

    def drop_edge(self, obj: Mapping[str, object]) -> None:
        """Take that a SyncTarget is gone."""
        self._edges.pop(row_key(obj), None)

    def put_placement(self, obj: Mapping[str, object]) -> None:
        """Take an EdgePlacement, new or changed."""
        row = placement_row(obj)
        self._placements[row.key] = row

    def drop_placement(self, obj: Mapping[str, object]) -> None:
        """Take that an EdgePlacement is gone."""
        self._placements.pop(row_key(obj), None)

    def edges(self, limit: int = 0, *, problems: bool = False) -> Part[EdgeRow]:
        """Return the worst edges."""
        return Part.of(self._edges, limit, problems=problems)

    def placements(self, limit: int = 0, *, problems: bool = False) -> Part[PlacementRow]:
        """Return the worst placements."""
        return Part.of(self._placements, limit, problems=problems)

    def clusters(self) -> set[ClusterName]:
        """Return the clusters that rows are from."""
        return {cluster for rows in (self._edges, self._placements) for cluster, _ in rows}

    def counts(self) -> Counts:
        """Count edges by state and placements by readiness."""
        states = Counter(row.state for row in self._edges.values())
        ready = Counter(row.ready for row in self._placements.values())
        edges = {state: states[state] for state in EDGE_STATES if states[state]}
        return Counts(edges, ready["True"], ready["False"], ready["Unknown"])

    def has_problem(self) -> bool:
        """Tell whether somebody should look at anything."""
        rows: list[Row] = [*self._edges.values(), *self._placements.values()]
        return any(row.is_problem for row in rows)
