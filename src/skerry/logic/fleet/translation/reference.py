"""The whole of translation as one plain function: from all sources to all mailboxes.

Nothing here is incremental or clever. It reads everything, every time; the controller, which does
neither, must arrive at the same. Explaining and what-if questions can be answered with it too.

It is the specification that tests compare with, after every event of a simulation. So it shares the
rules with the controller (what is selected, how objects are customized and merged, who owns a name)
and none of its structure: no tables, no marks, no completeness. Whoever changes a rule changes it
for both; whoever makes the controller faster changes nothing here. Where the two differ, it is this
one that is right, unless the rule itself is wrong.

Everything counts as read. While the controller waits for a scope, the mailbox may have more than
this says, and never less: what is unknown is kept.

It takes what is in mailboxes already as an input (``copies``), because three rules look at it. A
copy records whose it is, and keeps its owner while others are older. A copy whose owner lost its
grant keeps its name from those who have one, until its removal is confirmed. And a copy of which
nobody knows whether its owner still places it stays. Without copies the result is what a first
translation makes; with its own result as copies it must come to the same, which a test checks.

The steps: ``_place`` notes who wants which object where; ``_chosen`` leaves one binding of several;
``_merged`` makes one object of each or none and problems; ``_config`` names for the syncer what is
left; ``_frozen`` says which copies are not to be touched.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from skerry.api.edge import (
    Mailbox,
    binding_reference,
    is_projected,
    location_ref,
)
from skerry.api.edge_categories import Category, category_of
from skerry.api.kinds import GroupResource
from skerry.api.objects import Object
from skerry.api.refs import ObjectRef, namespace_ref
from skerry.logic.fleet.customization.customize import (
    CustomizerName,
    Problem,
    customizer_name,
)
from skerry.logic.fleet.placement.grants import Rule
from skerry.logic.fleet.revision.manifest import Manifest, RevisionItem, customizer_ref
from skerry.logic.fleet.revision.objects import read_page
from skerry.logic.fleet.revision.table import RevisionTable
from skerry.logic.fleet.translation.categories import (
    BINDINGS,
    DEFAULT_NAMESPACE,
    DEFINITIONS,
    NAMESPACES,
    is_never_copied,
)
from skerry.logic.fleet.translation.configs import EMPTY_SPEC, config_spec
from skerry.logic.fleet.translation.copies import bare_namespace, copied
from skerry.logic.fleet.translation.grants import Consent, granted_upsync, permitted
from skerry.logic.fleet.translation.held import bare_digest
from skerry.logic.fleet.translation.merging import (
    Merged,
    Origin,
    PlacementProblem,
    Surroundings,
    Way,
    merged,
    name_taken,
    withheld_kind,
)
from skerry.logic.fleet.translation.ownership import Claim, claim_of, first
from skerry.logic.fleet.translation.reference_inputs import (
    Placed,
    Sources,
    definition_of,
    key_of,
    labels_of,
    placed_in,
    types_in,
)
from skerry.logic.fleet.translation.selected import UpsyncSet, What
from skerry.logic.fleet.translation.types import (
    ServedType,
    WorkspaceTypes,
    agreed_version,
)


@dataclass(frozen=True)
class Translation:
    """What is to be in each mailbox, each SyncerConfig, and the problems of each placement.

    ``held`` are the mailboxes of placements whose choice is malformed, or whose revision is not
    there: what is in them already stays until that is known.
    """

    contents: dict[Mailbox, dict[ObjectRef, Object]]
    configs: dict[Mailbox, Object]
    problems: dict[ObjectRef, set[tuple[Mailbox, Problem]]]
    held: frozenset[Mailbox]
    # By mailbox, what is not granted, or whose owner is not known: a copy that is there stays.
    frozen: dict[Mailbox, set[ObjectRef]] = field(default_factory=dict)


class _Held(NamedTuple):
    """An object of a revision, of those of a workspace the oldest first."""

    age: int
    placement: ObjectRef
    entry: RevisionItem
    manifest: Manifest


@dataclass
class _Wanted:
    """Who wants one object in one mailbox; ``named`` are those who asked for it by name."""

    ways: dict[str, set[Way]] = field(default_factory=dict)
    named: dict[str, set[Way]] = field(default_factory=dict)
    # By workspace, what revisions say that it is.
    held: dict[str, list[_Held]] = field(default_factory=dict)


@dataclass
class _Mailbox:
    name: Mailbox
    wanted: dict[ObjectRef, _Wanted] = field(default_factory=dict)
    # What is wanted and not granted, by whose workspaces; and whether by name.
    refused: dict[ObjectRef, set[str]] = field(default_factory=dict)
    named_in_vain: set[ObjectRef] = field(default_factory=set)
    placements: list[Placed] = field(default_factory=list)
    withheld: list[tuple[ObjectRef, ObjectRef]] = field(default_factory=list)
    # Whose owner is not known, or whose owner's object cannot be sent: the copy stays.
    stays: set[ObjectRef] = field(default_factory=set)


def reference(sources: Sources) -> Translation:
    """Return what follows from *sources*."""
    return _Reference(sources).translation()


class _Reference:
    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self._placed = list(placed_in(sources))
        clusters = {placed.name.cluster for placed in self._placed}
        self._types = {cluster: types_in(sources, cluster) for cluster in clusters}
        self._customizers = {key_of(obj): obj for obj in sources.customizers}
        self._locations = {
            location_ref(key_of(obj)[0], key_of(obj)[2]): obj for obj in sources.locations
        }
        self._mailboxes: dict[Mailbox, _Mailbox] = {}
        self._held: set[Mailbox] = set()
        self._revisions = RevisionTable()
        for obj in sources.revisions:
            self._revisions.put(key_of(obj)[0], read_page(obj))

    def translation(self) -> Translation:
        """Go through all placements first: whose a name is depends on everybody who wants it."""
        for placed in self._placed:
            for target, locations in placed.where.items():
                mailbox = self._mailboxes.setdefault(target, _Mailbox(target))
                self._place(placed, mailbox, locations)
                if placed.what is None and target not in placed.revisions:
                    self._held.add(target)
        contents: dict[Mailbox, dict[ObjectRef, Object]] = {}
        problems: dict[ObjectRef, set[tuple[Mailbox, Problem]]] = {}
        configs: dict[Mailbox, Object] = {}
        for name, mailbox in self._mailboxes.items():
            found = {item: self._merged(mailbox, item) for item in self._chosen(mailbox)}
            mailbox.stays.update(item for item, result in found.items() if result.stays)
            contents[name] = {i: m.object for i, m in found.items() if m.object is not None}
            configs[name] = self._config(mailbox, contents[name])
            every = [each for result in found.values() for each in result.problems]
            for each in [*every, *_withheld(mailbox)]:
                problems.setdefault(each.placement, set()).add((name, each.problem))
        frozen = {name: self._frozen(mailbox) for name, mailbox in self._mailboxes.items()}
        return Translation(contents, configs, problems, frozenset(self._held), frozen)

    def _frozen(self, mailbox: _Mailbox) -> set[ObjectRef]:
        """Return what stays as it is if it is there; a Namespace named in vain goes, but bare."""
        refused = {
            item
            for item in mailbox.refused
            if item not in mailbox.wanted or self._holder(mailbox, item) is not None
        }
        return refused | (mailbox.named_in_vain & mailbox.wanted.keys()) | mailbox.stays

    def _holder(self, mailbox: _Mailbox, item: ObjectRef) -> str | None:
        """Return the workspace without a grant whose copy is still there, others or not."""
        there = self._sources.copies.get(mailbox.name, {}).get(item)
        if there is None or there.owned is None or item.group_resource == NAMESPACES:
            return None
        cluster = there.owned.cluster
        granted = mailbox.wanted[item].ways if item in mailbox.wanted else {}
        refused = cluster in mailbox.refused.get(item, ()) and cluster not in granted
        return cluster if refused else None

    # What a placement wants in one mailbox.

    def _place(self, placed: Placed, mailbox: _Mailbox, locations: tuple[ObjectRef, ...]) -> None:
        """Note what a placement wants here, and what of that it may not have.

        Of a Namespace that is two questions: to hold copies, and to have its labels.
        """
        mailbox.placements.append(placed)
        if placed.what is None and mailbox.name not in placed.revisions:
            return
        for item, by_name, held in self._wanted(placed, mailbox):
            cluster = placed.name.cluster
            ways = self._ways(
                placed, mailbox, item, locations, bare=item.group_resource == NAMESPACES
            )
            named = self._ways(placed, mailbox, item, locations) if by_name else set()
            if by_name and not named:
                mailbox.named_in_vain.add(item)
            if not ways:
                mailbox.refused.setdefault(item, set()).add(cluster)
                continue
            category = category_of(item.group_resource)
            if self._sources.withhold_denatured and category is Category.DENATURED:
                mailbox.withheld.append((item, placed.name))
                continue
            wanted = mailbox.wanted.setdefault(item, _Wanted())
            wanted.ways.setdefault(cluster, set()).update(ways)
            if named:
                wanted.named.setdefault(cluster, set()).update(named)
            if held is not None and (by_name or item.group_resource != NAMESPACES):
                wanted.held.setdefault(cluster, []).append(held)

    def _wanted(
        self, placed: Placed, mailbox: _Mailbox
    ) -> Iterator[tuple[ObjectRef, bool, _Held | None]]:
        """Yield what a placement wants in a mailbox, whether by name, and by which revision."""
        number = placed.revisions.get(mailbox.name)
        if number is None:
            cluster = placed.name.cluster
            if placed.what is not None:
                for item, by_name in self._selected(placed.what, cluster, self._types[cluster]):
                    yield item, by_name, None
            return
        manifest = self._revisions.manifest(placed.name, number)
        if manifest is None:
            self._held.add(mailbox.name)
            return
        for entry in manifest.items:
            item, version = entry.item, entry.resource_version
            held = _Held(int(version or 0), placed.name, entry, manifest)
            bare = item.group_resource == NAMESPACES and entry.digest == bare_digest(item)
            yield item, not item.namespace and not bare, held

    def _ways(
        self,
        placed: Placed,
        mailbox: _Mailbox,
        item: ObjectRef,
        locations: tuple[ObjectRef, ...],
        *,
        bare: bool = False,
    ) -> set[Way]:
        """Return by which Locations an object may go to a mailbox."""
        consent, cluster = self._enforced(mailbox), placed.name.cluster
        if consent is not None:
            served = self._types[cluster].served.values()
            brought = [
                (each.group_resource, each.namespaced) for each in served if each.definition == item
            ]
            locations = permitted(
                consent, cluster, mailbox.name, locations, item, brought, bare=bare
            )
        return {Way(placed.name, location) for location in locations}

    def _enforced(self, mailbox: _Mailbox) -> Consent | None:
        """Return the grants that decide here; None: whoever places needs none."""
        consent = self._sources.consent
        enforced = consent is not None and consent.is_enforced(mailbox.name.cluster)
        return consent if enforced else None

    def _rules(self, mailbox: _Mailbox, placed: Placed) -> list[Rule] | None:
        """Return what a placement may place in a mailbox; None means everything."""
        consent, cluster = self._enforced(mailbox), placed.name.cluster
        if consent is None:
            return None
        locations = placed.where[mailbox.name]
        return [
            rule
            for location in locations
            for rule in consent.rules(cluster, location, mailbox.name)
        ]

    def _selected(
        self, what: What, cluster: str, types: WorkspaceTypes
    ) -> Iterator[tuple[ObjectRef, bool]]:
        """Yield every object that is meant, and whether it was named."""
        chosen = {
            obj["metadata"]["name"]: what.names(ObjectRef.local(NAMESPACES, obj), labels_of(obj))
            for obj in self._objects(cluster, NAMESPACES)
            if what.namespaces.matches(labels_of(obj))
        }
        for name, by_name in chosen.items():
            yield namespace_ref(name), by_name
        needed: set[ObjectRef] = set()
        for served in types.served.values():
            if not served.travels or served.group_resource == NAMESPACES:
                continue
            if any(each.covers(*served.group_resource) for each in what.upsync):
                needed.update(definition_of(served))
            for obj in self._objects(cluster, served.group_resource):
                item = ObjectRef.local(served.group_resource, obj)
                meant = (
                    item.namespace in chosen
                    if served.namespaced
                    else what.names(item, labels_of(obj))
                )
                if meant:
                    yield item, not served.namespaced
                    needed.update(definition_of(served))
        present = {
            ObjectRef.local(gr, obj)
            for gr in (BINDINGS, DEFINITIONS)
            for obj in self._objects(cluster, gr)
        }
        for item in needed & present:
            yield item, False

    def _objects(self, cluster: str, resource: GroupResource) -> Iterator[Object]:
        """Yield the objects that may travel: not the system's, not on their way out, no copies."""
        for obj in self._sources.objects.get(cluster, {}).get(resource, ()):
            own = is_never_copied(resource, obj) or is_projected(obj)
            if not own and "deletionTimestamp" not in obj["metadata"]:
                yield obj

    # What becomes of it.

    def _chosen(self, mailbox: _Mailbox) -> Iterator[ObjectRef]:
        """Yield what is wanted, but of several bindings of one export only the first."""
        best: dict[tuple[str, str], tuple[bool, str]] = {}
        references = {}
        for item, wanted in mailbox.wanted.items():
            if item.group_resource == BINDINGS:
                references[item] = binding_reference(self._owning(mailbox, item, wanted).copy)
                # One that somebody named comes before those that only go along.
                rank = (not wanted.named, item.name)
                best[references[item]] = min(rank, best.get(references[item], rank))
        for item in mailbox.wanted:
            if item == DEFAULT_NAMESPACE or (
                item in references and best[references[item]][1] != item.name
            ):
                continue
            yield item

    def _owning(self, mailbox: _Mailbox, item: ObjectRef, wanted: _Wanted) -> Origin:
        """Return whose binding it will be, which decides of which export it is."""
        found = self._origins(item, wanted.ways, wanted.held)
        origins = {origin.cluster: origin for origin in found}
        there = self._sources.copies.get(mailbox.name, {}).get(item)
        if there is not None and there.owned is not None and there.owned.cluster in origins:
            return origins[there.owned.cluster]
        return origins[first(origin.claim for origin in origins.values()).cluster]

    def _merged(self, mailbox: _Mailbox, item: ObjectRef) -> Merged:
        wanted = mailbox.wanted[item]
        ways = wanted.ways
        if item.group_resource == NAMESPACES:
            if not wanted.named:
                return Merged(bare_namespace(item.name))
            ways = wanted.named
        origins = self._origins(item, ways, wanted.held)
        holder = self._holder(mailbox, item)
        if holder is not None:
            problem = name_taken(item, self._sources.path(holder))
            placements = {way.placement for found in ways.values() for way in found}
            return Merged(None, tuple(PlacementProblem(each, problem) for each in placements))
        around = Surroundings(
            self._sources.copies.get(mailbox.name, {}).get(item),
            self._sources.path,
            self._unknown(mailbox, item),
            self._sources.strict,
        )
        return merged(item, origins, around)

    def _unknown(self, mailbox: _Mailbox, item: ObjectRef) -> set[str]:
        """Return the workspaces that have *item* and of which nobody knows what they place."""
        malformed = {
            placed.name.cluster
            for placed in mailbox.placements
            if placed.what is None and mailbox.name not in placed.revisions
        }
        return {
            cluster
            for cluster in malformed
            for obj in self._objects(cluster, item.group_resource)
            if ObjectRef.local(item.group_resource, obj) == item
        }

    def _origins(
        self, item: ObjectRef, ways: Mapping[str, set[Way]], held: Mapping[str, list[_Held]]
    ) -> list[Origin]:
        return [
            self._origin(item, cluster, found, held.get(cluster, []))
            for cluster, found in ways.items()
        ]

    def _origin(self, item: ObjectRef, cluster: str, ways: set[Way], held: list[_Held]) -> Origin:
        """Return what a workspace sends: the oldest that a revision holds, else what is there now.

        Since when it claims the name follows from the object that is there now: no revision has it.
        """
        live = (
            obj
            for obj in self._objects(cluster, item.group_resource)
            if ObjectRef.local(item.group_resource, obj) == item
        )
        source = next(live, None)
        oldest = min(held, key=lambda each: each[:2], default=None)
        if oldest is not None:
            copy = self._sources.contents[cluster, oldest.entry.digest]
        else:
            copy = copied(item.group_resource, source or {})
        name = customizer_name(copy)
        locations = sorted({way.location for way in ways})
        return Origin(
            claim_of(cluster, source) if source is not None else Claim(cluster),
            copy,
            tuple(sorted(ways)),
            self._customizer(cluster, name, oldest) if name else None,
            tuple((one, self._locations[one]) for one in locations if one in self._locations),
        )

    def _customizer(self, cluster: str, name: CustomizerName, held: _Held | None) -> Object | None:
        """Return a Customizer; with a revision its own, even if the workspace has one since."""
        if held is None:
            return self._customizers.get((cluster, *name))
        entry = held.manifest.by_item.get(customizer_ref(*name))
        return None if entry is None else self._sources.contents[cluster, entry.digest]

    def _config(self, mailbox: _Mailbox, contents: Mapping[ObjectRef, Object]) -> Object:
        """Return the spec; whoever has a Namespace here brings all namespaced types that travel."""
        if not mailbox.placements:
            return dict(EMPTY_SPEC)
        resources: dict[GroupResource, str] = {}
        objects: dict[GroupResource, tuple[str, list[str]]] = {}
        namespaces = {i: w for i, w in mailbox.wanted.items() if i.group_resource == NAMESPACES}
        clusters = {cluster for wanted in namespaces.values() for cluster in wanted.ways}
        frozen = self._frozen(mailbox) & self._sources.copies.get(mailbox.name, {}).keys()
        kept = {
            item: found
            for item, found in mailbox.refused.items()
            if item.group_resource == NAMESPACES
            and item in self._sources.copies.get(mailbox.name, ())
        }
        for cluster in clusters.union(*kept.values()):
            for served in self._types[cluster].served.values():
                if served.namespaced and category_of(served.group_resource).to_edge:
                    resources[served.group_resource] = self._version(mailbox, served.group_resource)
        for item in contents.keys() | frozen:
            bare = item.group_resource == NAMESPACES and not self._is_named(mailbox, item)
            if item.namespace or bare or not category_of(item.group_resource).to_edge:
                continue
            version = self._version(mailbox, item.group_resource)
            objects.setdefault(item.group_resource, (version, []))[1].append(item.name)
        upsync = [each for p in mailbox.placements for each in self._upsync(mailbox, p)]
        names = (item.name for item in (*namespaces, *kept))
        return config_spec(names, resources, objects, upsync)

    def _is_named(self, mailbox: _Mailbox, item: ObjectRef) -> bool:
        wanted = mailbox.wanted.get(item)
        return item in mailbox.named_in_vain or (wanted is not None and bool(wanted.named))

    def _upsync(self, mailbox: _Mailbox, placed: Placed) -> Iterable[UpsyncSet]:
        sets, rules = placed.what.upsync if placed.what else (), self._rules(mailbox, placed)
        return sets if rules is None else granted_upsync(sets, rules)

    def _version(self, mailbox: _Mailbox, resource: GroupResource) -> str:
        """Return the version agreed on by those who may place something; by all if nobody may."""
        understood = [placed for placed in mailbox.placements if placed.what]
        admitted = [placed for placed in understood if self._rules(mailbox, placed) != []]
        found = (
            list(self._serving(admitted, resource))
            or list(self._serving(understood, resource))
            # Where no placement is understood, what revisions hold goes on all the same.
            or list(self._serving(mailbox.placements, resource))
        )
        return agreed_version(found).version if found else ""

    def _serving(self, placements: list[Placed], resource: GroupResource) -> Iterator[ServedType]:
        for cluster in sorted({placed.name.cluster for placed in placements}):
            served = self._types[cluster].served.get(resource)
            if served is not None:
                yield served


def _withheld(mailbox: _Mailbox) -> Iterator[PlacementProblem]:
    for item, placement in mailbox.withheld:
        yield PlacementProblem(placement, withheld_kind(item))
