"""What one object in one mailbox is to be, worked out from records.

The common case is one workspace's object that needs no customization: then what is wanted has the
proof its record carries, and no object is looked at or made unless it must be written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import orjson

from skerry.api.edge import Mailbox, binding_reference
from skerry.api.edge_categories import Category, category_of
from skerry.api.kinds import GroupResource
from skerry.api.objects import Object
from skerry.api.refs import ObjectRef, namespace_ref
from skerry.controllers.placement_translator.consent import GrantedPlaces
from skerry.controllers.placement_translator.feeds import Record
from skerry.controllers.placement_translator.relations import Placement, Relations
from skerry.controllers.placement_translator.settings import TranslatorSettings
from skerry.controllers.placement_translator.workspaces import Workspaces
from skerry.logic.fleet.customization.customize import Problem
from skerry.logic.fleet.placement.grants import Rule
from skerry.logic.fleet.translation.categories import (
    BINDINGS,
    DEFAULT_NAMESPACE,
    DEFINITIONS,
    NAMESPACES,
)
from skerry.logic.fleet.translation.configs import config_spec
from skerry.logic.fleet.translation.copies import bare_namespace, digest, labelled
from skerry.logic.fleet.translation.grants import Kind, granted_upsync, permitted
from skerry.logic.fleet.translation.merging import VERSIONS_DISAGREE, Origin, Told, Way, merged
from skerry.logic.fleet.translation.reference import withheld_kind
from skerry.logic.fleet.translation.types import ServedType
from skerry.logic.fleet.translation.versions import Agreement, agreed_version
from skerry.logic.fleet.translation.what import UpsyncSet

# A workspace whose object is wanted, the object's record, and by whom.
Wanted = tuple[str, Record, list[ObjectRef]]
Lookup = Callable[[str, str, str], Object | None]
_DEFINING = (BINDINGS, DEFINITIONS)


@dataclass(frozen=True, slots=True)
class Resolved:
    """What is wanted: nothing when ``proof`` is None; ``make`` returns the object itself.

    ``refused`` are placements that want the object, or more of it, than grants let through. With
    ``frozen`` a copy that is there stays as it is.
    """

    proof: bytes | None
    make: Callable[[], Object] | None = None
    told: tuple[Told, ...] = ()
    refused: tuple[ObjectRef, ...] = ()
    frozen: bool = False


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
        consent: GrantedPlaces,
        stays: Callable[[Mailbox, ObjectRef], bool],
    ) -> None:
        """*customizer* and *location* look one up by cluster, namespace and name.

        *stays* tells whether a mailbox has a copy whose removal nobody has confirmed.
        """
        self._consent = consent
        self._stays = stays
        self._workspaces = workspaces
        self._relations = relations
        self._strict = settings.strict_customization
        # Until the hub is known, what might act on it stays out of it.
        self.withholds_denatured = settings.withhold_denatured is not False
        self._customizer = customizer
        self._location = location

    # Whether enough is known.

    def ready(self, mailbox: Mailbox, item: ObjectRef, version: str) -> bool:
        """Tell whether everything has been read that decides about *item* at *version*."""
        if not self._consent.is_ready(mailbox):
            return False
        for cluster in self._relations.contributors(mailbox):
            if item.group_resource in _DEFINING:
                if not self._workspaces.knows_everything(cluster):
                    return False
            elif not self._workspaces.knows(
                cluster, item.group_resource, self._served(cluster, item, version)
            ):
                return False
        return True

    def _served(self, cluster: str, item: ObjectRef, version: str) -> str:
        """Return *version* if a workspace serves it, else its own preference."""
        served = self._workspaces.served(cluster, item.group_resource)
        return version if served is not None and version in served.versions else ""

    def malformed(self, mailbox: Mailbox) -> bool:
        """Tell whether a placement that goes to a mailbox cannot be understood."""
        return any(each.what is None for each in self._relations.placements_at(mailbox))

    def version(self, mailbox: Mailbox, resource: GroupResource) -> Agreement:
        """Return the version at which a type is written to a mailbox; empty when none is."""
        contributors = self._relations.contributors(mailbox)
        found = list(self._serving(resource, self._admitted(mailbox, contributors)))
        if not found:
            # Of what is only there because it is held, its own workspaces tell the version.
            found = list(self._serving(resource, contributors))
        if len(found) == 1:
            return Agreement(found[0].versions[0], shared=True)
        return agreed_version(found) if found else Agreement("", shared=True)

    def _serving(
        self, resource: GroupResource, contributors: Mapping[str, set[ObjectRef]]
    ) -> Iterator[ServedType]:
        for cluster, names in contributors.items():
            served = self._workspaces.served(cluster, resource)
            if served is not None and any(self._understood(name) for name in names):
                yield served

    def _admitted(
        self, mailbox: Mailbox, contributors: Mapping[str, set[ObjectRef]]
    ) -> Mapping[str, set[ObjectRef]]:
        """Return those of the placements that go to a mailbox which are granted anything."""
        if not self._is_enforced(mailbox):
            return contributors
        return {
            cluster: {name for name in names if self._rules(mailbox, name)}
            for cluster, names in contributors.items()
        }

    def _understood(self, name: ObjectRef) -> bool:
        placement = self._relations.get(name)
        return placement is not None and placement.what is not None

    # Objects.

    def placements(self, mailbox: Mailbox, item: ObjectRef) -> list[ObjectRef]:
        """Return whoever wants *item* in *mailbox* and may have it there."""
        return [name for _, _, names in self._granted(mailbox, item) for name in names]

    def resolve(self, mailbox: Mailbox, item: ObjectRef) -> Resolved:
        """Return what *item* is to be in *mailbox*."""
        if item == DEFAULT_NAMESPACE:
            return NOTHING
        wanted = list(self._wanted(mailbox, item))
        if not wanted:
            return NOTHING
        if not self._is_enforced(mailbox):
            return self._merged(mailbox, item, wanted)
        granted = list(self._permitted_of(mailbox, item, wanted))
        refused = _placements(wanted) - _placements(granted)
        if not granted:
            return Resolved(None, refused=tuple(sorted(refused)), frozen=True)
        found = self._merged(mailbox, item, granted)
        unnamed = self._named_in_vain(mailbox, item, granted)
        return replace(found, refused=tuple(sorted({*refused, *unnamed})), frozen=bool(unnamed))

    def _merged(self, mailbox: Mailbox, item: ObjectRef, wanted: list[Wanted]) -> Resolved:
        if item.group_resource == NAMESPACES:
            wanted = [
                (c, r, named)
                for c, r, names in wanted
                if (named := self._named_well(mailbox, c, item, names))
            ]
            if not wanted:
                bare = bare_namespace(item.name)
                return Resolved(digest(NAMESPACES, bare), lambda: bare)
        if self.withholds_denatured and category_of(item.group_resource) is Category.DENATURED:
            problem = withheld_kind(item)
            told = tuple(Told(name, problem) for _, _, names in wanted for name in names)
            return Resolved(None, told=told)
        if item.group_resource == BINDINGS and not self._first_of_its_export(mailbox, item):
            return NOTHING
        return self._resolved(mailbox, item, wanted)

    def _resolved(self, mailbox: Mailbox, item: ObjectRef, wanted: list[Wanted]) -> Resolved:
        if len(wanted) == 1 and not wanted[0][1].customized:
            record = wanted[0][1]
            return Resolved(record.proof, lambda: labelled(record.copy()))
        origins = [self._origin(mailbox, item, *each) for each in wanted]
        result = merged(item, origins, strict=self._strict)
        found = result.object
        if found is None:
            return Resolved(None, told=result.told)
        return Resolved(digest(item.group_resource, found), lambda: found, result.told)

    def _wanted(self, mailbox: Mailbox, item: ObjectRef) -> Iterator[Wanted]:
        """Yield each workspace whose *item* is wanted, with its record and by whom."""
        version = self.version(mailbox, item.group_resource).version
        for cluster in sorted(self._relations.contributors(mailbox)):
            at = self._served(cluster, item, version)
            record = self._workspaces.record(cluster, item, at)
            if record is None or not record.is_source:
                continue
            names = self._relations.wanting(mailbox, cluster, item)
            if item.group_resource in _DEFINING:
                needing = self._relations.needing(mailbox, cluster, item)
                names = sorted({*names, *needing})
            if names:
                yield cluster, record, names

    # Grants.

    def would_refuse(self, mailbox: Mailbox, item: ObjectRef) -> tuple[ObjectRef, ...]:
        """Return the placements that want *item* and would not get it if grants enforced."""
        if not self._consent.is_observed(mailbox.cluster):
            return ()
        wanted = list(self._wanted(mailbox, item))
        granted = self._permitted_of(mailbox, item, wanted)
        return tuple(sorted(_placements(wanted) - _placements(granted)))

    def is_admitted(self, mailbox: Mailbox, name: ObjectRef) -> bool:
        """Tell whether a placement is granted anything at a mailbox that has grants."""
        return bool(self._rules(mailbox, name))

    def _granted(self, mailbox: Mailbox, item: ObjectRef) -> Iterable[Wanted]:
        """Return each workspace whose *item* is wanted and let through."""
        wanted = self._wanted(mailbox, item)
        if not self._is_enforced(mailbox):
            return wanted
        return self._permitted_of(mailbox, item, wanted)

    def _permitted_of(
        self, mailbox: Mailbox, item: ObjectRef, wanted: Iterable[Wanted]
    ) -> Iterator[Wanted]:
        bare = item.group_resource == NAMESPACES
        for cluster, record, names in wanted:
            found = [name for name in names if self._ways(mailbox, item, name, bare=bare)]
            if found:
                yield cluster, record, found

    def _is_enforced(self, mailbox: Mailbox) -> bool:
        return self._consent.is_used and self._consent.is_enforced(mailbox.cluster)

    def _rules(self, mailbox: Mailbox, name: ObjectRef) -> list[Rule]:
        return [
            rule
            for location in self._locations(name, mailbox)
            for rule in self._consent.rules(name.cluster, location, mailbox)
        ]

    def _ways(
        self, mailbox: Mailbox, item: ObjectRef, name: ObjectRef, *, bare: bool = False
    ) -> tuple[ObjectRef, ...]:
        """Return by which Locations a placement's *item* may go to a mailbox that has grants."""
        locations = self._locations(name, mailbox)
        brought: list[Kind] = []
        if item.group_resource == BINDINGS:
            served = self._workspaces.types(name.cluster).served.values()
            brought = [
                (each.group_resource, each.namespaced) for each in served if each.definition == item
            ]
        return permitted(self._consent, name.cluster, mailbox, locations, item, brought, bare=bare)

    def _named_well(
        self, mailbox: Mailbox, cluster: str, item: ObjectRef, names: Iterable[ObjectRef]
    ) -> list[ObjectRef]:
        """Return the placements that name a Namespace and may."""
        named = self._named(cluster, item, names)
        if not self._is_enforced(mailbox):
            return named
        return [name for name in named if self._ways(mailbox, item, name)]

    def _named_in_vain(
        self, mailbox: Mailbox, item: ObjectRef, granted: Iterable[Wanted]
    ) -> set[ObjectRef]:
        """Return the placements that name a Namespace and only get one to hold copies."""
        if item.group_resource != NAMESPACES:
            return set()
        return {
            name
            for cluster, _, names in granted
            for name in self._named(cluster, item, names)
            if not self._ways(mailbox, item, name)
        }

    def _named(self, cluster: str, item: ObjectRef, names: Iterable[ObjectRef]) -> list[ObjectRef]:
        return sorted(set(names) & set(self._relations.naming(cluster, item)))

    def _origin(
        self,
        mailbox: Mailbox,
        item: ObjectRef,
        cluster: str,
        record: Record,
        names: list[ObjectRef],
    ) -> Origin:
        by = self._is_enforced(mailbox)
        ways = [
            Way(name, location)
            for name in names
            for location in (
                self._ways(mailbox, item, name) if by else self._locations(name, mailbox)
            )
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

    def _locations(self, name: ObjectRef, mailbox: Mailbox) -> tuple[ObjectRef, ...]:
        placement = self._relations.get(name)
        return () if placement is None else placement.where.get(mailbox, ())

    # Bindings.

    def _first_of_its_export(self, mailbox: Mailbox, item: ObjectRef) -> bool:
        """Tell whether *item* is the one of several bindings of an export that is made."""
        wanted = self._wanted_bindings(mailbox)
        mine = wanted[item][0]
        rivals = [
            (unnamed, other.name)
            for other, (reference, unnamed) in wanted.items()
            if reference == mine
        ]
        return min(rivals)[1] == item.name

    def _wanted_bindings(self, mailbox: Mailbox) -> dict[ObjectRef, tuple[tuple[str, str], bool]]:
        """Return every binding wanted in a mailbox: its export, and whether nobody named it."""
        found: dict[ObjectRef, tuple[tuple[str, str], bool]] = {}
        names = {
            record.name
            for cluster in self._relations.contributors(mailbox)
            for record in self._workspaces.bindings.within(cluster).values()
            if record.is_source
        }
        for item in (ObjectRef("", *BINDINGS, "", name) for name in names):
            wanted = list(self._granted(mailbox, item))
            if wanted:
                newest = max(wanted, key=lambda each: _newness(each[1]))[1]
                unnamed = not any(self._named(c, item, by) for c, _, by in wanted)
                found[item] = (binding_reference(orjson.loads(newest.lean or b"{}")), unnamed)
        return found

    def rivals(self, mailbox: Mailbox) -> list[ObjectRef]:
        """Return every binding that might be wanted in a mailbox."""
        return [
            ObjectRef("", *BINDINGS, "", record.name)
            for cluster in self._relations.contributors(mailbox)
            for record in self._workspaces.bindings.within(cluster).values()
            if record.is_source
        ]

    # What the syncer is told.

    def config_ready(self, mailbox: Mailbox) -> bool:
        clusters = self._relations.contributors(mailbox)
        known = all(map(self._workspaces.knows_everything, clusters))
        return known and self._consent.is_ready(mailbox)

    def config(self, mailbox: Mailbox) -> Config:
        """Return what the syncer of a mailbox is to be told."""
        contributors = self._relations.contributors(mailbox)
        if not contributors:
            return Config(None)
        placements = [each for each in self._relations.placements_at(mailbox) if each.what]
        spaces = {each.name: self._spaces(mailbox, each) for each in placements}
        namespaces = {name for found in spaces.values() for name in found}
        agreements = self._carried(mailbox, {p.name.cluster for p in placements if spaces[p.name]})
        objects: dict[GroupResource, tuple[str, list[str]]] = {}
        for item in self._cluster_scoped(mailbox):
            agreement = agreements.setdefault(
                item.group_resource, self.version(mailbox, item.group_resource)
            )
            objects.setdefault(item.group_resource, (agreement.version, []))[1].append(item.name)
        resources = {t: a.version for t, a in agreements.items() if t not in objects}
        upsync = [each for p in placements for each in self._upsync(mailbox, p)]
        told = tuple(self._disagreements(mailbox, agreements))
        return Config(config_spec(namespaces, resources, objects, upsync), told)

    def _spaces(self, mailbox: Mailbox, placement: Placement) -> set[str]:
        """Return the namespaces of a placement whose copies the syncer carries."""
        if not self._is_enforced(mailbox):
            return placement.namespaces
        return {
            name
            for name in placement.namespaces
            if self._ways(mailbox, namespace_ref(name), placement.name, bare=True)
            or self._stays(mailbox, namespace_ref(name))
        }

    def _upsync(self, mailbox: Mailbox, placement: Placement) -> Iterable[UpsyncSet]:
        """Return what a placement has come up, as far as grants let it."""
        sets = placement.what.upsync if placement.what is not None else ()
        if not sets or not self._is_enforced(mailbox):
            return sets
        return granted_upsync(sets, self._rules(mailbox, placement.name))

    def _carried(self, mailbox: Mailbox, clusters: Iterable[str]) -> dict[GroupResource, Agreement]:
        """Return the namespaced types carried to the edge, and at which version."""
        return {
            served.group_resource: self.version(mailbox, served.group_resource)
            for cluster in clusters
            for served in self._workspaces.types(cluster).served.values()
            if served.namespaced and category_of(served.group_resource).to_edge
        }

    def _cluster_scoped(self, mailbox: Mailbox) -> Iterator[ObjectRef]:
        """Yield the cluster-scoped objects in a mailbox that go on to the edge."""
        items = {item for each in self._relations.placements_at(mailbox) for item in each.named}
        for cluster in self._relations.contributors(mailbox):
            for record in self._workspaces.definitions.within(cluster).values():
                items.add(ObjectRef("", *DEFINITIONS, "", record.name))
        for item in items:
            if category_of(item.group_resource).to_edge and self._goes(mailbox, item):
                yield item

    def _goes(self, mailbox: Mailbox, item: ObjectRef) -> bool:
        if item.group_resource == NAMESPACES and item not in self._named_namespaces(mailbox):
            return False
        found = self.resolve(mailbox, item)
        if found.frozen:
            return self._stays(mailbox, item)
        return found.proof is not None

    def _named_namespaces(self, mailbox: Mailbox) -> set[ObjectRef]:
        return {
            item
            for each in self._relations.placements_at(mailbox)
            for item in each.named
            if item.group_resource == NAMESPACES and item.name in each.namespaces
        }

    def _disagreements(
        self, mailbox: Mailbox, agreements: dict[GroupResource, Agreement]
    ) -> Iterator[Told]:
        for resource, agreement in agreements.items():
            if agreement.shared:
                continue
            text = f"no version of {resource} is served by every workspace that places it; "
            problem = Problem(VERSIONS_DISAGREE, f"{text}{agreement.version} is used")
            for cluster, names in self._relations.contributors(mailbox).items():
                if self._workspaces.served(cluster, resource) is not None:
                    yield from (Told(name, problem) for name in sorted(names))


def _placements(wanted: Iterable[Wanted]) -> set[ObjectRef]:
    return {name for _, _, names in wanted for name in names}


def _newness(record: Record) -> tuple[int, tuple[int, ...]]:
    """Order records by what counts: the newest last, of equals the last cluster first."""
    version = int(record.resource_version) if record.resource_version.isdigit() else 0
    return version, tuple(-ord(char) for char in record.cluster)
