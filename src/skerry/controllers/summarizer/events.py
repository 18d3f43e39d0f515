"""Which event changes which table, and which keys that enqueues.

A logical cluster has a role: it is a workload's workspace (it has an EdgePlacement), a mailbox, or
neither. What an object is depends on the role of its cluster: a source, a copy, or nothing. Roles
come and go, so when one changes every object of the cluster is taken in anew.

    the cluster has                       an object in it is
    no placement, and is no mailbox       nothing; it is kept in its informer, should that change
    a placement                           a source, unless it is the system's own
    a mailbox's Workspace                 a copy, if it has a report; placements there do not count

An object is dropped in the role in which it was put, before the cluster gets another one: after
that nobody would find the row. Hence ``_drop_all`` before a role is lost.

Whoever writes tables settles them at the end (``_settle``): they note what was put, and work out
once what follows. So a batch that touches a summary a hundred times enqueues it once. Order of
events does not matter: a Lease, a SyncerConfig or a copy may come before the mailbox that it is of.
What cannot be put yet is remembered by its cluster and put when the cluster gets its role.

Deleted objects are gone from the tables with their event, but a summary goes only when its
workspace was read as a whole (``observe``): tables that are being filled lack things, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeVar

from skerry.api.edge import (
    SYNCER_CONFIG_NAME,
    ReportedState,
    edge_placement_ref,
    mailbox_named,
    placement_of_slice,
    places_nothing,
)
from skerry.api.objects import Object
from skerry.api.refs import ClusterName, ObjectRef, namespace_ref
from skerry.controllers.summarizer.names import Cause, Names
from skerry.controllers.summarizer.projections import (
    BY_CLUSTER,
    BY_PLACEMENT,
    Kind,
    hold_in,
    labels_of,
    noted_in,
)
from skerry.logic.fleet.placement.reported_state import reported_state
from skerry.logic.fleet.placement.slices import destinations_in
from skerry.logic.fleet.summary.freshness import Lease
from skerry.logic.fleet.summary.selection import selection
from skerry.logic.fleet.summary.standing import Hold
from skerry.logic.fleet.summary.tables import Source, SummaryTables
from skerry.logic.fleet.tables.flow import Settled
from skerry.logic.fleet.translation.categories import NAMESPACES
from skerry.logic.fleet.translation.selected import What, what_of
from skerry.logic.machinery.selectors import SelectorError
from skerry.runtime.client import cluster_of
from skerry.runtime.index import Index, Key, key_of

V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Owner:
    """An EdgePlacement as far as its summaries need it."""

    uid: str
    # What becomes of the states of what it places.
    asks: ReportedState


class Follower(Protocol):
    """Who derives something else from the same events: objects of mailboxes, and the tables."""

    def object_put(self, kind: Kind, item: ObjectRef, uid: str, obj: Object) -> None:
        """Take in an object of the mailbox of a SyncTarget, as little as is kept of it."""

    def object_dropped(self, kind: Kind, item: ObjectRef, uid: str) -> None:
        """Take that a mailbox has an object no longer."""

    def settled(self, settled: Settled) -> None:
        """Take what a batch changed in the tables, before keys are enqueued for it."""

    def placement_put(self, placement: ObjectRef, obj: Object | None) -> None:
        """Take in an EdgePlacement; None: it is gone."""


class SummaryInputs:
    """Takes events into the tables, settles them, and enqueues what that touched."""

    def __init__(
        self,
        slices: Index,
        enqueue_summary: Callable[[Key], None],
        enqueue_source: Callable[[ObjectRef], None],
        enqueue_placement: Callable[[ObjectRef], None],
        enqueue_cluster: Callable[[ClusterName], None],
    ) -> None:
        """*slices* is indexed by placement."""
        self.tables = SummaryTables()
        self.names = Names()
        self.owners: dict[ObjectRef, Owner] = {}
        self._slices = slices
        self._enqueue_summary = enqueue_summary
        self._enqueue_source = enqueue_source
        self._enqueue_placement = enqueue_placement
        self._enqueue_cluster = enqueue_cluster
        self._placements: dict[ClusterName, set[ObjectRef]] = {}
        # SyncTarget UIDs by mailbox cluster, and the other way round.
        self._uids: dict[ClusterName, str] = {}
        self._mailboxes: dict[str, ClusterName] = {}
        # Leases by mailbox cluster, which may be read before the mailbox itself.
        self._leases: dict[ClusterName, Lease] = {}
        # What edges hold back, likewise.
        self._holds: dict[ClusterName, Hold] = {}
        self._noted: dict[ClusterName, Mapping[ObjectRef, int]] = {}
        self._watched: list[tuple[Kind, Index]] = []
        self._followers: list[Follower] = []
        self._when_read: list[Callable[[ClusterName], None]] = []

    def follow(self, follower: Follower) -> None:
        """Have *follower* notified from now on; what is there already is in the tables."""
        self._followers.append(follower)

    def when_read(self, notify: Callable[[ClusterName], None]) -> None:
        """Have *notify* called with each workspace of which everything it serves was read."""
        self._when_read.append(notify)

    def mailbox_uid(self, cluster: ClusterName) -> str:
        """Return the UID of the SyncTarget whose mailbox a cluster is; empty when it is none."""
        return self._uids.get(cluster, "")

    def is_workload(self, cluster: ClusterName) -> bool:
        """Tell whether a cluster has an EdgePlacement."""
        return cluster in self._placements and cluster not in self._uids

    def is_mailbox(self, cluster: ClusterName) -> bool:
        """Tell whether a cluster is a mailbox's."""
        return cluster in self._uids

    def mailbox_clusters(self) -> list[ClusterName]:
        """Return the clusters of all mailboxes."""
        return list(self._uids)

    def mailbox_cluster(self, uid: str) -> ClusterName:
        """Return the cluster of the mailbox of a SyncTarget; empty when there is none."""
        return self._mailboxes.get(uid, "")

    def asking(self, cluster: ClusterName, asked: ReportedState) -> list[ObjectRef]:
        """Return the placements of a workspace that ask for that state of their objects."""
        placements = self._placements.get(cluster, ())
        return sorted(each for each in placements if self.owners[each].asks == asked)

    # -- event handlers ----------------------------------------------------------------------

    def placement_changed(self, old: Object | None, new: Object | None) -> None:
        """Take in an EdgePlacement. One that is being deleted places nothing, unless held."""
        obj = new or old
        if obj is None:
            return
        placement = edge_placement_ref(cluster_of(obj), obj["metadata"]["name"])
        gone = new is None or places_nothing(new)
        for follower in self._followers:
            follower.placement_put(placement, None if gone else new)
        if new is None or gone:
            self._placement_gone(placement)
        else:
            self._put_placement(placement, new)
            if old is None or old.get("spec") != new.get("spec"):
                self._select(placement, new)
                self._read_slices(placement)
                self._enqueue_all(placement)
        self._settle()
        self._enqueue_placement(placement)

    def slice_changed(self, old: Object | None, new: Object | None) -> None:
        """Take in the destinations of whoever the slice belongs, or belonged, to."""
        for obj in (old, new):
            if obj is not None:
                placement = edge_placement_ref(cluster_of(obj), placement_of_slice(obj))
                if placement in self.owners:
                    self._read_slices(placement)
        self._settle()

    def mailbox_changed(self, old: Object | None, new: Object | None) -> None:
        """Take in a workspace of the provider, if it is a mailbox.

        One that is not initialized has no cluster yet, and one that gets another counts as gone
        and made anew. What was said of its cluster before anybody knew whose it is, counts now.
        """
        obj = new or old
        mailbox = None if obj is None else mailbox_named(obj["metadata"]["name"])
        if mailbox is None:
            return
        uid = mailbox.uid
        cluster = "" if new is None else (new.get("spec") or {}).get("cluster", "")
        before = self._mailboxes.get(uid, "")
        if cluster == before:
            return
        if before:
            self._drop_all(before)
            del self._mailboxes[uid], self._uids[before]
            self.tables.leases.drop(uid)
            self.tables.holds.drop(uid)
            self.tables.noted.drop(uid)
            self._role_changed(before)
        if cluster:
            self._drop_all(cluster)
            self._mailboxes[uid] = cluster
            self._uids[cluster] = uid
            self._put_lease(uid, self._leases.get(cluster))
            self._put_hold(uid, self._holds.get(cluster))
            self._put_noted(uid, self._noted.get(cluster))
            self._role_changed(cluster)
        self._settle()

    def leases_changed(self, leases: Mapping[ClusterName, Lease | None]) -> None:
        """Take in, as one batch, Leases that have lapsed, live again, or are gone."""
        for cluster, lease in leases.items():
            if lease is None:
                self._leases.pop(cluster, None)
            else:
                self._leases[cluster] = lease
            uid = self._uids.get(cluster)
            if uid is not None:
                self._put_lease(uid, lease)
        self._settle()

    def config_changed(self, old: Object | None, new: Object | None) -> None:
        """Take in what a SyncerConfig says its edge holds back, and at which revisions it is."""
        obj = new or old
        if obj is None or obj["metadata"]["name"] != SYNCER_CONFIG_NAME:
            return
        cluster, hold = cluster_of(obj), None if new is None else hold_in(new)
        noted = (None if new is None else noted_in(new)) or None
        uid = self._uids.get(cluster)
        if _remembered(self._holds, cluster, hold) and uid is not None:
            self._put_hold(uid, hold)
            self._settle()
        if _remembered(self._noted, cluster, noted) and uid is not None:
            self._put_noted(uid, noted)
            self._settle()

    def object_changed(self, kind: Kind, old: Object | None, new: Object | None) -> None:
        """Take in an object of a watched kind, wherever it is."""
        if new is not None:
            self._put(kind, new)
        elif old is not None:
            self._drop(kind, old)
        self._settle()

    def summary_changed(self, old: Object | None, new: Object | None) -> None:
        """Enqueue a summary that somebody, perhaps we, wrote or deleted.

        One that was edited by hand is written over at its next turn, and one deleted made again.
        """
        obj = new or old
        if obj is not None:
            self._enqueue_summary(key_of(obj))

    # -- kinds that come and go --------------------------------------------------------------

    def watch(self, kind: Kind, index: Index) -> None:
        """Take in a kind of which *index* holds what has been seen."""
        self._watched.append((kind, index))

    def unwatch(self, index: Index) -> None:
        """Forget what *index* holds: nothing more will be seen of it."""
        for kind in [kind for kind, held in self._watched if held is index]:
            for obj in list(index.objects()):
                self._drop(kind, obj)
        self._watched = [each for each in self._watched if each[1] is not index]
        self._settle()

    def unserved(self, cluster: ClusterName, kinds: Iterable[Kind]) -> None:
        """Forget the objects of kinds that a workspace no longer serves."""
        gone = {kind.group_resource for kind in kinds}
        for kind, obj in list(self._objects(cluster)):
            if kind.group_resource in gone:
                self._drop(kind, obj)
        self._settle()
        for notify in self._when_read:
            notify(cluster)

    # -- how the tables are written ----------------------------------------------------------

    def _put_lease(self, uid: str, lease: Lease | None) -> None:
        if lease is None:
            self.tables.leases.drop(uid)
        else:
            self.tables.leases.put(uid, lease)

    def _put_hold(self, uid: str, hold: Hold | None) -> None:
        if hold is None:
            self.tables.holds.drop(uid)
        else:
            self.tables.holds.put(uid, hold)

    def _put_noted(self, uid: str, noted: Mapping[ObjectRef, int] | None) -> None:
        if noted is None:
            self.tables.noted.drop(uid)
        else:
            self.tables.noted.put(uid, noted)

    def _put_placement(self, placement: ObjectRef, obj: Object) -> None:
        """Take in who a placement is and what it asks for; the first makes its cluster a source."""
        asks = reported_state(obj.get("spec") or {})
        self.owners[placement] = Owner(obj["metadata"].get("uid", ""), asks)
        placements = self._placements.setdefault(placement.cluster, set())
        is_first = not placements
        placements.add(placement)
        if is_first:
            self._role_changed(placement.cluster)

    def _placement_gone(self, placement: ObjectRef) -> None:
        self.tables.drop_placement(placement)
        self.owners.pop(placement, None)
        placements = self._placements.get(placement.cluster, set())
        placements.discard(placement)
        if not placements and self._placements.pop(placement.cluster, None) is not None:
            self._drop_all(placement.cluster)
            self._role_changed(placement.cluster)

    def _select(self, placement: ObjectRef, obj: Object) -> None:
        """Take in what a placement means; what a malformed one meant before still counts."""
        try:
            what: What | None = what_of(obj)
        except SelectorError:
            if placement in self.tables.placements:
                return
            what = None
        self.tables.placements.put(placement, selection(what))

    def _read_slices(self, placement: ObjectRef) -> None:
        """Take in where a placement goes by all of its slices: one alone says nothing of others."""
        slices = self._slices.by(BY_PLACEMENT, placement)
        found = [destination for each in slices for destination in destinations_in(each)]
        self.tables.set_destinations(placement, found)

    def _role_changed(self, cluster: ClusterName) -> None:
        """Take in what a cluster has in its new role, and have what it serves read anew."""
        for kind, obj in list(self._objects(cluster)):
            self._put(kind, obj)
        self._enqueue_cluster(cluster)

    def _drop_all(self, cluster: ClusterName) -> None:
        """Forget the objects of a cluster in the role it still has."""
        for kind, obj in list(self._objects(cluster)):
            self._drop(kind, obj)

    def _objects(self, cluster: ClusterName) -> Iterable[tuple[Kind, Object]]:
        return ((kind, obj) for kind, held in self._watched for obj in held.by(BY_CLUSTER, cluster))

    def _put(self, kind: Kind, obj: Object) -> None:
        cluster, item = cluster_of(obj), kind.item(obj)
        uid = self._uids.get(cluster)
        if uid is not None:
            for follower in self._followers:
                follower.object_put(kind, item, uid, obj)
            if "report" in obj:
                self.tables.reports.put_pair(item, uid, obj["report"])
            else:
                self.tables.reports.drop_pair(item, uid)
        elif cluster in self._placements and not obj.get("system"):
            labels = labels_of(obj)
            source = Source(labels, kind.version, kind.kind, kind.has_status, obj.get("digest", ""))
            self.tables.sources.put(item.at(cluster), source)
            if kind.group_resource == NAMESPACES:
                self.tables.namespaces.put(namespace_ref(item.name, cluster), labels)

    def _drop(self, kind: Kind, obj: Object) -> None:
        cluster, item = cluster_of(obj), kind.item(obj)
        uid = self._uids.get(cluster)
        if uid is not None:
            for follower in self._followers:
                follower.object_dropped(kind, item, uid)
            self.tables.reports.drop_pair(item, uid)
            return
        self.tables.sources.drop(item.at(cluster))
        if kind.group_resource == NAMESPACES:
            self.tables.namespaces.drop(namespace_ref(item.name, cluster))

    # -- what is enqueued --------------------------------------------------------------------

    def _settle(self) -> None:
        """Enqueue what the tables say has changed, under the names it has or had."""
        touched = self.tables.settle()
        for follower in self._followers:
            follower.settled(self.tables.settled)
        for placement, item in touched.summaries:
            cause = Cause(placement, item)
            if self.tables.tally(placement, item) is not None:
                renamed = self.names.claim(cause)
            else:
                renamed = self.names.release(cause)
            key = self.names.key(cause)
            for each in sorted(renamed if key is None else {*renamed, key}):
                self._enqueue_summary(each)
            self._enqueue_asked(placement, item)
        for placement in touched.standings:
            self._enqueue_placement(placement)

    def _enqueue_all(self, placement: ObjectRef) -> None:
        """Enqueue all that depends on a placement: its owner may have become another one."""
        for item in self.tables.selected.of(placement):
            key = self.names.key(Cause(placement, item))
            if key is not None:
                self._enqueue_summary(key)
            self._enqueue_asked(placement, item)

    def _enqueue_asked(self, placement: ObjectRef, item: ObjectRef) -> None:
        """Enqueue the object whose status a placement asks for, if it does."""
        owner = self.owners.get(placement)
        if owner is not None and owner.asks != "None":
            self._enqueue_source(item.at(placement.cluster))


def _remembered(held: dict[ClusterName, V], cluster: ClusterName, new: V | None) -> bool:
    """Remember what is said of a cluster; tell whether that is news."""
    if held.get(cluster) == new:
        return False
    if new is None:
        del held[cluster]
    else:
        held[cluster] = new
    return True
