"""A real hub without sockets, edge controllers on it behind faults, and a scan to measure by."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from datetime import datetime, timedelta
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec

from skerry.api.edge import (
    CONFIRM,
    EDGE_PLACEMENTS,
    LOCATION_CONSENT_NAME,
    LOCATION_CONSENTS,
    LOCATION_GRANTS,
    SINGLE_PLACEMENT_SLICES,
    edge_placement_ref,
    placement_of_slice,
    slice_owner,
)
from skerry.api.errors import ApiError, NotFound
from skerry.api.kcp.resources import API_BINDINGS, LOCATIONS, SYNC_TARGETS, WORKSPACES
from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.api.refs import ObjectRef
from skerry.app.api_server import Parts
from skerry.app.edge_controllers import EDGE_CONTROLLERS
from skerry.app.edge_environment import EdgeEnvironment, HubAccess, Role
from skerry.app.hub_content import ensure_edge_provider
from skerry.app.hub_server import HubFacts, HubServer
from skerry.controllers.edge_scheduler.controller import EdgeScheduler, HistorySettings, Views
from skerry.kit.clock import LoopClock
from skerry.kit.ids import SeededIds
from skerry.logic.fleet.placement.records import Destination
from skerry.logic.fleet.placement.slices import destinations_in
from skerry.logic.fleet.type_rules import with_type_rules
from skerry.logic.machinery.workspaces.names import SYSTEM_ADMIN
from skerry.runtime.client import EVERYWHERE, Client
from skerry.runtime.embedded import EmbeddedTransport
from skerry.server.security.authorization import RbacAuthorizer
from skerry.server.security.tokens import ServiceAccountTokens, SigningKey
from skerry.server.user import User
from skerry.server.workspaces.mailboxes import Mailboxes
from skerry.server.workspaces.state import HubState
from skerry.store.memory import MemoryStore
from tests.kit.chain import building
from tests.kit.chain.placement_reference import Reference
from tests.kit.chain.written import writes
from tests.kit.server.harness import Everybody
from tests.kit.sim.engine import own_version, request, request_by, version
from tests.kit.sim.faults import FaultyTransport, Rates

PROVIDER = "root:espw"
NO_FAULTS = Rates(0, 0, 0, 0, 0)
_RESOURCE = {"group": "workload.kcp.io", "version": "v1alpha1", "resource": "synctargets"}
_ROLES: tuple[Role, ...] = ("espw", "root", "base", "admin")
_SIGNING_KEY = SigningKey(ec.generate_private_key(ec.SECP256R1()))


async def _nobody(*_: object) -> None:
    """Look up what a token refers to: there is nothing."""


class JumpingClock(LoopClock):
    """Its wall time is ahead of the loop's as far as somebody says; it never misses a second."""

    ahead_seconds = 0.0

    def now(self) -> datetime:
        return super().now() + timedelta(seconds=self.ahead_seconds)


class Hub:
    """One seed's hub. Faults are for the controllers only; ``client`` has none."""

    # Whether it says so; controllers then believe what it says of who changed what.
    is_skerry_hub = True

    def __init__(self, seed: int = 1, rates: Rates = NO_FAULTS) -> None:
        self.clock, self.ids = JumpingClock(), SeededIds(seed)
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
            paths={"/version": own_version if self.is_skerry_hub else version},
        )
        tokens = ServiceAccountTokens(_SIGNING_KEY, _nobody, self.clock, server_ids)
        facts = HubFacts("https://hub.example", lambda: "CA", tokens)
        self.api = HubServer(
            parts,
            RbacAuthorizer(shared=SYSTEM_ADMIN),
            Mailboxes(HubState(extend=with_type_rules)),
            facts,
        )
        embedded = EmbeddedTransport(self.api.engine.handle, request)
        self.faults = FaultyTransport(embedded, self.ids, rates)
        self.client = Client(embedded, clock=self.clock)
        self.ann = self.person("ann")

    def person(self, name: str) -> Client:
        """Return the client of somebody who may do everything and is asked by admission."""
        user = User(name, groups=("system:authenticated",))
        transport = EmbeddedTransport(self.api.engine.handle, request_by(user))
        return Client(transport, clock=self.clock)

    # -- running -----------------------------------------------------------------------------

    @asynccontextmanager
    async def running(self, *workspaces: str) -> AsyncIterator[None]:
        """Run the hub with a provider, and workspaces below root that may place."""
        await self.api.prepare()
        async with _unwrapped() as start:
            start(self.api.run())
            await asyncio.sleep(0.001)
            await self.make_workspace("root", "compute")
            await ensure_edge_provider(self.api)
            for name in workspaces:
                await self.make_workspace("root", name)
                await self.bind(f"root:{name}")
            yield

    @asynccontextmanager
    async def controlled(self, *names: str) -> AsyncIterator[None]:
        """Run edge controllers while inside."""
        client = Client(self.faults, clock=self.clock)
        access = HubAccess(dict.fromkeys(_ROLES, client), {})
        async with asyncio.TaskGroup() as tasks:
            environment = EdgeEnvironment(
                access, PROVIDER, self.clock, self.ids, tasks, mutation_check=True
            )
            started = [tasks.create_task(_run(environment, name)) for name in names]
            failure: Exception | None = None
            try:
                yield
            except Exception as error:  # noqa: BLE001 - raised again below, unwrapped
                failure = error
            for task in started:
                task.cancel()
            environment.stop()
        if failure is not None:
            raise failure

    @asynccontextmanager
    async def standing_by(self, name: str) -> AsyncIterator[Callable[[], asyncio.Task[None]]]:
        """Build a controller that follows the hub; what is yielded lets it lead until cancelled."""
        client = Client(self.faults, clock=self.clock)
        access = HubAccess(dict.fromkeys(_ROLES, client), {})
        async with asyncio.TaskGroup() as tasks:
            environment = EdgeEnvironment(
                access, PROVIDER, self.clock, self.ids, tasks, mutation_check=True
            )
            controller = await EDGE_CONTROLLERS[name].build(environment)
            started: list[asyncio.Task[None]] = []

            def lead() -> asyncio.Task[None]:
                started.append(tasks.create_task(controller.run()))
                return started[-1]

            yield lead
            for task in started:
                task.cancel()
            environment.stop()

    async def settle(self, seconds: float = 120.0) -> None:
        """Let a world without further changes find its peace; virtual seconds are free."""
        self.faults.heal()
        await asyncio.sleep(seconds)

    # -- what people do ----------------------------------------------------------------------

    def at(self, workspace: str) -> Client:
        return self.client.at("", workspace)

    async def make_workspace(self, parent: str, name: str, **labels: str) -> None:
        body = {"apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace", "spec": {}}
        metadata = {"name": name, "labels": labels}
        await self.at(parent).create(WORKSPACES, {**body, "metadata": metadata})

    async def bind(self, workspace: str) -> None:
        reference = {"export": {"path": PROVIDER, "name": "edge.kcp.io"}}
        body = {"apiVersion": "apis.kcp.io/v1alpha1", "kind": "APIBinding"}
        spec = {"reference": reference}
        await self.at(workspace).create(
            API_BINDINGS, {**body, "metadata": {"name": "bind-espw"}, "spec": spec}
        )

    async def place(self, workspace: str, name: str, *selectors: Object, **more: Any) -> None:
        spec = {"locationSelectors": list(selectors), **more}
        body = {"apiVersion": "edge.kcp.io/v1alpha1", "kind": "EdgePlacement"}
        await self._put(workspace, EDGE_PLACEMENTS, {**body, "metadata": {"name": name}}, spec)

    async def locate(
        self, workspace: str, name: str, labels: dict[str, str], instances: Object | None
    ) -> None:
        spec: Object = {"resource": _RESOURCE}
        if instances is not None:
            spec["instanceSelector"] = instances
        body = {"apiVersion": "scheduling.kcp.io/v1alpha1", "kind": "Location"}
        metadata = {"name": name, "labels": labels}
        await self._put(workspace, LOCATIONS, {**body, "metadata": metadata}, spec)

    async def target(self, workspace: str, name: str, labels: dict[str, str]) -> None:
        body = {"apiVersion": "workload.kcp.io/v1alpha1", "kind": "SyncTarget"}
        metadata = {"name": name, "labels": labels}
        await self._put(workspace, SYNC_TARGETS, {**body, "metadata": metadata}, {})

    async def grant(self, workspace: str, name: str, **spec: Any) -> None:
        """Put a LocationGrant; see ``building.grant`` for what *spec* may say."""
        made = building.grant(name, **spec)
        obj = {**made, "metadata": {"name": name}}
        await self._put(workspace, LOCATION_GRANTS, obj, made["spec"])

    async def consent(self, workspace: str) -> Object:
        """Return the LocationConsent of a workspace."""
        return await self.at(workspace).get(LOCATION_CONSENTS, LOCATION_CONSENT_NAME)

    async def confirm(self, workspace: str, *ids: str) -> None:
        """Confirm as kubectl annotate would."""
        patch = {"metadata": {"annotations": {CONFIRM: ",".join(ids)}}}
        await self.at(workspace).patch(LOCATION_CONSENTS, LOCATION_CONSENT_NAME, patch)

    async def _put(
        self, workspace: str, gvr: GroupVersionResource, obj: Object, spec: Object
    ) -> None:
        client = self.at(workspace)
        try:
            live = await client.get(gvr, obj["metadata"]["name"])
        except NotFound:
            await client.create(gvr, {**obj, "spec": spec})
            return
        kept = {key: live["metadata"][key] for key in ("uid", "resourceVersion")}
        metadata = {**obj["metadata"], **kept}
        await client.update(gvr, {**obj, "metadata": metadata, "spec": spec})

    async def remove(self, workspace: str, gvr: GroupVersionResource, name: str) -> None:
        with suppress(NotFound):
            await self.at(workspace).delete(gvr, name)

    async def collect_garbage(self) -> None:
        """Delete slices without owner, as the garbage collector of a whole hub would."""
        owners = {obj["metadata"]["uid"] for obj in await self.everything(EDGE_PLACEMENTS)}
        for piece in await self.everything(SINGLE_PLACEMENT_SLICES):
            owner = slice_owner(piece["metadata"])
            if owner is not None and owner.uid not in owners:
                ref = ObjectRef.of(SINGLE_PLACEMENT_SLICES.group_resource, piece)
                with suppress(ApiError):
                    await self.at(ref.cluster).delete(SINGLE_PLACEMENT_SLICES, ref.name)

    # -- what is found -----------------------------------------------------------------------

    async def everything(self, gvr: GroupVersionResource) -> list[Object]:
        """Return the objects of a type in every workspace."""
        exporter = PROVIDER if gvr.group == "edge.kcp.io" else "root"
        if exporter == PROVIDER:
            exporter = (await self.at("root").get(WORKSPACES, "espw"))["spec"]["cluster"]
        view = self.client.at(f"/services/apiexport/{exporter}/{gvr.group}", EVERYWHERE)
        return (await view.list(gvr)).items

    async def destinations(self) -> dict[ObjectRef, list[Destination]]:
        """Return what the slices of each placement say together, in order; what is twice, twice."""
        found: dict[ObjectRef, list[Destination]] = {}
        placed = {
            ObjectRef.of(EDGE_PLACEMENTS.group_resource, obj)
            for obj in await self.everything(EDGE_PLACEMENTS)
        }
        pieces = await self.everything(SINGLE_PLACEMENT_SLICES)
        for piece in pieces:
            ref = edge_placement_ref(
                ObjectRef.of(SINGLE_PLACEMENT_SLICES.group_resource, piece).cluster,
                placement_of_slice(piece),
            )
            if ref not in placed and slice_owner(piece["metadata"]) is None:
                continue  # somebody took it from its owner, which has gone since
            found.setdefault(ref, []).extend(destinations_in(piece))
        return {ref: sorted(each) for ref, each in found.items()}

    async def assert_never_missing(self, placement: ObjectRef, sync_targets: set[str]) -> None:
        """Check that after no single write the slices of a placement lacked one of these.

        *sync_targets* are names; what was before the slices first held all of them is no matter.
        """
        slices: dict[str, Object] = {}
        begun = False
        for write in await writes(self.store, SINGLE_PLACEMENT_SLICES):
            if write.cluster != placement.cluster:
                continue
            slices.pop(write.key, None)
            if write.obj is not None:
                slices[write.key] = write.obj
            union = {
                each.sync_target
                for piece in slices.values()
                if placement_of_slice(piece) == placement.name
                for each in destinations_in(piece)
            }
            begun = begun or sync_targets <= union
            missing = sorted(sync_targets - union)
            assert not begun or not missing, f"revision {write.revision}: {missing} are nowhere"
        assert begun

    async def reference(self) -> Reference:
        """Return everything there is, to be scanned."""
        spaces = await self.everything(WORKSPACES)
        return Reference(
            {
                ObjectRef.of(EDGE_PLACEMENTS.group_resource, obj): obj
                for obj in await self.everything(EDGE_PLACEMENTS)
            },
            {
                ObjectRef.of(LOCATIONS.group_resource, obj): _labelled(obj)
                for obj in await self.everything(LOCATIONS)
            },
            {
                ObjectRef.of(SYNC_TARGETS.group_resource, obj): _labelled(obj)
                for obj in await self.everything(SYNC_TARGETS)
            },
            {obj["spec"]["cluster"]: obj["metadata"].get("labels") or {} for obj in spaces},
            {
                ObjectRef.of(LOCATION_GRANTS.group_resource, obj): obj
                for obj in await self.everything(LOCATION_GRANTS)
            },
            {
                ObjectRef.of(WORKSPACES.group_resource, obj): (
                    obj["spec"]["cluster"],
                    obj["metadata"].get("labels") or {},
                )
                for obj in spaces
            },
            {
                ObjectRef.of(LOCATION_CONSENTS.group_resource, obj).cluster
                for obj in await self.everything(LOCATION_CONSENTS)
                if obj["mode"] == "Enforce"
            },
        )

    async def assert_scheduled(self) -> None:
        """Check slices and statuses against the scan."""
        reference = await self.reference()
        wanted = {ref: reference.destinations(ref) for ref in reference.placements}
        assert await self.destinations() == wanted
        owners = {ref: obj["metadata"]["uid"] for ref, obj in reference.placements.items()}
        for piece in await self.everything(SINGLE_PLACEMENT_SLICES):
            owner = slice_owner(piece["metadata"])
            if owner is None:
                assert ObjectRef.of(SINGLE_PLACEMENT_SLICES.group_resource, piece) not in owners
                continue
            assert (
                owners[
                    edge_placement_ref(
                        ObjectRef.of(SINGLE_PLACEMENT_SLICES.group_resource, piece).cluster,
                        owner.name,
                    )
                ]
                == owner.uid
            )
        for ref, obj in reference.placements.items():
            assert obj["status"]["destinationCount"] == len(wanted[ref])
            assert obj["status"]["specGeneration"] == obj["metadata"]["generation"]


# An edge scheduler whose slices are full with two destinations.
SMALL_SLICES = "edge-scheduler-with-small-slices"


async def _run(environment: EdgeEnvironment, name: str) -> None:
    if name == SMALL_SLICES:
        edge = await environment.provider_view("edge.kcp.io")
        scheduling, workload, tenancy = [
            (await environment.root_view(f"{group}.kcp.io")).factory
            for group in ("scheduling", "workload", "tenancy")
        ]
        views = Views(
            environment.context(edge.factory),
            scheduling,
            workload,
            tenancy,
            history=HistorySettings(),
        )
        await EdgeScheduler(views, max_destinations=2).run()
        return
    controller = await EDGE_CONTROLLERS[name].build(environment)
    await controller.run()


def _labelled(obj: Object) -> Object:
    return {**obj, "metadata": {"labels": {}, **obj["metadata"]}}


@asynccontextmanager
async def _unwrapped() -> AsyncIterator[Callable[[Coroutine[Any, Any, None]], None]]:
    """Run coroutines while inside; an error inside leaves as itself."""
    failure: Exception | None = None
    async with asyncio.TaskGroup() as tasks:
        started: list[asyncio.Task[None]] = []

        def start(coroutine: Coroutine[Any, Any, None]) -> None:
            started.append(tasks.create_task(coroutine))

        try:
            yield start
        except Exception as error:  # noqa: BLE001 - raised again below, unwrapped
            failure = error
        for task in started:
            task.cancel()
    if failure is not None:
        raise failure


KEYS, VALUES = ("env", "tier"), ("a", "b")


def equal(**labels: str) -> Object:
    return {"matchLabels": labels}


class People:
    """Somebody who does things at random."""

    def __init__(self, hub: Hub, *placements: str) -> None:
        self.hub = hub
        self.placements = placements or ("x", "y", "z")

    def one_of(self, *choices: Any) -> Any:
        return choices[int(self.hub.ids.fraction() * len(choices))]

    def labels(self) -> dict[str, str]:
        return {key: self.one_of(*VALUES) for key in KEYS if self.hub.ids.fraction() < 0.6}

    def selector(self) -> Object:
        listed = {"key": self.one_of(*KEYS), "operator": "In", "values": [self.one_of(*VALUES)]}
        absent = {"key": self.one_of(*KEYS), "operator": "DoesNotExist"}
        expressions = {"matchExpressions": [self.one_of(listed, absent)]}
        return dict(self.one_of({}, equal(**self.labels()), expressions))

    async def act(self) -> None:
        hub, name, placed = self.hub, self.one_of("x", "y", "z"), self.one_of(*self.placements)
        inventory, workload = self.one_of("root:imw1", "root:imw2"), self.one_of("a", "b")
        more = self.one_of({}, {"locationWorkspaceSelector": equal(org=self.one_of("p", "q"))})
        deed = self.one_of(
            lambda: hub.place(f"root:{workload}", placed, self.selector(), **more),
            lambda: hub.place(f"root:{workload}", placed, self.selector(), self.selector()),
            lambda: hub.locate(inventory, name, self.labels(), self.selector()),
            lambda: hub.locate(inventory, name, self.labels(), self.one_of(None, {})),
            lambda: hub.target(inventory, name, self.labels()),
            lambda: hub.remove(f"root:{workload}", EDGE_PLACEMENTS, placed),
            lambda: hub.remove(inventory, LOCATIONS, name),
            lambda: hub.remove(inventory, SYNC_TARGETS, name),
            lambda: hub.remove(f"root:{workload}", SINGLE_PLACEMENT_SLICES, placed),
            lambda: self.vandalise(f"root:{workload}", placed),
            lambda: self.relabel(inventory.removeprefix("root:")),
            hub.collect_garbage,
        )
        with suppress(ApiError):
            await deed()

    async def vandalise(self, workspace: str, name: str) -> None:
        patch = self.one_of(
            {"destinations": []},
            {"metadata": {"ownerReferences": None}},
            {"metadata": {"ownerReferences": None, "labels": None}},
            {"metadata": {"labels": {"edge.kcp.io/source-placement": "nobody"}}},
        )
        await self.hub.at(workspace).patch(SINGLE_PLACEMENT_SLICES, name, patch)

    async def relabel(self, workspace: str) -> None:
        patch = {"metadata": {"labels": {"org": self.one_of("p", "q", None)}}}
        await self.hub.at("root").patch(WORKSPACES, workspace, patch)
