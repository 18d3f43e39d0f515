"""Guards at the hub's own door, where objects go or change that placements send to edges.

``ObjectsRemoved`` counts what a request takes from placements: an object deleted, or everything in
a Namespace that is deleted or deselected. A share of all objects is left to the placement
translator, who knows how many there are. ``ContentChanged`` counts the edges that would get a new
content at once, which with a Rollout are none.

Writes of other types pay for one look while no guard says anything about objects.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from typing import NamedTuple

import orjson

from skerry.api.edge_categories import category_of
from skerry.api.keys import ObjectKey, type_prefix
from skerry.api.kinds import GroupResource
from skerry.api.objects import Object, labels_of
from skerry.api.refs import ObjectRef, namespace_ref
from skerry.app.guard_requests import (
    Assessment,
    GuardedRequests,
    is_asked,
    name_of,
    protections,
)
from skerry.logic.fleet.guards.book import OBJECTS as BOOK
from skerry.logic.fleet.guards.budget import Excess, rules_of
from skerry.logic.fleet.guards.spec import CONTENT, OBJECTS
from skerry.logic.fleet.guards.token import member
from skerry.server.admission.operation import Operation

_NAMESPACES = GroupResource("", "namespaces")
_PAGE = 500
_NOT_CONTENT = ("apiVersion", "kind", "metadata", "status")


class StoredType(NamedTuple):
    """A type as the store keeps it, with the resource that people call it by."""

    group: str
    resource: str
    stored: str


class ObjectGuards:
    """See the module's text."""

    def __init__(
        self,
        requests: GuardedRequests,
        namespaces: Callable[[str], Mapping[str, Object]],
        types: Callable[[str], Iterable[StoredType]],
    ) -> None:
        """*namespaces* returns those of a cluster, *types* the namespaced types it has."""
        self._requests = requests
        self._index = requests.index
        self._namespaces = namespaces
        self._types = types

    async def admit(self, operation: Operation) -> None:
        if not self._index.looks_at_objects or operation.verb == "CREATE":
            return
        kind = GroupResource(*operation.type)
        if not is_asked(operation) or not category_of(kind).to_mailbox:
            return
        self._requests.require_complete()
        cluster = operation.call.info.cluster
        if not self._index.placed_in(cluster):
            return
        found = Assessment()
        if kind == _NAMESPACES:
            await self._namespace(operation, found)
        elif operation.verb == "DELETE":
            item = ObjectRef.local(kind, operation.obj)
            for placement in self._sending(cluster, item, labels_of(operation.obj)):
                await self._lost(operation, found, placement, {item})
        elif operation.old is not None and _content(operation.obj) != _content(operation.old):
            item = ObjectRef.local(kind, operation.obj)
            for placement in self._sending(cluster, item, labels_of(operation.obj)):
                self._changed(operation, found, placement)
        self._requests.settle(operation, found)

    async def _namespace(self, operation: Operation, found: Assessment) -> None:
        """Assess a Namespace that is deleted or given other labels."""
        cluster, name = operation.call.info.cluster, name_of(operation)
        before = labels_of(operation.old or operation.obj)
        deleted = operation.verb == "DELETE"
        after = None if deleted else labels_of(operation.obj)
        ways = {"Delete"} if deleted else {"Deselect", "Relabel"}
        losing = [
            ref
            for ref in self._index.placed_in(cluster)
            if self._index.placements[ref].chooses(before)
            and (after is None or not self._index.placements[ref].chooses(after))
        ]
        items: set[ObjectRef] | None = None
        for ref in losing:
            guards = self._index.of(ref)
            for objection in protections(guards, "Namespace", name, before, ways):
                self._requests.add(found, operation.call.user, guards, objection)
            if any(each.of == OBJECTS for guard in guards for each in guard.budgets):
                if items is None:
                    items = {namespace_ref(name)}
                    items |= {each async for each in self._within(cluster, name)}
                await self._lost(operation, found, ref, items)
        found.effect.append(("-", cluster, name))

    async def _within(self, cluster: str, namespace: str) -> AsyncIterator[ObjectRef]:
        """Yield the objects of a Namespace that placements send."""
        for kind in self._types(cluster):
            if not category_of(GroupResource(kind.group, kind.resource)).to_mailbox:
                continue
            prefix, after, more = type_prefix(kind.group, kind.stored, cluster, namespace), "", True
            while more:
                page = await self._requests.store.sizes(prefix, after=after, limit=_PAGE)
                for key, _ in page.entries:
                    name = ObjectKey.parse(key).name
                    yield ObjectRef("", kind.group, kind.resource, namespace, name)
                    after = key
                more = page.more

    def _sending(
        self, cluster: str, item: ObjectRef, labels: Mapping[str, str]
    ) -> Iterable[ObjectRef]:
        """Yield the placements that send an object."""
        space = self._namespaces(cluster).get(item.namespace) if item.namespace else None
        if item.namespace and space is None:
            return
        for ref in self._index.placed_in(cluster):
            known = self._index.placements[ref]
            if known.chooses(labels_of(space)) if space is not None else known.names(item, labels):
                yield ref

    async def _lost(
        self,
        operation: Operation,
        found: Assessment,
        placement: ObjectRef,
        items: Iterable[ObjectRef],
    ) -> None:
        guards = self._index.of(placement)
        rules = [
            rule for rule in rules_of(guards, OBJECTS, floor=False) if rule.budget.percent is None
        ]
        if rules:
            members = frozenset(map(member, items))
            await self._requests.removals(
                operation, found, placement, BOOK, members, len(members), guards, rules
            )

    def _changed(self, operation: Operation, found: Assessment, placement: ObjectRef) -> None:
        """Take that everybody gets another content at once, unless a Rollout sees to it."""
        guards = self._index.of(placement)
        if placement in self._index.rollouts:
            return
        total = self._index.total(placement)
        rules = rules_of(guards, CONTENT, floor=False)
        for rule in (each for each in rules if each.budget.is_exceeded(total, total)):
            limit = rule.budget.limit(total)
            excess = Excess(rule, total, total, limit, limit)
            self._requests.exceeded(found, operation, guards, excess, placement, "changes")
        if rules:
            found.effect.append(("~", *placement, *ObjectRef.local(GroupResource(*operation.type),
                                 operation.obj), _content(operation.obj).hex()))  # fmt: skip


def _content(obj: Object) -> bytes:
    """Return what edges get of an object, in a form to compare."""
    own = {key: value for key, value in obj.items() if key not in _NOT_CONTENT}
    return orjson.dumps([own, labels_of(obj)], option=orjson.OPT_SORT_KEYS)
