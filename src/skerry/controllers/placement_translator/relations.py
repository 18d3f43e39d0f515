"""Who wants what where: the relations between placements, namespaces, objects and mailboxes.

Kept up incrementally, both ways round, so that a change finds those it concerns without a search:
a namespace its placements, a placement its mailboxes, a mailbox the workspaces that contribute.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from skerry.api.edge import Mailbox
from skerry.api.kinds import GroupResource
from skerry.api.refs import ObjectRef, namespace_ref
from skerry.controllers.placement_translator.feeds import Feed, Record
from skerry.controllers.placement_translator.workspaces import Workspaces
from skerry.logic.fleet.translation.categories import NAMESPACES
from skerry.logic.fleet.translation.what import What, Where

K = TypeVar("K", bound=Hashable)

_NOBODY: frozenset[ObjectRef] = frozenset()


@dataclass
class Placement:
    """A placement as it is known now. ``what`` is None while malformed."""

    name: ObjectRef
    what: What | None = None
    where: Where = field(default_factory=dict)
    namespaces: set[str] = field(default_factory=set)
    named: set[ObjectRef] = field(default_factory=set)


class Relations:
    """All placements, and everything that can be asked of them."""

    def __init__(self, workspaces: Workspaces) -> None:
        self._workspaces = workspaces
        self._placements: dict[ObjectRef, Placement] = {}
        self._by_cluster: dict[str, set[ObjectRef]] = {}
        self._by_namespace: dict[tuple[str, str], set[ObjectRef]] = {}
        self._by_named: dict[tuple[str, ObjectRef], set[ObjectRef]] = {}
        self._by_mailbox: dict[Mailbox, dict[str, set[ObjectRef]]] = {}
        self._by_location: dict[ObjectRef, set[ObjectRef]] = {}

    # Changing.

    def add(self, name: ObjectRef) -> Placement:
        """Return the placement *name*; one not known yet begins with nothing."""
        found = self._placements.get(name)
        if found is None:
            found = self._placements[name] = Placement(name)
            self._by_cluster.setdefault(name.cluster, set()).add(name)
        return found

    def remove(self, name: ObjectRef) -> None:
        """Forget a placement and all it is related to."""
        self.set_what(name, None)
        self.set_where(name, {})
        del self._placements[name]
        _take(self._by_cluster, name.cluster, name)

    def set_what(self, name: ObjectRef, what: What | None) -> None:
        """Let a placement mean *what* and find everything that is meant."""
        placement = self._placements[name]
        placement.what = what
        self._set_namespaces(placement, set() if what is None else set(self._chosen(name, what)))
        self._set_named(placement, set() if what is None else set(self._named(name, what)))

    def set_where(self, name: ObjectRef, where: Where) -> None:
        placement = self._placements[name]
        for mailbox, locations in placement.where.items():
            contributors = self._by_mailbox[mailbox]
            _take(contributors, name.cluster, name)
            if not contributors:
                del self._by_mailbox[mailbox]
            for location in locations:
                _take(self._by_location, location, name)
        placement.where = where
        for mailbox, locations in where.items():
            self._by_mailbox.setdefault(mailbox, {}).setdefault(name.cluster, set()).add(name)
            for location in locations:
                self._by_location.setdefault(location, set()).add(name)

    def namespace_changed(self, cluster: str, name: str, record: Record | None) -> set[ObjectRef]:
        """Take a new state of a namespace; return whose choice of it is different."""
        affected = set()
        for each in self._by_cluster.get(cluster, ()):
            placement = self._placements[each]
            chosen = placement.what is not None and _chooses(placement.what, record)
            if chosen != (name in placement.namespaces):
                affected.add(each)
                (placement.namespaces.add if chosen else placement.namespaces.discard)(name)
                _turn(self._by_namespace, (cluster, name), each, on=chosen)
        return affected

    def named_changed(self, cluster: str, item: ObjectRef, record: Record | None) -> set[ObjectRef]:
        """Take a new state of a cluster-scoped object; return whose choice by name is different."""
        affected = set()
        for each in self._by_cluster.get(cluster, ()):
            placement = self._placements[each]
            meant = (
                placement.what is not None
                and record is not None
                and record.is_source
                and placement.what.names(item, record.labels)
            )
            if meant != (item in placement.named):
                affected.add(each)
                (placement.named.add if meant else placement.named.discard)(item)
                _turn(self._by_named, (cluster, item), each, on=meant)
        return affected

    # Asking.

    def get(self, name: ObjectRef) -> Placement | None:
        return self._placements.get(name)

    def __iter__(self) -> Iterator[Placement]:
        return iter(list(self._placements.values()))

    def in_cluster(self, cluster: str) -> Iterable[ObjectRef]:
        return sorted(self._by_cluster.get(cluster, ()))

    def choosing(self, cluster: str, namespace: str) -> Iterable[ObjectRef]:
        return self._by_namespace.get((cluster, namespace), _NOBODY)

    def naming(self, cluster: str, item: ObjectRef) -> Iterable[ObjectRef]:
        return self._by_named.get((cluster, item), _NOBODY)

    def at_location(self, location: ObjectRef) -> Iterable[ObjectRef]:
        return sorted(self._by_location.get(location, ()))

    def contributors(self, mailbox: Mailbox) -> Mapping[str, set[ObjectRef]]:
        """Return the placements that go to a mailbox, by their workspace."""
        return self._by_mailbox.get(mailbox, {})

    def placements_at(self, mailbox: Mailbox) -> Iterator[Placement]:
        for names in self.contributors(mailbox).values():
            for name in sorted(names):
                yield self._placements[name]

    def mailboxes_of(self, names: Iterable[ObjectRef]) -> list[Mailbox]:
        """Return where these placements go, each mailbox once, in order."""
        return sorted({mailbox for name in names for mailbox in self._placements[name].where})

    def wanting(self, mailbox: Mailbox, cluster: str, item: ObjectRef) -> list[ObjectRef]:
        """Return the placements of a workspace that want its *item* in a mailbox for itself."""
        here = self.contributors(mailbox).get(cluster, _NOBODY)
        if item.namespace:
            return sorted(here & set(self.choosing(cluster, item.namespace)))
        if item.group_resource == NAMESPACES:
            return sorted(here & set(self.choosing(cluster, item.name)))
        return sorted(here & set(self.naming(cluster, item)))

    def needing(self, mailbox: Mailbox, cluster: str, definition: ObjectRef) -> list[ObjectRef]:
        """Return the placements that place something of a type which *definition* brings."""
        brought = [
            (served, feed)
            for served, feed in self._workspaces.travelling(cluster)
            if served.definition == definition
        ]
        found = []
        for name in sorted(self.contributors(mailbox).get(cluster, _NOBODY)):
            placement = self._placements[name]
            if any(
                self._places(placement, served.group_resource, feed) for served, feed in brought
            ):
                found.append(name)
        return found

    def _places(self, placement: Placement, resource: GroupResource, feed: Feed) -> bool:
        """Tell whether a placement sends objects of a type, or has some come up."""
        if placement.what is None:
            return False
        if any(each.covers(*resource) for each in placement.what.upsync):
            return True
        cluster = placement.name.cluster
        if any(item.group_resource == resource for item in placement.named):
            return True
        return any(
            record.is_source
            for namespace in placement.namespaces
            for record in feed.within(cluster, namespace).values()
        )

    def items(self, placement: Placement) -> Iterator[ObjectRef]:
        """Yield everything a placement sends, definitions that go along included."""
        cluster = placement.name.cluster
        yield from map(namespace_ref, placement.namespaces)
        yield from placement.named
        definitions: set[ObjectRef] = set()
        for served, feed in self._workspaces.travelling(cluster):
            if served.definition is not None:
                definitions.add(served.definition)
            if served.namespaced:
                for namespace in placement.namespaces:
                    yield from map(feed.item, feed.within(cluster, namespace).values())
        yield from definitions

    def customized_items(self, placement: Placement) -> Iterator[ObjectRef]:
        """Yield what a placement sends that differs from place to place."""
        cluster = placement.name.cluster
        for item in placement.named:
            record = self._workspaces.record(cluster, item)
            if record is not None and record.customized:
                yield item
        for served, feed in self._workspaces.travelling(cluster):
            for namespace in placement.namespaces if served.namespaced else ():
                for record in feed.within(cluster, namespace).values():
                    if record.customized:
                        yield feed.item(record)

    # Finding what is meant.

    def _chosen(self, name: ObjectRef, what: What) -> Iterator[str]:
        for record in self._workspaces.namespaces.within(name.cluster).values():
            if _chooses(what, record):
                yield record.name

    def _named(self, name: ObjectRef, what: What) -> Iterator[ObjectRef]:
        if not what.named:
            return
        feeds = [
            feed
            for served, feed in self._workspaces.travelling(name.cluster)
            if not served.namespaced
        ]
        for feed in [self._workspaces.namespaces, *feeds]:
            for record in feed.within(name.cluster).values():
                item = feed.item(record)
                if record.is_source and what.names(item, record.labels):
                    yield item

    def _set_namespaces(self, placement: Placement, chosen: set[str]) -> None:
        cluster = placement.name.cluster
        for name in placement.namespaces - chosen:
            _turn(self._by_namespace, (cluster, name), placement.name, on=False)
        for name in chosen - placement.namespaces:
            _turn(self._by_namespace, (cluster, name), placement.name, on=True)
        placement.namespaces = chosen

    def _set_named(self, placement: Placement, named: set[ObjectRef]) -> None:
        cluster = placement.name.cluster
        for item in placement.named - named:
            _turn(self._by_named, (cluster, item), placement.name, on=False)
        for item in named - placement.named:
            _turn(self._by_named, (cluster, item), placement.name, on=True)
        placement.named = named


def _chooses(what: What, record: Record | None) -> bool:
    return record is not None and record.is_source and what.namespaces.matches(record.labels)


def _turn(table: dict[K, set[ObjectRef]], key: K, name: ObjectRef, *, on: bool) -> None:
    if on:
        table.setdefault(key, set()).add(name)
    else:
        _take(table, key, name)


def _take(table: dict[K, set[ObjectRef]], key: K, name: ObjectRef) -> None:
    names = table.get(key, set())
    names.discard(name)
    if not names:
        table.pop(key, None)
