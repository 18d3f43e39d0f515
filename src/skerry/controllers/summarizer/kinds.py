"""Which kinds are followed, and through which watches.

A kind that every workspace has, and a kind bound from an export, can be watched in all workspaces
at once (the latter under its export's identity): one watch shows sources and copies alike,
whatever the number of edges. A kind that a workspace defines for itself exists there only, so it
is watched in that workspace and in each mailbox that has the definition.

A kind is *readable* once every watch on it has been read to the end: before that no report on it
is complete. A workspace is *settled* once that holds for everything it serves: before that nothing
can be said to be absent from it. Whoever cannot wait leaves a word and is called again; one kind
that cannot be read holds up no other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass

from skerry.api.edge_categories import category_of
from skerry.api.errors import ServiceUnavailable
from skerry.api.kinds import GroupResource, GroupVersionResource, ResourceInfo
from skerry.api.objects import Object
from skerry.controllers.summarizer.board import Board
from skerry.controllers.summarizer.forms import (
    BY_CLUSTER,
    Kind,
    by_cluster,
    lean_binding,
    lean_definition,
)
from skerry.controllers.summarizer.keys import API_BINDINGS, API_DEFINITIONS
from skerry.logic.fleet.summary.selection import reports_status
from skerry.logic.fleet.translation.types import defined_type
from skerry.runtime.context import ControllerContext
from skerry.runtime.discovery import discover
from skerry.runtime.informer import Informer, InformerFactory

_NEEDED_VERBS = frozenset(("list", "watch"))
# A first list of a hundred thousand objects takes a few seconds; what takes longer is not coming.
_PATIENCE_SECONDS = 30

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
        self._by_type: dict[GroupResource, list[Informer]] = {}
        self._factories: dict[str, InformerFactory] = {}
        self._served: dict[str, frozenset[Kind]] = {}
        self._settled: set[str] = set()
        self._waiting: dict[str, dict[Hashable, Callable[[], None]]] = {}
        self._tasks: asyncio.TaskGroup | None = None
        self._board: Board | None = None
        self.bindings = context.factory.informer(API_BINDINGS, transform=lean_binding)
        self.definitions = context.factory.informer(API_DEFINITIONS, transform=lean_definition)
        for informer in (self.bindings, self.definitions):
            informer.index.add_index(BY_CLUSTER, by_cluster)

    def tell(self, board: Board) -> None:
        """Have *board* told of every object of every kind followed from now on."""
        self._board = board

    def is_settled(self, cluster: str) -> bool:
        """Tell whether everything a workspace with placements serves has been read."""
        board = self._board
        return board is None or not board.is_workload(cluster) or cluster in self._settled

    def is_readable(self, cluster: str, resource: GroupResource) -> bool:
        """Tell whether every watch on a kind has been read to the end, seen from a workspace."""
        if self.is_settled(cluster):
            return True
        watches = self._by_type.get(resource, ())
        return bool(watches) and all(informer.synced.is_set() for informer in watches)

    def call_again(self, cluster: str, who: Hashable, wake: Callable[[], None]) -> None:
        """Have *wake* called when more of a workspace has been read."""
        self._waiting.setdefault(cluster, {})[who] = wake

    async def follow(self, key: Cluster) -> None:
        """Follow what one cluster serves, if it has a role; the ``observe`` of a controller."""
        (cluster,) = key
        board = self._board
        if board is None:
            return
        if board.is_mailbox(cluster):
            self._start(cluster, self._defined(cluster))
        elif board.is_workload(cluster):
            await self._read(board, cluster)
        else:
            self._settled.discard(cluster)
            self._served.pop(cluster, None)
        self._resume(cluster)

    async def _read(self, board: Board, cluster: str) -> None:
        """Read everything a workspace serves, or fail after a while and be tried again."""
        kinds = await self._discovered(cluster)
        if any(scope.cluster for _, scope in kinds):
            for mailbox in board.mailbox_clusters():
                self._start(mailbox, self._defined(mailbox))
        async with asyncio.timeout(_PATIENCE_SECONDS):
            for informer in self._start(cluster, kinds):
                if not informer.synced.is_set():
                    await informer.wait_synced()
                    self._resume(cluster)
        self._lose(board, cluster, frozenset(kind for kind, _ in kinds))
        self._settled.add(cluster)

    def _resume(self, cluster: str) -> None:
        for wake in self._waiting.pop(cluster, {}).values():
            wake()

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
            self._by_type[known[0].type].remove(informer)
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
        self._by_type.setdefault(kind.type, []).append(informer)
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
    if served is None or not served.versions or not travels(served.group_resource):
        return None
    version = served.versions[0]
    subresources = next(
        each.get("subresources") or {}
        for each in definition["spec"]["versions"]
        if each["name"] == version
    )
    has_status = reports_status(served.group_resource, subresources)
    return Kind(served.group, version, served.resource, served.kind, has_status)


def _kind(info: ResourceInfo) -> Kind:
    subresources = [each.name for each in info.subresources]
    has_status = reports_status(info.group_resource, subresources)
    return Kind(info.group, info.version, info.resource, info.kind, has_status)
