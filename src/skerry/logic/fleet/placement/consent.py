"""Whom inventory workspaces let in, as bitmaps of Locations; kept up as anything changes.

The mode of an inventory workspace is that of its strictest grant, for all its Locations: one
enforcing grant is enough to refuse whatever no enforcing grant admits. A workspace that was
enforced stays so after its last enforcing grant has gone, until a person confirms that it is to
be opened; ``put_memory`` sets that memory. A grant that only observes admits nobody
into an enforced workspace: it has no effect, that is what observing means.

For each workspace with placements, a *source*, there is one bitmap of the Locations it is admitted
to. What it is refused is then two set operations, whatever the number of grants. A change costs
what it touches: a grant its own Locations and sources, a Location the grants that select it, a
Workspace its own grants. ``rows`` counts the pairs of grant and source, or grant and Location,
that were evaluated, so that tests can assert it.

A workspace with Locations 1 to 3, where ``a`` enforces and admits a source to 1, and ``b`` observes
and admits it to 2; what ``judge`` says to that source:

    a and b                      Enforce   refused 2 and 3
    b alone                      Observe   refused none; would be 1 and 3
    b alone, and remembered      Enforce   refused all: nothing that counts admits anybody
    neither, nor remembered      open      refused none
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import NamedTuple

from pyroaring import BitMap

from skerry.api.edge import ENFORCE, OBSERVE, ConsentMode, location_grant_ref, location_ref
from skerry.api.refs import ObjectRef
from skerry.logic.fleet.placement.grant_finder import GrantFinder
from skerry.logic.fleet.placement.grants import Grant
from skerry.logic.fleet.placement.inventory import Inventory
from skerry.logic.fleet.placement.numbers import Numbers
from skerry.logic.fleet.placement.records import Location
from skerry.logic.fleet.placement.workspace_tree import NOWHERE, Position, WorkspaceTree

_NONE = BitMap()
# A workspace without a parent is some user's home; its cluster does not name the user.
_UNKNOWN_PATH = "a home workspace"


class Touched(NamedTuple):
    """Pairs of source and Location of which something else may be true now.

    ``sources`` None stands for every source: the mode of a workspace is another.
    """

    locations: BitMap
    sources: frozenset[str] | None


class Judgement(NamedTuple):
    """Of some Locations, those a source is refused, and those it would be if grants enforced."""

    refused: BitMap
    observed: BitMap


ADMITTED = Judgement(_NONE, _NONE)


class ConsentIndex:
    """Grants, the workspaces they admit and the Locations they are about."""

    def __init__(self, inventory: Inventory) -> None:
        self.tree = WorkspaceTree()
        self.rows = 0
        # Inventory workspaces whose grants are, select or name others than when last asked.
        self._changed: set[str] = set()
        self._inventory = inventory
        self._numbers: Numbers[ObjectRef] = Numbers()
        self._grants: dict[int, Grant] = {}
        self._remembered: set[str] = set()
        # Locations of enforced workspaces, and of those whose grants only observe.
        self._enforced = BitMap()
        self._observed = BitMap()
        # By inventory workspace: its grants, and those of them that enforce.
        self._in: dict[str, BitMap] = {}
        self._enforcing: dict[str, BitMap] = {}
        self._finder = GrantFinder()
        # By grant: the Locations it selects, the sources it names.
        self._locations: dict[int, BitMap] = {}
        self._sources_of: dict[int, set[str]] = {}
        # By source: where it is, its grants, where it is admitted.
        self._positions: dict[str, Position] = {}
        self._at: dict[str, set[str]] = {}
        self._below: dict[str, set[str]] = {}
        self._grants_of: dict[str, BitMap] = {}
        self._admitted: dict[str, BitMap] = {}

    # -- asking ------------------------------------------------------------------------------

    @property
    def governs(self) -> bool:
        """Whether any Location is in a workspace with grants, or in one that is remembered."""
        return bool(self._enforced or self._observed)

    @property
    def is_used(self) -> bool:
        """Whether anything here depends on workspaces: there is a grant or a memory of one."""
        return bool(self._grants or self._remembered)

    def mode(self, inventory: str) -> ConsentMode | None:
        """Return the mode of an inventory workspace; None when it is open."""
        if inventory in self._enforcing or inventory in self._remembered:
            return ENFORCE
        return OBSERVE if inventory in self._in else None

    def grant(self, ref: ObjectRef) -> Grant | None:
        """Return the grant called *ref*."""
        number = self._numbers.get(ref)
        return None if number is None else self._grants[number]

    def grants_in(self, inventory: str) -> list[Grant]:
        """Return the grants of a workspace, by name."""
        found = (self._grants[number] for number in self._in.get(inventory, _NONE))
        return sorted(found, key=lambda grant: grant.ref)

    def is_remembered(self, inventory: str) -> bool:
        """Return whether a workspace is known to have been enforced."""
        return inventory in self._remembered

    def judge(self, source: str, locations: BitMap) -> Judgement:
        """Return which of *locations* refuse the workspace *source*."""
        if not self.governs:
            return ADMITTED
        admitted = self._admitted.get(source, _NONE)
        return Judgement(
            (locations & self._enforced) - admitted, (locations & self._observed) - admitted
        )

    def admitting(self, source: str, location: int) -> Iterator[Grant]:
        """Yield the grants that count and admit *source* to a Location."""
        inventory = self._inventory.location_at(location).ref.cluster
        for number in self._grants_of.get(source, _NONE) & self._counting(inventory):
            if location in self._locations[number]:
                yield self._grants[number]

    def is_about(self, locations: BitMap) -> bool:
        """Return whether any of *locations* is in a workspace with grants."""
        return bool(locations & self._enforced or locations & self._observed)

    def is_enforced(self, location: int) -> bool:
        return location in self._enforced

    def is_observed(self, location: int) -> bool:
        return location in self._observed

    def refusing(self, locations: BitMap) -> Iterator[ObjectRef]:
        """Yield, for Locations that refuse somebody, the grants that are about any of them.

        Where none is, the workspace itself is yielded, as a place without a name.
        """
        for inventory in sorted(self._workspaces_of(locations)):
            here = locations & self._inventory.locations_in(inventory)
            about = [n for n in self._counting(inventory) if self._locations[n] & here]
            if about:
                yield from sorted(self._grants[number].ref for number in about)
            else:
                yield location_grant_ref(inventory, "")

    def refusing_names(self, locations: BitMap, limit: int = 3) -> tuple[str, ...]:
        """Return the first grants that refuse *locations*, by path and name, for people."""
        return tuple(
            f"{self.path(each.cluster)}/{each.name}"
            if each.name
            else f"any grant of {self.path(each.cluster)}"
            for each in islice(self.refusing(locations), limit)
        )

    def path(self, cluster: str) -> str:
        """Return the path of a workspace, for people."""
        return self.tree.path(cluster) or _UNKNOWN_PATH

    def by_workspace(self, locations: BitMap) -> dict[str, BitMap]:
        """Return *locations* by their inventory workspace."""
        return {
            inventory: locations & self._inventory.locations_in(inventory)
            for inventory in sorted(self._workspaces_of(locations))
        }

    def _workspaces_of(self, locations: BitMap) -> set[str]:
        governed = self._in.keys() | self._remembered
        if len(governed) < len(locations):
            return {each for each in governed if locations & self._inventory.locations_in(each)}
        return {self._inventory.location_at(number).ref.cluster for number in locations}

    def selected(self, ref: ObjectRef) -> BitMap:
        """Return the Locations a grant selects."""
        number = self._numbers.get(ref)
        return _NONE if number is None else self._locations[number]

    def sources(self, ref: ObjectRef) -> frozenset[str]:
        """Return the workspaces with placements that a grant names."""
        number = self._numbers.get(ref)
        return frozenset() if number is None else frozenset(self._sources_of[number])

    def inventories(self) -> set[str]:
        """Return the workspaces that are not open."""
        return self._in.keys() | self._remembered

    def take_changed(self) -> set[str]:
        """Return the inventory workspaces with a change since the last call."""
        found, self._changed = self._changed, set()
        return found

    # -- grants ------------------------------------------------------------------------------

    def put_grant(self, grant: Grant) -> Touched:
        """Have *grant* as it is given."""
        old = self.grant(grant.ref)
        if old == grant:
            return Touched(_NONE, frozenset())
        return self._exchange(grant.ref, grant)

    def remove_grant(self, ref: ObjectRef) -> Touched:
        """Forget the grant called *ref*."""
        if self.grant(ref) is None:
            return Touched(_NONE, frozenset())
        return self._exchange(ref, None)

    def put_memory(self, inventory: str, *, enforced: bool) -> Touched:
        """Remember that a workspace is enforced, or that it is not."""
        before = self.mode(inventory)
        if enforced:
            self._remembered.add(inventory)
        else:
            self._remembered.discard(inventory)
        return self._moded(inventory, before) or Touched(_NONE, frozenset())

    def _exchange(self, ref: ObjectRef, new: Grant | None) -> Touched:
        """Put one grant in place of another; touched is what either of them was about."""
        number, inventory = self._numbers.add(ref), ref.cluster
        before = self.mode(inventory)
        self._changed.add(inventory)
        locations = BitMap(self._locations.get(number, _NONE))
        sources = set(self._sources_of.get(number, ()))
        if number in self._grants:
            self._detach(number)
        if new is not None:
            self._attach(number, new)
            locations |= self._locations[number]
            sources |= self._sources_of[number]
        else:
            self._numbers.remove(number)
        for source in sources:
            self._refresh(source, inventory)
        return self._moded(inventory, before) or Touched(locations, frozenset(sources))

    def _attach(self, number: int, grant: Grant) -> None:
        inventory = grant.ref.cluster
        # Nobody but grants knows of homes, so no grant before this one was about these.
        for path in (*grant.paths, *(each.path for each in grant.children)):
            self._reposition(self.tree.know_home(path))
        self._grants[number] = grant
        self._in.setdefault(inventory, BitMap()).add(number)
        if grant.enforces:
            self._enforcing.setdefault(inventory, BitMap()).add(number)
        self._finder.add(number, grant)
        self._locations[number] = self._select(grant)
        self._sources_of[number] = self._named_by(grant)
        for source in self._sources_of[number]:
            self._grants_of.setdefault(source, BitMap()).add(number)

    def _detach(self, number: int) -> None:
        grant = self._grants.pop(number)
        inventory = grant.ref.cluster
        _drop(self._in, inventory, number)
        if grant.enforces:
            _drop(self._enforcing, inventory, number)
        self._finder.remove(number, grant)
        for source in self._sources_of.pop(number):
            _drop(self._grants_of, source, number)
        del self._locations[number]

    def _select(self, grant: Grant) -> BitMap:
        """Return the Locations a grant selects; none if it has errors, though it may enforce."""
        if grant.errors:
            return BitMap()
        inventory = self._inventory
        there = inventory.locations_in(grant.ref.cluster)
        found = BitMap()
        if grant.location_terms is not None:
            found = inventory.location_labels.select(grant.location_terms, there)
        for name in grant.location_names:
            number = inventory.location_number(location_ref(grant.ref.cluster, name))
            if number is not None:
                found.add(number)
        self.rows += len(found)
        return found

    def _named_by(self, grant: Grant) -> set[str]:
        """Return the sources a grant names."""
        if grant.errors:
            return set()
        found: set[str] = set()
        for path in grant.paths:
            found |= self._at.get(path, set())
        for each in grant.children:
            for source in self._below.get(each.path, ()):
                labels = self._positions[source].labels
                if all(term.admits(labels.get(key)) for key, term in each.terms):
                    found.add(source)
                self.rows += 1
        self.rows += len(found)
        return found

    # -- sources -----------------------------------------------------------------------------

    def add_source(self, source: str) -> None:
        """Note that a workspace has placements."""
        if source not in self._positions:
            self._settle(source, self.tree.position(source))

    def remove_source(self, source: str) -> None:
        """Note that a workspace has no placement any more."""
        if source in self._positions:
            self._settle(source, NOWHERE)
            del self._positions[source]
            self._admitted.pop(source, None)

    def put_workspace(
        self, ref: ObjectRef | None, cluster: str, labels: Mapping[str, str]
    ) -> list[Touched]:
        """Have a Workspace object as it is given; without *ref*, only its labels are known."""
        if ref is None:
            return self._reposition(self.tree.relabel(cluster, labels))
        return self._reposition(self.tree.put(ref, cluster, labels))

    def remove_workspace(self, ref: ObjectRef) -> list[Touched]:
        """Forget a Workspace object."""
        return self._reposition(self.tree.remove(ref))

    def _reposition(self, clusters: Iterable[str]) -> list[Touched]:
        found: list[Touched] = []
        for source in clusters:
            if source not in self._positions:
                continue
            position = self.tree.position(source)
            if position != self._positions[source]:
                locations = self._settle(source, position)
                if locations:
                    found.append(Touched(locations, frozenset((source,))))
        return found

    def _settle(self, source: str, position: Position) -> BitMap:
        """Put a source where it is, with the grants that name it there; returns what changed."""
        old = self._positions.get(source, NOWHERE)
        for table, path in ((self._at, old.path), (self._below, old.parent)):
            if path:
                _take(table, path, source)
        self._positions[source] = position
        for table, path in ((self._at, position.path), (self._below, position.parent)):
            if path:
                table.setdefault(path, set()).add(source)
        before, after = self._grants_of.pop(source, BitMap()), self._naming(position)
        if after:
            self._grants_of[source] = after
        for number in before - after:
            self._sources_of[number].discard(source)
        for number in after - before:
            self._sources_of[number].add(source)
        changed = before ^ after
        for inventory in {self._grants[number].ref.cluster for number in changed}:
            self._changed.add(inventory)
            self._refresh(source, inventory)
        return BitMap.union(*(self._locations[n] for n in changed)) if changed else BitMap()

    def _naming(self, position: Position) -> BitMap:
        found = self._finder.naming(position)
        self.rows += len(found)
        return found

    # -- Locations ---------------------------------------------------------------------------

    def location_put(self, number: int, old: Location | None, new: Location) -> Touched:
        """Take a Location that is new or other, at its number in the inventory."""
        before = self._about(old) if old is not None else _NONE
        after = self._about(new)
        for grant in before - after:
            self._locations[grant].discard(number)
        for grant in after - before:
            self._locations[grant].add(number)
        inventory = new.ref.cluster
        mode = self.mode(inventory)
        if mode is not None:
            (self._enforced if mode == ENFORCE else self._observed).add(number)
        if before != after:
            self._changed.add(inventory)
        return self._moved(number, inventory, before ^ after)

    def location_removed(self, number: int, old: Location) -> None:
        """Forget a Location; its number may soon be another's."""
        for grant in self._about(old):
            self._changed.add(old.ref.cluster)
            self._locations[grant].discard(number)
            for source in self._sources_of[grant]:
                self._admitted.get(source, BitMap()).discard(number)
        self._enforced.discard(number)
        self._observed.discard(number)

    def _about(self, location: Location) -> BitMap:
        """Return the grants that select a Location, without asking where there are none."""
        if location.ref.cluster not in self._in:
            return _NONE
        found = self._finder.about(location)
        self.rows += len(found)
        return found

    def _moved(self, number: int, inventory: str, grants: BitMap) -> Touched:
        """Admit to a Location the sources that *grants* now admit there, and no others of them."""
        sources = {source for grant in grants for source in self._sources_of[grant]}
        counting = self._counting(inventory)
        for source in sources:
            mine = self._grants_of[source] & counting
            self.rows += len(mine)
            admitted = self._admitted.setdefault(source, BitMap())
            if any(number in self._locations[grant] for grant in mine):
                admitted.add(number)
            else:
                admitted.discard(number)
        return Touched(BitMap((number,)), frozenset(sources))

    # -- what follows ------------------------------------------------------------------------

    def _counting(self, inventory: str) -> BitMap:
        """Return the grants of a workspace that decide whom it admits."""
        if self.mode(inventory) == ENFORCE:
            return self._enforcing.get(inventory, _NONE)
        return self._in.get(inventory, _NONE)

    def _refresh(self, source: str, inventory: str) -> None:
        """Work out anew to which Locations of one workspace a source is admitted."""
        mine = self._grants_of.get(source, _NONE) & self._counting(inventory)
        self.rows += len(mine)
        admitted = self._admitted.setdefault(source, BitMap())
        # One bitmap serves all workspaces: only what is of this one is taken out and put in anew.
        admitted -= self._inventory.locations_in(inventory)
        for number in mine:
            admitted |= self._locations[number]
        self._admitted[source] = admitted

    def _moded(self, inventory: str, before: ConsentMode | None) -> Touched | None:
        """Take that the mode of a workspace may be another; returns what that touches, if it is."""
        now = self.mode(inventory)
        if now == before:
            return None
        self._changed.add(inventory)
        there = self._inventory.locations_in(inventory)
        for mode, locations in ((ENFORCE, self._enforced), (OBSERVE, self._observed)):
            if mode == now:
                locations.update(there)
            else:
                locations.difference_update(there)
        sources = {s for number in self._in.get(inventory, _NONE) for s in self._sources_of[number]}
        for source in sources:
            self._refresh(source, inventory)
        return Touched(BitMap(there), None)


def _drop(table: dict[str, BitMap], key: str, number: int) -> None:
    found = table[key]
    found.discard(number)
    if not found:
        del table[key]


def _take(table: dict[str, set[str]], key: str, member: str) -> None:
    found = table[key]
    found.discard(member)
    if not found:
        del table[key]
