"""What one object in one mailbox is to be, worked out from records.

The common case is one workspace's object that needs no customization: then what is wanted has the
proof its record carries, and no object is looked at or made unless it must be written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import orjson

from skerry.api.kinds import GroupResource
from skerry.controllers.placement_translator.feeds import Record
from skerry.controllers.placement_translator.relations import Relations
from skerry.controllers.placement_translator.settings import TranslatorSettings
from skerry.controllers.placement_translator.workspaces import Workspaces
from skerry.logic.customization.customize import Problem
from skerry.logic.resource import Object
from skerry.logic.translation.categories import (
    BINDINGS,
    DEFINITIONS,
    NAMESPACES,
    Category,
    binding_reference,
    category_of,
)
from skerry.logic.translation.configs import config_spec
from skerry.logic.translation.copies import bare_namespace, digest, labelled
from skerry.logic.translation.items import EVERYWHERE, Item, LocationName, PlacementName
from skerry.logic.translation.merging import VERSIONS_DISAGREE, Origin, Told, Way, merged
from skerry.logic.translation.reference import withheld_kind
from skerry.logic.translation.versions import Agreement, agreed_version

Lookup = Callable[[str, str, str], Object | None]
_DEFINING = (BINDINGS, DEFINITIONS)


@dataclass(frozen=True, slots=True)
class Resolved:
    """What is wanted: nothing when ``proof`` is None; ``make`` returns the object itself."""

    proof: bytes | None
    make: Callable[[], Object] | None = None
    told: tuple[Told, ...] = ()


@dataclass(frozen=True, slots=True)
class Config:
    """What the syncer of a mailbox is to be told; None when no placement goes there."""

    spec: Object | None
    told: tuple[Told, ...] = ()


NOTHING = Resolved(None)


class Resolver:
    """Answers what is wanted from what is known now."""

    def __init__(
        self,
        workspaces: Workspaces,
        relations: Relations,
        settings: TranslatorSettings,
        customizer: Lookup,
        location: Lookup,
    ) -> None:
        """*customizer* and *location* look one up by cluster, namespace and name."""
        self._workspaces = workspaces
        self._relations = relations
        self._strict = settings.strict_customization
        # Until the hub is known, what might act on it stays out of it.
        self.withholds_denatured = settings.withhold_denatured is not False
        self._customizer = customizer
        self._location = location

    # Whether enough is known.

    def ready(self, mailbox: str, item: Item, version: str) -> bool:
        """Tell whether everything has been read that decides about *item* at *version*."""
        for cluster in self._relations.contributors(mailbox):
            if item.type in _DEFINING:
                if not self._workspaces.knows_everything(cluster):
                    return False
            elif not self._workspaces.knows(
                cluster, item.type, self._served(cluster, item, version)
            ):
                return False
        return True

    def _served(self, cluster: str, item: Item, version: str) -> str:
        """Return *version* if a workspace serves it, else its own preference."""
        served = self._workspaces.served(cluster, item.type)
        return version if served is not None and version in served.versions else ""

    def malformed(self, mailbox: str) -> bool:
        """Tell whether a placement that goes to a mailbox cannot be understood."""
        return any(each.what is None for each in self._relations.placements_at(mailbox))

    def version(self, mailbox: str, resource: GroupResource) -> Agreement:
        """Return the version at which a type is written to a mailbox; empty when none is."""
        found = [
            served
            for cluster, names in self._relations.contributors(mailbox).items()
            if (served := self._workspaces.served(cluster, resource)) is not None
            and any(self._understood(name) for name in names)
        ]
        if len(found) == 1:
            return Agreement(found[0].versions[0], shared=True)
        return agreed_version(found) if found else Agreement("", shared=True)

    def _understood(self, name: PlacementName) -> bool:
        placement = self._relations.get(name)
        return placement is not None and placement.what is not None

    # Objects.

    def placements(self, mailbox: str, item: Item) -> list[PlacementName]:
        """Return whoever wants *item* in *mailbox*."""
        return [name for _, _, names in self._wanted(mailbox, item) for name in names]

    def resolve(self, mailbox: str, item: Item) -> Resolved:
        """Return what *item* is to be in *mailbox*."""
        if item == EVERYWHERE:
            return NOTHING
        wanted = list(self._wanted(mailbox, item))
        if not wanted:
            return NOTHING
        if item.type == NAMESPACES:
            wanted = [
                (c, r, named) for c, r, names in wanted if (named := self._named(c, item, names))
            ]
            if not wanted:
                bare = bare_namespace(item.name)
                return Resolved(digest(NAMESPACES, bare), lambda: bare)
        if self.withholds_denatured and category_of(item.type) is Category.DENATURED:
            problem = withheld_kind(item)
            told = tuple(Told(name, problem) for _, _, names in wanted for name in names)
            return Resolved(None, told=told)
        if item.type == BINDINGS and not self._first_of_its_export(mailbox, item):
            return NOTHING
        return self._resolved(mailbox, item, wanted)

    def _resolved(
        self, mailbox: str, item: Item, wanted: list[tuple[str, Record, list[PlacementName]]]
    ) -> Resolved:
        if len(wanted) == 1 and not wanted[0][1].customized:
            record = wanted[0][1]
            return Resolved(record.proof, lambda: labelled(record.copy()))
        origins = [self._origin(mailbox, *each) for each in wanted]
        result = merged(item, origins, strict=self._strict)
        found = result.object
        if found is None:
            return Resolved(None, told=result.told)
        return Resolved(digest(item.type, found), lambda: found, result.told)

    def _wanted(
        self, mailbox: str, item: Item
    ) -> Iterator[tuple[str, Record, list[PlacementName]]]:
        """Yield each workspace whose *item* is wanted, with its record and by whom."""
        version = self.version(mailbox, item.type).version
        for cluster in sorted(self._relations.contributors(mailbox)):
            at = self._served(cluster, item, version)
            record = self._workspaces.record(cluster, item, at)
            if record is None or not record.is_source:
                continue
            names = self._relations.wanting(mailbox, cluster, item)
            if item.type in _DEFINING:
                needing = self._relations.needing(mailbox, cluster, item)
                names = sorted({*names, *needing})
            if names:
                yield cluster, record, names

    def _named(
        self, cluster: str, item: Item, names: Iterable[PlacementName]
    ) -> list[PlacementName]:
        return sorted(set(names) & set(self._relations.naming(cluster, item)))

    def _origin(
        self, mailbox: str, cluster: str, record: Record, names: list[PlacementName]
    ) -> Origin:
        ways = [
            Way(name, location) for name in names for location in self._locations(name, mailbox)
        ]
        customizer = None
        if record.customizer is not None:
            customizer = self._customizer(cluster, *record.customizer)
        locations = sorted({way.location for way in ways})
        known = [(one, self._location(one.cluster, "", one.name)) for one in locations]
        return Origin(
            cluster,
            record.resource_version,
            record.copy(),
            tuple(sorted(ways)),
            customizer,
            tuple((one, found) for one, found in known if found is not None),
        )

    def _locations(self, name: PlacementName, mailbox: str) -> tuple[LocationName, ...]:
        placement = self._relations.get(name)
        return () if placement is None else placement.where.get(mailbox, ())

    # Bindings.

    def _first_of_its_export(self, mailbox: str, item: Item) -> bool:
        """Tell whether *item* is the one of several bindings of an export that is made."""
        wanted = self._wanted_bindings(mailbox)
        mine = wanted[item][0]
        rivals = [
            (unnamed, other.name)
            for other, (reference, unnamed) in wanted.items()
            if reference == mine
        ]
        return min(rivals)[1] == item.name

    def _wanted_bindings(self, mailbox: str) -> dict[Item, tuple[tuple[str, str], bool]]:
        """Return every binding wanted in a mailbox: its export, and whether nobody named it."""
        found: dict[Item, tuple[tuple[str, str], bool]] = {}
        names = {
            record.name
            for cluster in self._relations.contributors(mailbox)
            for record in self._workspaces.bindings.within(cluster).values()
            if record.is_source
        }
        for item in (Item(*BINDINGS, "", name) for name in names):
            wanted = list(self._wanted(mailbox, item))
            if wanted:
                newest = max(wanted, key=lambda each: _newness(each[1]))[1]
                unnamed = not any(self._named(c, item, by) for c, _, by in wanted)
                found[item] = (binding_reference(orjson.loads(newest.lean or b"{}")), unnamed)
        return found

    def rivals(self, mailbox: str) -> list[Item]:
        """Return every binding that might be wanted in a mailbox."""
        return [
            Item(*BINDINGS, "", record.name)
            for cluster in self._relations.contributors(mailbox)
            for record in self._workspaces.bindings.within(cluster).values()
            if record.is_source
        ]

    # What the syncer is told.

    def config_ready(self, mailbox: str) -> bool:
        return all(map(self._workspaces.knows_everything, self._relations.contributors(mailbox)))

    def config(self, mailbox: str) -> Config:
        """Return what the syncer of a mailbox is to be told."""
        contributors = self._relations.contributors(mailbox)
        if not contributors:
            return Config(None)
        placements = [each for each in self._relations.placements_at(mailbox) if each.what]
        namespaces = {name for each in placements for name in each.namespaces}
        agreements = self._carried(mailbox, {p.name.cluster for p in placements if p.namespaces})
        objects: dict[GroupResource, tuple[str, list[str]]] = {}
        for item in self._cluster_scoped(mailbox):
            agreement = agreements.setdefault(item.type, self.version(mailbox, item.type))
            objects.setdefault(item.type, (agreement.version, []))[1].append(item.name)
        resources = {t: a.version for t, a in agreements.items() if t not in objects}
        upsync = [each for p in placements if p.what for each in p.what.upsync]
        told = tuple(self._disagreements(mailbox, agreements))
        return Config(config_spec(namespaces, resources, objects, upsync), told)

    def _carried(self, mailbox: str, clusters: Iterable[str]) -> dict[GroupResource, Agreement]:
        """Return the namespaced types carried to the edge, and at which version."""
        return {
            served.type: self.version(mailbox, served.type)
            for cluster in clusters
            for served in self._workspaces.types(cluster).served.values()
            if served.namespaced and category_of(served.type).to_edge
        }

    def _cluster_scoped(self, mailbox: str) -> Iterator[Item]:
        """Yield the cluster-scoped objects in a mailbox that go on to the edge."""
        items = {item for each in self._relations.placements_at(mailbox) for item in each.named}
        for cluster in self._relations.contributors(mailbox):
            for record in self._workspaces.definitions.within(cluster).values():
                items.add(Item(*DEFINITIONS, "", record.name))
        for item in items:
            if category_of(item.type).to_edge and self._goes(mailbox, item):
                yield item

    def _goes(self, mailbox: str, item: Item) -> bool:
        if item.type == NAMESPACES and item not in self._named_namespaces(mailbox):
            return False
        return self.resolve(mailbox, item).proof is not None

    def _named_namespaces(self, mailbox: str) -> set[Item]:
        return {
            item
            for each in self._relations.placements_at(mailbox)
            for item in each.named
            if item.type == NAMESPACES and item.name in each.namespaces
        }

    def _disagreements(
        self, mailbox: str, agreements: dict[GroupResource, Agreement]
    ) -> Iterator[Told]:
        for resource, agreement in agreements.items():
            if agreement.shared:
                continue
            text = f"no version of {resource} is served by every workspace that places it; "
            problem = Problem(VERSIONS_DISAGREE, f"{text}{agreement.version} is used")
            for cluster, names in self._relations.contributors(mailbox).items():
                if self._workspaces.served(cluster, resource) is not None:
                    yield from (Told(name, problem) for name in sorted(names))


def _newness(record: Record) -> tuple[int, tuple[int, ...]]:
    """Order records by what counts: the newest last, of equals the last cluster first."""
    version = int(record.resource_version) if record.resource_version.isdigit() else 0
    return version, tuple(-ord(char) for char in record.cluster)
