"""Which event changes which table, and what is enqueued for it."""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from skerry.api.edge import (
    APPLIED,
    PROJECTED,
    PROJECTED_VALUE,
    REVISIONS,
    Mailbox,
    edge_placement_ref,
)
from skerry.api.objects import Object
from skerry.api.refs import CLUSTER_ANNOTATION, ObjectRef, namespace_ref
from skerry.controllers.summarizer.events import SummaryInputs
from skerry.controllers.summarizer.projections import (
    BY_CLUSTER,
    BY_PLACEMENT,
    Kind,
    by_cluster,
    by_placement,
    lean_config,
    lean_slice,
)
from skerry.logic.fleet.summary.freshness import LIVE, lapsed
from skerry.logic.fleet.summary.report import Copy, reference
from skerry.logic.fleet.summary.standing import Hold, Standing
from skerry.logic.fleet.syncing.delivery import content_mark
from skerry.runtime.index import Index, Key, key_of

DEPLOYMENTS = Kind("apps", "v1", "deployments", "Deployment", has_status=True)
CONFIG_MAPS = Kind("", "v1", "configmaps", "ConfigMap", has_status=False)
NAMESPACES = Kind("", "v1", "namespaces", "Namespace", has_status=False)
KINDS = [DEPLOYMENTS, CONFIG_MAPS, NAMESPACES]
UIDS = [f"00000000-0000-4000-8000-{n:012}" for n in range(2)]
CLUSTERS = ["wmw", "other", "mb-1", "mb-2"]


def thing(cluster: str, name: str, namespace: str = "", **more: Any) -> Object:
    metadata = {"name": name, "annotations": {CLUSTER_ANNOTATION: cluster}, **more.pop("meta", {})}
    if namespace:
        metadata["namespace"] = namespace
    return {"apiVersion": "v1", "kind": "Thing", "metadata": metadata, **more}


def copy_of(cluster: str, name: str, *, replicas: int = 0, applied: bool = False) -> Object:
    made = thing(cluster, name, "shop", meta={"labels": {PROJECTED: PROJECTED_VALUE}})
    if replicas:
        made["status"] = {"replicas": replicas, "updatedReplicas": 1, "availableReplicas": 1}
    if applied:
        made["metadata"]["annotations"][APPLIED] = content_mark(made)
    return made


class Events:
    """The handlers as informers call them, and what they enqueue."""

    def __init__(self) -> None:
        self.slices = Index()
        self.slices.add_index(BY_PLACEMENT, by_placement)
        self.summaries: list[Key] = []
        self.placements: list[ObjectRef] = []
        self.clusters: list[str] = []
        self.sources: list[ObjectRef] = []
        self.inputs = SummaryInputs(
            self.slices,
            self.summaries.append,
            self.sources.append,
            self.placements.append,
            self.clusters.append,
        )
        self.held = {kind: Index() for kind in KINDS}
        for kind, index in self.held.items():
            index.add_index(BY_CLUSTER, by_cluster)
            self.inputs.watch(kind, index)
        self._seen: dict[tuple[str, Key], Object] = {}

    def put(self, kind: Kind, obj: Object) -> None:
        kept = kind.project(obj)
        self.inputs.object_changed(kind, self.held[kind].put(key_of(kept), kept), kept)

    def drop(self, kind: Kind, key: Key) -> None:
        old = self.held[kind].remove(key)
        if old is not None:
            self.inputs.object_changed(kind, old, None)

    def place(self, name: str, cluster: str = "wmw", **spec: Any) -> None:
        spec = {"namespaceSelector": {}, **spec}
        obj = thing(cluster, name, spec=spec, meta={"uid": f"uid-{name}"})
        self.inputs.placement_changed(self._swap("placement", obj), obj)

    def withdraw(self, name: str, cluster: str = "wmw") -> None:
        old = self._seen.pop(("placement", Key(cluster, "", name)), None)
        if old is not None:
            self.inputs.placement_changed(old, None)

    def slice(self, name: str, *uids: str, **meta: Any) -> None:
        where = [
            {
                "cluster": "imw",
                "locationName": f"loc-{uid[-1]}",
                "syncTargetName": f"st-{uid[-1]}",
                "syncTargetUID": uid,
            }
            for uid in uids
        ]
        kept = lean_slice(thing("wmw", name, destinations=where, meta=meta))
        self.inputs.slice_changed(self.slices.put(key_of(kept), kept), kept)

    def mailbox(self, uid: str, cluster: str) -> None:
        obj = thing("espw", Mailbox("imw", uid).workspace, spec={"cluster": cluster})
        self.inputs.mailbox_changed(self._swap("mailbox", obj), obj)

    def mailbox_gone(self, uid: str) -> None:
        old = self._seen.pop(("mailbox", Key("espw", "", Mailbox("imw", uid).workspace)), None)
        if old is not None:
            self.inputs.mailbox_changed(old, None)

    def _swap(self, what: str, obj: Object) -> Object | None:
        old = self._seen.get((what, key_of(obj)))
        self._seen[what, key_of(obj)] = obj
        return old


def placed() -> Events:
    """Return the events of a Deployment that P sends to two edges."""
    events = Events()
    events.mailbox(UIDS[0], "mb-1")
    events.inputs.leases_changed({"mb-1": LIVE, "mb-2": LIVE})
    events.mailbox(UIDS[1], "mb-2")
    events.put(NAMESPACES, thing("wmw", "shop"))
    events.put(DEPLOYMENTS, thing("wmw", "web", "shop"))
    events.place("p")
    events.slice("p", *UIDS)
    for enqueued in (events.summaries, events.placements, events.clusters):
        enqueued.clear()
    return events


WEB = Key("wmw", "shop", "p-deployments-web")
P = edge_placement_ref("wmw", "p")
ITEM = ObjectRef("", "apps", "deployments", "shop", "web")


def test_a_report_enqueues_the_summary_of_its_object() -> None:
    events = placed()

    events.put(DEPLOYMENTS, copy_of("mb-1", "web", replicas=1))

    assert events.summaries == [WEB]


def test_leases_that_lapse_together_enqueue_each_summary_and_placement_once() -> None:
    events = placed()

    events.inputs.leases_changed({"mb-1": lapsed("t"), "mb-2": lapsed("t"), "other": LIVE})

    assert (events.summaries, events.placements) == ([WEB], [P])
    standing = events.inputs.tables.standing(P)
    assert standing is not None
    assert standing.unknown == 2


def test_a_lease_counts_for_whichever_mailbox_has_its_cluster() -> None:
    events = placed()

    events.mailbox_gone(UIDS[0])
    assert set(events.inputs.tables.leases) == {UIDS[1]}

    events.mailbox(UIDS[0], "mb-1")
    assert events.inputs.tables.leases.get(UIDS[0]) == LIVE

    events.inputs.leases_changed({"mb-1": None})
    assert events.inputs.tables.leases.get(UIDS[0]) is None


def held(cluster: str, message: str = "") -> Object:
    """Return a SyncerConfig as it is kept; without *message* its edge holds nothing."""
    status = {"type": "DeletionsHeld", "status": "True" if message else "False"}
    conditions = [{**status, "reason": "OverBudget", "message": message}]
    return lean_config(thing(cluster, "the-one", status={"conditions": conditions}))


def test_a_hold_enqueues_the_placements_that_lead_there_and_ends_with_it() -> None:
    events = placed()

    events.inputs.config_changed(None, held("mb-1"))
    assert events.placements == []

    events.inputs.config_changed(held("mb-1"), held("mb-1", "60 deletions are held"))
    assert (events.summaries, events.placements) == ([], [P])
    standing = events.inputs.tables.standing(P)
    assert standing is not None
    assert [each.hold for each in standing.held] == [Hold("DeletionsHeld", "60 deletions are held")]

    events.inputs.config_changed(held("mb-1", "60 deletions are held"), None)
    standing = events.inputs.tables.standing(P)
    assert standing is not None
    assert standing.held == ()


def test_a_hold_concerns_nobody_but_the_owners_of_what_is_held() -> None:
    events = placed()
    for clusters, concerned in ((["other"], False), (["other", "wmw"], True), ([], True)):
        config = {**held("mb-1", "60 deletions are held"), "clusters": clusters}
        events.inputs.config_changed(None, config)
        standing = events.inputs.tables.standing(P)
        assert standing is not None
        assert bool(standing.held) == concerned


def test_a_hold_counts_for_whichever_mailbox_has_its_cluster() -> None:
    events = placed()

    events.inputs.config_changed(None, held("mb-1", "60 deletions are held"))
    events.mailbox_gone(UIDS[0])
    assert set(events.inputs.tables.holds) == set()

    events.mailbox(UIDS[0], "mb-1")
    assert set(events.inputs.tables.holds) == {UIDS[0]}


def test_the_revisions_that_a_mailbox_notes_count_for_whichever_mailbox_has_its_cluster() -> None:
    events = placed()

    def noting(text: str) -> Object:
        config = thing("mb-1", "the-one")
        config["metadata"]["annotations"][REVISIONS] = text
        return lean_config(config)

    events.inputs.config_changed(None, noting("wmw/p=3"))
    assert events.inputs.tables.noted.get(UIDS[0]) == {edge_placement_ref("wmw", "p"): 3}
    events.mailbox_gone(UIDS[0])
    assert events.inputs.tables.noted.get(UIDS[0]) is None
    events.mailbox(UIDS[0], "mb-1")
    assert events.inputs.tables.noted.get(UIDS[0]) is not None
    events.inputs.config_changed(noting("wmw/p=3"), noting(""))
    assert events.inputs.tables.noted.get(UIDS[0]) is None


def test_a_report_on_what_nobody_places_enqueues_nothing() -> None:
    events = placed()

    events.put(DEPLOYMENTS, copy_of("mb-1", "api", replicas=1))

    assert events.summaries == []


def test_an_object_in_a_mailbox_that_is_no_copy_reports_nothing() -> None:
    events = placed()
    events.put(DEPLOYMENTS, copy_of("mb-1", "web", replicas=1))

    events.put(DEPLOYMENTS, thing("mb-1", "web", "shop"))

    assert events.inputs.tables.reports.of(ITEM) == {}


def test_a_delivered_copy_without_status_enqueues_its_placement() -> None:
    events = placed()
    events.put(CONFIG_MAPS, thing("wmw", "settings", "shop"))
    events.placements.clear()

    events.put(CONFIG_MAPS, copy_of("mb-1", "settings", applied=True))

    assert events.placements == [P]
    standing = events.inputs.tables.standing(P)
    assert standing is not None
    assert standing.delivered_copies == 1


def test_a_system_object_is_placed_by_nobody() -> None:
    events = placed()

    events.put(CONFIG_MAPS, thing("wmw", "kube-root-ca.crt", "shop"))

    assert {ref.name for ref in events.inputs.tables.sources} == {"shop", "web"}


def test_a_namespace_that_goes_takes_the_summaries_of_its_objects() -> None:
    events = placed()

    events.drop(NAMESPACES, Key("wmw", "", "shop"))

    assert events.summaries == [WEB]
    assert events.inputs.names.cause(WEB) is None
    assert events.inputs.tables.namespaces.get(namespace_ref("shop", "wmw")) is None


def test_a_placement_being_deleted_places_nothing() -> None:
    events = placed()
    obj = thing("wmw", "p", meta={"uid": "uid-p", "deletionTimestamp": "2030-01-01T00:00:00Z"})

    events.inputs.placement_changed(None, obj)

    assert events.inputs.names.cause(WEB) is None
    assert not events.inputs.is_workload("wmw")
    assert events.clusters == ["wmw"]


def test_what_a_placement_meant_counts_while_it_is_malformed() -> None:
    events = placed()

    events.place("p", namespaceSelector={"matchExpressions": [{"key": "a", "operator": "Odd"}]})

    assert events.inputs.tables.tally(P, ITEM) is not None


def test_a_placement_that_was_malformed_from_the_start_places_nothing() -> None:
    events = placed()

    events.place("q", namespaceSelector={"matchExpressions": [{"key": "a", "operator": "Odd"}]})

    q = edge_placement_ref("wmw", "q")
    assert events.inputs.tables.selected.of(q) == {}
    assert events.inputs.tables.standing(q) == Standing()


def test_a_changed_placement_enqueues_all_its_summaries() -> None:
    events = placed()

    events.place("p", wantSingletonReportedState=True)

    assert WEB in events.summaries
    assert events.inputs.owners[P].asks == "Singleton"
    assert {ref.cluster for ref in events.sources} == {"wmw"}
    assert "web" in {ref.name for ref in events.sources}


def test_nobody_asks_for_the_status_of_sources_unless_a_placement_does() -> None:
    assert placed().sources == []


def test_a_placement_whose_status_changed_enqueues_its_count_alone() -> None:
    events = placed()
    obj = events._seen["placement", Key("wmw", "", "p")]

    events.inputs.placement_changed(obj, {**obj, "status": {"specGeneration": 1}})

    assert (events.summaries, events.placements) == ([], [P])


def test_a_slice_that_only_a_label_ties_to_its_placement_counts() -> None:
    events = placed()

    events.slice("p", UIDS[0])
    events.slice("more", UIDS[1], labels={"edge.kcp.io/source-placement": "p"})

    assert set(events.inputs.tables.destinations.of(P)) == set(UIDS)


def test_a_slice_of_no_placement_is_left() -> None:
    events = placed()

    events.slice("unknown", UIDS[0])

    assert events.summaries == []


def test_a_workspace_that_is_no_mailbox_has_no_role() -> None:
    events = Events()

    obj = thing("espw", "tools", spec={"cluster": "mb-1"})
    events.inputs.mailbox_changed(None, obj)
    events.inputs.mailbox_changed(None, None)
    events.inputs.placement_changed(None, None)

    assert not events.inputs.is_mailbox("mb-1")
    assert events.clusters == []


def test_a_summary_somebody_wrote_is_enqueued() -> None:
    events = Events()

    events.inputs.summary_changed(None, thing("wmw", "p-deployments-web", "shop"))
    events.inputs.summary_changed(None, None)

    assert events.summaries == [WEB]


def test_what_a_stopped_watch_has_shown_is_forgotten() -> None:
    events = placed()

    events.inputs.unwatch(events.held[DEPLOYMENTS])

    assert events.inputs.names.cause(WEB) is None
    events.mailbox_gone(UIDS[0])
    events.mailbox(UIDS[0], "mb-1")
    assert events.inputs.tables.reports.of(ITEM) == {}


def test_what_a_workspace_no_longer_serves_is_forgotten_there_alone() -> None:
    events = placed()
    events.place("q", "other")
    events.put(DEPLOYMENTS, thing("other", "web", "shop"))

    events.inputs.unserved("wmw", [DEPLOYMENTS])

    assert ITEM.at("wmw") not in events.inputs.tables.sources
    assert ITEM.at("other") in events.inputs.tables.sources
    assert namespace_ref("shop", "wmw") in events.inputs.tables.sources


_clusters = st.sampled_from(CLUSTERS)
_uids = st.sampled_from(UIDS)
_names = st.sampled_from(["web", "api"])


class EventsMachine(RuleBasedStateMachine):
    """Roles come and go while objects do; the tables hold what the roles of now say."""

    def __init__(self) -> None:
        super().__init__()
        self.events = Events()
        self.objects: dict[tuple[Kind, ObjectRef], Object] = {}
        self.mailboxes: dict[str, str] = {}
        self.placements: set[str] = set()

    @rule(cluster=_clusters, name=_names, kind=st.sampled_from([DEPLOYMENTS, CONFIG_MAPS]))
    def source(self, cluster: str, name: str, kind: Kind) -> None:
        self._put(kind, thing(cluster, name, "shop"))

    @rule(
        cluster=_clusters,
        name=_names,
        kind=st.sampled_from([DEPLOYMENTS, CONFIG_MAPS]),
        replicas=st.integers(0, 2),
        applied=st.booleans(),
    )
    def copy(self, cluster: str, name: str, kind: Kind, replicas: int, applied: bool) -> None:
        self._put(kind, copy_of(cluster, name, replicas=replicas, applied=applied))

    @rule(cluster=_clusters, name=_names, kind=st.sampled_from([DEPLOYMENTS, CONFIG_MAPS]))
    def delete(self, cluster: str, name: str, kind: Kind) -> None:
        self.objects.pop((kind, kind.item(thing(cluster, name, "shop")).at(cluster)), None)
        self.events.drop(kind, Key(cluster, "shop", name))

    @rule(cluster=_clusters)
    def place(self, cluster: str) -> None:
        self.placements.add(cluster)
        self.events.place("p", cluster)

    @rule(cluster=_clusters)
    def withdraw(self, cluster: str) -> None:
        self.placements.discard(cluster)
        self.events.withdraw("p", cluster)

    @rule(uid=_uids, cluster=_clusters)
    def mailbox(self, uid: str, cluster: str) -> None:
        # A logical cluster belongs to one Workspace.
        if self.mailboxes.get(cluster, uid) == uid:
            self.mailboxes = {c: u for c, u in self.mailboxes.items() if u != uid} | {cluster: uid}
            self.events.mailbox(uid, cluster)

    @rule(uid=_uids)
    def unmake(self, uid: str) -> None:
        self.mailboxes = {c: u for c, u in self.mailboxes.items() if u != uid}
        self.events.mailbox_gone(uid)

    def _put(self, kind: Kind, obj: Object) -> None:
        cluster = obj["metadata"]["annotations"][CLUSTER_ANNOTATION]
        self.objects[kind, kind.item(obj).at(cluster)] = obj
        self.events.put(kind, obj)

    @invariant()
    def reports_are_those_of_the_copies_in_mailboxes(self) -> None:
        copies = {
            ref: Copy(kind.kind, kind.has_status, obj) for (kind, ref), obj in self.objects.items()
        }
        found = dict(self.events.inputs.tables.reports.items())
        assert found == reference(self.mailboxes, copies)

    @invariant()
    def sources_are_what_workspaces_with_placements_hold(self) -> None:
        workloads = self.placements - self.mailboxes.keys()
        expected = {ref for _, ref in self.objects if ref.cluster in workloads}
        assert set(self.events.inputs.tables.sources) == expected
        for cluster in CLUSTERS:
            assert self.events.inputs.is_workload(cluster) == (cluster in workloads)
            assert self.events.inputs.is_mailbox(cluster) == (cluster in self.mailboxes)


TestRoles = EventsMachine.TestCase
TestRoles.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
