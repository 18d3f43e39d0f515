"""One query: as it is, and what its answer is or waits for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from skerry.api.edge import (
    COMPLETE,
    KIND_GONE,
    KIND_NOT_SERVED,
    NOT_KEPT,
    READING,
    WATCH_INTERRUPTED,
)
from skerry.api.kinds import GroupResource
from skerry.api.objects import Object
from skerry.api.refs import ObjectRef
from skerry.controllers.status_queries.events import QueryInputs
from skerry.controllers.status_queries.feed import Feed
from skerry.kit.clock import Clock
from skerry.kit.timestamps import parse_rfc3339, rfc3339
from skerry.logic.fleet.query.answer import Answer
from skerry.logic.fleet.query.plan import QueryPlan
from skerry.logic.machinery.conditions import find_condition
from skerry.runtime.index import Index, Key
from skerry.runtime.pace import Pace

QUERIES = "status-queries"


@dataclass(frozen=True, slots=True)
class Observed:
    """``answer`` None: there is none yet, or none any more, and ``waiting`` says why.

    ``waiting`` beside an answer says why the answer is not complete.
    """

    ref: ObjectRef
    query: Object
    errors: tuple[str, ...] = ()
    answer: Answer | None = None
    waiting: tuple[str, str] | None = None
    revision: int = 0
    expired: bool = False


class QueryObserver:
    """Reads one query at a time, and has it read again when time changes its answer."""

    def __init__(
        self,
        inputs: QueryInputs,
        feed: Feed,
        queries: Index,
        pace: Pace[ObjectRef],
        clock: Clock,
        enqueue_after: Callable[[ObjectRef, float], None],
        max_bytes: int,
    ) -> None:
        """All queries together may hold about *max_bytes*."""
        self._inputs = inputs
        self._feed = feed
        self._queries = queries
        self._pace = pace
        self._clock = clock
        self._enqueue_after = enqueue_after
        self._max_bytes = max_bytes

    async def observe(self, ref: ObjectRef) -> Observed | None:
        """Return a query and its answer; None when there is no such query."""
        query = self._queries.get(Key(ref.cluster, "", ref.name))
        known = self._inputs.known.get(ref)
        if query is None or known is None:
            return None
        self._pace.observing(ref)
        if self._is_over(ref, query):
            return Observed(ref, query, expired=True)
        if known.plan is None:
            return Observed(ref, query, tuple(map(str, known.errors)))
        if ref in self._inputs.refused:
            return Observed(ref, query, waiting=(NOT_KEPT, self._inputs.refused[ref]))
        return self._answered(ref, query, known.plan)

    def _answered(self, ref: ObjectRef, query: Object, plan: QueryPlan) -> Observed:
        scope, was = self._inputs.scope_of(ref), _was_served(query)
        for kind in sorted(plan.source.kinds):
            waiting = self._waiting(ref, scope, kind, was_served=was)
            if waiting is not None:
                return Observed(ref, query, waiting=waiting)
        if ref not in self._inputs.tables:
            return Observed(ref, query, waiting=(READING, "what it asks about is being read"))
        refused = self._refused(ref)
        if refused:
            self._inputs.refuse(ref, refused)
            return Observed(ref, query, waiting=(NOT_KEPT, refused))
        tables, cutoff = self._inputs.tables, self._cutoff(ref, plan)
        followed = all(map(self._feed.watches.is_followed, plan.source.kinds))
        gap = None if followed else (WATCH_INTERRUPTED, "the watch is interrupted; as last seen")
        revision = min(map(self._feed.watches.revision, plan.source.kinds), default=0)
        return Observed(ref, query, (), tables.answer(ref, cutoff), gap, revision)

    def _waiting(
        self, ref: ObjectRef, scope: str, kind: GroupResource, *, was_served: bool
    ) -> tuple[str, str] | None:
        """Return why nothing can be said about a kind."""
        watches, name = self._feed.watches, _named(kind)
        if scope and not self._feed.inputs.is_workload(scope):
            # Nothing is placed from there, whatever it serves.
            return None
        missing = watches.missing(scope, kind) if scope else None
        if missing is not None:
            self._feed.park(QUERIES, ref, missing)
            return READING, f"{name} are being read"
        served = watches.is_served(scope, kind) if scope else watches.is_watched(kind)
        if served:
            return None
        if was_served:
            return KIND_GONE, f"{name} are no longer served"
        return KIND_NOT_SERVED, f"{name} are not served"

    def _refused(self, ref: ObjectRef) -> str:
        """Return why a query is not kept up: all of them hold too much, and it is the last."""
        tables = self._inputs.tables
        held = 0
        for each in sorted(self._inputs.known):
            if each in tables:
                held += tables.memory_of(each)
            if each == ref:
                break
        if held <= self._max_bytes:
            return ""
        wanted = f"want {self._max_bytes >> 20} MiB for all queries together"
        return f"would hold {held >> 20} MiB with those before it: {wanted} (--query-memory)"

    def _cutoff(self, ref: ObjectRef, plan: QueryPlan) -> str:
        """Return before when reports are stale, and come back when the next one will be."""
        if plan.stale_seconds is None:
            return ""
        age, now = timedelta(seconds=plan.stale_seconds), self._clock.now()
        cutoff = rfc3339(now - age)
        following = _moment(self._inputs.tables.first_report_from(ref, cutoff))
        if following is not None:
            # Times are whole seconds; it is older than the cutoff only a second later.
            due = (following + age - now).total_seconds() + 1
            self._enqueue_after(ref, max(due, 0.0))
        return cutoff

    def _is_over(self, ref: ObjectRef, query: Object) -> bool:
        """Tell whether the time of a query is over, and come back when it will be."""
        ttl = (query.get("spec") or {}).get("ttlSeconds")
        created = _moment(query["metadata"].get("creationTimestamp", ""))
        if ttl is None or created is None:
            return False
        left = (created + timedelta(seconds=ttl) - self._clock.now()).total_seconds()
        if left > 0:
            self._enqueue_after(ref, left)
        return left <= 0


def _was_served(query: Object) -> bool:
    """Tell whether the kind of a query was served once, as its status says."""
    found = find_condition(query, COMPLETE)
    if found is None:
        return False
    return found.get("status") == "True" or found.get("reason") in (KIND_GONE, WATCH_INTERRUPTED)


def _moment(text: str) -> datetime | None:
    return parse_rfc3339(text) if text else None


def _named(kind: GroupResource) -> str:
    return f"{kind.resource}.{kind.group}" if kind.group else kind.resource
