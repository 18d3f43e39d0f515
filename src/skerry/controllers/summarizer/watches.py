"""Which kinds are watched, through which watches, and what has been read of them.

A kind that every workspace has, and a kind bound from an export, can be watched in all workspaces
at once (the latter under its export's identity): one watch shows sources and copies alike,
whatever the number of edges. A kind that a workspace defines for itself exists there only, so it
is watched in that workspace and in each mailbox that has the definition.

A kind is complete, seen from a workspace, once every watch on it has been read to the end: before
that no report on it means anything. The workspace as a whole is complete once that holds for
everything it serves: before that nothing can be said to be absent from it. Whoever depends on an
incomplete scope is parked and enqueued again when it was read; one kind that cannot be read holds
up no other. See ``logic.fleet.tables.completeness``.

Why it matters: a copy that has not been read looks like one that is not there, and "not delivered
at 9,000 of 10,000 edges" is what somebody would be called for at night after every restart. So
whoever would say something of a kind asks ``missing`` first.

A scope that was complete stays so when a further watch begins: a mailbox in which the kind has just
been defined has none of its objects yet, and the workspaces that were read need not be silent for
its sake. Only one that is still being read waits for the new watch as well.

Watches are shared, and are known by kind and extent. The same kind may be in two: bound from an
export in one workspace and defined by another for itself. What is said of a *kind* (``is_watched``,
``revision``) is therefore said of all its watches, and is as good as the worst of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from skerry.api.errors import ServiceUnavailable
from skerry.api.kcp.resources import API_BINDINGS
from skerry.api.kinds import GroupResource, GroupVersionResource, ResourceInfo
from skerry.api.objects import Object, revision_of
from skerry.api.refs import ClusterName
from skerry.controllers.summarizer.events import SummaryInputs
from skerry.controllers.summarizer.projections import (
    BY_CLUSTER,
    Kind,
    brings_any,
    by_cluster,
    lean_binding,
    lean_definition,
    matters,
    travels,
)
from skerry.logic.fleet.summary.selection import reports_status
from skerry.logic.fleet.tables.completeness import Completeness, Scope
from skerry.logic.fleet.translation.categories import DEFINITIONS
from skerry.logic.fleet.translation.types import defined_type
from skerry.runtime.client import Selection
from skerry.runtime.context import ControllerContext
from skerry.runtime.discovery import discover
from skerry.runtime.informer import Informer, InformerFactory

_API_DEFINITIONS = GroupVersionResource(DEFINITIONS.group, "v1", DEFINITIONS.resource)
_NEEDED_VERBS = frozenset(("list", "watch"))
# A first list of a hundred thousand objects takes a few seconds; what takes longer is not coming.
_PATIENCE_SECONDS = 30
# Objects of one page are in memory at once; a few hundred are some megabytes.
_PAGE = 500
# In a scope: everything a workspace serves.
EVERY_KIND: Final = GroupResource("*", "*")


Extraction = Callable[[Kind, Object, Object], Any]
"""What somebody keeps of a whole object, beside what is kept of it anyway; None: nothing."""


class Cluster(NamedTuple):
    """What the queue of clusters to read holds."""

    name: ClusterName

    def __str__(self) -> str:
        return self.name


class Parked(NamedTuple):
    """A key that waits for more to be read, and the queue it belongs to."""

    queue: str
    key: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Extent:
    """Where one watch looks: everywhere (under an identity or none), or in one cluster."""

    identity: str = ""
    cluster: ClusterName = ""


class KindWatches:
    """Watches what the workspaces with placements, and the mailboxes, serve."""

    def __init__(
        self,
        context: ControllerContext,
        inputs: SummaryInputs,
        enqueue: Callable[[Parked], None],
    ) -> None:
        """*context* speaks to all logical clusters at once; *enqueue* gets what was parked."""
        self._context = context
        self._inputs = inputs
        self._enqueue = enqueue
        self._informers: dict[tuple[Kind, _Extent], Informer] = {}
        self._by_type: dict[GroupResource, list[Informer]] = {}
        self._factories: dict[ClusterName, InformerFactory] = {}
        self._served: dict[ClusterName, frozenset[Kind]] = {}
        self._completeness: Completeness[Scope, Parked] = Completeness()
        # Of workspaces being read: the scopes that are complete or waited for.
        self._scopes: dict[ClusterName, set[Scope]] = {}
        self._tasks: asyncio.TaskGroup | None = None
        self._extractions: dict[GroupResource, Extraction] = {}
        self.bindings = context.factory.informer(
            API_BINDINGS, transform=lean_binding, keeps=brings_any
        )
        self.definitions = context.factory.informer(_API_DEFINITIONS, transform=lean_definition)
        for informer in (self.bindings, self.definitions):
            informer.index.add_index(BY_CLUSTER, by_cluster)

    # -- what has been read ------------------------------------------------------------------

    def missing(self, cluster: ClusterName, kind: GroupResource = EVERY_KIND) -> Scope | None:
        """Return what has not been read of a workspace's *kind*; None when all of it was.

        Of a cluster that is no workload's workspace nothing is read, and nothing is missing.
        """
        if not self._inputs.is_workload(cluster):
            return None
        everything = Scope(cluster, EVERY_KIND)
        if self._completeness.is_complete(everything):
            return None
        return self._completeness.missing((Scope(cluster, kind),))

    def park(self, parked: Parked, scope: Scope) -> None:
        """Have a key enqueued when *scope* was read."""
        self._scopes.setdefault(scope.cluster, set()).add(scope)
        self._completeness.park(parked, scope)

    def _complete(self, scope: Scope) -> None:
        self._scopes.setdefault(scope.cluster, set()).add(scope)
        for parked in self._completeness.complete(scope):
            self._enqueue(parked)

    def _complete_everything(self, cluster: ClusterName) -> None:
        """Take that a workspace was read as a whole; its single kinds need no mark from then on."""
        kinds = self._scopes.get(cluster, set())
        everything = Scope(cluster, EVERY_KIND)
        for scope in sorted({*kinds, everything}):
            self._complete(scope)
        for scope in self._scopes.pop(cluster) - {everything}:
            self._completeness.incomplete(scope)

    def _forget(self, cluster: ClusterName) -> None:
        """Take that nothing of a cluster is known, nor has to be: whoever waited need not."""
        self._complete_everything(cluster)
        self._completeness.incomplete(Scope(cluster, EVERY_KIND))

    # -- what others keep of the same objects ------------------------------------------------

    def extract(self, kind: GroupResource, extraction: Extraction | None) -> None:
        """Have something kept of every object of a kind that is seen from now on; None: no more.

        It is under ``extract`` in what is kept of the object. Of those seen already ``reread``
        yields the whole.
        """
        if extraction is None:
            self._extractions.pop(kind, None)
        else:
            self._extractions[kind] = extraction

    async def reread(
        self, kind: GroupResource, selection: Selection
    ) -> AsyncIterator[tuple[Kind, Sequence[Object]]]:
        """List the objects of a kind once more, page by page, wherever it is watched."""
        watched = [each for each in self._informers if each[0].group_resource == kind]
        for each in watched:
            informer = self._informers.get(each)
            if informer is None:
                continue
            client, more = self._factory(each[1].cluster).client, True
            continuation = ""
            while more:
                page = await client.list_page(
                    informer.gvr, selection, limit=_PAGE, continuation=continuation
                )
                yield each[0], page.items
                continuation = page.next
                more = bool(continuation)

    def is_served(self, cluster: ClusterName, kind: GroupResource) -> bool:
        """Tell whether a workspace serves a kind that goes to edges."""
        return any(each.group_resource == kind for each in self._served.get(cluster, ()))

    def is_watched(self, kind: GroupResource) -> bool:
        """Tell whether a kind is watched anywhere, and every watch has been read to its end."""
        found = self._by_type.get(kind) or ()
        return bool(found) and all(each.synced.is_set() for each in found)

    def is_followed(self, kind: GroupResource) -> bool:
        """Tell whether no watch of a kind is interrupted at present."""
        return all(each.following_since is not None for each in self._by_type.get(kind) or ())

    async def wait_read(self, kind: GroupResource) -> None:
        """Wait until every present watch of a kind has been read to its end, for a while."""
        async with asyncio.timeout(_PATIENCE_SECONDS):
            for informer in list(self._by_type.get(kind) or ()):
                await informer.wait_synced()

    def revision(self, kind: GroupResource) -> int:
        """Return how far the watches of a kind have been read; 0 when one of them has not been."""
        found = [revision_of(each.resource_version) for each in self._by_type.get(kind) or ()]
        return min(found, default=0)

    # -- reading -----------------------------------------------------------------------------

    async def read(self, key: Cluster) -> None:
        """Watch what one cluster serves, if it has a role; the ``observe`` of a controller."""
        cluster = key.name
        if self._inputs.is_mailbox(cluster):
            self._start(cluster, self._defined(cluster))
            self._forget(cluster)
        elif self._inputs.is_workload(cluster):
            await self._read_workspace(cluster)
        else:
            self._served.pop(cluster, None)
            self._forget(cluster)

    async def _read_workspace(self, cluster: ClusterName) -> None:
        """Read everything a workspace serves, or fail after a while and be tried again."""
        kinds = await self._discovered(cluster)
        if any(extent.cluster for _, extent in kinds):
            for mailbox in self._inputs.mailbox_clusters():
                self._start(mailbox, self._defined(mailbox))
        async with asyncio.timeout(_PATIENCE_SECONDS):
            for (kind, _), informer in zip(kinds, self._start(cluster, kinds), strict=True):
                await informer.wait_synced()
                if all(each.synced.is_set() for each in self._by_type[kind.group_resource]):
                    self._complete(Scope(cluster, kind.group_resource))
        self._lose(cluster, frozenset(kind for kind, _ in kinds))
        self._complete_everything(cluster)

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

    async def _discovered(self, cluster: ClusterName) -> list[tuple[Kind, _Extent]]:
        types = await discover(self._context.client.for_cluster(cluster))
        if types.failed:
            raise ServiceUnavailable(f"discovery of {types.failed[0]} failed in {cluster}")
        identities = self._identities(cluster)
        defined = {kind.group_resource for kind, _ in self._defined(cluster)}
        found: list[tuple[Kind, _Extent]] = []
        for info in types.preferred().values():
            if not _NEEDED_VERBS.issubset(info.verbs) or not travels(info.group_resource):
                continue
            if info.group_resource in identities:
                extent = _Extent(identity=identities[info.group_resource])
            elif info.group_resource in defined:
                extent = _Extent(cluster=cluster)
            else:
                extent = _Extent()
            found.append((_kind(info), extent))
        return found

    def _identities(self, cluster: ClusterName) -> dict[GroupResource, str]:
        return {
            GroupResource(group, resource): identity
            for binding in self.bindings.index.by(BY_CLUSTER, cluster)
            for group, resource, identity in binding["bound"]
        }

    def _defined(self, cluster: ClusterName) -> list[tuple[Kind, _Extent]]:
        definitions = self.definitions.index.by(BY_CLUSTER, cluster)
        found = (defined_kind(definition) for definition in definitions)
        return [(kind, _Extent(cluster=cluster)) for kind in found if kind is not None]

    def _start(self, cluster: ClusterName, kinds: Iterable[tuple[Kind, _Extent]]) -> list[Informer]:
        wanted = list(kinds)
        self._stop(cluster, frozenset(wanted))
        return [self._informer(kind, extent) for kind, extent in wanted]

    def _stop(self, cluster: ClusterName, wanted: frozenset[tuple[Kind, _Extent]]) -> None:
        """Watch a cluster's own definitions no longer than they are there."""
        gone = [
            known
            for known in self._informers
            if known[1].cluster == cluster and known not in wanted
        ]
        for known in gone:
            informer = self._informers.pop(known)
            self._by_type[known[0].group_resource].remove(informer)
            self._factories[cluster].stop(informer)
            self._inputs.unwatch(informer.index)

    def _lose(self, cluster: ClusterName, kinds: frozenset[Kind]) -> None:
        before = self._served.get(cluster, frozenset())
        served = {kind.group_resource for kind in kinds}
        self._served[cluster] = kinds
        self._inputs.unserved(cluster, [k for k in before if k.group_resource not in served])

    def _informer(self, kind: Kind, extent: _Extent) -> Informer:
        known = self._informers.get((kind, extent))
        if known is not None:
            return known
        resource = f"{kind.resource}:{extent.identity}" if extent.identity else kind.resource
        gvr = GroupVersionResource(kind.group, kind.version, resource)

        def project(obj: Object) -> Object:
            kept = kind.project(obj)
            extraction = self._extractions.get(kind.group_resource)
            if extraction is not None and (found := extraction(kind, obj, kept)) is not None:
                kept["extract"] = found
            return kept

        factory = self._factory(extent.cluster)
        informer = factory.informer(gvr, transform=project, keeps=matters)
        self._informers[kind, extent] = informer
        informer.index.add_index(BY_CLUSTER, by_cluster)
        self._by_type.setdefault(kind.group_resource, []).append(informer)

        def changed(old: Object | None, new: Object | None) -> None:
            self._inputs.object_changed(kind, old, new)

        self._inputs.watch(kind, informer.index)
        informer.add_handler(changed)
        self._unread(kind.group_resource)
        return informer

    def _unread(self, kind: GroupResource) -> None:
        """Take that a kind has a new watch: workspaces still being read wait for that one, too."""
        for cluster, scopes in self._scopes.items():
            if Scope(cluster, kind) in scopes:
                self._completeness.incomplete(Scope(cluster, kind))

    def _factory(self, cluster: ClusterName) -> InformerFactory:
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
