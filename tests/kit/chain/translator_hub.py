"""A real hub without sockets, a translator on it, and the reference to measure it by."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec

from skerry.api.edge import (
    CONFIRM,
    CUSTOMIZERS,
    EDGE_PLACEMENTS,
    LOCATION_CONSENT_NAME,
    LOCATION_CONSENTS,
    LOCATION_GRANTS,
    PLACEMENT_REVISIONS,
    REVISION_CONTENTS,
    SYNCER_CONFIGS,
    Mailbox,
    is_projected,
)
from skerry.api.edge import SINGLE_PLACEMENT_SLICES as SLICES
from skerry.api.errors import AlreadyExists, NotFound
from skerry.api.kcp.resources import (
    API_BINDINGS,
    LOCATIONS,
    LOGICAL_CLUSTERS,
    SYNC_TARGETS,
    WORKSPACES,
)
from skerry.api.kcp.resources import API_RESOURCE_SCHEMAS as SCHEMAS
from skerry.api.kinds import GroupResource, GroupVersionResource
from skerry.api.objects import Object
from skerry.api.refs import ObjectRef
from skerry.app.api_server import Parts
from skerry.app.hub_content import ensure_compute, ensure_edge_provider
from skerry.app.hub_server import HubFacts, HubServer
from skerry.controllers.core import root_ca, service_account
from skerry.controllers.core.namespace import controller as namespace
from skerry.controllers.placement_translator.controller import PlacementTranslator, build
from skerry.controllers.placement_translator.events import NAME
from skerry.controllers.placement_translator.inputs import Granting, Views
from skerry.controllers.placement_translator.object_history import ObjectHistorySettings
from skerry.controllers.placement_translator.settings import TranslatorSettings
from skerry.kit.clock import LoopClock
from skerry.kit.ids import SeededIds
from skerry.logic.fleet.placement.grants import Rule, grant_of
from skerry.logic.fleet.translation.copies import digest
from skerry.logic.fleet.translation.merging import Copy
from skerry.logic.fleet.translation.ownership import owned_of
from skerry.logic.fleet.translation.reference import Translation, reference
from skerry.logic.fleet.translation.reference_inputs import Sources
from skerry.logic.fleet.translation.sources import lean_definition
from skerry.logic.fleet.translation.types import ServedType, common_types, workspace_types
from skerry.logic.fleet.type_rules import with_type_rules
from skerry.logic.machinery.workspaces.names import SYSTEM_ADMIN
from skerry.runtime.client import EVERYWHERE, Client
from skerry.runtime.context import ControllerContext
from skerry.runtime.discovery import discover
from skerry.runtime.embedded import EmbeddedTransport
from skerry.runtime.events import EventRecorder
from skerry.runtime.informer import InformerFactory
from skerry.server.security.authorization import RbacAuthorizer
from skerry.server.security.tokens import ServiceAccountTokens, SigningKey
from skerry.server.workspaces.mailboxes import Mailboxes
from skerry.server.workspaces.state import HubState
from skerry.store.memory import MemoryStore
from tests.kit.chain import building
from tests.kit.chain.placement_reference import Reference
from tests.kit.server.harness import Everybody
from tests.kit.sim.engine import request, version
from tests.kit.sim.faults import FaultyTransport, Rates

PROVIDER = "root:espw"
DEFINITIONS = GroupVersionResource("apiextensions.k8s.io", "v1", "customresourcedefinitions")
NAMESPACES = GroupVersionResource("", "v1", "namespaces")
CONFIG_MAPS = GroupVersionResource("", "v1", "configmaps")
SECRETS = GroupVersionResource("", "v1", "secrets")
CLUSTER_ROLES = GroupVersionResource("rbac.authorization.k8s.io", "v1", "clusterroles")
DEPLOYMENTS = GroupVersionResource("apps", "v1", "deployments")
EVENTS = GroupVersionResource("", "v1", "events")
WIDGETS = GroupVersionResource("example.io", "v1", "widgets")
WIDGET_DEFINITION = ObjectRef("", *DEFINITIONS.group_resource, "", "widgets.example.io")
_WIDGET_TYPE = WIDGETS.group_resource
NO_FAULTS = Rates(0, 0, 0, 0, 0)
EDGE = "edge.kcp.io/v1alpha1"
_SIGNING_KEY = SigningKey(ec.generate_private_key(ec.SECP256R1()))


async def _nobody(*_: object) -> None:
    """Look up what a token refers to: there is nothing."""


def config_map(name: str, data: dict[str, str] | None = None, **notes: str) -> Object:
    """A ConfigMap; *notes* are its annotations below ``edge.kcp.io``."""
    annotations = {f"edge.kcp.io/{key.replace('_', '-')}": value for key, value in notes.items()}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "annotations": annotations},
        "data": data or {},
    }


def deployment(name: str) -> Object:
    own = {"app": name}
    pod = {"containers": [{"name": "c", "image": "registry.example/app:1"}]}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": own},
            "template": {"metadata": {"labels": own}, "spec": pod},
        },
    }


def widget_definition() -> Object:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    served = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.io"},
        "spec": {
            "group": "example.io",
            "names": {"kind": "Widget", "plural": "widgets", "singular": "widget"},
            "scope": "Namespaced",
            "versions": [served],
        },
    }


class Hub:
    """One seed's hub: inventory ``imw``, workload workspaces and mailboxes.

    Faults are for the translator only; ``client`` reaches the hub without them.
    """

    # How what becomes of objects is recorded; None: it is not.
    history: ObjectHistorySettings | None = None

    def __init__(self, seed: int = 1, rates: Rates = NO_FAULTS) -> None:
        self.clock, self.ids = LoopClock(), SeededIds(seed)
        everybody, server_ids = Everybody(), SeededIds(seed + 1)
        self.store = MemoryStore(server_ids.uid())
        parts = Parts(
            store=self.store,
            clock=self.clock,
            ids=server_ids,
            authenticator=everybody,
            authorizer=everybody,
            flow=everybody,
            recorder=everybody,
            paths={"/version": version},
        )
        tokens = ServiceAccountTokens(_SIGNING_KEY, _nobody, self.clock, server_ids)
        facts = HubFacts("https://hub.example", lambda: "CA", tokens)
        self.api = HubServer(
            parts,
            RbacAuthorizer(shared=SYSTEM_ADMIN),
            Mailboxes(HubState(extend=with_type_rules)),
            facts,
        )
        self.embedded = EmbeddedTransport(self.api.engine.handle, request)
        self.faults = FaultyTransport(self.embedded, self.ids, rates)
        self.client = Client(self.embedded, clock=self.clock)
        self.clusters: dict[str, str] = {}
        # SyncTargets' UIDs by edge.
        self.uids: dict[str, str] = {}
        self.workspaces_read_after_seconds = 0.0
        # Types and schemas as they were read last, with the versions of the schemas.
        self._common: tuple[ServedType, ...] = ()
        self._schemas: tuple[frozenset[tuple[str, int]], dict[tuple[str, str], Object]] | None = (
            None
        )
        self.translator: PlacementTranslator | None = None
        self._start: Callable[[], asyncio.Task[None]]
        self._leading: asyncio.Task[None]

    # -- running -----------------------------------------------------------------------------

    @asynccontextmanager
    async def running(
        self, edges: Iterable[str] = ("florin",), workloads: Iterable[str] = ("wmw",)
    ) -> AsyncIterator[None]:
        """Run the hub with an inventory, the mailboxes of *edges* and workload workspaces."""
        await self.api.prepare()
        async with _unwrapped() as started:
            started(self.api.run())
            for controller in self._upkeep():
                started(controller.run())
            await asyncio.sleep(0.001)
            await ensure_compute(self.api)
            await ensure_edge_provider(self.api)
            await self.workspace("root", "imw")
            await self.bind("root:imw", "bind-espw", PROVIDER, "edge.kcp.io")
            for edge in edges:
                await self.add_edge(edge)
            for workload in workloads:
                await self.add_workload(workload)
            yield

    def _upkeep(self) -> list[Any]:
        """Return what ends namespaces and furnishes new ones, as beside any hub."""
        client = self.client.for_cluster(EVERYWHERE)
        factory = InformerFactory(client, ids=self.ids)
        context = ControllerContext(client, factory, self.ids)
        made = [namespace.build(context), service_account.build(context)]
        return [*made, root_ca.build(context, lambda: "CA"), factory]

    @asynccontextmanager
    async def translating(
        self, settings: TranslatorSettings | None = None, *, has_revisions: bool = True
    ) -> AsyncIterator[PlacementTranslator]:
        """Run a new translator while inside; *has_revisions*: the export offers their kinds."""
        faulty = Client(self.faults, clock=self.clock)
        recorder = EventRecorder(self.client, NAME)
        context = ControllerContext(
            faulty,
            InformerFactory(faulty, ids=self.ids),
            self.ids,
            recorder=recorder,
        )
        provider = self.clusters[PROVIDER] = await self.cluster_of(PROVIDER)
        edge = self._factory(faulty.at(f"/services/apiexport/{provider}/edge.kcp.io", EVERYWHERE))
        where = faulty.at("/services/apiexport/root/scheduling.kcp.io", EVERYWHERE)
        scheduling, own = self._factory(where), self._factory(faulty.for_cluster(provider))
        chosen = settings or TranslatorSettings(withhold_denatured=False)
        space, work = (
            self._factory(faulty.at(f"/services/apiexport/root/{name}.kcp.io", EVERYWHERE))
            for name in ("tenancy", "workload")
        )
        granting = Granting(space, work)
        views = Views(
            context, edge, scheduling, own, granting, provider, has_revisions, self.history
        )
        translator = build(views, chosen)
        async with _unwrapped() as started:
            for part in (edge, scheduling, own, work, recorder):
                started(part.run())
            started(self._run_later(space))
            self._start = lambda: started(translator.run())
            self._leading = self._start()
            self.translator = translator
            try:
                yield translator
            finally:
                self.translator = None
        for factory in (edge, scheduling, own, space, work):
            factory.check_unchanged()

    async def _run_later(self, factory: InformerFactory) -> None:
        await asyncio.sleep(self.workspaces_read_after_seconds)
        await factory.run()

    async def lose_leadership(self, seconds: float) -> None:
        """Stop the translator, wherever it is; let it lead again after *seconds*."""
        self._leading.cancel()
        await asyncio.sleep(seconds)
        self._leading = self._start()

    def _factory(self, client: Client) -> InformerFactory:
        return InformerFactory(client, ids=self.ids, mutation_check=True)

    async def settle(self, seconds: float = 100.0) -> None:
        """Let a world without further changes find its peace; virtual seconds are free."""
        self.faults.heal()
        await asyncio.sleep(seconds)

    # -- what people do ----------------------------------------------------------------------

    async def workspace(self, parent: str, name: str) -> None:
        body = {"apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace"}
        await self.at(parent).create(WORKSPACES, {**body, "metadata": {"name": name}, "spec": {}})

    async def add_edge(self, name: str, **labels: str) -> None:
        """Make an edge and its mailbox, as an administrator and the mailbox controller would."""
        if name not in self.uids:
            await self.add_target(name, **labels)
        workspace = Mailbox(await self.cluster_of("root:imw"), self.uids[name]).workspace
        await self.workspace(PROVIDER, workspace)
        self.clusters[name] = await self.cluster_of(f"{PROVIDER}:{workspace}")
        await self.bind(self.clusters[name], "bind-edge", PROVIDER, "edge.kcp.io")

    async def add_target(self, name: str, **labels: str) -> None:
        """Make a Location and a SyncTarget; every SyncTarget is an instance of every Location."""
        await self.add_location(name, None, **labels)
        body = {"apiVersion": "workload.kcp.io/v1alpha1", "kind": "SyncTarget"}
        metadata = {"name": name, "labels": {"id": name}}
        target = await self.at("root:imw").create(
            SYNC_TARGETS, {**body, "metadata": metadata, "spec": {"cells": {}}}
        )
        self.uids[name] = target["metadata"]["uid"]

    async def add_location(self, name: str, instances: Object | None = None, **labels: str) -> None:
        resource = {"group": "workload.kcp.io", "version": "v1alpha1", "resource": "synctargets"}
        await self.at("root:imw").create(
            LOCATIONS,
            {
                "apiVersion": "scheduling.kcp.io/v1alpha1",
                "kind": "Location",
                "metadata": {"name": name, "labels": {"loc-name": name, **labels}},
                "spec": {"resource": resource, "instanceSelector": instances or {}},
            },
        )

    async def add_workload(self, name: str) -> None:
        await self.workspace("root", name)
        self.clusters[name] = await self.cluster_of(f"root:{name}")
        await self.bind(f"root:{name}", "bind-espw", PROVIDER, "edge.kcp.io")
        await self.bind(f"root:{name}", "bind-kube", "root:compute", "kubernetes")

    async def bind(self, cluster: str, name: str, path: str, export: str) -> None:
        reference = {"export": {"path": path, "name": export}}
        body = {"apiVersion": "apis.kcp.io/v1alpha1", "kind": "APIBinding"}
        await self.at(cluster).create(
            API_BINDINGS, {**body, "metadata": {"name": name}, "spec": {"reference": reference}}
        )

    async def namespace(self, name: str, owner: str = "wmw", **labels: str) -> None:
        metadata = {"name": name, "labels": labels or {"go": "yes"}}
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
        await self.at(f"root:{owner}").create(NAMESPACES, body)

    async def put(
        self, gvr: GroupVersionResource, obj: Object, space: str = "", owner: str = "wmw"
    ) -> Object:
        """Create an object of a workload, or change it to *obj* entirely."""
        client = self.at(f"root:{owner}")
        try:
            return await client.create(gvr, obj, space)
        except AlreadyExists:
            live = await client.get(gvr, obj["metadata"]["name"], space)
            kept = {key: live["metadata"][key] for key in ("uid", "resourceVersion")}
            metadata = {**obj["metadata"], **kept}
            if space:
                metadata["namespace"] = space
            return await client.update(gvr, {**obj, "metadata": metadata})

    async def remove(
        self, gvr: GroupVersionResource, name: str, space: str = "", owner: str = "wmw"
    ) -> None:
        with suppress(NotFound):
            await self.at(f"root:{owner}").delete(gvr, name, space)

    async def place(
        self, name: str, *edges: str, owner: str = "wmw", locations: Any = None, **spec: Any
    ) -> Object:
        """Create an EdgePlacement and its slice."""
        chosen = {"locationSelectors": [{}], "namespaceSelector": {"matchLabels": {"go": "yes"}}}
        body = {"apiVersion": EDGE, "kind": "EdgePlacement", "metadata": {"name": name}}
        client = self.at(f"root:{owner}")
        placement = await client.create(EDGE_PLACEMENTS, {**body, "spec": {**chosen, **spec}})
        status = {"specGeneration": 1, "matchingLocationCount": len(edges)}
        await client.patch(EDGE_PLACEMENTS, name, {"status": status}, subresource="status")
        reference = {"apiVersion": EDGE, "kind": "EdgePlacement", "name": name}
        owners = [{**reference, "uid": placement["metadata"]["uid"]}]
        piece = {
            "apiVersion": EDGE,
            "kind": "SinglePlacementSlice",
            "metadata": {"name": name, "ownerReferences": owners},
            "destinations": [await self.destination(*each) for each in locations or ()]
            or [await self.destination(edge) for edge in edges],
        }
        await client.create(SLICES, piece)
        return placement

    async def destination(self, edge: str, location: str = "") -> Object:
        return {
            "cluster": await self.cluster_of("root:imw"),
            "locationName": location or edge,
            "syncTargetName": edge,
            "syncTargetUID": self.uids[edge],
        }

    async def reslice(self, name: str, *edges: str, owner: str = "wmw") -> None:
        patch = {"destinations": [await self.destination(edge) for edge in edges]}
        await self.at(f"root:{owner}").patch(SLICES, name, patch)

    async def grant(self, name: str = "g", **spec: Any) -> None:
        """Put a LocationGrant into the inventory; see ``building.grant``."""
        made = building.grant(name, **spec)
        obj = {**made, "metadata": {"name": name}}
        client = self.at("root:imw")
        try:
            live = await client.get(LOCATION_GRANTS, name)
        except NotFound:
            await client.create(LOCATION_GRANTS, obj)
        else:
            await client.update(LOCATION_GRANTS, {**live, "spec": made["spec"]})

    async def report(self, mode: str = "Enforce") -> None:
        """Make the LocationConsent of the inventory, as the edge scheduler would."""
        body = {"apiVersion": EDGE, "kind": "LocationConsent", "mode": mode}
        await self.at("root:imw").create(
            LOCATION_CONSENTS, {**body, "metadata": {"name": LOCATION_CONSENT_NAME}}
        )

    async def consent(self) -> Object:
        return await self.at("root:imw").get(LOCATION_CONSENTS, LOCATION_CONSENT_NAME)

    async def confirm(self, *ids: str) -> None:
        patch = {"metadata": {"annotations": {CONFIRM: ",".join(ids)}}}
        await self.at("root:imw").patch(LOCATION_CONSENTS, LOCATION_CONSENT_NAME, patch)

    async def unplace(self, name: str, owner: str = "wmw") -> None:
        """Delete a placement, and its slice as the garbage collector would."""
        await self.remove(EDGE_PLACEMENTS, name, owner=owner)
        await self.remove(SLICES, name, owner=owner)

    # -- what is found -----------------------------------------------------------------------

    def at(self, cluster: str) -> Client:
        return self.client.for_cluster(cluster)

    def mailbox(self, edge: str) -> Client:
        return self.at(self.clusters[edge])

    async def cluster_of(self, path: str) -> str:
        parent, _, name = path.rpartition(":")
        return str((await self.at(parent).get(WORKSPACES, name))["spec"]["cluster"])

    async def found(
        self, edge: str, gvr: GroupVersionResource, name: str, space: str = ""
    ) -> Object | None:
        """Return an object of a mailbox; None when it, or even its type, is not there."""
        try:
            return await self.mailbox(edge).get(gvr, name, space)
        except NotFound:
            return None

    async def config(self, edge: str) -> Object:
        found = await self.found(edge, SYNCER_CONFIGS, "the-one")
        return {} if found is None else dict(found["spec"])

    async def conditions(self, placement: str, owner: str = "wmw") -> dict[str, Object]:
        found = await self.at(f"root:{owner}").get(EDGE_PLACEMENTS, placement)
        return {each["type"]: each for each in found["status"].get("conditions") or ()}

    async def problems(self, placement: str, owner: str = "wmw") -> list[Object]:
        found = await self.at(f"root:{owner}").get(EDGE_PLACEMENTS, placement)
        return list(found["status"].get("problems") or ())

    async def events(self, owner: str = "wmw") -> list[Object]:
        return (await self.at(f"root:{owner}").list(EVENTS)).items

    async def copies(self, edge: str) -> dict[ObjectRef, bytes]:
        """Return everything in a mailbox that says it is a copy, by proof of content."""
        objects = await self._everything(self.clusters[edge])
        return {
            ObjectRef(
                "", *resource, obj["metadata"].get("namespace", ""), obj["metadata"]["name"]
            ): digest(resource, obj)
            for resource, found in objects.items()
            for obj in found
            if is_projected(obj)
        }

    async def recorded(self, edge: str) -> dict[ObjectRef, Copy]:
        """Return every copy in a mailbox as translation reads it: content, and whose it is."""
        objects = await self._everything(self.clusters[edge])
        return {
            ObjectRef.local(resource, obj): Copy(digest(resource, obj), owned_of(obj))
            for resource, found in objects.items()
            for obj in found
            if is_projected(obj)
        }

    async def expected(self, **settings: Any) -> Translation:
        """Return what the reference says of everything there is."""
        paths = {
            obj["metadata"]["annotations"]["kcp.io/cluster"]: (
                obj["metadata"]["annotations"].get("kcp.io/path", "")
            )
            for obj in await self._across(LOGICAL_CLUSTERS)
        }
        workloads = {
            obj["metadata"]["annotations"]["kcp.io/cluster"]
            for obj in await self._view(EDGE_PLACEMENTS)
        }
        return reference(
            Sources(
                await self._common_types(),
                {cluster: await self._everything(cluster) for cluster in workloads},
                await self._view(EDGE_PLACEMENTS),
                await self._view(SLICES),
                await self._view(CUSTOMIZERS),
                (await self.at("root:imw").list(LOCATIONS)).items,
                await self._schema_table(),
                consent=await self._scanned(),
                path=paths.__getitem__,
                revisions=await self._view(PLACEMENT_REVISIONS),
                contents={
                    (
                        each["metadata"]["annotations"]["kcp.io/cluster"],
                        each["metadata"]["name"],
                    ): each["content"]
                    for each in await self._view(REVISION_CONTENTS)
                },
                **settings,
            )
        )

    async def _scanned(self) -> Scanned:
        """Return what grants say, by a scan of everything there is."""
        tenancy = self.client.at("/services/apiexport/root/tenancy.kcp.io", EVERYWHERE)
        spaces = (await tenancy.list(WORKSPACES)).items
        locations = (await self.at("root:imw").list(LOCATIONS)).items
        targets = (await self.at("root:imw").list(SYNC_TARGETS)).items
        return Scanned(
            Reference(
                locations={ObjectRef.of(LOCATIONS.group_resource, obj): obj for obj in locations},
                sync_targets={
                    ObjectRef.of(SYNC_TARGETS.group_resource, obj): obj for obj in targets
                },
                grants={
                    ObjectRef.of(LOCATION_GRANTS.group_resource, obj): obj
                    for obj in await self._view(LOCATION_GRANTS)
                },
                tree={
                    ObjectRef.of(WORKSPACES.group_resource, obj): (
                        obj["spec"]["cluster"],
                        obj["metadata"].get("labels") or {},
                    )
                    for obj in spaces
                },
                remembered={
                    ObjectRef.of(LOCATION_CONSENTS.group_resource, obj).cluster
                    for obj in await self._view(LOCATION_CONSENTS)
                    if obj["mode"] == "Enforce"
                },
            )
        )

    async def assert_as_expected(self, *edges: str, **settings: Any) -> None:
        """Check every mailbox against the reference."""
        inventory = await self.cluster_of("root:imw")
        names = {edge: Mailbox(inventory, self.uids[edge]) for edge in edges}
        copies = {name: await self.recorded(edge) for edge, name in names.items()}
        expected = await self.expected(copies=copies, **settings)
        for edge, name in names.items():
            frozen = expected.frozen.get(name, set())
            if WIDGET_DEFINITION in frozen and WIDGET_DEFINITION not in copies[name]:
                # What is granted waits for its kind, which is not.
                frozen |= {
                    item for item in expected.contents[name] if item.group_resource == _WIDGET_TYPE
                }
            wanted = {
                item: digest(item.group_resource, obj)
                for item, obj in expected.contents.get(name, {}).items()
                if item not in frozen
            }
            copied = await self.copies(edge)
            found = {item: proof for item, proof in copied.items() if item not in frozen}
            assert sorted(found) == sorted(wanted), edge
            assert found == wanted, edge
            config = expected.configs.get(name)
            if config is not None:
                assert await self.config(edge) == config, edge
            else:
                assert await self.config(edge) in ({}, {"namespaceScope": {}}), edge

    async def _across(self, gvr: GroupVersionResource) -> list[Object]:
        return (await self.at(EVERYWHERE).list(gvr)).items

    async def _view(self, gvr: GroupVersionResource) -> list[Object]:
        path = f"/services/apiexport/{await self.cluster_of(PROVIDER)}/edge.kcp.io"
        return (await self.client.at(path, EVERYWHERE).list(gvr)).items

    async def _everything(self, cluster: str) -> dict[GroupResource, list[Object]]:
        """Return all objects of a workspace, by type."""
        client = self.at(cluster)
        bindings = (await client.list(API_BINDINGS)).items
        definitions = (await client.list(DEFINITIONS)).items
        common, schemas = await self._common_types(), await self._schema_table()
        types = workspace_types(common, bindings, schemas, definitions)
        stored = await self._stored(cluster)
        found: dict[GroupResource, list[Object]] = {}
        for resource, served in types.served.items():
            if not served.travels:
                continue
            gvr = GroupVersionResource(served.group, served.versions[0], served.resource)
            # Most types have no object, which takes no request to find out.
            found[resource] = (await client.list(gvr)).items if resource in stored else []
        return found

    async def _stored(self, cluster: str) -> set[GroupResource]:
        """Return the types that a workspace has objects of."""
        keys = (entry.key.split("/", 4) for entry in (await self.store.range("")).entries)
        # A type of an export has the identity of that after a colon.
        kinds = {(key[1], key[2].partition(":")[0]) for key in keys if key[3] == cluster}
        return {GroupResource("" if group == "core" else group, name) for group, name in kinds}

    async def _common_types(self) -> tuple[ServedType, ...]:
        """Return what every workspace serves, which is the same for as long as a hub runs."""
        if not self._common:
            found = await discover(self.client.for_cluster(SYSTEM_ADMIN))
            self._common = common_types(found.resources)
        return self._common

    async def _schema_table(self) -> dict[tuple[str, str], Object]:
        """Return every schema; they are large, and are read again when some are others."""
        stored = await self.store.range("/".join(("", *SCHEMAS.group_resource)))
        versions = frozenset((entry.key, entry.revision) for entry in stored.entries)
        if self._schemas is None or self._schemas[0] != versions:
            self._schemas = (versions, _schema_table(await self._across(SCHEMAS)))
        return self._schemas[1]


class Scanned:
    """Grants as translation asks for them."""

    def __init__(self, scan: Reference) -> None:
        self._scan = scan

    def is_enforced(self, inventory: str) -> bool:
        return self._scan.mode(inventory) == "Enforce"

    def is_observed(self, inventory: str) -> bool:
        return self._scan.mode(inventory) == "Observe"

    def rules(self, source: str, location: ObjectRef, mailbox: Mailbox) -> list[Rule]:
        if mailbox.uid not in self._scan.instances(location):
            return []
        found = {"rules": self._scan.rules(source, location)}
        made = grant_of({"metadata": {"name": "scanned"}, "spec": found})
        return list(made.rules)


def _schema_table(schemas: Iterable[Object]) -> dict[tuple[str, str], Object]:
    return {
        (obj["metadata"]["annotations"]["kcp.io/cluster"], obj["metadata"]["name"]): (
            lean_definition(obj)
        )
        for obj in schemas
    }


@asynccontextmanager
async def _unwrapped() -> AsyncIterator[Callable[[Any], asyncio.Task[None]]]:
    """Run coroutines while inside; an error inside leaves as itself."""
    failure: Exception | None = None
    async with asyncio.TaskGroup() as tasks:
        started: list[asyncio.Task[None]] = []

        def start(coroutine: Any) -> asyncio.Task[None]:
            started.append(tasks.create_task(coroutine))
            return started[-1]

        try:
            yield start
        except Exception as error:  # noqa: BLE001 - raised again below, unwrapped
            failure = error
        for task in started:
            task.cancel()
    if failure is not None:
        raise failure


def customizer(name: str, path: str, value: str) -> Object:
    return {
        "apiVersion": EDGE,
        "kind": "Customizer",
        "metadata": {"name": name, "annotations": {"edge.kcp.io/expand-parameters": "true"}},
        "replacements": [{"path": path, "value": value}],
    }
