"""Everything the summarizer has been told, in the form summaries are made of.

A logical cluster plays a role: it is a workload's workspace (it has an EdgePlacement), a mailbox,
or neither. What an object means depends on the role of its cluster: a source, a copy, or nothing.
Roles come and go, so when one changes every object of the cluster is taken in anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from skerry.api.edge import EDGE_PLACEMENTS, edge_placement_ref, placement_of_slice
from skerry.api.objects import Object
from skerry.api.refs import ObjectRef
from skerry.controllers.summarizer.forms import BY_CLUSTER, BY_PLACEMENT, Kind, labels_of
from skerry.controllers.summarizer.names import Cause, Names
from skerry.logic.fleet.placement.records import is_being_deleted
from skerry.logic.fleet.placement.slices import destinations_in
from skerry.logic.fleet.summary.ledger import Ledger, Source
from skerry.logic.fleet.summary.selection import selection
from skerry.logic.fleet.translation.categories import NAMESPACES
from skerry.logic.fleet.translation.what import What, what_of
from skerry.logic.machinery.selectors import SelectorError
from skerry.runtime.client import cluster_of
from skerry.runtime.index import Index, Key, key_of

_MAILBOX_MARK = "-mb-"


@dataclass(frozen=True, slots=True)
class Owner:
    """An EdgePlacement as far as its summaries need it."""

    uid: str
    singleton: bool


class Board:
    """Keeps the ledger up with what informers tell; wakes what that touches."""

    def __init__(
        self,
        slices: Index,
        wake_summary: Callable[[Key], None],
        wake_placement: Callable[[ObjectRef], None],
        wake_cluster: Callable[[str], None],
    ) -> None:
        self.ledger = Ledger()
        self.names = Names()
        self.owners: dict[ObjectRef, Owner] = {}
        self._slices = slices
        self._wake_summary = wake_summary
        self._wake_placement = wake_placement
        self._wake_cluster = wake_cluster
        self._placements: dict[str, set[str]] = {}
        self._mailboxes: dict[str, str] = {}
        self._mailbox_of: dict[str, str] = {}
        self._followed: list[tuple[Kind, Index]] = []

    def is_workload(self, cluster: str) -> bool:
        """Tell whether a cluster has an EdgePlacement."""
        return cluster in self._placements and cluster not in self._mailboxes

    def is_mailbox(self, cluster: str) -> bool:
        """Tell whether a cluster is a mailbox's."""
        return cluster in self._mailboxes

    def mailbox_clusters(self) -> list[str]:
        """Return the clusters of all mailboxes."""
        return list(self._mailboxes)

    def mailbox_cluster(self, uid: str) -> str:
        """Return the cluster of the mailbox of a SyncTarget; empty when there is none."""
        return self._mailbox_of.get(uid, "")

    # -- handlers ----------------------------------------------------------------------------

    def placement_changed(self, old: Object | None, new: Object | None) -> None:
        """Take in an EdgePlacement. One that is being deleted places nothing any more."""
        obj = new or old
        if obj is None:
            return
        ref = ObjectRef.of(EDGE_PLACEMENTS.group_resource, obj)
        if new is None or is_being_deleted(new):
            self._placement_gone(ref)
        else:
            singleton = bool((new.get("spec") or {}).get("wantSingletonReportedState"))
            self.owners[ref] = Owner(new["metadata"].get("uid", ""), singleton)
            known = self._placements.setdefault(ref.cluster, set())
            if not known:
                known.add(ref.name)
                self._role_changed(ref.cluster)
            known.add(ref.name)
            if old is None or old.get("spec") != new.get("spec"):
                self._select(ref, new)
                self._read_slices(ref)
                self._enqueue_all(ref)
        self._settle()
        self._wake_placement(ref)

    def slice_changed(self, old: Object | None, new: Object | None) -> None:
        """Take in the destinations of whoever the slice belongs, or belonged, to."""
        for obj in (old, new):
            if obj is not None:
                ref = edge_placement_ref(key_of(obj).cluster, placement_of_slice(obj))
                if ref in self.owners:
                    self._read_slices(ref)
        self._settle()

    def mailbox_changed(self, old: Object | None, new: Object | None) -> None:
        """Take in a workspace of the provider, if it is a mailbox."""
        obj = new or old
        parts = [] if obj is None else obj["metadata"]["name"].split(_MAILBOX_MARK)
        if len(parts) != 2:
            return
        uid = parts[1]
        cluster = "" if new is None else (new.get("spec") or {}).get("cluster", "")
        before = self._mailbox_of.get(uid, "")
        if cluster == before:
            return
        if before:
            self._drop_all(before)
            del self._mailbox_of[uid], self._mailboxes[before]
            self._role_changed(before)
        if cluster:
            self._drop_all(cluster)
            self._mailbox_of[uid] = cluster
            self._mailboxes[cluster] = uid
            self._role_changed(cluster)
        self._settle()

    def object_changed(self, kind: Kind, old: Object | None, new: Object | None) -> None:
        """Take in an object of a followed kind, wherever it is."""
        if new is not None:
            self._put(kind, new)
        elif old is not None:
            self._drop(kind, old)
        self._settle()

    def summary_changed(self, old: Object | None, new: Object | None) -> None:
        """Look again at a summary that somebody, perhaps we, wrote or deleted."""
        obj = new or old
        if obj is not None:
            self._wake_summary(key_of(obj))

    def follow(self, kind: Kind, index: Index) -> None:
        """Take in a kind of which *index* holds what has been seen."""
        self._followed.append((kind, index))

    def unfollow(self, index: Index) -> None:
        """Forget what *index* holds: nothing more will be seen of it."""
        for kind in [kind for kind, held in self._followed if held is index]:
            for obj in list(index.objects()):
                self._drop(kind, obj)
        self._followed = [each for each in self._followed if each[1] is not index]
        self._settle()

    def unserved(self, cluster: str, kinds: Iterable[Kind]) -> None:
        """Forget the objects of kinds that a workspace no longer serves."""
        gone = {kind.type for kind in kinds}
        for kind, obj in list(self._objects(cluster)):
            if kind.type in gone:
                self._drop(kind, obj)
        self._settle()

    # -- how it is kept up -------------------------------------------------------------------

    def _placement_gone(self, ref: ObjectRef) -> None:
        self.ledger.drop_placement(ref)
        self.owners.pop(ref, None)
        known = self._placements.get(ref.cluster, set())
        known.discard(ref.name)
        if not known and self._placements.pop(ref.cluster, None) is not None:
            for kind, obj in list(self._objects(ref.cluster)):
                self._drop(kind, obj)
            self._wake_cluster(ref.cluster)

    def _select(self, ref: ObjectRef, placement: Object) -> None:
        """Take in what a placement means; what a malformed one meant before still counts."""
        try:
            what: What | None = what_of(placement)
        except SelectorError:
            if self.ledger.delivered(ref) is not None:
                return
            what = None
        self.ledger.put_placement(ref, selection(what))

    def _read_slices(self, ref: ObjectRef) -> None:
        found = self._slices.by(BY_PLACEMENT, (ref.cluster, ref.name))
        self.ledger.set_destinations(
            ref, [destination for piece in found for destination in destinations_in(piece)]
        )

    def _role_changed(self, cluster: str) -> None:
        for kind, obj in list(self._objects(cluster)):
            self._put(kind, obj)
        self._wake_cluster(cluster)

    def _drop_all(self, cluster: str) -> None:
        """Forget the objects of a cluster in the role it still has."""
        for kind, obj in list(self._objects(cluster)):
            self._drop(kind, obj)

    def _objects(self, cluster: str) -> Iterable[tuple[Kind, Object]]:
        return (
            (kind, obj) for kind, held in self._followed for obj in held.by(BY_CLUSTER, cluster)
        )

    def _put(self, kind: Kind, obj: Object) -> None:
        cluster, item = cluster_of(obj), _item(kind, obj)
        uid = self._mailboxes.get(cluster)
        if uid is not None:
            if "report" in obj:
                self.ledger.put_copy(uid, item, obj["report"])
            else:
                self.ledger.drop_copy(uid, item)
        elif cluster in self._placements and not obj.get("system"):
            labels = labels_of(obj)
            source = Source(labels, kind.version, kind.kind, kind.has_status, obj.get("digest", ""))
            self.ledger.put_source(cluster, item, source)
            if item.group_resource == NAMESPACES:
                self.ledger.put_namespace(cluster, item.name, labels)

    def _drop(self, kind: Kind, obj: Object) -> None:
        cluster, item = cluster_of(obj), _item(kind, obj)
        uid = self._mailboxes.get(cluster)
        if uid is not None:
            self.ledger.drop_copy(uid, item)
        else:
            self.ledger.drop_source(cluster, item)
            if item.group_resource == NAMESPACES:
                self.ledger.drop_namespace(cluster, item.name)

    def _settle(self) -> None:
        """Wake what the ledger says has changed, under the names it has or had."""
        for ref, item in self.ledger.changes():
            cause = Cause(ref, item)
            if self.ledger.tally(ref, item) is not None:
                touched = self.names.claim(cause)
            else:
                touched = self.names.release(cause)
                self._wake_placement(ref)
            key = self.names.key(cause)
            for each in sorted(touched if key is None else {*touched, key}):
                self._wake_summary(each)

    def _enqueue_all(self, ref: ObjectRef) -> None:
        """Look at every summary of a placement: its owner may have become another one."""
        for item in self.ledger.tallies(ref):
            key = self.names.key(Cause(ref, item))
            if key is not None:
                self._wake_summary(key)


def _item(kind: Kind, obj: Object) -> ObjectRef:
    metadata = obj["metadata"]
    return ObjectRef("", kind.group, kind.resource, metadata.get("namespace", ""), metadata["name"])
