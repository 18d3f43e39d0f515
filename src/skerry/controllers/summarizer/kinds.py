"""Which kinds are followed, and through which watches.

A kind that every workspace has, and a kind bound from an export, can be watched in all workspaces
at once (the latter under its export's identity): one watch shows sources and copies alike,
whatever the number of edges. A kind that a workspace defines for itself exists there only, so it
is watched in that workspace and in each mailbox that has the definition.

A workspace is *settled* once everything it serves has been read to the end. Before that nothing
can be said to be absent from it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass

from skerry.api.errors import ServiceUnavailable
from skerry.api.kinds import GroupResource, GroupVersionResource, ResourceInfo
from skerry.controllers.summarizer.board import Board
from skerry.controllers.summarizer.forms import (
    BY_CLUSTER,
    Kind,
    by_cluster,
    lean_binding,
    lean_definition,
)
from skerry.controllers.summarizer.keys import API_BINDINGS, API_DEFINITIONS
from skerry.logic.resource import Object
from skerry.logic.summary.selection import reports_status
from skerry.logic.translation.categories import category_of
from skerry.logic.translation.types import defined_type
from skerry.runtime.context import ControllerContext
from skerry.runtime.discovery import discover
from skerry.runtime.informer import Informer, InformerFactory

_NEEDED_VERBS = frozenset(("list", "watch"))

Cluster = tuple[str]


@dataclass(frozen=True, slots=True)
class _Scope:
    """Where one watch looks: everywhere (under an identity or none), or in one cluster."""

    identity: str = ""
    cluster: str = ""


class Kinds:
    """Follows what the workspaces with placements, and the mailboxes, serve."""

    def __init__(self, context: ControllerContext) -> None:
        """*context* speaks to all logical clusters at once."""
        self._context = context
        self._informers: dict[tuple[Kind, _Scope], Informer] = {}
        self._factories: dict[str, InformerFactory] = {}
        self._served: dict[str, frozenset[Kind]] = {}
        self._settled: dict[str, asyncio.Event] = {}
        self._tasks: asyncio.TaskGroup | None = None
        self._board: Board | None = None
        self.bindings = context.factory.informer(API_BINDINGS, transform=lean_binding)
        self.definitions = context.factory.informer(API_DEFINITIONS, transform=lean_definition)
        for informer in (self.bindings, self.definitions):
            informer.index.add_index(BY_CLUSTER, by_cluster)

    def tell(self, board: Board) -> None:
        """Have *board* told of every object of every kind followed from now on."""
        self._board = board

    async def settled(self, cluster: str) -> None:
        """Wait until everything a workspace with placements serves has been read."""
        if self._board is not None and self._board.is_workload(cluster):
            await self._event(cluster).wait()

    async def follow(self, key: Cluster) -> None:
        """Follow what one cluster serves, if it has a role; the ``observe`` of a controller."""
        (cluster,) = key
        board = self._board
        if board is None:
            return
        if board.is_mailbox(cluster):
            self._start(cluster, self._defined(cluster))
        elif board.is_workload(cluster):
            kinds = await self._discovered(cluster)
            for informer in self._start(cluster, kinds):
                await informer.wait_synced()
            self._lose(board, cluster, frozenset(kind for kind, _ in kinds))
            self._event(cluster).set()
        else:
            self._event(cluster).clear()
            self._served.pop(cluster, None)

    async def run(self) -> None:
        """Run the watches of single clusters until cancelled."""
        try:
            async with asyncio.TaskGroup() as tasks:
                self._tasks = tasks
                for factory in self._factories.values():
                    tasks.create_task(factory.run())
                await asyncio.Event().wait()
        finally:
            self._tasks = None

    def _event(self, cluster: str) -> asyncio.Event:
        return self._settled.setdefault(cluster, asyncio.Event())

    async def _discovered(self, cluster: str) -> list[tuple[Kind, _Scope]]:
        types = await discover(self._context.client.for_cluster(cluster))
        if types.failed:
            raise ServiceUnavailable(f"discovery of {types.failed[0]} failed in {cluster}")
        identities = self._identities(cluster)
        defined = {kind.type for kind, _ in self._defined(cluster)}
        found: list[tuple[Kind, _Scope]] = []
        for info in types.preferred().values():
            if not _NEEDED_VERBS.issubset(info.verbs) or not travels(info.group_resource):
                continue
            if info.group_resource in identities:
                scope = _Scope(identity=identities[info.group_resource])
            elif info.group_resource in defined:
                scope = _Scope(cluster=cluster)
            else:
                scope = _Scope()
            found.append((_kind(info), scope))
        return found

    def _identities(self, cluster: str) -> dict[GroupResource, str]:
        return {
            GroupResource(group, resource): identity
            for binding in self.bindings.index.by(BY_CLUSTER, cluster)
            for group, resource, identity in binding["bound"]
        }

    def _defined(self, cluster: str) -> list[tuple[Kind, _Scope]]:
        definitions = self.definitions.index.by(BY_CLUSTER, cluster)
        found = (defined_kind(definition) for definition in definitions)
        return [(kind, _Scope(cluster=cluster)) for kind in found if kind is not None]

    def _start(self, cluster: str, kinds: Iterable[tuple[Kind, _Scope]]) -> list[Informer]:
        wanted = list(kinds)
        self._stop(cluster, frozenset(wanted))
        return [self._informer(kind, scope) for kind, scope in wanted]

    def _stop(self, cluster: str, wanted: frozenset[tuple[Kind, _Scope]]) -> None:
        """Follow a cluster's own definitions no longer than they are there."""
        gone = [
            known
            for known in self._informers
            if known[1].cluster == cluster and known not in wanted
        ]
        for known in gone:
            informer = self._informers.pop(known)
            self._factories[cluster].stop(informer)
            if self._board is not None:
                self._board.unfollow(informer.index)

    def _lose(self, board: Board, cluster: str, kinds: frozenset[Kind]) -> None:
        before = self._served.get(cluster, frozenset())
        types = {kind.type for kind in kinds}
        board.unserved(cluster, [kind for kind in before if kind.type not in types])
        self._served[cluster] = kinds

    def _informer(self, kind: Kind, scope: _Scope) -> Informer:
        known = self._informers.get((kind, scope))
        if known is not None:
            return known
        resource = f"{kind.resource}:{scope.identity}" if scope.identity else kind.resource
        gvr = GroupVersionResource(kind.group, kind.version, resource)
        factory = self._factory(scope.cluster)
        informer = self._informers[(kind, scope)] = factory.informer(gvr, transform=kind.form)
        informer.index.add_index(BY_CLUSTER, by_cluster)
        board = self._board
        if board is not None:

            def changed(old: Object | None, new: Object | None) -> None:
                board.object_changed(kind, old, new)

            board.follow(kind, informer.index)
            informer.add_handler(changed)
        return informer

    def _factory(self, cluster: str) -> InformerFactory:
        if not cluster:
            return self._context.factory
        known = self._factories.get(cluster)
        if known is None:
            known = self._factories[cluster] = InformerFactory(
                self._context.client.for_cluster(cluster),
                ids=self._context.ids,
                metrics=self._context.metrics,
            )
            if self._tasks is not None:
                self._tasks.create_task(known.run())
        return known


def travels(resource: GroupResource) -> bool:
    """Tell whether objects of a type go on to edges."""
    return category_of(resource).to_edge


def defined_kind(definition: Object) -> Kind | None:
    """Return the kind a CustomResourceDefinition makes; None while it makes none that travels."""
    served = defined_type(definition)
    if served is None or not served.versions or not travels(served.type):
        return None
    version = served.versions[0]
    subresources = next(
        each.get("subresources") or {}
        for each in definition["spec"]["versions"]
        if each["name"] == version
    )
    has_status = reports_status(served.type, subresources)
    return Kind(served.group, version, served.resource, served.kind, has_status)


def _kind(info: ResourceInfo) -> Kind:
    subresources = [each.name for each in info.subresources]
    has_status = reports_status(info.group_resource, subresources)
    return Kind(info.group, info.version, info.resource, info.kind, has_status)
