"""The table ``route``: by which placements and Locations an object goes to a mailbox.

``route`` is ``selected`` ⋈ ``destination``: what a placement selects times where its slices send
it. At ten thousand destinations of a hundred objects that is a million rows which differ in nothing
but their keys, so neither they nor their product with what is *in* a Namespace is stored. A row is
computed when it is asked for; a change of one factor is answered by the keys it touches, factor by
factor (``Touched``), at the cost of what changed and never of the whole.

The inputs are ``placements``, ``candidates`` (what can be selected by labels, from ``sources``) and
``destination`` (from slices), all in one ``Dataflow``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from skerry.api.edge import Mailbox, location_ref
from skerry.api.kinds import GroupResource
from skerry.api.objects import Object
from skerry.api.refs import ClusterName, ObjectRef, namespace_ref
from skerry.logic.fleet.tables.flow import Dataflow
from skerry.logic.fleet.tables.relation import Relation
from skerry.logic.fleet.tables.table import Table
from skerry.logic.fleet.translation.selected import (
    CHOSEN,
    NAMED,
    Candidate,
    Labels,
    Malformed,
    What,
    Why,
    deciding,
    derive_selected,
)
from skerry.logic.fleet.translation.sources import Records
from skerry.logic.fleet.translation.workspaces import Workspaces

Locations = tuple[ObjectRef, ...]
Destinations = Mapping[Mailbox, Locations]
# The placements that go to one mailbox, by their workspace, both in order.
Contributors = Mapping[ClusterName, tuple[ObjectRef, ...]]


def destinations_of(slices: Iterable[Object]) -> dict[Mailbox, Locations]:
    """Return the mailboxes that slices name, each with the Locations it is reached by, sorted."""
    found: dict[Mailbox, set[ObjectRef]] = {}
    for piece in slices:
        for destination in piece.get("destinations") or ():
            cluster = destination["cluster"]
            mailbox = Mailbox(cluster, destination["syncTargetUID"])
            location = location_ref(cluster, destination["locationName"])
            found.setdefault(mailbox, set()).add(location)
    return {mailbox: tuple(sorted(locations)) for mailbox, locations in found.items()}


class Touched(NamedTuple):
    """Rows of ``route`` that may differ: items times mailboxes, for one placement.

    ``item`` None means everything the placement selects. ``why`` are the bits that differ.
    """

    placement: ObjectRef
    item: ObjectRef | None
    why: Why
    mailboxes: tuple[Mailbox, ...]


class Route:
    """The factors of ``route``, and the product when asked."""

    def __init__(self, workspaces: Workspaces) -> None:
        self._workspaces = workspaces
        self._flow = Dataflow()
        self.placements: Table[ObjectRef, What | Malformed] = self._flow.table("placements")
        self.candidates: Relation[ClusterName, ObjectRef, Labels] = self._flow.relation(
            "candidates"
        )
        self.destination: Relation[ObjectRef, Mailbox, Locations] = self._flow.relation(
            "destination", reverse=True
        )
        self.selected: Relation[ObjectRef, Candidate, Why] = derive_selected(
            self._flow, self.placements, self.candidates
        )
        self._in_cluster: dict[ClusterName, set[ObjectRef]] = {}
        self._at_location: dict[ObjectRef, set[ObjectRef]] = {}

    # -- changing ----------------------------------------------------------------------------

    def put_placement(self, placement: ObjectRef, row: What | Malformed) -> bool:
        """Have a placement mean *row*; returns whether it is the first of its workspace."""
        known = self._in_cluster.setdefault(placement.cluster, set())
        is_first = not known
        known.add(placement)
        self.placements.put(placement, row)
        if is_first:
            self.put_candidates(placement.cluster)
        return is_first

    def drop_placement(self, placement: ObjectRef) -> bool:
        """Forget a placement; returns whether it was the last of its workspace."""
        self.put_destinations(placement, {})
        self.placements.drop(placement)
        known = self._in_cluster[placement.cluster]
        known.discard(placement)
        if known:
            return False
        del self._in_cluster[placement.cluster]
        self.candidates.replace(placement.cluster, {})
        return True

    def put_destinations(self, placement: ObjectRef, destinations: Destinations) -> None:
        """Have a placement go to exactly these mailboxes."""
        for location in {each for by in self.destination.of(placement).values() for each in by}:
            names = self._at_location[location]
            names.discard(placement)
            if not names:
                del self._at_location[location]
        self.destination.replace(placement, destinations)
        for location in {each for by in destinations.values() for each in by}:
            self._at_location.setdefault(location, set()).add(placement)

    def put_candidates(self, cluster: ClusterName) -> None:
        """Read what can be selected in a workspace from the beginning: its kinds are others."""
        if cluster in self._in_cluster:
            self.candidates.replace(cluster, self._workspaces.candidates(cluster))

    def put_candidate(self, cluster: ClusterName, item: ObjectRef, labels: Labels | None) -> None:
        """Take a new state of what can be selected; None: it cannot, or is not there."""
        if labels is None:
            self.candidates.drop_pair(cluster, item)
        else:
            self.candidates.put_pair(cluster, item, labels)

    def settle(self) -> list[Touched]:
        """Let ``selected`` follow; returns which rows of the product may differ, in order.

        Mailboxes that a placement left are among them, with everything it sent there.
        """
        settled = self._flow.settle()
        moved: dict[ObjectRef, list[Mailbox]] = {}
        for (placement, mailbox), _, _ in settled.changes(self.destination):
            moved.setdefault(placement, []).append(mailbox)
        found = []
        for (placement, (_, item)), old, new in settled.changes(self.selected):
            mailboxes = {*self.destination.of(placement), *moved.get(placement, ())}
            why = (old or 0) ^ (new or 0)
            found.append(Touched(placement, item, why, tuple(sorted(mailboxes))))
        found += [
            Touched(placement, None, CHOSEN | NAMED, tuple(mailboxes))
            for placement, mailboxes in moved.items()
        ]
        return found

    # -- asking about placements -------------------------------------------------------------

    def __iter__(self) -> Iterator[ObjectRef]:
        return iter(self.placements)

    def what(self, placement: ObjectRef) -> What | None:
        """Return what a placement means; None when it is malformed or not there."""
        row = self.placements.get(placement)
        return row if isinstance(row, What) else None

    def in_cluster(self, cluster: ClusterName) -> list[ObjectRef]:
        return sorted(self._in_cluster.get(cluster, ()))

    def at_location(self, location: ObjectRef) -> list[ObjectRef]:
        return sorted(self._at_location.get(location, ()))

    def mailboxes(self, placements: Iterable[ObjectRef]) -> list[Mailbox]:
        """Return where these placements go, each mailbox once, in order."""
        return sorted({mailbox for each in placements for mailbox in self.destination.of(each)})

    def namespaces(self, placement: ObjectRef) -> list[str]:
        """Return the Namespaces that a placement chooses."""
        rows = self.selected.of(placement).items()
        return [item.name for (_, item), why in rows if why & CHOSEN]

    def named(self, placement: ObjectRef) -> list[ObjectRef]:
        """Return what a placement names."""
        return [item for (_, item), why in self.selected.of(placement).items() if why & NAMED]

    def choosing(self, cluster: ClusterName, namespace: str) -> list[ObjectRef]:
        return self._selecting(cluster, namespace_ref(namespace), CHOSEN)

    def naming(self, cluster: ClusterName, item: ObjectRef) -> list[ObjectRef]:
        return self._selecting(cluster, item, NAMED)

    def _selecting(self, cluster: ClusterName, item: ObjectRef, why: Why) -> list[ObjectRef]:
        key = (cluster, item)
        at = self.selected.at
        return [each for each in self.selected.having(key) if (at(each, key) or 0) & why]

    def sending(self, cluster: ClusterName, item: ObjectRef) -> list[ObjectRef]:
        """Return the placements that send a workspace's *item* somewhere for itself."""
        return self._selecting(cluster, *deciding(item))

    # -- the product -------------------------------------------------------------------------

    def contributors(self, mailbox: Mailbox) -> Contributors:
        """Return the placements that go to a mailbox."""
        found: dict[ClusterName, list[ObjectRef]] = {}
        for placement in sorted(self.destination.having(mailbox)):
            found.setdefault(placement.cluster, []).append(placement)
        return {cluster: tuple(placements) for cluster, placements in found.items()}

    def locations(self, placement: ObjectRef, mailbox: Mailbox) -> Locations:
        return self.destination.at(placement, mailbox) or ()

    def placements_of(
        self, mailbox: Mailbox, cluster: ClusterName, item: ObjectRef
    ) -> list[ObjectRef]:
        """Return the placements that send a workspace's *item* to a mailbox for itself."""
        at = self.destination.at
        return sorted(p for p in self.sending(cluster, item) if at(p, mailbox) is not None)

    def needing(
        self, placements: Iterable[ObjectRef], cluster: ClusterName, definition: ObjectRef
    ) -> list[ObjectRef]:
        """Return those of *placements* that place something of a kind *definition* brings."""
        brought = [
            (served.group_resource, records)
            for served, records in self._workspaces.travelling(cluster)
            if served.definition == definition
        ]
        return [
            placement
            for placement in placements
            if any(self._places(placement, kind, records) for kind, records in brought)
        ]

    def _places(self, placement: ObjectRef, kind: GroupResource, records: Records) -> bool:
        """Tell whether a placement sends objects of a kind, or has some come up."""
        what = self.what(placement)
        if what is None:
            return False
        if what.upsyncs(kind):
            return True
        if any(item.group_resource == kind for item in self.named(placement)):
            return True
        return any(
            record.is_source
            for namespace in self.namespaces(placement)
            for record in records.within(placement.cluster, namespace).values()
        )

    def items(self, placement: ObjectRef) -> Iterator[ObjectRef]:
        """Yield everything a placement sends, definitions that may go along included."""
        cluster, namespaces = placement.cluster, self.namespaces(placement)
        yield from map(namespace_ref, namespaces)
        yield from self.named(placement)
        for served, records in self._workspaces.travelling(cluster):
            if served.definition is not None:
                yield served.definition
            if served.namespaced:
                for namespace in namespaces:
                    yield from map(records.ref, records.within(cluster, namespace).values())

    def items_within(self, cluster: ClusterName, namespace: str) -> Iterator[ObjectRef]:
        """Yield a Namespace, everything in it, and the definitions of that."""
        yield namespace_ref(namespace)
        for served, records in self._workspaces.travelling(cluster):
            found = records.within(cluster, namespace).values() if served.namespaced else ()
            yield from map(records.ref, found)
            if found and served.definition is not None:
                yield served.definition

    def customized_items(self, placement: ObjectRef) -> Iterator[ObjectRef]:
        """Yield what a placement sends that differs from Location to Location."""
        cluster = placement.cluster
        for item in self.named(placement):
            record = self._workspaces.record(cluster, item)
            if record is not None and record.customized:
                yield item
        namespaces = self.namespaces(placement)
        for served, records in self._workspaces.travelling(cluster):
            for namespace in namespaces if served.namespaced else ():
                for record in records.within(cluster, namespace).values():
                    if record.customized:
                        yield records.ref(record)
