"""Reads from a hub, from one of its workspaces, what explanations and what-ifs are made of.

Where the provider is, the workspace's binding of ``edge.kcp.io`` says; Locations and SyncTargets
are read in the views of root's exports, copies in mailboxes. Nothing is written.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TypeVar

from skerry.api.edge import (
    CUSTOMIZERS,
    EDGE_PLACEMENTS,
    EXPORT,
    LOCATION_CONSENT_NAME,
    LOCATION_CONSENTS,
    LOCATION_GRANTS,
    PLACEMENT_GUARDS,
    SINGLE_PLACEMENT_SLICES,
    USUAL_PROVIDER,
    binding_reference,
    location_ref,
)
from skerry.api.errors import ApiError, BadRequest, Forbidden, Invalid, NotFound
from skerry.api.kcp.resources import (
    API_BINDINGS,
    API_EXPORTS,
    LOCATIONS,
    LOGICAL_CLUSTERS,
    SYNC_TARGETS,
    WORKSPACES,
)
from skerry.api.kinds import GroupVersionResource, ResourceInfo
from skerry.api.objects import Object
from skerry.api.refs import PATH_ANNOTATION, ClusterName, ObjectRef
from skerry.app.edge_environment import ClientFlags, Endpoint, Role, access_by, endpoint
from skerry.app.explain_names import Unanswered, object_named, travels
from skerry.app.export_views import view_path
from skerry.app.hub_settings import HubSettings
from skerry.kit.clock import Clock, SystemClock
from skerry.logic.fleet.customization.customize import CustomizerName
from skerry.logic.fleet.explanation.answer import UNNAMED
from skerry.logic.fleet.explanation.changes import item_of
from skerry.logic.fleet.explanation.standing import Standing, Standings, standings_by
from skerry.logic.fleet.explanation.what import Subject
from skerry.logic.fleet.guards.index import GuardIndex
from skerry.logic.fleet.guards.spec import guard_of
from skerry.logic.fleet.placement.consent_record import is_enforced
from skerry.logic.fleet.placement.destination import DestinationTable
from skerry.logic.fleet.placement.grants import grant_of
from skerry.logic.fleet.placement.records import (
    location_of,
    placement_of,
    sync_target_of,
)
from skerry.logic.fleet.translation.categories import NAMESPACES, is_never_copied
from skerry.runtime.client import EVERYWHERE, Client, Selection, WriteOptions, cluster_of
from skerry.runtime.discovery import ServedTypes
from skerry.runtime.transport import Transport
from skerry.scheduler.placement import location_chooser

# Requests in flight: as many as the transport keeps connections for.
_AT_ONCE = 16
# Mailboxes that are asked for one by one: more than that, and all are listed.
_FEW_MAILBOXES = 16
_ROLES: tuple[Role, ...] = ("espw", "root", "base", "admin")
# What there is to say of an object that is not there.
_BARE: Object = {"metadata": {}}
_NAMESPACES = GroupVersionResource("", "v1", NAMESPACES.resource)

# A write that is judged and completed, and not made.
_DRY = WriteOptions(dry_run=True)

T = TypeVar("T")


@asynccontextmanager
async def hub(settings: HubSettings) -> AsyncIterator[HubReader]:
    """Open the hub for reading; inside, ask."""
    paths = settings.paths()
    here = endpoint("espw", paths, ClientFlags(context=settings.context))
    if not here.workspace:
        raise Unanswered("the current context names no workspace; choose one with kubectl ws")
    endpoints: dict[Role, Endpoint] = {
        role: here if role == "espw" else endpoint(role, paths, ClientFlags()) for role in _ROLES
    }
    access, transports = access_by(endpoints, SystemClock(), "skerry/explain")
    try:
        yield HubReader(
            access.clients["espw"],
            access.clients["root"],
            access.clients["base"],
            here.workspace,
            settings.provider,
        )
    finally:
        await _closed(transports)


async def _closed(transports: Iterable[Transport]) -> None:
    for transport in transports:
        await transport.close()


@dataclass(frozen=True, slots=True)
class FleetInventory:
    """Every Location and SyncTarget, and the table of destinations made of them."""

    index: DestinationTable
    locations: Mapping[ObjectRef, Object]
    sync_targets: Mapping[ObjectRef, Object]

    def paths(self) -> dict[ClusterName, str]:
        """Return the paths of the workspaces that Locations are in, as these say them."""
        inventory, found = self.index.inventory, dict[ClusterName, str]()
        for cluster in inventory.clusters():
            one = inventory.location_at(inventory.locations_in(cluster)[0])
            notes = self.locations.get(one.ref, _BARE)["metadata"].get("annotations") or {}
            if path := notes.get(PATH_ANNOTATION):
                found[cluster] = path
        return found

    def named(self, wanted: str, paths: Mapping[ClusterName, str]) -> dict[ObjectRef, Object]:
        """Return the Locations *wanted* names: all of them, a name's, or exactly one.

        *paths* are those of their workspaces, by which people know one from another.
        """
        workspace, slash, name = wanted.rpartition("/")
        refs: Iterable[ObjectRef] = self.locations
        if wanted:
            clusters = self.index.inventory.clusters()
            refs = [
                location_ref(c, name) for c in clusters if not slash or paths.get(c) == workspace
            ]
        found = {ref: obj for ref in refs if (obj := self.locations.get(ref)) is not None}
        if wanted and not found:
            known = ", ".join(sorted({ref.name for ref in self.locations})[:10]) or "none"
            raise Unanswered(f"there is no Location {wanted!r} (there are: {known})")
        return found


class HubReader:
    """Asks one hub, from one of its workspaces."""

    def __init__(
        self,
        own: Client,
        root: Client,
        base: Client,
        workspace: str,
        provider: str = "",
        clock: Clock | None = None,
    ) -> None:
        """*own* is for the workspace, *root* for root's exports, *base* for mailboxes."""
        self.own = own.at("", workspace)
        self.base = base
        self.workspace = workspace
        self.clock = clock or SystemClock()
        self._root = root.at("", "root")
        self._provider = provider
        self._room = asyncio.Semaphore(_AT_ONCE)

    def elsewhere(self, workspace: str) -> HubReader:
        """Return the same, asking from another workspace."""
        return HubReader(self.own, self._root, self.base, workspace, self._provider, self.clock)

    # -- the workspace -----------------------------------------------------------------------

    async def cluster(self) -> ClusterName:
        """Return the cluster of the workspace."""
        return cluster_of(await self.own.get(LOGICAL_CLUSTERS, "cluster"))

    async def subjects(self, types: ServedTypes, wanted: str) -> list[Subject]:
        """Read the objects asked about, or every object of a kind that travels."""
        if wanted:
            kinds, namespace, name = object_named(types, wanted)
        else:
            kinds = [info for info in types.preferred().values() if travels(info)]
            namespace = name = ""
        lists = await self.all([self._listed(info, namespace, name) for info in kinds])
        spaces = {
            each["metadata"]["name"]: each["metadata"].get("labels") or {}
            for each in (await self.own.list(_NAMESPACES)).items
        }
        found = [
            Subject(item_of(info, obj), obj, spaces.get(obj["metadata"].get("namespace", "")))
            for info, objects in zip(kinds, lists, strict=True)
            for obj in objects
            if wanted or not is_never_copied(info.group_resource, obj)
        ]
        if wanted and not found:
            raise Unanswered(f"there is no object {wanted!r} in {self.workspace}")
        return sorted(found, key=lambda subject: subject.item)

    async def _listed(self, info: ResourceInfo, namespace: str, name: str) -> list[Object]:
        fields = f"metadata.name={name}" if name else ""
        selection = Selection(namespace=namespace if info.namespaced else "", fields=fields)
        return (await self.own.list(info.gvr, selection)).items

    async def live(self, info: ResourceInfo, document: Object) -> Object | None:
        """Return the object a document is about; None when there is none."""
        metadata = document["metadata"]
        namespace = metadata.get("namespace", "default") if info.namespaced else ""
        try:
            return await self.own.get(info.gvr, metadata["name"], namespace)
        except NotFound:
            return None

    async def completed(self, info: ResourceInfo, obj: Object, *, exists: bool) -> Object:
        """Return *obj* as the server would keep it, with its defaults; that is not written.

        As it stands where nobody may write there, or where its namespace is yet to be made.
        """
        try:
            if exists:
                return await self.own.update(info.gvr, obj, options=_DRY)
            return await self.own.create(info.gvr, obj, item_of(info, obj).namespace, options=_DRY)
        except (Forbidden, NotFound):
            return obj
        except (Invalid, BadRequest) as error:
            raise Unanswered(error.message) from error

    async def customizers(self) -> dict[CustomizerName, Object]:
        items = await self.edge_kind(CUSTOMIZERS)
        return {
            CustomizerName(each["metadata"]["namespace"], each["metadata"]["name"]): each
            for each in items
        }

    async def standing(self, placement: ObjectRef) -> Standing:
        """Return where a placement of the workspace is."""
        return standings_by((await self.own.list(SINGLE_PLACEMENT_SLICES)).items)(placement)

    async def edge_kind(self, gvr: GroupVersionResource) -> list[Object]:
        """Read a kind in the own workspace; an inventory's need not serve it."""
        try:
            return (await self.own.list(gvr)).items
        except NotFound:
            return []

    # -- mailboxes ---------------------------------------------------------------------------

    async def mailboxes(self, names: AbstractSet[str]) -> dict[str, Object]:
        """Return those of the mailboxes *names* that there are; few are asked for one by one."""
        provider = self.base.at("", await self._provider_path())
        asked = sorted(names) if len(names) <= _FEW_MAILBOXES else [""]
        try:
            lists = await self.all([_named(provider, name) for name in asked])
        except Forbidden as error:
            raise Unanswered(f"the mailboxes cannot be read: {error.message}") from error
        found = {each["metadata"]["name"]: each for items in lists for each in items}
        return {name: each for name, each in found.items() if name in names}

    async def copies(
        self, mailboxes: Sequence[Object], types: ServedTypes, items: set[ObjectRef]
    ) -> tuple[dict[tuple[str, ObjectRef], Object], dict[str, str]]:
        """Read the copies of *items*, mailbox by mailbox and kind by kind."""
        infos = types.preferred()
        kinds = [
            infos[each] for each in sorted({item.group_resource for item in items}) if each in infos
        ]
        asked = [(mailbox, info) for mailbox in mailboxes for info in kinds]
        lists = await self.all([self._copies_in(mailbox, info) for mailbox, info in asked])
        copies: dict[tuple[str, ObjectRef], Object] = {}
        unreadable: dict[str, str] = {}
        for (mailbox, info), found in zip(asked, lists, strict=True):
            name = mailbox["metadata"]["name"]
            if isinstance(found, str):
                unreadable[name] = found
                continue
            for obj in found:
                item = item_of(info, obj)
                if item in items:
                    copies[(name, item)] = obj
        return copies, unreadable

    async def _copies_in(self, mailbox: Object, info: ResourceInfo) -> list[Object] | str:
        cluster = (mailbox.get("spec") or {}).get("cluster", "")
        if not cluster:
            return []
        try:
            return (await self.base.at("", cluster).list(info.gvr)).items
        except NotFound:
            return []  # the mailbox does not serve the type (yet)
        except Forbidden as error:
            return error.message

    # -- all workspaces ----------------------------------------------------------------------

    async def everywhere(self, gvr: GroupVersionResource) -> list[Object]:
        """Read a kind of the edge API in all workspaces; in the own one where no more may be."""
        try:
            client = await self._edge_view()
            found = (await client.list(gvr)).items
        except Forbidden:
            found = []
        return found or await self.edge_kind(gvr)

    async def placements_everywhere(self) -> Mapping[ObjectRef, Object]:
        """Return the placements of all workspaces; of the own one where no more may be read."""
        found = await self.everywhere(EDGE_PLACEMENTS)
        return {ObjectRef.of(EDGE_PLACEMENTS.group_resource, each): each for each in found}

    async def standings(self) -> Standings:
        """Return the lookup of where placements are, as far as that may be read."""
        return standings_by(await self.everywhere(SINGLE_PLACEMENT_SLICES))

    async def paths(self, clusters: Iterable[ClusterName]) -> dict[ClusterName, str]:
        """Return the paths of workspaces; ``?`` for one whose path may not be read."""
        names = sorted(set(clusters))
        found = await self.all([self._path(name) for name in names])
        return dict(zip(names, found, strict=True))

    async def _path(self, cluster: ClusterName) -> str:
        try:
            found = await self.base.at("", cluster).get(LOGICAL_CLUSTERS, "cluster")
        except (Forbidden, NotFound):
            return UNNAMED
        return str((found["metadata"].get("annotations") or {}).get(PATH_ANNOTATION) or UNNAMED)

    async def inventory(
        self, placements: Iterable[Object], *, asks: bool = False
    ) -> FleetInventory:
        """Return an index of *placements* and of all Locations, SyncTargets and grants.

        *asks*: the paths and labels of workspaces are needed whatever is found.
        """
        index = DestinationTable(location_chooser)
        records = [placement_of(each) for each in placements]
        for record in records:
            index.put_placement(record)
        for grant in await self._consent_kind(LOCATION_GRANTS):
            index.put_grant(grant_of(grant))
        for consent in await self._consent_kind(LOCATION_CONSENTS):
            if consent["metadata"]["name"] == LOCATION_CONSENT_NAME:
                index.put_memory(cluster_of(consent), enforced=is_enforced(consent))
        if index.consent.is_used or asks or any(r.workspaces is not None for r in records):
            tenancy = await self._view(self._root, WORKSPACES.group)
            for workspace in (await tenancy.list(WORKSPACES)).items:
                cluster = (workspace.get("spec") or {}).get("cluster", "")
                labels = workspace["metadata"].get("labels") or {}
                index.put_workspace(
                    cluster, labels, ObjectRef.of(WORKSPACES.group_resource, workspace)
                )
        workload = await self._view(self._root, SYNC_TARGETS.group)
        targets = (await workload.list(SYNC_TARGETS)).items
        for target in targets:
            index.put_sync_target(sync_target_of(target))
        scheduling = await self._view(self._root, LOCATIONS.group)
        locations = (await scheduling.list(LOCATIONS)).items
        for location in locations:
            index.put_location(location_of(location))
        return FleetInventory(
            index,
            {ObjectRef.of(LOCATIONS.group_resource, each): each for each in locations},
            {ObjectRef.of(SYNC_TARGETS.group_resource, each): each for each in targets},
        )

    async def guards(self) -> GuardIndex:
        """Return the PlacementGuards there are."""
        provider = self.own.at("", await self._provider_path())
        found = GuardIndex(cluster_of(await provider.get(API_EXPORTS, EXPORT)))
        for each in await self._consent_kind(PLACEMENT_GUARDS):
            found.put(guard_of(each))
        return found

    async def _consent_kind(self, gvr: GroupVersionResource) -> list[Object]:
        """Read what says whom inventories let in; an export of a previous version has none."""
        try:
            return (await (await self._edge_view()).list(gvr)).items
        except NotFound:
            return []

    async def _edge_view(self) -> Client:
        return await self._view(self.own.at("", await self._provider_path()), EXPORT)

    async def _provider_path(self) -> str:
        if not self._provider:
            for binding in (await self.own.list(API_BINDINGS)).items:
                path, export = binding_reference(binding)
                if export == EXPORT:
                    self._provider = path
        return self._provider or USUAL_PROVIDER

    async def _view(self, client: Client, export: str) -> Client:
        """Return the client of an export's view."""
        path = view_path(await client.get(API_EXPORTS, export))
        if not path:
            raise Unanswered(f"the APIExport {export} has no view yet")
        return client.at(path, EVERYWHERE)

    async def all(self, asked: Sequence[Awaitable[T]]) -> list[T]:
        """Await everything, some at once; the first failure is raised."""

        async def one(waiting: Awaitable[T]) -> T | ApiError:
            async with self._room:
                try:
                    return await waiting
                except ApiError as error:
                    return error

        async with asyncio.TaskGroup() as tasks:
            started = [tasks.create_task(one(waiting)) for waiting in asked]
        found: list[T] = []
        for task in started:
            result = task.result()
            if isinstance(result, ApiError):
                raise result
            found.append(result)
        return found


async def _named(provider: Client, name: str) -> list[Object]:
    """List one workspace by its name, or all for the empty one: the same right lets one do it."""
    fields = f"metadata.name={name}" if name else ""
    return (await provider.list(WORKSPACES, Selection(fields=fields))).items
