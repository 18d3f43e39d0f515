"""The tables of the translator without a hub: events go in by hand, plans are applied at once."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Mapping
from typing import Any

from skerry.api.edge import (
    API_VERSION,
    EDGE_PLACEMENTS,
    REVISIONS,
    SYNCER_CONFIG_NAME,
    Mailbox,
    SliceOwner,
    is_projected,
    location_ref,
)
from skerry.api.kinds import GroupResource
from skerry.api.objects import Object
from skerry.api.refs import CLUSTER_ANNOTATION, ClusterName, ObjectRef
from skerry.controllers.placement_translator.activity import Activities
from skerry.controllers.placement_translator.consent import GrantedPlaces
from skerry.controllers.placement_translator.decide import MailboxPlan, decide, target_of
from skerry.controllers.placement_translator.events import EventHandlers
from skerry.controllers.placement_translator.executor import MailboxExecutor
from skerry.controllers.placement_translator.feeds import WatchSet
from skerry.controllers.placement_translator.guards import Judgement
from skerry.controllers.placement_translator.held import HeldObjects
from skerry.controllers.placement_translator.marking import TranslatorTables
from skerry.controllers.placement_translator.observe import Observed
from skerry.controllers.placement_translator.records import placement_ref_of_slice
from skerry.controllers.placement_translator.status import PlacementProblems
from skerry.logic.fleet.revision.cut import numbered_cut
from skerry.logic.fleet.revision.noted import noted
from skerry.logic.fleet.revision.objects import Cut, revision_objects
from skerry.logic.fleet.tables.completeness import Verdict
from skerry.logic.fleet.translation.copies import digest
from skerry.logic.fleet.translation.desired import Desired
from skerry.logic.fleet.translation.difference import Accepted, Difference, ItemDiff
from skerry.logic.fleet.translation.dirty import CONFIG, DirtyRows
from skerry.logic.fleet.translation.held import content_record
from skerry.logic.fleet.translation.manifest import live_state, what_digest
from skerry.logic.fleet.translation.merging import Copy
from skerry.logic.fleet.translation.ownership import owned_of
from skerry.logic.fleet.translation.reference import Translation, reference
from skerry.logic.fleet.translation.reference_inputs import Sources
from skerry.logic.fleet.translation.route import Route
from skerry.logic.fleet.translation.sources import WatchKey, record_of, wide
from skerry.logic.fleet.translation.types import ServedType
from skerry.logic.fleet.translation.workspaces import (
    BASIC_WATCHES,
    CONTENT,
    PATH,
    Mailboxes,
    Scope,
    Workspaces,
)
from skerry.logic.machinery.plan import Create, Delete, Patch, Update
from skerry.runtime.client import Client
from skerry.runtime.transport import NO_HEADERS, Answer, TransportError
from tests.kit.answering import AnsweringTransport

COMMON = (
    ServedType("", "namespaces", "Namespace", False, ("v1",)),
    ServedType("", "configmaps", "ConfigMap", True, ("v1",)),
    ServedType("", "secrets", "Secret", True, ("v1",)),
    ServedType("rbac.authorization.k8s.io", "clusterroles", "ClusterRole", False, ("v1",)),
    ServedType("apis.kcp.io", "apibindings", "APIBinding", False, ("v1alpha1",)),
    ServedType(
        "apiextensions.k8s.io", "customresourcedefinitions", "CustomResourceDefinition", False,
        ("v1",),
    ),
)  # fmt: skip
CONFIG_MAPS = GroupResource("", "configmaps")
NAMESPACES = GroupResource("", "namespaces")
ROLES = GroupResource("rbac.authorization.k8s.io", "clusterroles")
A, B = (Mailbox("imw", f"00000000-0000-4000-8000-00000000000{n}") for n in "ab")
CLUSTERS = {A: "mb-a", B: "mb-b"}


class Echo(AnsweringTransport):
    """A server that takes everything as it is sent, unless it refuses a name."""

    def __init__(self) -> None:
        self.refused: set[str] = set()
        self.loses_patches = False

    async def request(
        self,
        method: str,
        path: str,
        query: str = "",
        headers: Mapping[str, str] = NO_HEADERS,
        body: bytes = b"",
    ) -> Answer:
        if any(name.encode() in body for name in self.refused):
            text = b'{"kind":"Status","code":422,"reason":"Invalid","message":"not that one"}'
            return Answer(422, {}, text)
        if method == "PATCH" and self.loses_patches:
            raise TransportError("the request was lost")
        return Answer(201, {}, body if method in ("POST", "PUT") else b'{"metadata":{}}')


def cluster_object(cluster: ClusterName, name: str, namespace: str = "", **more: Any) -> Object:
    """Return an object with *more*; ``labels`` and ``notes`` (annotations) go to its metadata."""
    labels, notes = more.pop("labels", {}), more.pop("notes", {})
    metadata: Object = {"name": name, "annotations": {CLUSTER_ANNOTATION: cluster, **notes}}
    if namespace:
        metadata["namespace"] = namespace
    if labels:
        metadata["labels"] = dict(labels)
    return {"apiVersion": "v1", "kind": "Thing", "metadata": metadata, **more}


class World:
    """Workspaces, mailboxes ``A`` and ``B``, and everything that carries one into the other."""

    def __init__(self, *, mailboxes: bool = True, synced: bool = True) -> None:
        self.queue: set[Mailbox] = set()
        self.statuses: list[ObjectRef] = []
        self.reports: list[ClusterName] = []
        self.plans: list[MailboxPlan] = []
        self.rows: list[ItemDiff] = []
        # Everything there is, by kind and then cluster, namespace and name.
        self.objects: dict[GroupResource, dict[tuple[str, str, str], Object]] = {}
        self.configs: dict[ClusterName, Object] = {}
        self.placements: dict[ObjectRef, Object] = {}
        self.slices: dict[str, Object] = {}
        self.customizers: dict[tuple[str, str, str], Object] = {}
        self.locations: dict[ObjectRef, Object] = {}
        self.watches = WatchSet()
        self.server = Echo()
        self._version = 0
        workspaces = Workspaces(dict)
        self.tables = TranslatorTables(
            workspaces, Route(workspaces), Mailboxes(), DirtyRows(self.queue.add)
        )
        self.consent = GrantedPlaces()
        self.held = HeldObjects(self.reports.append)
        self.problems = PlacementProblems(self.statuses.append)
        self.grants_followed = 0
        self.paths_read: list[ClusterName] = []
        self.contents_read: list[Scope] = []
        # PlacementRevisions, and what RevisionContents hold, by workspace and name.
        self.revisions: dict[tuple[ClusterName, str], Object] = {}
        self.contents: dict[tuple[ClusterName, str], Object] = {}
        self.now = 0.0
        self.cuts: list[tuple[ObjectRef, float]] = []
        self.activities = Activities(lambda: self.now, lambda *due: self.cuts.append(due))
        self.handlers = EventHandlers(
            self.tables,
            self.watches,
            self.problems,
            self.consent,
            self.held,
            self.activities,
            slices=self._slices_of,
            locations=self.locations.values,
            enqueue_status=self.statuses.append,
            follow_grants=self._follow_grants,
        )
        accepted: Accepted = {}
        self.desired = Desired(
            workspaces,
            self.tables.route,
            self.tables.mailboxes,
            self.consent,
            lambda *key: self.customizers.get(key),
            lambda cluster, _, name: self.locations.get(location_ref(cluster, name)),
            self._stays,
            withhold_denatured=False,
            revisions=self.tables.revisions,
        )
        self.difference = Difference(
            workspaces,
            self.desired,
            self.consent,
            self.held,
            accepted,
            self.configs.get,
            self.tables.dirty.scopes,
            self.tables.dirty.unsettled,
        )
        self.executor = MailboxExecutor(
            Client(self.server),
            self.tables,
            self.problems,
            self.held,
            accepted,
            lambda mailbox, item: self.desired.at(mailbox).senders(item),
            self._follow,
            judged=lambda _: None,
            notes=self._note,
        )
        workspaces.learn_hub(COMMON, copies_are_inert=True)
        if mailboxes:
            for mailbox in (A, B):
                self.add_mailbox(mailbox)
        if synced:
            self.sync()

    def _slices_of(self, placement: ObjectRef) -> list[Object]:
        return [
            piece for piece in self.slices.values() if placement_ref_of_slice(piece) == placement
        ]

    def _follow(self, scope: Scope) -> None:
        """Follow a watch; the paths of workspaces are there for the asking."""
        if isinstance(scope, WatchKey):
            self.handlers.follow(scope)
        elif scope[0] == PATH:
            self.paths_read.append(scope[1])
        elif scope[0] == CONTENT:
            self.contents_read.append(scope)

    def cut(self, placement: ObjectRef) -> int:
        """Cut a revision of what a placement sends, as a cut would; returns its number."""
        tables = self.tables
        state = live_state(
            placement,
            what_digest(self.placements[placement]),
            tables.route,
            tables.workspaces,
            lambda *key: self.customizers.get(key),
        )
        pages = tables.revisions.table.pages(placement)
        found = numbered_cut(state.manifest.digest, pages)
        if found.existing is None:
            for name, record in state.contents.items():
                self.contents[placement.cluster, name] = record.copy()
            owner = SliceOwner(placement.name, "u")
            for obj in revision_objects(owner, state.manifest, Cut(found.number, found.sequence)):
                notes = obj["metadata"].setdefault("annotations", {})
                notes[CLUSTER_ANNOTATION] = placement.cluster
                self.revisions[placement.cluster, obj["metadata"]["name"]] = obj
                self.handlers.revision_changed(None, obj)
        return found.number

    def _read_contents(self) -> None:
        while self.contents_read:
            scope = self.contents_read.pop()
            found = self.contents.get((scope[1], scope[2]))
            item = ObjectRef("", *scope[3:])
            record = content_record(scope[1], item, scope[2], found) if found else None
            self.handlers.content_read(scope, record)

    def _note(self, mailbox: Mailbox) -> str:
        live = self.configs.get(CLUSTERS[mailbox])
        note = self.difference.note(self.desired.at(mailbox), live)
        return "" if live is None or noted(live) == note else note

    def _follow_grants(self) -> None:
        self.grants_followed += 1

    def _stays(self, mailbox: Mailbox, item: ObjectRef) -> bool:
        record = self.tables.workspaces.record(CLUSTERS[mailbox], item)
        there = record is not None and record.projected and not record.being_deleted
        return there and not self.held.is_released(mailbox, item)

    # -- watches -----------------------------------------------------------------------------

    def sync(self, *keys: WatchKey) -> None:
        """Read watches to the end; all of them, and those that are followed because of it."""
        if keys:
            for key in keys:
                self.handlers.watch_synced(key)
            return
        scopes = self.tables.dirty.scopes
        while unread := [key for key in self.watches.keys if not scopes.is_complete(key)]:
            for key in sorted(unread, key=lambda key: key not in BASIC_WATCHES):
                self.handlers.watch_synced(key)

    def restart(self, key: WatchKey) -> None:
        self.handlers.watch_started(key)

    def key(self, kind: GroupResource) -> WatchKey:
        version = "v1alpha1" if kind.group == "apis.kcp.io" else "v1"
        return wide(kind.group, version, kind.resource)

    # -- events ------------------------------------------------------------------------------

    def add_mailbox(self, mailbox: Mailbox) -> None:
        self.handlers.workspace_changed(None, _workspace(mailbox))

    def remove_mailbox(self, mailbox: Mailbox) -> None:
        self.handlers.workspace_changed(_workspace(mailbox), None)

    def put(self, kind: GroupResource, obj: Object) -> Object:
        """Create or change an object in the cluster its annotation names."""
        self._version += 1
        found = copy.deepcopy(obj)
        metadata = found["metadata"]
        key = (metadata["annotations"][CLUSTER_ANNOTATION], metadata.get("namespace", ""))
        old = self.objects.setdefault(kind, {}).get((*key, metadata["name"]))
        uid = old["metadata"]["uid"] if old else f"uid-{self._version}"
        created = old["metadata"]["creationTimestamp"] if old else f"{self._version:06}"
        metadata |= {"uid": uid, "resourceVersion": str(self._version)}
        metadata.setdefault("creationTimestamp", created)
        self.objects[kind][*key, metadata["name"]] = found
        watch = self.key(kind)
        self.handlers.put(self.tables.workspaces.watch(watch), record_of(watch, found))
        return found

    def remove(
        self, kind: GroupResource, cluster: ClusterName, name: str, namespace: str = ""
    ) -> None:
        obj = self.objects.get(kind, {}).pop((cluster, namespace, name), None)
        if obj is not None:
            watch = self.key(kind)
            self.handlers.removed(self.tables.workspaces.watch(watch), record_of(watch, obj))

    def place(self, cluster: ClusterName, name: str, **spec: Any) -> ObjectRef:
        obj = cluster_object(cluster, name, spec=spec)
        ref = ObjectRef.of(EDGE_PLACEMENTS.group_resource, obj)
        old, self.placements[ref] = self.placements.get(ref), obj
        self.handlers.placement_changed(old, obj)
        return ref

    def unplace(self, ref: ObjectRef) -> None:
        old = self.placements.pop(ref, None)
        if old is not None:
            self.handlers.placement_changed(old, None)

    def slice(
        self,
        placement: ObjectRef,
        *ways: tuple[Mailbox, str],
        revisions: Mapping[Mailbox, int] | None = None,
    ) -> None:
        """Send a placement to mailboxes, each by way of a Location, and some at a revision."""
        destinations: list[Object] = [
            {
                "cluster": mailbox.cluster,
                "locationName": location,
                "syncTargetName": "t",
                "syncTargetUID": mailbox.uid,
            }
            for mailbox, location in ways
        ]
        for each, (mailbox, _) in zip(destinations, ways, strict=True):
            if revisions and revisions.get(mailbox):
                each["revision"] = revisions[mailbox]
        obj = cluster_object(placement.cluster, placement.name, destinations=destinations)
        key = placement.qualified_name
        old, self.slices[key] = self.slices.get(key), obj
        self.handlers.slice_changed(old, obj)

    def locate(self, name: str, **labels: str) -> None:
        obj = cluster_object("imw", name, labels=labels)
        ref = location_ref("imw", name)
        old, self.locations[ref] = self.locations.get(ref), obj
        self.handlers.location_changed(old, obj)

    def customize(self, cluster: ClusterName, namespace: str, name: str, *ways: Object) -> None:
        obj = cluster_object(cluster, name, namespace, replacements=list(ways))
        key = (cluster, namespace, name)
        old, self.customizers[key] = self.customizers.get(key), obj
        self.handlers.customizer_changed(old, obj)

    # -- reconciling -------------------------------------------------------------------------

    def reconcile(self) -> list[MailboxPlan]:
        """Reconcile until nothing is enqueued; returns the plans that do something."""
        found: list[MailboxPlan] = []
        for _ in range(50):
            while self.paths_read:
                cluster = self.paths_read.pop()
                self.handlers.path_read(cluster, _path(cluster))
            self._read_contents()
            if not self.queue:
                return found
            mailbox = min(self.queue)
            self.queue.discard(mailbox)
            plan = self._reconcile(mailbox)
            if plan:
                found.append(plan)
        raise AssertionError("does not come to rest")

    def _reconcile(self, mailbox: Mailbox) -> MailboxPlan | None:
        tables = self.tables
        cluster = tables.mailboxes.cluster(mailbox)
        numbers = tables.dirty.of(mailbox)
        if cluster is None or not numbers:
            return None
        self.rows = self.difference.rows(mailbox, cluster, sorted(numbers))
        live = {
            row.item: obj
            for row in self.rows
            if row.verdict is Verdict.UPDATE and (obj := self._live(cluster, row.item)) is not None
        }
        plan = decide(Observed(Judgement(mailbox, tuple(self.rows)), cluster, numbers, live))
        asyncio.run(self._execute(plan))
        for action in plan:
            target = target_of(action)
            if isinstance(action, Create | Update) and target.name not in self.server.refused:
                self._write(cluster, target.gvr.group_resource, action.object)
            elif isinstance(action, Patch) and not self.server.loses_patches:
                self._give_status(cluster)
            elif isinstance(action, Delete):
                self.remove(target.gvr.group_resource, cluster, target.name, target.namespace)
        self.plans.append(plan)
        return plan

    async def _execute(self, plan: MailboxPlan) -> None:
        try:
            await self.executor.execute(plan)
        except Exception as error:  # noqa: BLE001 - the loop's own promise: it is tried again
            self.failure = error

    def _live(self, cluster: ClusterName, item: ObjectRef) -> Object | None:
        if item == CONFIG:
            return self.configs.get(cluster)
        key = (cluster, item.namespace, item.name)
        return self.objects.get(item.group_resource, {}).get(key)

    def _give_status(self, cluster: ClusterName) -> None:
        old = self.configs[cluster]
        self.configs[cluster] = {**old, "status": {}}
        self.handlers.config_changed(old, self.configs[cluster])

    def _write(self, cluster: ClusterName, kind: GroupResource, obj: Object) -> None:
        if kind == CONFIG.group_resource:
            old = self.configs.get(cluster)
            metadata: Object = {
                "name": SYNCER_CONFIG_NAME,
                "uid": "u",
                "annotations": {CLUSTER_ANNOTATION: cluster},
            }
            if note := noted(obj):
                metadata["annotations"][REVISIONS] = note
            self.configs[cluster] = {
                "apiVersion": API_VERSION,
                "metadata": metadata,
                "spec": obj["spec"],
            }
            if old is not None and "status" in old:
                self.configs[cluster]["status"] = old["status"]
            self.handlers.config_changed(old, self.configs[cluster])
            return
        made = copy.deepcopy(obj)
        made["metadata"].setdefault("annotations", {})[CLUSTER_ANNOTATION] = cluster
        self.put(kind, made)

    # -- what there is -----------------------------------------------------------------------

    def copies(self, mailbox: Mailbox) -> dict[ObjectRef, bytes]:
        """Return the copies in a mailbox with their digests."""
        return {
            ObjectRef("", *kind, namespace, name): digest(kind, obj)
            for kind, rows in self.objects.items()
            for (cluster, namespace, name), obj in rows.items()
            if cluster == CLUSTERS[mailbox] and is_projected(obj)
        }

    def recorded(self, mailbox: Mailbox) -> dict[ObjectRef, Copy]:
        """Return the copies in a mailbox as translation reads them: content, and whose it is."""
        return {
            ObjectRef("", *kind, namespace, name): Copy(digest(kind, obj), owned_of(obj))
            for kind, rows in self.objects.items()
            for (cluster, namespace, name), obj in rows.items()
            if cluster == CLUSTERS[mailbox] and is_projected(obj)
        }

    def expected(self) -> Translation:
        """Return what the reference makes of the same inputs."""
        sources: dict[str, dict[GroupResource, list[Object]]] = {}
        for kind, rows in self.objects.items():
            for (cluster, _, _), obj in rows.items():
                sources.setdefault(cluster, {}).setdefault(kind, []).append(obj)
        return reference(
            Sources(
                COMMON,
                sources,
                list(self.placements.values()),
                list(self.slices.values()),
                list(self.customizers.values()),
                list(self.locations.values()),
                copies={mailbox: self.recorded(mailbox) for mailbox in CLUSTERS},
                path=_path,
                revisions=list(self.revisions.values()),
                contents=self.contents,
            )
        )


def _workspace(mailbox: Mailbox) -> Object:
    return {"metadata": {"name": mailbox.workspace}, "spec": {"cluster": CLUSTERS[mailbox]}}


def _path(cluster: ClusterName) -> str:
    return f"root:{cluster}"
