"""The table ``destination``: placement × Location × SyncTarget, kept up as anything changes.

Its inputs are EdgePlacements, Locations, SyncTargets, labels of workspaces and grants. It is a
virtual table: nothing is stored per pair of placement and Location, rows are computed when asked
for, from bitmaps. ``reference`` has the same rule as a scan.

Every ``put`` and ``remove`` returns the placements whose destinations may be others now, and no
others: a relabelled Location finds them through the selectors its old and new labels satisfy, a
SyncTarget through the Locations it joins or leaves.

How a change finds whom it concerns: selectors are kept apart from who has them (``demands``). Equal
selectors of a thousand placements are one entry, found by the labels that it asks for, so labels
lead to the selectors that they satisfy at the cost of those labels, and each selector to the bitmap
of its placements. A relabelled Location is looked up twice, with its labels before and after.
Selectors that both satisfy mean nothing new; a placement with several may lose one and gain
another, and be unmoved: only those that had *any* before and have *none* after, or the other way
round, are named.

In the other direction, from a placement to its Locations, the labels of Locations are indexed
(``labels``), and a selector is an intersection of bitmaps. Numbers stand for objects in both: a
bitmap of ten thousand is some kilobytes at most, and an intersection takes microseconds.

To name too many would be harmless and slow (each is decided anew and found unchanged); to name too
few would leave a slice as it was until something else happens to it. The tests hold the table to
both.

Availability and taints matter only to placements with a strategy; the others never hear of them.
Who chooses then is handed in, and made for the first such placement.

Grants of inventory workspaces (``consent``) take Locations away from placements. What a placement
has there already is held: it stays until a person confirms that it is to go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from pyroaring import BitMap

from skerry.api.refs import ObjectRef
from skerry.kit.invariant import invariant
from skerry.logic.fleet.placement.choosing import Choosing, MakeChoosing
from skerry.logic.fleet.placement.consent import ConsentIndex, Touched
from skerry.logic.fleet.placement.demands import DemandIndex
from skerry.logic.fleet.placement.grants import Grant
from skerry.logic.fleet.placement.inventory import Inventory
from skerry.logic.fleet.placement.labels import LabelIndex
from skerry.logic.fleet.placement.numbers import Numbers
from skerry.logic.fleet.placement.records import Destination, Location, Placement, SyncTarget
from skerry.logic.fleet.placement.terms import Terms

NO_LABELS: Mapping[str, str] = {}
NOWHERE: frozenset[ObjectRef] = frozenset()
NOTHING_RUNS: frozenset[Destination] = frozenset()


_NONE = BitMap()


class Chosen(NamedTuple):
    """The Locations a placement selects, and those chosen of them, by number.

    ``shortage`` says why a strategy found fewer than it was asked for. Of the Locations that
    match, no grant admits the placement to those ``refused``; it keeps those ``held``. It would be
    refused those ``observed`` if the grants there enforced.
    """

    matching: BitMap
    locations: list[int]
    shortage: str = ""
    refused: BitMap = _NONE
    held: BitMap = _NONE
    observed: BitMap = _NONE


class DestinationTable:
    """What goes where, as far as *where* is concerned."""

    def __init__(self, choosing: MakeChoosing | None = None) -> None:
        """*choosing* makes what chooses for strategies; without it there may be none."""
        self.inventory = Inventory()
        self.consent = ConsentIndex(self.inventory)
        self._make_choosing = choosing
        self._choosing: Choosing | None = None
        self._numbers: Numbers[ObjectRef] = Numbers()
        self._placements: dict[int, Placement] = {}
        self._everything = BitMap()
        self._in_cluster: dict[str, BitMap] = {}
        # Placements with a strategy: they depend on more than labels.
        self._choosy = BitMap()
        self._demands = DemandIndex()
        self._demands_of: dict[int, tuple[int, ...]] = {}
        self._workspace_demands = DemandIndex()
        self._workspace_demand_of: dict[int, int] = {}
        # Placements that depend on labels of workspaces.
        self._picky = BitMap()
        # Labels of workspaces, by the number of their cluster.
        self._workspaces: dict[str, Mapping[str, str]] = {}
        self._clusters: Numbers[str] = Numbers()
        self._workspace_labels = LabelIndex()

    # -- placements --------------------------------------------------------------------------

    def placement(self, ref: ObjectRef) -> Placement | None:
        """Return the placement called *ref*."""
        number = self._numbers.get(ref)
        return None if number is None else self._placements[number]

    def placements(self) -> Iterator[Placement]:
        """Yield every placement."""
        return iter(self._placements.values())

    def put_placement(self, placement: Placement) -> set[ObjectRef]:
        """Have *placement* as it is given."""
        number = self._numbers.add(placement.ref)
        if self._placements.get(number) == placement:
            return set()
        if number in self._placements:
            self._detach(number)
        else:
            self._join(placement.ref.cluster, number)
        self._placements[number] = placement
        self._everything.add(number)
        self._demands_of[number] = tuple(
            self._demands.add(terms, number) for terms in placement.selectors
        )
        if placement.workspaces is not None:
            self._workspace_demand_of[number] = self._workspace_demands.add(
                placement.workspaces, number
            )
            self._picky.add(number)
        if placement.strategy is not None:
            self._choosy.add(number)
            self._have_choosing()
        return {placement.ref}

    def _have_choosing(self) -> None:
        if self._choosing is None:
            invariant(self._make_choosing is not None, "a strategy, and nothing that chooses")
            if self._make_choosing is not None:
                self._choosing = self._make_choosing(self.inventory)

    def remove_placement(self, ref: ObjectRef) -> set[ObjectRef]:
        """Forget the placement called *ref*."""
        number = self._numbers.get(ref)
        if number is None:
            return set()
        self._detach(number)
        del self._placements[number]
        self._everything.discard(number)
        self._numbers.remove(number)
        self._in_cluster[ref.cluster].discard(number)
        if not self._in_cluster[ref.cluster]:
            del self._in_cluster[ref.cluster]
            self.consent.remove_source(ref.cluster)
        return {ref}

    def _join(self, cluster: str, number: int) -> None:
        """Note which workspace a new placement is in."""
        known = self._in_cluster.get(cluster)
        if known is None:
            known = self._in_cluster[cluster] = BitMap()
            self.consent.add_source(cluster)
        known.add(number)

    def _detach(self, number: int) -> None:
        for demand in self._demands_of.pop(number):
            self._demands.remove(demand, number)
        workspace_demand = self._workspace_demand_of.pop(number, None)
        if workspace_demand is not None:
            self._workspace_demands.remove(workspace_demand, number)
            self._picky.discard(number)
        self._choosy.discard(number)

    # -- Locations, SyncTargets, workspaces --------------------------------------------------

    def put_location(self, location: Location) -> set[ObjectRef]:
        """Have *location* as it is given; returns the placements it joins, leaves or changes."""
        old = self.inventory.location(location.ref)
        if old == location:
            return set()
        self._know_cluster(location.ref.cluster)
        number = self.inventory.put_location(location)
        self._other([number])
        touched = self._located(old, location)
        if self.consent.is_used:
            touched |= self._consent_to(self.consent.location_put(number, old, location))
        return touched

    def _located(self, old: Location | None, location: Location) -> set[ObjectRef]:
        after = self._demands.satisfied(location.labels)
        if old is None:
            return self._places(self._admitted(after, location.ref.cluster))
        before = self._demands.satisfied(old.labels)
        if old.instances != location.instances or old.errors != location.errors:
            touched = self._demands.owners_of(before | after)
        else:
            touched = self._joining_or_leaving(before, after)
            if old.labels != location.labels or old.taints != location.taints:
                touched |= self._demands.owners_of(before & after) & self._choosy
        return self._places(self._from_workspace(touched, location.ref.cluster))

    def remove_location(self, ref: ObjectRef) -> set[ObjectRef]:
        """Forget the Location called *ref*."""
        old = self.inventory.location(ref)
        if old is None:
            return set()
        number = self.inventory.remove_location(ref)
        if self.consent.is_used:
            self.consent.location_removed(number, old)
        self._other([number])
        self._forget_cluster(ref.cluster)
        return self._places(self._admitted(self._demands.satisfied(old.labels), ref.cluster))

    def put_sync_target(self, target: SyncTarget) -> set[ObjectRef]:
        """Have *target* as it is given."""
        old = self.inventory.sync_target(target.ref)
        locations = self.inventory.put_sync_target(target)
        self._other(locations)
        touched = self._selecting(locations)
        if old is not None and old.available != target.available and self._choosing is not None:
            locations = self.inventory.having(target.ref.cluster, target.labels)
            self._other(locations)
            touched |= self._selecting(locations) & self._choosy
        return self._places(touched)

    def remove_sync_target(self, ref: ObjectRef) -> set[ObjectRef]:
        """Forget the SyncTarget called *ref*."""
        locations = self.inventory.remove_sync_target(ref)
        self._other(locations)
        return self._places(self._selecting(locations))

    def _other(self, locations: Iterable[int]) -> None:
        """Have the chooser, if there is one, read Locations anew."""
        if self._choosing is not None:
            for number in locations:
                self._choosing.changed(number)

    def put_workspace(
        self, cluster: str, labels: Mapping[str, str], at: ObjectRef | None = None
    ) -> set[ObjectRef]:
        """Have the workspace whose content is *cluster* with these labels.

        A workspace that was never put has no labels. *at* is where its Workspace object is; that
        may be left out when it is known already.
        """
        consent = self.consent.put_workspace(at, cluster, labels)
        return self._labelled(cluster, labels) | self._consent_to(*consent)

    def remove_workspace(self, cluster: str, at: ObjectRef) -> set[ObjectRef]:
        """Forget the Workspace object at *at*, whose content is *cluster*."""
        consent = self.consent.remove_workspace(at)
        return self._labelled(cluster, NO_LABELS) | self._consent_to(*consent)

    def _labelled(self, cluster: str, labels: Mapping[str, str]) -> set[ObjectRef]:
        old = self._workspaces.get(cluster, NO_LABELS)
        if labels:
            self._workspaces[cluster] = labels
        else:
            self._workspaces.pop(cluster, None)
        number = self._clusters.get(cluster)
        if number is not None:
            self._workspace_labels.put(number, labels)
        if not self._picky:
            return set()
        demands = self._workspace_demands.satisfied(old) ^ self._workspace_demands.satisfied(labels)
        swayed = self._workspace_demands.owners_of(demands)
        return self._places(swayed & self._selecting_any(self.inventory.locations_in(cluster)))

    # -- consent -----------------------------------------------------------------------------

    def put_grant(self, grant: Grant) -> set[ObjectRef]:
        """Have *grant* as it is given; returns the placements it may be about."""
        return self._consent_to(self.consent.put_grant(grant))

    def remove_grant(self, ref: ObjectRef) -> set[ObjectRef]:
        """Forget the grant called *ref*."""
        return self._consent_to(self.consent.remove_grant(ref))

    def put_memory(self, inventory: str, *, enforced: bool) -> set[ObjectRef]:
        """Remember that an inventory workspace is enforced whatever its grants, or that not."""
        return self._consent_to(self.consent.put_memory(inventory, enforced=enforced))

    def _consent_to(self, *touched: Touched) -> set[ObjectRef]:
        """Return the placements that select what was touched, of the sources that were."""
        found = BitMap()
        for locations, sources in touched:
            if sources is None:
                candidates = self._everything
            else:
                candidates = BitMap.union(
                    _NONE, *(self._in_cluster.get(source, _NONE) for source in sources)
                )
            if not candidates or not locations:
                continue
            if len(candidates) > len(locations):
                found |= candidates & self._selecting(locations)
            else:
                refs = ((n, self._numbers.item(n)) for n in candidates)
                found.update(n for n, ref in refs if self.matching(ref) & locations)
        return self._places(found)

    def is_governed(self, ref: ObjectRef) -> bool:
        """Tell whether the placement called *ref* selects a Location of a workspace with grants."""
        return self.consent.governs and self.consent.is_about(self.matching(ref))

    def remembers(self, ref: ObjectRef) -> bool:
        """Tell whether it matters to a placement where it is already."""
        placement = self.placement(ref)
        return self.consent.is_used or (placement is not None and placement.strategy is not None)

    def refuses(self, ref: ObjectRef) -> bool:
        """Tell whether some Location that the placement called *ref* selects refuses it."""
        if not self.consent.governs:
            return False
        return bool(self.consent.judge(ref.cluster, self.matching(ref)).refused)

    def _know_cluster(self, cluster: str) -> None:
        if self._clusters.get(cluster) is None:
            number = self._clusters.add(cluster)
            self._workspace_labels.put(number, self._workspaces.get(cluster, NO_LABELS))

    def _forget_cluster(self, cluster: str) -> None:
        number = self._clusters.get(cluster)
        if number is not None and not self.inventory.locations_in(cluster):
            self._workspace_labels.remove(number)
            self._clusters.remove(number)

    # -- matching ----------------------------------------------------------------------------

    def matching(self, ref: ObjectRef) -> BitMap:
        """Return the numbers of the Locations the placement called *ref* selects.

        With an invalid selector it selects none: half an answer is no answer.
        """
        number = self._numbers.get(ref)
        if number is None or self._placements[number].errors:
            return BitMap()
        labels, demands = self.inventory.location_labels, self._demands_of[number]
        if len(demands) == 1:
            found = labels.select(self._demands.terms(demands[0]))
        else:
            selected = [labels.select(self._demands.terms(demand)) for demand in demands]
            found = BitMap.union(*selected) if selected else BitMap()
        workspaces = self._placements[number].workspaces
        return found if workspaces is None else found & self._locations_within(workspaces)

    def chosen(
        self,
        ref: ObjectRef,
        present: AbstractSet[ObjectRef] = NOWHERE,
        running: AbstractSet[ObjectRef] = NOWHERE,
    ) -> Chosen:
        """Return the Locations a placement selects, and those chosen of them.

        *present* are the Locations chosen before; only a strategy asks. *running* are those that
        are held where no grant admits the placement any more.
        """
        matching = open_to = self.matching(ref)
        placement = self.placement(ref)
        refused = held = observed = _NONE
        if self.consent.is_used:
            refused, observed = self.consent.judge(ref.cluster, matching)
            if refused:
                held = self._among(refused, running)
                open_to = (matching - refused) | held
        if placement is None or placement.strategy is None or self._choosing is None:
            return Chosen(matching, list(open_to), "", refused, held, observed)
        choice = self._choosing.choose(placement.strategy, open_to, present)
        return Chosen(matching, choice.locations, choice.shortage, refused, held, observed)

    def _among(self, locations: BitMap, refs: AbstractSet[ObjectRef]) -> BitMap:
        numbers = (self.inventory.location_number(each) for each in refs)
        return locations & BitMap(number for number in numbers if number is not None)

    def refusal(self, ref: ObjectRef, location: int, present: AbstractSet[ObjectRef]) -> str:
        """Return why the placement's strategy does not let a Location through; else empty."""
        placement = self.placement(ref)
        if placement is None or placement.strategy is None or self._choosing is None:
            return ""
        return self._choosing.refusal(placement.strategy, location, present)

    def destinations(
        self,
        ref: ObjectRef,
        present: AbstractSet[ObjectRef] = NOWHERE,
        running: AbstractSet[Destination] = NOTHING_RUNS,
    ) -> list[Destination]:
        """Return the destinations of the placement called *ref*, in order."""
        held = {each.location_ref for each in running} if running else NOWHERE
        return self.destinations_of(self.chosen(ref, present, held), running)

    def destinations_of(
        self, chosen: Chosen, running: AbstractSet[Destination] = NOTHING_RUNS
    ) -> list[Destination]:
        """Return the destinations of what was chosen; at held Locations only those *running*."""
        if not chosen.held:
            return self.destinations_at(chosen.locations)
        found = self.destinations_at(n for n in chosen.locations if n not in chosen.held)
        held = self.destinations_at(n for n in chosen.locations if n in chosen.held)
        return sorted([*found, *(each for each in held if each in running)])

    def destinations_at(self, locations: Iterable[int]) -> list[Destination]:
        """Return the destinations of these Locations, in order."""
        known = self.inventory.destinations
        found = [destination for number in locations for destination in known(number)]
        found.sort()
        return found

    def selects(self, ref: ObjectRef, location: Location) -> bool:
        """Tell whether the placement called *ref* selects *location*."""
        number = self._numbers.get(ref)
        if number is None:
            return False
        satisfied = self._demands.satisfied(location.labels)
        return number in self._admitted(satisfied, location.ref.cluster)

    def selecting(self, location: int) -> set[ObjectRef]:
        """Return the placements that select the Location of that number."""
        found = self._places(self._selecting(BitMap([location])))
        return {ref for ref in found if (each := self.placement(ref)) and not each.errors}

    def workspace_labels(self, cluster: str) -> Mapping[str, str]:
        """Return the labels of the workspace whose content is *cluster*."""
        return self._workspaces.get(cluster, NO_LABELS)

    def _locations_within(self, workspaces: Terms) -> BitMap:
        """Return the Locations of every workspace that satisfies *workspaces*."""
        clusters = self._workspace_labels.select(workspaces)
        there = [self.inventory.locations_in(self._clusters.item(each)) for each in clusters]
        return BitMap.union(*there) if there else BitMap()

    def _admitted(self, demands: BitMap, cluster: str) -> BitMap:
        """Return the placements with any of these selectors that take Locations of *cluster*."""
        return self._from_workspace(self._demands.owners_of(demands), cluster)

    def _from_workspace(self, placements: BitMap, cluster: str) -> BitMap:
        if not self._picky:
            return placements
        demands = self._workspace_demands.satisfied(self.workspace_labels(cluster))
        return placements - (self._picky - self._workspace_demands.owners_of(demands))

    def _joining_or_leaving(self, before: BitMap, after: BitMap) -> BitMap:
        """Return the placements that have selectors among only one of two sets."""
        changed = self._demands.owners_of(before ^ after)
        of, were, are = self._demands_of, set(before), set(after)
        return BitMap([n for n in changed if were.isdisjoint(of[n]) != are.isdisjoint(of[n])])

    def _selecting(self, locations: BitMap) -> BitMap:
        """Return the placements that select any of these Locations."""
        found = BitMap()
        for number in locations:
            location = self.inventory.location_at(number)
            satisfied = self._demands.satisfied(location.labels)
            found |= self._admitted(satisfied, location.ref.cluster)
        return found

    def _selecting_any(self, locations: BitMap) -> BitMap:
        """As ``_selecting``, whatever their workspace."""
        found = BitMap()
        for number in locations:
            satisfied = self._demands.satisfied(self.inventory.location_at(number).labels)
            found |= self._demands.owners_of(satisfied)
        return found

    def _places(self, numbers: BitMap) -> set[ObjectRef]:
        return {self._numbers.item(number) for number in numbers}
