"""Reads from a hub what explanations and what-ifs are made from; writes nothing.

Answers are about the current workspace, as ``kubectl`` would use it. Where the provider is, its
binding of ``edge.kcp.io`` says; Locations and SyncTargets are read in the views of root's exports,
copies in the mailboxes of the destinations asked about.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

from skerry.api.edge import (
    CUSTOMIZERS,
    EDGE_PLACEMENTS,
    EXPORT,
    LOCATION_CONSENT_NAME,
    LOCATION_CONSENTS,
    LOCATION_GRANTS,
    SINGLE_PLACEMENT_SLICES,
    Mailbox,
    binding_reference,
    placement_of_slice,
)
from skerry.api.errors import ApiError, Forbidden, NotFound
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
from skerry.api.refs import ObjectRef
from skerry.app.edge_environment import ClientFlags, Endpoint, Role, access_by, endpoint
from skerry.app.explain_names import (
    Unanswered,
    document_name,
    kind_of,
    kinds_with_status,
    locations_named,
    object_named,
    travels,
)
from skerry.controllers.placement_translator.settings import copies_are_inert
from skerry.kit.clock import SystemClock
from skerry.logic.fleet.explanation.answer import Answer, Facts, answer, targets_at
from skerry.logic.fleet.explanation.changes import (
    PlacementChange,
    Workload,
    changed_by,
    changes,
    edited,
    item_of,
    placed_at,
    running_by,
    what_or_none,
)
from skerry.logic.fleet.explanation.what import Subject
from skerry.logic.fleet.placement.consent_record import is_enforced
from skerry.logic.fleet.placement.destination import DestinationTable
from skerry.logic.fleet.placement.explain import explain as explain_location
from skerry.logic.fleet.placement.grants import grant_of
from skerry.logic.fleet.placement.records import (
    Destination,
    location_of,
    placement_of,
    sync_target_of,
)
from skerry.logic.fleet.placement.slices import destinations_in
from skerry.logic.fleet.placement.whatif import Change, what_if
from skerry.logic.fleet.translation.categories import DEFINITIONS, NAMESPACES, is_never_copied
from skerry.runtime.client import EVERYWHERE, Client, Selection, cluster_of
from skerry.runtime.discovery import ServedTypes, discover
from skerry.runtime.transport import Transport
from skerry.scheduler.placement import location_chooser
from skerry.wire.kubeconfig import kubeconfig_paths

# Where the provider is unless somebody says otherwise.
USUAL_PROVIDER = "root:espw"
# Requests in flight: as many as the transport keeps connections for.
_AT_ONCE = 16
_ROLES: tuple[Role, ...] = ("espw", "root", "base", "admin")

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked about: nothing more than a placement, or some Locations and objects of it."""

    placement: str
    location: str = ""
    """Name of a Location, or ``cluster/name``; empty means all."""

    object: str = ""
    """``kind/namespace/name`` or ``kind/name``; empty means all."""


@dataclass(frozen=True, slots=True)
class HubSettings:
    """How the hub is found."""

    kubeconfig: str = ""
    """File that says where the hub is; empty means what kubectl would take."""

    context: str = ""
    """Context to use; empty means the current one."""

    environment: Mapping[str, str] = field(default_factory=dict)
    """``KUBECONFIG`` and ``HOME``, for the same end."""

    provider: str = ""
    """Path of the provider workspace; empty means the one the workspace is bound to."""


@asynccontextmanager
async def hub(settings: HubSettings) -> AsyncIterator[Hub]:
    """Open the hub for reading; inside, ask."""
    home = Path(settings.environment.get("HOME", ""))
    paths = kubeconfig_paths(settings.kubeconfig, settings.environment.get("KUBECONFIG", ""), home)
    here = endpoint("espw", paths, ClientFlags(context=settings.context))
    if not here.workspace:
        raise Unanswered("the current context names no workspace; choose one with kubectl ws")
    endpoints: dict[Role, Endpoint] = {
        role: here if role == "espw" else endpoint(role, paths, ClientFlags()) for role in _ROLES
    }
    access, transports = access_by(endpoints, SystemClock(), "skerry/explain")
    try:
        yield Hub(
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


class Hub:
    """Asks one hub, from one of its workspaces."""

    def __init__(
        self, own: Client, root: Client, base: Client, workspace: str, provider: str = ""
    ) -> None:
        """*own* is for the workspace, *root* for root's exports, *base* for mailboxes."""
        self._own = own.at("", workspace)
        self._root = root.at("", "root")
        self._base = base
        self.workspace = workspace
        self._provider = provider
        self._room = asyncio.Semaphore(_AT_ONCE)

    # -- explaining --------------------------------------------------------------------------

    async def explain(self, question: Question) -> Answer:
        """Explain a placement of the workspace."""
        try:
            placement = await self._own.get(EDGE_PLACEMENTS, question.placement)
        except NotFound as error:
            text = f"there is no EdgePlacement {question.placement!r} in {self.workspace}"
            raise Unanswered(text) from error
        types = await discover(self._own)
        index, locations = await self._inventory([placement])
        chosen = locations_named(locations, question.location)
        asked = await self._subjects(types, question.object)
        subjects = await self._with_defined(types, asked) if question.object else asked
        slices = await self._slices(question.placement)
        mailboxes = {each["metadata"]["name"]: each for each in await self._mailboxes()}
        ref = ObjectRef.of(EDGE_PLACEMENTS.group_resource, placement)
        what = what_or_none(placement)
        near = self._destinations(index, ref, chosen, slices)
        wanted = {Mailbox(d.cluster, d.uid).workspace for d in near} & mailboxes.keys()
        copies, unreadable = await self._copies(
            [mailboxes[name] for name in sorted(wanted)], types, {each.item for each in asked}
        )
        statuses = kinds_with_status(types)
        facts = Facts(
            ref,
            what,
            index,
            chosen,
            frozenset(slices),
            mailboxes,
            unreadable,
            subjects,
            await self._customizers(),
            copies,
            lambda item: item.group_resource in statuses,
            copies_are_inert(await self._own.version()),
        )
        found = answer(facts, every_pair=bool(question.object or question.location))
        return found if subjects is asked else found.about({each.item for each in asked})

    async def _with_defined(self, types: ServedTypes, asked: list[Subject]) -> list[Subject]:
        """Add everything else when a definition is asked about: what it defines decides."""
        if not any(
            each.item.group_resource in (DEFINITIONS, API_BINDINGS.group_resource) for each in asked
        ):
            return asked
        items = {each.item for each in asked}
        return asked + [each for each in await self._subjects(types, "") if each.item not in items]

    def _destinations(
        self,
        index: DestinationTable,
        ref: ObjectRef,
        locations: Mapping[ObjectRef, Object],
        slices: Sequence[Destination],
    ) -> list[Destination]:
        present = frozenset(each.location_ref for each in slices)
        return [
            Destination(where.cluster, where.name, name, uid)
            for where in locations
            for name, uid in targets_at(index, where, explain_location(index, ref, where, present))
        ]

    async def _subjects(self, types: ServedTypes, wanted: str) -> list[Subject]:
        """Read the objects asked about, or every object of a kind that travels."""
        if wanted:
            kinds, namespace, name = object_named(types, wanted)
        else:
            kinds = [info for info in types.preferred().values() if travels(info)]
            namespace = name = ""
        lists = await self._all([self._listed(info, namespace, name) for info in kinds])
        spaces = {
            each["metadata"]["name"]: each["metadata"].get("labels") or {}
            for each in (await self._own.list(_NAMESPACES)).items
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
        return (await self._own.list(info.gvr, selection)).items

    async def _customizers(self) -> dict[tuple[str, str], Object]:
        items = (await self._own.list(CUSTOMIZERS)).items
        return {(each["metadata"]["namespace"], each["metadata"]["name"]): each for each in items}

    async def _copies(
        self, mailboxes: Sequence[Object], types: ServedTypes, items: set[ObjectRef]
    ) -> tuple[dict[tuple[str, ObjectRef], Object], dict[str, str]]:
        """Read the copies of *items*, mailbox by mailbox and kind by kind."""
        infos = types.preferred()
        kinds = [
            infos[each] for each in sorted({item.group_resource for item in items}) if each in infos
        ]
        asked = [(mailbox, info) for mailbox in mailboxes for info in kinds]
        lists = await self._all([self._copies_in(mailbox, info) for mailbox, info in asked])
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
            return (await self._base.at("", cluster).list(info.gvr)).items
        except NotFound:
            return []  # the mailbox does not serve the type (yet)
        except Forbidden as error:
            return error.message

    # -- what if -----------------------------------------------------------------------------

    async def what_if(
        self, documents: Sequence[Object], *, delete: bool = False
    ) -> list[PlacementChange]:
        """Return what *documents* would change, applied (or deleted) in this workspace."""
        types = await discover(self._own)
        cluster = await self._cluster()
        placements = await self._edge_kind(EDGE_PLACEMENTS)
        everywhere = await self._every_placement() or placements
        asks = any(document.get("kind") == "LocationGrant" for document in documents)
        index, _ = await self._inventory(everywhere, asks=asks)
        before = Workload(
            {each["metadata"]["name"]: what_or_none(each) for each in placements},
            {each.item: each.labels for each in await self._subjects(types, "")},
        )
        after, changed = before, list[Change]()
        for document in documents:
            info = kind_of(types, document)
            live = await self._live(info, document)
            if delete and live is None:
                raise Unanswered(f"there is no {document_name(document)} in {self.workspace}")
            obj = placed_at(edited(live, document), cluster)
            after, change = changed_by(after, info, obj, delete=delete)
            changed += change
        running = running_by(await self._every_slice())
        differences = what_if(index, changed, running)
        return changes(cluster, before, after, differences, index.consent.tree.path)

    async def _live(self, info: ResourceInfo, document: Object) -> Object | None:
        metadata = document["metadata"]
        namespace = metadata.get("namespace", "default") if info.namespaced else ""
        try:
            return await self._own.get(info.gvr, metadata["name"], namespace)
        except NotFound:
            return None

    async def _every_placement(self) -> list[Object]:
        return await self._edge_view(EDGE_PLACEMENTS)

    async def _every_slice(self) -> list[Object]:
        return await self._edge_view(SINGLE_PLACEMENT_SLICES) or await self._edge_kind(
            SINGLE_PLACEMENT_SLICES
        )

    async def _edge_view(self, gvr: GroupVersionResource) -> list[Object]:
        """Read a kind in all workspaces; nothing where only the own one may be read."""
        try:
            client = await self._view(self._own.at("", await self._provider_path()), EXPORT)
            return (await client.list(gvr)).items
        except Forbidden:
            return []

    async def _consent_kind(self, gvr: GroupVersionResource) -> list[Object]:
        """Read what says whom inventories let in; an export of a previous version has none."""
        client = await self._view(self._own.at("", await self._provider_path()), EXPORT)
        try:
            return (await client.list(gvr)).items
        except NotFound:
            return []

    async def _edge_kind(self, gvr: GroupVersionResource) -> list[Object]:
        """Read a kind in the own workspace; an inventory's need not serve it."""
        try:
            return (await self._own.list(gvr)).items
        except NotFound:
            return []

    # -- reading -----------------------------------------------------------------------------

    async def _cluster(self) -> str:
        return cluster_of(await self._own.get(LOGICAL_CLUSTERS, "cluster"))

    async def _provider_path(self) -> str:
        if not self._provider:
            for binding in (await self._own.list(API_BINDINGS)).items:
                path, export = binding_reference(binding)
                if export == EXPORT:
                    self._provider = path
        return self._provider or USUAL_PROVIDER

    async def _inventory(
        self, placements: Sequence[Object], *, asks: bool = False
    ) -> tuple[DestinationTable, dict[ObjectRef, Object]]:
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
        for target in (await workload.list(SYNC_TARGETS)).items:
            index.put_sync_target(sync_target_of(target))
        scheduling = await self._view(self._root, LOCATIONS.group)
        locations = (await scheduling.list(LOCATIONS)).items
        for location in locations:
            index.put_location(location_of(location))
        return index, {ObjectRef.of(LOCATIONS.group_resource, each): each for each in locations}

    async def _view(self, client: Client, export: str) -> Client:
        """Return the client of an export's view."""
        found = await client.get(API_EXPORTS, export)
        views = (found.get("status") or {}).get("virtualWorkspaces") or ()
        if not views:
            raise Unanswered(f"the APIExport {export} has no view yet")
        return client.at(urlsplit(str(views[0]["url"])).path, EVERYWHERE)

    async def _slices(self, placement: str) -> list[Destination]:
        return [
            destination
            for piece in (await self._own.list(SINGLE_PLACEMENT_SLICES)).items
            if placement_of_slice(piece) == placement
            for destination in destinations_in(piece)
        ]

    async def _mailboxes(self) -> list[Object]:
        provider = self._base.at("", await self._provider_path())
        try:
            return (await provider.list(WORKSPACES)).items
        except Forbidden as error:
            raise Unanswered(f"the mailboxes cannot be read: {error.message}") from error

    async def _all(self, asked: Sequence[Awaitable[T]]) -> list[T]:
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


_NAMESPACES = GroupVersionResource("", "v1", NAMESPACES.resource)
