"""Which rows of ``difference`` a change touches, and which mailboxes are enqueued by it.

The rows of a placement with a Rollout follow the revision that a destination has: what the
workspace has now touches none of them, but the placement's next revision.

A mark means "look here", and nothing else. The row is evaluated from the tables as they are then,
by ``observe``, and mostly comes out as equal to the copy that is there. So a mark too many costs a
look, and a mark too few is a copy that stays wrong until something else touches it: where it is
hard to say what exactly a change touches, more is marked. The cost stays in proportion, because
what is marked is always a factor of the product (some items, at some mailboxes) and never all of
it.

What touches what, where it is not the row itself:

* An object in no namespace is named in the SyncerConfig, and a Namespace's name too. So their rows
  are marked with ``CONFIG`` beside them.
* A Namespace that becomes chosen, or no longer is, takes along everything in it.
* The first or last object of a kind that a workspace defines for itself decides whether the
  definition goes along.
* Of several bindings of one export only one goes to a mailbox, by rank and name. So one binding
  touches all that might go there, of every workspace.
* A mailbox that appears, or serves another kind, may have copies that nobody sends any more:
  besides what is sent, all that is there and a copy is marked.
* From one revision to another only what differs is touched. Where one of the two is not known, or
  is what the workspace has now, nobody can tell the difference, and everything is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from skerry.api.edge import Mailbox
from skerry.api.kinds import GroupResource
from skerry.api.refs import ClusterName, ObjectRef
from skerry.controllers.placement_translator.activity import Activities
from skerry.controllers.placement_translator.object_history import ObjectHistory
from skerry.logic.fleet.revision.manifest import Manifest
from skerry.logic.fleet.translation.categories import BINDINGS
from skerry.logic.fleet.translation.dirty import CONFIG, DirtyRows
from skerry.logic.fleet.translation.held import Revisions
from skerry.logic.fleet.translation.route import Route, Touched
from skerry.logic.fleet.translation.selected import CHOSEN
from skerry.logic.fleet.translation.workspaces import Mailboxes, Workspaces


@dataclass(frozen=True, slots=True)
class TranslatorTables:
    """The input tables, what is derived from them, and the rows to be evaluated."""

    workspaces: Workspaces
    route: Route
    mailboxes: Mailboxes
    dirty: DirtyRows
    revisions: Revisions = field(default_factory=Revisions)


class Marking:
    """Marks rows. What is marked of a mailbox that is not there is when it appears."""

    def __init__(
        self, tables: TranslatorTables, activities: Activities, history: ObjectHistory | None
    ) -> None:
        """*history* is where what is sent is recorded; None where nothing is."""
        self._workspaces = tables.workspaces
        self._route = tables.route
        self._mailboxes = tables.mailboxes
        self._dirty = tables.dirty
        self._revisions = tables.revisions
        self._activities = activities
        self._history = history

    def mark(self, mailbox: Mailbox, items: Iterable[ObjectRef]) -> None:
        """Have rows evaluated; those of a mailbox that is not there are when it appears."""
        if self._mailboxes.cluster(mailbox) is not None:
            self._dirty.mark(mailbox, items)

    def _settle(self) -> None:
        """Let the derived tables follow the inputs, and mark the rows that are touched."""
        for touched in self._route.settle():
            if touched.item is not None:
                self._activities.touch([touched.placement])
            self._mark_all(self._touched_items(touched), touched.mailboxes)

    def _touched_items(self, touched: Touched) -> Iterator[ObjectRef]:
        placement, item = touched.placement, touched.item
        if item is None:
            yield from self._items(placement, touched.mailboxes)
            return
        if touched.why & CHOSEN:
            yield from self._route.items_within(placement.cluster, item.name)
        yield item
        served = self._workspaces.served(placement.cluster, item.group_resource)
        if served is not None and served.definition is not None:
            yield served.definition

    def _items(self, placement: ObjectRef, mailboxes: Iterable[Mailbox]) -> Iterator[ObjectRef]:
        """Yield everything a placement sends to these mailboxes, or would."""
        yield from self._route.items(placement)
        yield from self._revisions.items(placement, mailboxes)

    def _bindings(self, mailbox: Mailbox) -> Iterator[ObjectRef]:
        """Yield every binding that might go to a mailbox: which ones do depends on all others."""
        records = self._workspaces.bindings
        for cluster in {each.cluster for each in self._route.destination.having(mailbox)}:
            for record in records.within(cluster).values():
                if record.is_source:
                    yield records.ref(record)

    def _mark_all(self, items: Iterable[ObjectRef], mailboxes: Iterable[Mailbox]) -> None:
        """Mark *items* and the SyncerConfig; a binding among them touches all its rivals."""
        found = {CONFIG, *items}
        rivals = any(item.group_resource == BINDINGS for item in found)
        for mailbox in mailboxes:
            self.mark(mailbox, found.union(self._bindings(mailbox)) if rivals else found)

    def _mark_item(self, cluster: ClusterName, item: ObjectRef) -> None:
        """Mark one workspace's object wherever it goes as the workspace has it."""
        items = [item] if item.namespace else [item, CONFIG]
        for mailbox in self._route.mailboxes(self._sending_live(cluster, item)):
            self.mark(mailbox, items)
        if self._revisions.assigned:
            for placement in self._route.sending(cluster, item):
                for mailbox in self._live_destinations(placement):
                    self.mark(mailbox, items)

    def _sending_live(self, cluster: ClusterName, item: ObjectRef) -> list[ObjectRef]:
        """Return the placements that send *item* and of which no destination has a revision."""
        sending, assigned = self._route.sending(cluster, item), self._revisions.assigned
        return [each for each in sending if not assigned.of(each)] if assigned else sending

    def _live_destinations(self, placement: ObjectRef) -> list[Mailbox]:
        """Return those destinations of a placement that have no revision, if others have."""
        assigned = self._revisions.assigned.of(placement)
        where = self._route.destination.of(placement) if assigned else ()
        return [each for each in where if each not in assigned]

    def _mark_mailbox(
        self, mailbox: Mailbox, cluster: ClusterName, kinds: frozenset[GroupResource] | None = None
    ) -> None:
        """Mark everything that is or should be in a mailbox, or that of some kinds."""
        items = {
            records.ref(record)
            for _, records in self._workspaces.followed_types(cluster)
            if kinds is None or records.kind in kinds
            for record in records.everything(cluster)
            if record.projected
        }
        for placement in self._route.destination.having(mailbox):
            sent = self._items(placement, [mailbox])
            items.update(item for item in sent if kinds is None or item.group_resource in kinds)
        self.mark(mailbox, {*items, CONFIG})

    # -- revisions ---------------------------------------------------------------------------

    def _put_revisions(self, placement: ObjectRef, numbers: Mapping[Mailbox, int]) -> None:
        """Have the destinations of a placement get these revisions."""
        moves: dict[tuple[int, int], list[Mailbox]] = {}
        for moved in self._revisions.assigned.put(placement, numbers):
            moves.setdefault((moved.old, moved.new), []).append(moved.mailbox)
        for numbers_there, mailboxes in moves.items():
            self._mark_all(self._different(placement, *numbers_there), mailboxes)
            before = numbers_there[0]
            if before and self._revisions.table.manifest(placement, before) is None:
                # Nobody knows what it had.
                for mailbox in mailboxes:
                    cluster = self._mailboxes.cluster(mailbox)
                    if cluster is not None:
                        self._mark_mailbox(mailbox, cluster)

    def _different(self, placement: ObjectRef, before: int, now: int) -> set[ObjectRef]:
        """Return what may differ between two revisions; 0 is what the workspace has."""
        table = self._revisions.table
        old = table.manifest(placement, before) if before else None
        new = table.manifest(placement, now) if now else None
        known = [each for each in (old, new) if each is not None]
        found = {each.item for manifest in known for each in manifest.items}
        if old is None or new is None:
            return {*found, *self._route.items(placement)}
        if old.inputs.customizers != new.inputs.customizers:
            return found
        return {item for item in found if _digest(old, item) != _digest(new, item)}


def _digest(manifest: Manifest, item: ObjectRef) -> str:
    entry = manifest.by_item.get(item)
    return "" if entry is None else entry.digest
