"""What Rollouts, revisions and contents change in the tables, and which rows they touch.

A destination with a revision is sent what that revision says, and nothing that the workspace has
now. So a changed object touches no row of such a destination; it makes the placement busy, and when
that has been quiet another revision is cut. What does touch rows is the number in a slice, which
the edge scheduler writes, and what that number stands for, which comes by watches of its own:

    a slice names a revision that is known       the rows in which it differs from the one before
    it names one that has not been read yet      all rows that may be its; they wait for it
    the manifest comes                           the rows of its items, where it is assigned
    an item's content is not known here          its row waits, and the content is read
    the content is read, or is not there         the rows that wait for it

A page that is seen again changes no row: revisions are immutable, but for their verdict and notes.
"""

from __future__ import annotations

from skerry.api.edge import CUT
from skerry.api.edge import edge_placement_ref as placement_ref
from skerry.api.objects import Object
from skerry.api.refs import ClusterName, ObjectRef
from skerry.controllers.placement_translator.marking import Marking
from skerry.controllers.placement_translator.records import is_source
from skerry.logic.fleet.history.objects import Sent
from skerry.logic.fleet.revision.cut import settle_of
from skerry.logic.fleet.revision.manifest import content_digest
from skerry.logic.fleet.revision.objects import read_page
from skerry.logic.fleet.translation.desired import DEFINING
from skerry.logic.fleet.translation.held import revisions_of
from skerry.logic.fleet.translation.route import destinations_of
from skerry.logic.fleet.translation.sources import Record, Records
from skerry.logic.fleet.translation.workspaces import Scope, revision_scope
from skerry.runtime.client import cluster_of


class RevisionEvents(Marking):
    """The handlers of what revisions are made of."""

    def _put_slices(self, placement: ObjectRef, pieces: list[Object]) -> None:
        """Take destinations and their revisions together: both are of the same slices."""
        self._route.put_destinations(placement, destinations_of(pieces))
        self._put_revisions(placement, revisions_of(pieces))

    def rollout_changed(self, old: Object | None, new: Object | None) -> None:
        """Take when a placement's revisions are to be cut; without a Rollout none are."""
        about = new or old
        if about is None:
            return
        metadata = about["metadata"]
        placement = placement_ref(cluster_of(about), metadata["name"])
        asked = (metadata.get("annotations") or {}).get(CUT, "")
        settle = None if new is None else settle_of(new.get("spec") or {}, asked)
        self._activities.put(placement, settle)

    def revision_changed(self, old: Object | None, new: Object | None) -> None:
        """Take a page; with the last of its pages a manifest is known, and those who wait go on."""
        about = new or old
        if about is None:
            return
        table, cluster = self._revisions.table, cluster_of(about)
        if new is None:
            self._revision_gone(cluster, about["metadata"]["name"])
            return
        page = read_page(new)
        placement = placement_ref(cluster, page.placement)
        known = table.manifest(placement, page.number)
        table.put(cluster, page)
        manifest = table.manifest(placement, page.number)
        if manifest is None or known is not None:
            return
        numbers = self._revisions.assigned.of(placement).items()
        waiting = [mailbox for mailbox, number in numbers if number == page.number]
        if waiting:
            self._mark_all((each.item for each in manifest.items), waiting)
            self.requeue_waiting(revision_scope(placement, page.number))

    def _revision_gone(self, cluster: ClusterName, name: str) -> None:
        gone = self._revisions.table.drop(cluster, name)
        if gone is None:
            return
        placement, number = gone
        self._activities.touch([placement])
        numbers = self._revisions.assigned.of(placement).items()
        # Nothing there changes by it; but the placement reports it.
        self._mark_all((), [mailbox for mailbox, each in numbers if each == number])

    def content_read(self, scope: Scope, record: Record | None) -> None:
        """Take what a revision names by a digest; None when it is not there."""
        key, contents = (scope[1], scope[2]), self._revisions.contents
        if record is not None:
            contents.put(key, record, len(record.text or b""))
        elif not contents.note_absent(key):
            return
        self.requeue_waiting(scope)

    def requeue_waiting(self, scope: Scope) -> None:
        """Have rows evaluated again that wait for something that is there, or known not to be."""
        self._dirty.complete(scope)
        self._dirty.incomplete(scope)

    def _record_revision(
        self, records: Records, item: ObjectRef, old: Record | None, new: Record | None
    ) -> None:
        """Have it recorded that placements without a Rollout send something else."""
        about = new or old
        # What is read at the start has not changed, whatever there was before.
        if self._history is None or about is None or not self._is_read(records):
            return
        start = old.digest.hex() if old is not None and old.is_source else ""
        to = new.digest.hex() if new is not None and new.is_source else ""
        if start != to:
            settle = self._activities.settle
            senders = [
                each for each in self._route.sending(about.cluster, item) if settle(each) is None
            ]
            self._history.revised(senders, item, Sent(start, to, about.resource_version))

    def _is_read(self, records: Records) -> bool:
        return bool(self._dirty.scopes.is_complete(records.key))

    def _touch_sending(
        self, cluster: ClusterName, item: ObjectRef, old: Record | None, new: Record | None
    ) -> None:
        """Take that placements with a Rollout send something else, and keep what they sent.

        Most likely that is what their destinations still have.
        """
        same = old is not None and new is not None and old.digest == new.digest
        if same and is_source(old) == is_source(new):
            return
        if item.group_resource in DEFINING:
            self._activities.touch(self._route.in_cluster(cluster))
        else:
            self._activities.touch(self._route.sending(cluster, item))
        if old is not None and old.text is not None:
            key = (cluster, content_digest(item, old.digest))
            self._revisions.contents.put(key, old, len(old.text))
