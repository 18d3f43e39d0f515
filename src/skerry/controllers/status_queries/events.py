"""Which event changes which table, and which queries that enqueues.

While there is no query, nothing is kept. With the first one, the tables are filled from what the
feed has; with the last one they are forgotten. A query starts once everything it asks about was
read: every object of its kinds either was seen whole since its parts are kept, or was listed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from skerry.api.edge import PROJECTED, PROJECTED_VALUE, STATUS_QUERIES, edge_placement_ref
from skerry.api.errors import FieldError
from skerry.api.kinds import GroupResource
from skerry.api.objects import Object
from skerry.api.refs import ClusterName, ObjectRef
from skerry.controllers.status_queries.extraction import Layout, version_of
from skerry.controllers.status_queries.feed import Feed, WatchedKind
from skerry.logic.fleet.placement.records import is_being_deleted
from skerry.logic.fleet.query.plan import DESTINATIONS, UPSYNCED, QueryPlan, plan_of
from skerry.logic.fleet.query.rows import Copy, Evaluation, Evaluator, KindEvaluators, Target
from skerry.logic.fleet.query.tables import QueryTables
from skerry.logic.fleet.tables.flow import Settled
from skerry.logic.machinery.conditions import is_true
from skerry.logic.machinery.edges.scope import scope_of
from skerry.runtime.client import EVERYTHING, Selection, cluster_of
from skerry.runtime.index import Index

_COPIES = Selection(labels=f"{PROJECTED}={PROJECTED_VALUE}")


@dataclass(frozen=True, slots=True)
class ParsedQuery:
    """A query as it was last seen: its spec, and what that means or is wrong with it."""

    spec: Any
    plan: QueryPlan | None
    errors: tuple[FieldError, ...]


def query_ref(obj: Object) -> ObjectRef:
    """Return who a StatusQuery is."""
    kind = STATUS_QUERIES
    return ObjectRef(cluster_of(obj), kind.group, kind.resource, "", obj["metadata"]["name"])


class QueryInputs:
    """Takes events into the tables, and enqueues queries whose answers may differ."""

    def __init__(
        self,
        feed: Feed,
        provider: ClusterName,
        locations: Index,
        targets: Index,
        enqueue: Callable[[ObjectRef], None],
        enqueue_kind: Callable[[GroupResource], None],
    ) -> None:
        """*provider* is the cluster whose queries see everything."""
        self._feed = feed
        self._provider = provider
        self._locations = locations
        self._targets = targets
        self._enqueue = enqueue
        self._enqueue_kind = enqueue_kind
        self.known: dict[ObjectRef, ParsedQuery] = {}
        # Queries that are not kept up because all together hold too much, and the sentence for it.
        self.refused: dict[ObjectRef, str] = {}
        self.tables = QueryTables(enqueue)
        self._layouts: dict[GroupResource, Layout] = {}
        # The version of a kind's layout under which all its objects have been read.
        self._read: dict[GroupResource, int] = {}
        # Of kinds being read: whatever was seen meanwhile is newer than what is listed.
        self._seen: dict[GroupResource, set[tuple[ObjectRef, str]]] = {}
        feed.inputs.follow(self)
        feed.inputs.when_read(self.cluster_read)

    def scope_of(self, ref: ObjectRef) -> ClusterName:
        """Return whose rows a query has; empty: everybody's."""
        return "" if ref.cluster == self._provider else ref.cluster

    def kinds(self) -> list[GroupResource]:
        """Return the kinds that queries are about."""
        return list(self._layouts)

    def is_read(self, kind: GroupResource) -> bool:
        """Tell whether everything that queries need of a kind's objects is kept."""
        layout = self._layouts.get(kind)
        return layout is not None and self._read.get(kind) == layout.version

    # -- queries -----------------------------------------------------------------------------

    def query_changed(self, old: Object | None, new: Object | None) -> None:
        """Take in a StatusQuery; one that is being deleted is kept up no longer."""
        obj = new or old
        if obj is None:
            return
        ref = query_ref(obj)
        if new is None or is_being_deleted(new):
            self._forget(ref)
        else:
            self._know(ref, new.get("spec") or {})
        self._enqueue(ref)

    def _know(self, ref: ObjectRef, spec: Any) -> None:
        before = self.known.get(ref)
        if before is not None and before.spec == spec:
            return
        first = not self.known
        plan, errors = plan_of(spec)
        self.tables.stop(ref)
        self.refused.pop(ref, None)
        self.known[ref] = ParsedQuery(spec, plan, tuple(errors))
        if first:
            self._fill()
        self._lay_out()
        self._start([ref])

    def _forget(self, ref: ObjectRef) -> None:
        if self.known.pop(ref, None) is None:
            return
        self.tables.stop(ref)
        # There is room again, perhaps, for those that were refused.
        again = [each for each in self.refused if each != ref]
        self.refused.clear()
        self._lay_out()
        self._start(again)
        for each in again:
            self._enqueue(each)
        if not self.known:
            self.tables = QueryTables(self._enqueue)

    def refuse(self, ref: ObjectRef, why: str) -> None:
        """Hold nothing for a query any more, until it is edited or another one is gone."""
        self.tables.stop(ref)
        self.refused[ref] = why
        self._lay_out()

    def _plans(self) -> Iterable[tuple[ObjectRef, QueryPlan]]:
        for ref, known in self.known.items():
            if known.plan is not None and ref not in self.refused:
                yield ref, known.plan

    def _lay_out(self) -> None:
        """Keep of each kind what its queries need, and have read what was not kept before."""
        needed: dict[GroupResource, list[QueryPlan]] = {}
        for _, plan in self._plans():
            for kind in plan.source.kinds:
                needed.setdefault(kind, []).append(plan)
        for kind in [kind for kind in self._layouts if kind not in needed]:
            del self._layouts[kind]
            self._read.pop(kind, None)
            self._feed.watches.extract(kind, None)
            self.tables.forget_kind(kind)
        for kind, plans in needed.items():
            layout = self._layouts.get(kind)
            if layout is None:
                layout = self._layouts[kind] = Layout()
                self._feed.watches.extract(kind, layout.extract)
            layout.need(part for plan in plans for part in plan.parts())
            if self._read.get(kind) != layout.version:
                self._enqueue_kind(GroupResource(*kind))

    def _start(self, refs: Iterable[ObjectRef]) -> None:
        """Keep up the queries of which everything was read."""
        for ref in refs:
            known = self.known.get(ref)
            plan = None if known is None else known.plan
            if plan is None or ref in self.tables:
                continue
            if all(map(self.is_read, plan.source.kinds)):
                self.tables.start(ref, self.scope_of(ref), plan, self._evaluator(plan))
                self._enqueue(ref)

    def _evaluator(self, plan: QueryPlan) -> Evaluation:
        found = {
            kind: Evaluator(plan, self._layouts[kind].positions()) for kind in plan.source.kinds
        }
        if plan.source.rows == DESTINATIONS:
            return Evaluator(plan, {})
        return next(iter(found.values())) if len(found) == 1 else KindEvaluators(found)

    # -- reading -----------------------------------------------------------------------------

    async def read(self, key: GroupResource) -> None:
        """List the objects of a kind, if something has to be kept of them that was not."""
        kind = GroupResource(*key)
        layout = self._layouts.get(kind)
        if layout is None or self.is_read(kind):
            return
        version = layout.version
        await self._feed.watches.wait_read(kind)
        seen = self._seen[kind] = set()
        try:
            async for watched, objects in self._feed.watches.reread(kind, self._selection(kind)):
                for obj in objects:
                    self._take(watched, layout, obj, seen)
                await asyncio.sleep(0)
        finally:
            del self._seen[kind]
        if layout.version != version or self._layouts.get(kind) is not layout:
            self._enqueue_kind(key)
            return
        self._read[kind] = version
        self._start([ref for ref, plan in self._plans() if kind in plan.source.kinds])
        self._enqueue_about(kind)

    def _selection(self, kind: GroupResource) -> Selection:
        plans = [plan for _, plan in self._plans() if kind in plan.source.kinds]
        return EVERYTHING if any(plan.source.rows == UPSYNCED for plan in plans) else _COPIES

    def _take(
        self, kind: WatchedKind, layout: Layout, obj: Object, seen: set[tuple[ObjectRef, str]]
    ) -> None:
        uid, item = self._feed.inputs.mailbox_uid(cluster_of(obj)), kind.item(obj)
        if uid and (item, uid) not in seen:
            # A report that is known is of this object, or an event of a later one is on its way.
            report = self._feed.inputs.tables.reports.at(item, uid)
            lean = kind.project(obj) if report is None else {"report": report}
            self._put(item, uid, layout.extract(kind, obj, lean), upsynced="report" not in lean)

    def _enqueue_about(self, kind: GroupResource) -> None:
        for ref, plan in self._plans():
            if kind in plan.source.kinds:
                self._enqueue(ref)

    def interrupted(self, kind: GroupResource) -> None:
        """Enqueue what depends on a kind whose watches were interrupted, or go on."""
        self._enqueue_about(kind)

    # -- what the feed hands on --------------------------------------------------------------

    def object_put(self, kind: WatchedKind, item: ObjectRef, uid: str, obj: Object) -> None:
        """Take what was kept of an object of a mailbox."""
        layout = self._layouts.get(kind.group_resource)
        if layout is None:
            return
        found: Copy | None = obj.get("extract")
        upsynced = "report" not in obj
        if found is None and upsynced:
            self._put(item, uid, None)
        elif found is None or version_of(found) != layout.version:
            # It was seen before its parts were kept, and its cluster has a new role.
            if self._read.pop(kind.group_resource, None) is not None:
                self._enqueue_kind(kind.group_resource)
                self._enqueue_about(kind.group_resource)
        else:
            self._note(kind.group_resource, item, uid)
            self._put(item, uid, found, upsynced=upsynced)

    def object_dropped(self, kind: WatchedKind, item: ObjectRef, uid: str) -> None:
        """Take that a mailbox has an object no longer."""
        if kind.group_resource in self._layouts:
            self._note(kind.group_resource, item, uid)
            self._put(item, uid, None)

    def _note(self, kind: GroupResource, item: ObjectRef, uid: str) -> None:
        seen = self._seen.get(kind)
        if seen is not None:
            seen.add((item, uid))

    def _put(self, item: ObjectRef, uid: str, copy: Copy | None, *, upsynced: bool = False) -> None:
        self.tables.put_copy(item, uid, None if upsynced else copy)
        self.tables.put_upsynced(item, uid, copy if upsynced else None)

    def settled(self, settled: Settled) -> None:
        """Take what a batch changed of selections, destinations, Leases and revisions."""
        if not self.known:
            return
        feed = self._feed.inputs.tables
        for selected in settled.changes(feed.selected):
            self.tables.put_selected(*selected.key, selected=selected.new is not None)
        for going in settled.changes(feed.destinations):
            self.tables.put_destination(*going.key, going.new)
        for lease in settled.changes(feed.leases):
            self.tables.put_lease(lease.key, lease.new)
        for noted in settled.changes(feed.noted):
            self.tables.put_noted(noted.key, noted.new)

    def placement_put(self, placement: ObjectRef, obj: Object | None) -> None:
        """Take what a placement wants from its edges."""
        if self.known:
            upsync = {"upsync": ((obj or {}).get("spec") or {}).get("upsync")}
            self.tables.put_upsync(placement, scope_of(upsync).upsync)

    def cluster_read(self, cluster: ClusterName) -> None:
        """Enqueue the queries that depend on what a workspace serves."""
        for ref in self.known:
            if self.scope_of(ref) in ("", cluster):
                self._enqueue(ref)

    def location_changed(self, old: Object | None, new: Object | None) -> None:
        """Take the labels of a Location."""
        obj = new or old
        if obj is not None and self.known:
            place = (cluster_of(obj), obj["metadata"]["name"])
            self.tables.put_location(place, None if new is None else _labels(new))

    def target_changed(self, old: Object | None, new: Object | None) -> None:
        """Take what is known of a SyncTarget."""
        obj = new or old
        if obj is not None and self.known:
            found = None if new is None else target_of(new)
            self.tables.put_target(obj["metadata"].get("uid", ""), found)

    def _fill(self) -> None:
        """Take in what is there already, with the first query."""
        feed = self._feed.inputs.tables
        for placement, item in feed.selected:
            self.tables.put_selected(placement, item, selected=True)
        for (placement, uid), destination in feed.destinations.items():
            self.tables.put_destination(placement, uid, destination)
        for uid, lease in feed.leases.items():
            self.tables.put_lease(uid, lease)
        for uid, noted in feed.noted.items():
            self.tables.put_noted(uid, noted)
        for obj in self._feed.placements.index.objects():
            ref = edge_placement_ref(cluster_of(obj), obj["metadata"]["name"])
            self.placement_put(ref, None if is_being_deleted(obj) else obj)
        for obj in self._locations.objects():
            self.location_changed(None, obj)
        for obj in self._targets.objects():
            self.target_changed(None, obj)


def target_of(obj: Object) -> Target:
    """Return what queries know of a SyncTarget."""
    return Target(is_true(obj, "Ready"), _labels(obj))


def _labels(obj: Object) -> dict[str, str]:
    return obj["metadata"].get("labels") or {}
