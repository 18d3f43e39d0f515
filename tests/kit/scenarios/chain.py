"""The whole chain without a hub: the real tables of every owner, wired by hand.

Each command does what a person, a controller or an edge does, once. ``translate`` applies the rows
of ``difference`` to the mailboxes, ``sync`` those of a syncer to its edge. Nothing happens by
itself, so a story shows every step, and what would follow if the next one never came.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from skerry.api.edge import (
    EDGE_FIELD_MANAGER,
    EDGE_PLACEMENTS,
    HAND_OVER_TO,
    Mailbox,
    edge_placement_ref,
    is_projected,
)
from skerry.api.objects import Object
from skerry.api.refs import CLUSTER_ANNOTATION, ClusterName, ObjectRef, namespace_ref
from skerry.logic.fleet.placement.destination import DestinationTable
from skerry.logic.fleet.placement.grants import Rule
from skerry.logic.fleet.placement.records import (
    Destination,
    location_of,
    placement_of,
    sync_target_of,
)
from skerry.logic.fleet.summary.freshness import LIVE, lapsed
from skerry.logic.fleet.summary.report import digest_of, report_of
from skerry.logic.fleet.summary.selection import selection
from skerry.logic.fleet.summary.tables import Source, SummaryTables
from skerry.logic.fleet.syncing.delivery import marked
from skerry.logic.fleet.syncing.difference import Observed, difference
from skerry.logic.fleet.syncing.evidence import Evidence
from skerry.logic.fleet.syncing.outcome import SyncOutcome
from skerry.logic.fleet.syncing.present import present
from skerry.logic.fleet.syncing.recorded import DownsyncRecord
from skerry.logic.fleet.syncing.wanted import wanted
from skerry.logic.fleet.tables.completeness import Verdict
from skerry.logic.fleet.translation.copies import replacement
from skerry.logic.fleet.translation.desired import Desired
from skerry.logic.fleet.translation.difference import Difference, ItemDiff
from skerry.logic.fleet.translation.dirty import DirtyRows
from skerry.logic.fleet.translation.route import Route, destinations_of
from skerry.logic.fleet.translation.selected import placement_row, what_of
from skerry.logic.fleet.translation.sources import record_of, wide
from skerry.logic.fleet.translation.workspaces import (
    Mailboxes,
    Scope,
    Workspaces,
    selection_scope,
    types_scope,
)
from skerry.logic.machinery.plan import Apply, Delete
from tests.kit.scenarios.rows import (
    BY_TYPE,
    KINDS,
    TABLES,
    WORKLOAD,
    placement_name,
    shown,
    waiting,
)
from tests.kit.scenarios.transcript import TranscriptError

INVENTORY = "imw"
_VERBS = {
    Verdict.CREATE: "create",
    Verdict.UPDATE: "update",
    Verdict.DELETE: "delete",
}


class NoGrants:
    """An inventory whose Locations take everything: no grants at all."""

    is_used = False

    def is_enforced(self, _: str) -> bool:
        return False

    def is_observed(self, _: str) -> bool:
        return False

    def rules(self, _: str, __: ObjectRef, ___: Mailbox) -> Sequence[Rule]:
        return ()

    def scopes(self, _: Mailbox) -> tuple[Scope, ...]:
        return ()

    def governs(self, _: Mailbox) -> bool:
        return False

    def refusing(self, _: ClusterName) -> str:
        return ""

    def is_released(self, _: Mailbox, __: ObjectRef) -> bool:
        return False


@dataclass
class Edge:
    """An edge cluster: what it runs, what its syncer recorded, and whether it reaches the hub."""

    name: str
    mailbox: Mailbox
    online: bool = True
    present: dict[ObjectRef, Object] = field(default_factory=dict)
    recorded: dict[ObjectRef, DownsyncRecord] = field(default_factory=dict)

    @property
    def cluster(self) -> ClusterName:
        """The logical cluster of its mailbox."""
        return f"mailbox-{self.name}"


class Chain:
    """See the module's text. Commands are methods named ``do_<command>``."""

    def __init__(self) -> None:
        self.revision = 0
        self.edges: dict[str, Edge] = {}
        # Every object of every workspace and mailbox.
        self.objects: dict[ObjectRef, Object] = {}
        self.placements: dict[ObjectRef, Object] = {}
        self.destination = DestinationTable()
        self.slices: dict[ObjectRef, list[Destination]] = {}
        self.workspaces = Workspaces(dict)
        self.workspaces.learn_hub(tuple(KINDS.values()), copies_are_inert=True)
        self.route = Route(self.workspaces)
        self.dirty = DirtyRows(lambda _: None)
        self.mailboxes = Mailboxes()
        grants = NoGrants()
        self.desired = Desired(
            self.workspaces,
            self.route,
            self.mailboxes,
            grants,
            customizer=lambda *_: None,
            location=lambda *_: None,
            stays=lambda *_: False,
        )
        self.difference = Difference(
            self.workspaces,
            self.desired,
            grants,
            grants,
            {},
            lambda _: None,
            self.dirty.scopes,
        )
        self.summary = SummaryTables()
        for served in KINDS.values():
            self.dirty.complete(wide(served.group, "v1", served.resource))
        self._follow(WORKLOAD)

    def run(self, words: list[str]) -> Iterable[str]:
        """Run one command; ``@name`` at its end is the workspace it is about."""
        cluster = WORKLOAD
        if words[-1].startswith("@"):
            cluster = words.pop()[1:]
            self._follow(cluster)
        command = getattr(self, f"do_{words[0]}", None)
        if command is None and words[0] in KINDS:
            return self._put_source(words[0], words[1], words[2:], cluster)
        if command is None:
            raise TranscriptError(f"command {words[0]!r}: nobody knows it")
        found: Iterable[str] = command(words[1:], cluster)
        return found

    # -- what people do ----------------------------------------------------------------------

    def do_edge(self, words: list[str], _: ClusterName) -> Iterator[str]:
        """``edge NAME label=value…``: a Location with one SyncTarget, and its mailbox."""
        name, labels = words[0], _pairs(words[1:])
        edge = self.edges.get(name)
        if edge is None:
            uid = f"00000000-0000-4000-8000-{len(self.edges):012}"
            edge = self.edges[name] = Edge(name, Mailbox(INVENTORY, uid))
            self.summary.leases.put(uid, LIVE)
            self._follow(edge.cluster)
            self.mailboxes.put(edge.mailbox, edge.cluster)
        target = _named(INVENTORY, name, labels={"name": name}, uid=edge.mailbox.uid)
        self.destination.put_sync_target(sync_target_of(target))
        location = _named(INVENTORY, name, labels=labels)
        location["spec"] = {"instanceSelector": {"matchLabels": {"name": name}}}
        yield from self._schedule(self.destination.put_location(location_of(location)))

    def do_place(self, words: list[str], cluster: ClusterName) -> Iterator[str]:
        """``place NAME where label=value what label=value``: an EdgePlacement."""
        name, (where, what) = words[0], _clauses(words[1:])
        obj = _named(cluster, name)
        obj["spec"] = {
            "locationSelectors": [{"matchLabels": where}],
            "namespaceSelector": {"matchLabels": what},
        }
        ref = ObjectRef.of(EDGE_PLACEMENTS.group_resource, obj)
        self.placements[ref] = obj
        self.route.put_placement(ref, placement_row(obj))
        self.dirty.complete(selection_scope(ref))
        self.summary.placements.put(ref, selection(what_of(obj)))
        yield from self._schedule({ref, *self.destination.put_placement(placement_of(obj))})

    def do_unplace(self, words: list[str], cluster: ClusterName) -> Iterator[str]:
        """``unplace NAME``: delete an EdgePlacement; its slices go with it."""
        ref = edge_placement_ref(cluster, words[0])
        del self.placements[ref]
        self.destination.remove_placement(ref)
        self.slices.pop(ref, None)
        self.route.drop_placement(ref)
        self.summary.drop_placement(ref)
        self._settle()
        yield from ()

    def do_handover(self, words: list[str], cluster: ClusterName) -> Iterator[str]:
        """``handover KIND NAME WORKSPACE``: have the owner annotate its object."""
        ref = _ref(words[0], words[1], cluster)
        obj = self.objects[ref]
        notes = {**obj["metadata"]["annotations"], HAND_OVER_TO: f"root:{words[2]}"}
        self._put({**obj, "metadata": {**obj["metadata"], "annotations": notes}}, ref)
        yield from ()

    def do_delete(self, words: list[str], cluster: ClusterName) -> Iterator[str]:
        """``delete KIND NAME``: an object of a workspace."""
        self._drop(_ref(words[0], words[1], cluster))
        yield from ()

    # -- what is known -----------------------------------------------------------------------

    def do_unread(self, words: list[str], _: ClusterName) -> Iterator[str]:
        """``unread KIND``: the watch on a kind has begun anew and was not read to the end."""
        served = KINDS[words[0]]
        self.dirty.incomplete(wide(served.group, "v1", served.resource))
        yield from ()

    def do_read(self, words: list[str], _: ClusterName) -> Iterator[str]:
        """``read KIND``: the watch on a kind was read to the end."""
        served = KINDS[words[0]]
        self.dirty.complete(wide(served.group, "v1", served.resource))
        yield from ()

    # -- what controllers and edges do -------------------------------------------------------

    def do_translate(self, _: list[str], __: ClusterName) -> Iterator[str]:
        """``translate``: apply the rows of ``difference``; print what each does or waits for."""
        for edge in self.edges.values():
            for row in self.differences(edge):
                yield from self._apply(edge, row)

    def do_sync(self, words: list[str], _: ClusterName) -> Iterator[str]:
        """``sync EDGE``: let a syncer take its mailbox to its edge, and mark what it applied."""
        edge = self.edges[words[0]]
        for ref in sorted({*edge.recorded, *self.copies(edge)}):
            yield from self._sync(edge, ref)

    def do_offline(self, words: list[str], _: ClusterName) -> Iterator[str]:
        """``offline EDGE``: it does not reach the hub."""
        self.edges[words[0]].online = False
        yield from ()

    def do_online(self, words: list[str], _: ClusterName) -> Iterator[str]:
        """``online EDGE``: it reaches the hub again."""
        edge = self.edges[words[0]]
        edge.online = True
        self.summary.leases.put(edge.mailbox.uid, LIVE)
        self._settle()
        yield from ()

    def do_lapse(self, words: list[str], _: ClusterName) -> Iterator[str]:
        """``lapse EDGE TIME``: its Lease has run out; it was last heard of at that time."""
        self.summary.leases.put(self.edges[words[0]].mailbox.uid, lapsed(words[1]))
        self._settle()
        yield from ()

    def do_status(self, words: list[str], _: ClusterName) -> Iterator[str]:
        """``status EDGE KIND NAME field=number…``: what the edge says of an object it runs."""
        edge = self.edges[words[0]]
        ref = _ref(words[1], words[2], edge.cluster)
        status = {name: int(value) for name, value in _pairs(words[3:]).items()}
        self._put({**self.objects[ref], "status": status}, ref)
        yield from ()

    # -- what can be asked -------------------------------------------------------------------

    def do_show(self, words: list[str], _: ClusterName) -> Iterator[str]:
        """``show TABLE``: the rows of a table."""
        yield from TABLES[words[0]](self)

    # -- how it is done ----------------------------------------------------------------------

    def _follow(self, cluster: ClusterName) -> None:
        if not self.workspaces.follows(cluster):
            self.workspaces.follow(cluster)
            self.workspaces.retype(cluster)
            self.dirty.complete(types_scope(cluster))
            self.workspaces.learn_path(cluster, f"root:{cluster}")

    def _schedule(self, touched: Iterable[ObjectRef]) -> Iterator[str]:
        """Write the slices of placements whose destinations may be others."""
        for ref in sorted(touched):
            found = self.destination.destinations(ref)
            if found != self.slices.get(ref, []):
                self.slices[ref] = found
                yield f"slice {placement_name(ref)}: {', '.join(d.sync_target for d in found)}"
            piece = {"destinations": [each.as_object() for each in found]}
            self.route.put_destinations(ref, destinations_of([piece]))
            self.summary.set_destinations(ref, found)
        self._settle()

    def _settle(self) -> None:
        self.route.settle()
        self.summary.settle()

    def _put_source(
        self, kind: str, name: str, words: list[str], cluster: ClusterName
    ) -> Iterator[str]:
        ref, pairs = _ref(kind, name, cluster), _pairs(words)
        obj = _named(cluster, ref.name, ref.namespace)
        served = KINDS[kind]
        group_version = f"{served.group}/v1" if served.group else "v1"
        obj |= {"apiVersion": group_version, "kind": served.kind}
        if kind == "namespace":
            obj["metadata"]["labels"] = pairs
        elif kind == "deployment":
            obj["spec"] = {name: int(value) for name, value in pairs.items()}
        else:
            obj["data"] = pairs
        self._put(obj, ref)
        yield from ()

    def _put(self, obj: Object, ref: ObjectRef) -> None:
        """Have an object in a workspace or a mailbox, and all tables follow."""
        self.revision += 1
        metadata = {**obj["metadata"], "resourceVersion": str(self.revision)}
        old = self.objects.get(ref)
        metadata["uid"] = old["metadata"]["uid"] if old else f"uid-{self.revision}"
        created = old["metadata"]["creationTimestamp"] if old else f"{self.revision:06}"
        metadata["creationTimestamp"] = created
        obj = self.objects[ref] = {**obj, "metadata": metadata}
        watch = wide(ref.group, "v1", ref.resource)
        record = record_of(watch, obj)
        self.workspaces.watch(watch).put(record)
        labels = metadata.get("labels") or {}
        edge = next((each for each in self.edges.values() if each.cluster == ref.cluster), None)
        if edge is not None:
            if is_projected(obj):
                kind = KINDS[BY_TYPE[ref.group_resource]].kind
                report = report_of(ref.group, kind, obj)
                self.summary.reports.put_pair(ref.at(""), edge.mailbox.uid, report)
        else:
            has_status = ref.resource == "deployments"
            digest = digest_of(obj.get("status"))
            source = Source(labels, "v1", ref.resource, has_status, digest)
            self.summary.sources.put(ref, source)
            if not ref.namespace:
                self.summary.namespaces.put(namespace_ref(ref.name, ref.cluster), labels)
                if self.route.in_cluster(ref.cluster):
                    self.route.put_candidate(ref.cluster, ref.at(""), labels)
        self._settle()

    def _drop(self, ref: ObjectRef) -> None:
        obj = self.objects.pop(ref)
        watch = wide(ref.group, "v1", ref.resource)
        self.workspaces.watch(watch).remove(record_of(watch, obj))
        edge = next((each for each in self.edges.values() if each.cluster == ref.cluster), None)
        if edge is not None:
            self.summary.reports.drop_pair(ref.at(""), edge.mailbox.uid)
        else:
            self.summary.sources.drop(ref)
            if not ref.namespace:
                self.summary.namespaces.drop(namespace_ref(ref.name, ref.cluster))
                self.route.put_candidate(ref.cluster, ref.at(""), None)
        self._settle()

    def copies(self, edge: Edge) -> dict[ObjectRef, Object]:
        found = sorted(self.objects.items(), key=lambda pair: pair[0])
        return {
            ref.at(""): obj
            for ref, obj in found
            if ref.cluster == edge.cluster and is_projected(obj)
        }

    def items(self, edge: Edge) -> list[ObjectRef]:
        """Return everything that is or should be in a mailbox."""
        sent = {
            item
            for placement in self.route.destination.having(edge.mailbox)
            for item in self.route.items(placement)
        }
        return sorted(sent | self.copies(edge).keys())

    def differences(self, edge: Edge) -> list[ItemDiff]:
        rows = self.difference.rows(edge.mailbox, edge.cluster, self.items(edge))
        return [row for row in rows if row.verdict is not Verdict.NONE or row.problems]

    def _apply(self, edge: Edge, row: ItemDiff) -> Iterator[str]:
        ref = row.item.at(edge.cluster)
        if row.verdict in _VERBS:
            yield f"{edge.name}: {_VERBS[row.verdict]} {shown(row.item)}"
        elif row.verdict is Verdict.PENDING:
            yield f"{edge.name}: {shown(row.item)} is pending{waiting(row)}"
        for placement, problem in row.problems or ():
            yield f"  {placement_name(placement)}: {problem.reason}: {problem.message}"
        if row.verdict is Verdict.DELETE:
            self._drop(ref)
        elif row.verdict in _VERBS and row.render is not None:
            self._write_copy(ref, row.render())

    def _write_copy(self, ref: ObjectRef, made: Object) -> None:
        """Write a copy as the translator does: content is its own, status and marks stay."""
        old = self.objects.get(ref, {"metadata": {}})
        made = replacement(ref.group_resource, old, made)
        notes = {**(made["metadata"].get("annotations") or {}), CLUSTER_ANNOTATION: ref.cluster}
        self._put({**made, "metadata": {**made["metadata"], "annotations": notes}}, ref)

    def _sync(self, edge: Edge, ref: ObjectRef) -> Iterator[str]:
        """Take one step of a syncer about one object."""
        obj = self.objects.get(ref.at(edge.cluster)) if edge.online else None
        live = edge.present.get(ref)
        plan = difference(
            Observed(
                ref,
                wanted(ref.group_resource, "v1", obj),
                covered=True,
                live=None if live is None else present(live),
                record=edge.recorded.get(ref),
                evidence=self._evidence(edge),
                in_use=self._in_use(edge, ref),
                budget="allowed",
            )
        )
        record = plan.record
        for action in plan:
            if isinstance(action, Apply) and record is not None:
                answer = _applied(action.object, f"edge-{ref.name}")
                edge.present[ref] = answer
                record = record.after(answer)
            elif isinstance(action, Delete):
                del edge.present[ref]
        if record is None or (not edge.online and ref not in edge.recorded):
            edge.recorded.pop(ref, None)
        else:
            edge.recorded[ref] = record
        yield f"{edge.name}: {shown(ref)} {_outcome(plan.outcome)}"
        changes = None if obj is None else marked(obj, plan.outcome)
        if obj is not None and changes:
            notes = {**obj["metadata"]["annotations"], **changes}
            kept = {name: value for name, value in notes.items() if value is not None}
            copy = {**obj, "metadata": {**obj["metadata"], "annotations": kept}}
            self._put(copy, ref.at(edge.cluster))

    def _in_use(self, edge: Edge, ref: ObjectRef) -> str:
        """Return why a Namespace of an edge cannot go; empty when it can."""
        inside = [each for each in edge.present if each.namespace == ref.name]
        return f"{len(inside)} objects are in it" if inside and not ref.namespace else ""

    def _evidence(self, edge: Edge) -> Evidence:
        if not edge.online:
            return Evidence()
        now = self.revision + 1
        return Evidence(
            synced=True,
            configured=True,
            trusted=True,
            store="store",
            revision=now,
            config_revision=now,
        )


def _applied(content: Object, uid: str) -> Object:
    """Return what an edge answers to an apply of *content*."""
    fields: Object = {
        f"f:{name}": {} for name in content if name not in ("apiVersion", "kind", "metadata")
    }
    managed = {"manager": EDGE_FIELD_MANAGER, "operation": "Apply", "fieldsV1": fields}
    return {**content, "metadata": {**content["metadata"], "uid": uid, "managedFields": [managed]}}


def _named(cluster: ClusterName, name: str, namespace: str = "", **metadata: Any) -> Object:
    found = {"name": name, "annotations": {CLUSTER_ANNOTATION: cluster}, **metadata}
    if namespace:
        found["namespace"] = namespace
    return {"metadata": found}


def _ref(kind: str, name: str, cluster: ClusterName) -> ObjectRef:
    namespace, _, local = name.rpartition("/")
    return ObjectRef(cluster, *KINDS[kind].group_resource, namespace, local)


def _pairs(words: Iterable[str]) -> dict[str, str]:
    return dict(word.split("=", 1) for word in words)


def _clauses(words: list[str]) -> tuple[dict[str, str], dict[str, str]]:
    """Return what ``where … what …`` say."""
    at = words.index("what")
    return _pairs(words[1:at]), _pairs(words[at + 1 :])


def _outcome(outcome: SyncOutcome) -> str:
    if outcome.reason in ("", outcome.state):
        return outcome.state
    return f"{outcome.state} ({outcome.reason})"
