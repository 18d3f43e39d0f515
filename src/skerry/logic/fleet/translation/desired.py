"""The table ``desired``: what an object is to be in a mailbox.

A row follows from ``route`` (who sends it, by which Locations), ``sources`` (the objects), the
grants of the inventory workspace and the copy that is there, which records whose it is: customized,
and merged by ``ownership``. Like ``route`` it is virtual.
The common case is one workspace's object that needs no customization: then the digest that is
desired is the one its record carries, and no object is read or made unless it must be written.

``Desired.at`` gives the rows of one mailbox. What they have in common (who contributes, the agreed
versions, whether grants are enforced) is found once; so the result is for one evaluation and is
thrown away with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import orjson

from skerry.api.edge import Mailbox, binding_reference
from skerry.api.edge_categories import Category, category_of
from skerry.api.kinds import GroupResource
from skerry.api.objects import Object
from skerry.api.refs import ClusterName, ObjectRef
from skerry.logic.fleet.placement.grants import Rule
from skerry.logic.fleet.translation.categories import (
    BINDINGS,
    DEFAULT_NAMESPACE,
    DEFINITIONS,
    NAMESPACES,
)
from skerry.logic.fleet.translation.copies import bare_namespace, digest
from skerry.logic.fleet.translation.grants import Grants, Kind, permitted
from skerry.logic.fleet.translation.held import Revisions, UnreadError
from skerry.logic.fleet.translation.holders import Holders, Sent, asked_generation
from skerry.logic.fleet.translation.merging import (
    Copy,
    Origin,
    PlacementProblem,
    Surroundings,
    Way,
    merged,
    withheld_kind,
)
from skerry.logic.fleet.translation.route import Contributors, Locations, Route
from skerry.logic.fleet.translation.rows import NOTHING, DesiredRow, alone, taken
from skerry.logic.fleet.translation.sources import Record
from skerry.logic.fleet.translation.types import Agreement, ServedType, agreed_version
from skerry.logic.fleet.translation.workspaces import (
    Mailboxes,
    Scope,
    Workspaces,
    path_scope,
    selection_scope,
)

Lookup = Callable[[ClusterName, str, str], Object | None]
DEFINING = (BINDINGS, DEFINITIONS)


@dataclass(frozen=True, slots=True)
class Desired:
    """The table. ``stays`` tells whether a mailbox has a copy whose removal nobody confirmed.

    ``customizer`` and ``location`` look one up by cluster, namespace and name.
    """

    workspaces: Workspaces
    route: Route
    mailboxes: Mailboxes
    consent: Grants
    customizer: Lookup
    location: Lookup
    stays: Callable[[Mailbox, ObjectRef], bool]
    strict: bool = True
    # None: kinds that would act on the hub are withheld unless copies are inert on it.
    withhold_denatured: bool | None = None
    revisions: Revisions = field(default_factory=Revisions)

    def at(self, mailbox: Mailbox) -> DesiredThere:
        """Return the rows of one mailbox, as everything is now."""
        return DesiredThere(self, mailbox)

    @property
    def withholds_denatured(self) -> bool:
        if self.withhold_denatured is None:
            return not self.workspaces.copies_are_inert
        return self.withhold_denatured


class DesiredThere:
    """The rows of one mailbox."""

    def __init__(self, table: Desired, mailbox: Mailbox) -> None:
        self.mailbox = mailbox
        self.table = table
        self.route = table.route
        self.workspaces = table.workspaces
        self.contributors: Contributors = table.route.contributors(mailbox)
        consent = table.consent
        self.enforced = consent.is_used and consent.is_enforced(mailbox.cluster)
        self._versions: dict[GroupResource, Agreement] = {}
        self.holders = Holders(self._found)
        # What placements with a Rollout hold here; None when none does.
        self.held = table.revisions.at(mailbox, self.contributors)
        self._disagreeing: dict[ObjectRef, tuple[PlacementProblem, ...]] = {}

    # -- what must be known ------------------------------------------------------------------

    def scopes(self, item: ObjectRef) -> Iterator[Scope]:
        """Yield what must have been read so that the row of *item* means anything."""
        yield from self.table.consent.scopes(self.mailbox)
        kind = item.group_resource
        version = self.version(kind).version
        for cluster in self.contributors:
            if kind in DEFINING:
                yield from self.workspaces.all_scopes(cluster)
            else:
                yield from self.workspaces.scopes(cluster, kind, self._at(cluster, kind, version))

    @property
    def placements(self) -> Iterator[ObjectRef]:
        """Yield every placement that goes to the mailbox."""
        for placements in self.contributors.values():
            yield from placements

    def malformed(self) -> Iterator[ObjectRef]:
        """Yield the placements that cannot be understood; what they select is unknown."""
        return (each for each in self.placements if self.route.what(each) is None)

    # -- versions ----------------------------------------------------------------------------

    def version(self, kind: GroupResource) -> Agreement:
        """Return the version at which a kind is written to the mailbox; empty when none is."""
        found = self._versions.get(kind)
        if found is None:
            found = self._versions[kind] = self._agreed(kind)
        return found

    def _agreed(self, kind: GroupResource) -> Agreement:
        found = list(self._serving(kind, self._admitted))
        if not found:
            # Of what is only there because it is held, its own workspaces tell the version.
            found = list(self._serving(kind, self.contributors)) or self._served_here(kind)
        if len(found) == 1:
            return Agreement(found[0].versions[0], shared=True)
        return agreed_version(found) if found else Agreement("", shared=True)

    def _served_here(self, kind: GroupResource) -> list[ServedType]:
        """Return how the mailbox has a kind of which revisions hold what no workspace serves."""
        cluster = self.table.mailboxes.cluster(self.mailbox) if self.held is not None else None
        served = self.workspaces.served(cluster, kind) if cluster is not None else None
        return [served] if served is not None and served.versions else []

    def _serving(self, kind: GroupResource, contributors: Contributors) -> Iterator[ServedType]:
        for cluster, placements in contributors.items():
            served = self.workspaces.served(cluster, kind)
            if served is not None and any(self.route.what(each) for each in placements):
                yield served

    @cached_property
    def _admitted(self) -> Contributors:
        """Those of the placements which are granted anything."""
        if not self.enforced:
            return self.contributors
        return {
            cluster: tuple(each for each in placements if self.rules(each))
            for cluster, placements in self.contributors.items()
        }

    def _at(self, cluster: ClusterName, kind: GroupResource, version: str) -> str:
        """Return *version* if a workspace serves it, else nothing: its own preference."""
        served = self.workspaces.served(cluster, kind)
        return version if served is not None and version in served.versions else ""

    # -- what placements select --------------------------------------------------------------

    def namespaces(self, placement: ObjectRef) -> list[str]:
        """Return the Namespaces that a placement has here."""
        if self.held is not None and placement in self.held:
            manifest = self.held.manifests.get(placement)
            return [each.name for each in manifest.namespaces] if manifest is not None else []
        return self.route.namespaces(placement)

    def named(self, placement: ObjectRef) -> Iterable[ObjectRef]:
        """Return what a placement names, and what of a revision is in no namespace."""
        if self.held is not None and placement in self.held:
            return self.held.cluster_scoped(placement)
        return self.route.named(placement)

    # -- rows --------------------------------------------------------------------------------

    def row(self, item: ObjectRef) -> DesiredRow:
        """Return what *item* is to be."""
        if self.held is None:
            return self._row(item)
        try:
            found = self._row(item)
        except UnreadError as error:
            return DesiredRow(None, problems=error.problems, missing=error.scope)
        problems = self._disagreeing.get(item)
        return replace(found, problems=(*found.problems, *problems)) if problems else found

    def _row(self, item: ObjectRef) -> DesiredRow:
        if item == DEFAULT_NAMESPACE:
            return NOTHING
        sent = list(self._sent(item))
        if not sent:
            return NOTHING
        if not self.enforced:
            return self._recording(self._merged(item, sent), sent)
        granted = list(self._permitted(item, sent))
        refused = _placements(sent) - _placements(granted)
        if not granted:
            return DesiredRow(None, refused=tuple(sorted(refused)), frozen=True)
        unnamed = self._named_in_vain(item, granted)
        holder = self.holders.ungranted(item, sent, granted)
        if holder is not None and self.table.stays(self.mailbox, item):
            found = taken(item, holder.cluster, self.workspaces.path(holder.cluster), granted)
        else:
            holder, found = None, self._recording(self._merged(item, granted), granted)
        frozen = bool(unnamed) or holder is not None
        return replace(found, refused=tuple(sorted({*refused, *unnamed})), frozen=frozen)

    def senders(self, item: ObjectRef) -> list[ObjectRef]:
        """Return whoever sends *item* and may: the placements of its owner."""
        try:
            sent = list(self._granted(item))
        except UnreadError:
            return []  # nothing is sent before it has been read
        if item.group_resource != NAMESPACES and len(sent) > 1:
            sent = [self.holders.owning(item, sent)]
        return [each for one in sent for each in one.placements]

    def keeps(self, item: ObjectRef) -> bool:
        """Tell whether a source that is sent here no more, being the system's, is still placed."""
        sources = ((each, self.workspaces.record(each, item)) for each in self.contributors)
        return any(
            record is not None
            and record.system
            and not record.being_deleted
            and self.route.placements_of(self.mailbox, cluster, item)
            for cluster, record in sources
        )

    def _recording(self, row: DesiredRow, sent: list[Sent]) -> DesiredRow:
        """Return *row* with the generation of its source, if a placement of its owner asks so."""
        generation = asked_generation(sent, row.owned, self._aggregating)
        return replace(row, generation=generation) if generation else row

    @cached_property
    def _aggregating(self) -> frozenset[ObjectRef]:
        """The placements that ask for it."""
        whats = ((each, self.route.what(each)) for each in self.placements)
        return frozenset(each for each, what in whats if what is not None and what.aggregates)

    def _merged(self, item: ObjectRef, sent: list[Sent]) -> DesiredRow:
        kind = item.group_resource
        if kind == NAMESPACES:
            sent = [
                each._replace(placements=named)
                for each in sent
                if (named := self._named_well(each.cluster, item, each.placements))
            ]
            if not sent:
                bare = bare_namespace(item.name)
                return DesiredRow(digest(NAMESPACES, bare), lambda: bare)
        if self.table.withholds_denatured and category_of(kind) is Category.DENATURED:
            problem = withheld_kind(item)
            problems = tuple(PlacementProblem(p, problem) for each in sent for p in each.placements)
            return DesiredRow(None, problems=problems)
        if kind == BINDINGS and not self._is_first_of_its_export(item):
            return NOTHING
        if len(sent) == 1 and not sent[0].record.customized and not self._unknown:
            return alone(sent[0])
        there, unknown = self.holders.copy(item), self._unknown_for(item)
        around = Surroundings(
            None if there is None else Copy(there.content, there.owned),
            self.workspaces.path,
            unknown,
            self.table.strict,
        )
        result = merged(item, [self._origin(item, each) for each in sent], around)
        if result.unread is not None:
            return DesiredRow(None, missing=path_scope(result.unread))
        found, owned, contested = result.object, result.owned, len(sent) > 1
        if found is not None:
            proof = digest(kind, found)
            return DesiredRow(proof, lambda: found, result.problems, (), False, owned, contested)
        if result.stays and there is not None:
            waits = unknown.get(owned.cluster) if owned else next(iter(unknown.values()))
            return DesiredRow(there.digest, problems=result.problems, stays=waits)
        return DesiredRow(None, problems=result.problems)

    # -- owners ------------------------------------------------------------------------------

    def _found(self, item: ObjectRef) -> Record | None:
        """Return what the mailbox has under the name of *item*."""
        cluster = self.table.mailboxes.cluster(self.mailbox)
        if cluster is None:
            return None
        kind = item.group_resource
        return self.workspaces.record(
            cluster, item, self._at(cluster, kind, self.version(kind).version)
        )

    @cached_property
    def _unknown(self) -> Mapping[ClusterName, Scope]:
        """Workspaces of which nobody knows what they place, and what has to be corrected."""
        return {each.cluster: selection_scope(each) for each in self.malformed()}

    def _unknown_for(self, item: ObjectRef) -> Mapping[ClusterName, Scope]:
        """Return those of them that have *item*, so that it may be theirs."""
        kind = item.group_resource
        version = self.version(kind).version if self._unknown else ""
        records = (
            (cluster, self.workspaces.record(cluster, item, self._at(cluster, kind, version)))
            for cluster in self._unknown
        )
        return {
            cluster: self._unknown[cluster]
            for cluster, record in records
            if record is not None and record.is_source
        }

    def _sent(self, item: ObjectRef) -> Iterator[Sent]:
        """Yield each workspace whose *item* is sent here, with its record and by whom."""
        kind = item.group_resource
        version = self.version(kind).version
        for cluster, contributing in self.contributors.items():
            record = self.workspaces.record(cluster, item, self._at(cluster, kind, version))
            if record is not None and not record.is_source:
                record = None
            placements = self._sending(cluster, item, contributing) if record is not None else []
            resolved = None
            if self.held is not None:
                there = self.holders.copy(item) if self.held.missing else None
                resolved = self.held.resolved(cluster, item, record, placements, there)
            if resolved is not None:
                self._disagreeing[item] = resolved.problems
                yield Sent(cluster, resolved.record, resolved.placements, resolved.manifest)
            elif placements and record is not None:
                yield Sent(cluster, record, placements)

    def _sending(
        self, cluster: ClusterName, item: ObjectRef, contributing: Iterable[ObjectRef]
    ) -> list[ObjectRef]:
        """Return the placements that send what a workspace has now."""
        held = self.held
        placements = self.route.placements_of(self.mailbox, cluster, item)
        if item.group_resource in DEFINING:
            needing = self.route.needing(contributing, cluster, item)
            placements = sorted({*placements, *needing})
        return placements if held is None else [each for each in placements if each not in held]

    def _origin(self, item: ObjectRef, sent: Sent) -> Origin:
        record = sent.record
        ways = [
            Way(placement, location)
            for placement in sent.placements
            for location in (
                self.ways(item, placement)
                if self.enforced
                else self.route.locations(placement, self.mailbox)
            )
        ]
        customizer = None
        if record.customizer is not None:
            customizer = self.table.customizer(sent.cluster, *record.customizer)
            if sent.manifest is not None and self.held is not None:
                holding = (sent.manifest, sent.placements)
                customizer = self.held.customizer(
                    sent.cluster, holding, record.customizer, customizer
                )
        locations = sorted({way.location for way in ways})
        known = [(each, self.table.location(each.cluster, "", each.name)) for each in locations]
        return Origin(
            sent.claim,
            record.copy(),
            tuple(sorted(ways)),
            customizer,
            tuple((each, found) for each, found in known if found is not None),
        )

    # -- grants ------------------------------------------------------------------------------

    def would_refuse(self, item: ObjectRef) -> tuple[ObjectRef, ...]:
        """Return the placements that send *item* and could not if grants enforced."""
        if not self.table.consent.is_observed(self.mailbox.cluster):
            return ()
        sent = list(self._sent(item))
        granted = self._permitted(item, sent)
        return tuple(sorted(_placements(sent) - _placements(granted)))

    def rules(self, placement: ObjectRef) -> list[Rule]:
        """Return what a placement is granted at a mailbox that has grants."""
        return [
            rule
            for location in self.route.locations(placement, self.mailbox)
            for rule in self.table.consent.rules(placement.cluster, location, self.mailbox)
        ]

    def _granted(self, item: ObjectRef) -> Iterable[Sent]:
        """Return each workspace whose *item* is sent and let through."""
        sent = self._sent(item)
        return self._permitted(item, sent) if self.enforced else sent

    def _permitted(self, item: ObjectRef, sent: Iterable[Sent]) -> Iterator[Sent]:
        bare = item.group_resource == NAMESPACES
        for each in sent:
            found = [p for p in each.placements if self.ways(item, p, bare=bare)]
            if found:
                yield each._replace(placements=found)

    def ways(self, item: ObjectRef, placement: ObjectRef, *, bare: bool = False) -> Locations:
        """Return by which Locations a placement's *item* may go to a mailbox that has grants."""
        locations = self.route.locations(placement, self.mailbox)
        brought: list[Kind] = []
        if item.group_resource == BINDINGS:
            served = self.workspaces.types(placement.cluster).served.values()
            brought = [(s.group_resource, s.namespaced) for s in served if s.definition == item]
        return permitted(
            self.table.consent,
            placement.cluster,
            self.mailbox,
            locations,
            item,
            brought,
            bare=bare,
        )

    def _named_well(
        self, cluster: ClusterName, item: ObjectRef, placements: Iterable[ObjectRef]
    ) -> list[ObjectRef]:
        """Return the placements that name a Namespace and may."""
        named = self._named(cluster, item, placements)
        return [each for each in named if self.ways(item, each)] if self.enforced else named

    def _named_in_vain(self, item: ObjectRef, granted: Iterable[Sent]) -> set[ObjectRef]:
        """Return the placements that name a Namespace and only get one to hold copies."""
        if item.group_resource != NAMESPACES:
            return set()
        return {
            placement
            for each in granted
            for placement in self._named(each.cluster, item, each.placements)
            if not self.ways(item, placement)
        }

    def _named(
        self, cluster: ClusterName, item: ObjectRef, placements: Iterable[ObjectRef]
    ) -> list[ObjectRef]:
        named, held = self.route.naming(cluster, item), self.held
        if held is None:
            return sorted(set(placements).intersection(named))
        return sorted(
            each
            for each in set(placements)
            if (held.names(each, item) if each in held else each in named)
        )

    # -- bindings ----------------------------------------------------------------------------

    def bindings(self) -> set[ObjectRef]:
        """Return every binding that might be desired: which of them is depends on all others."""
        records = self.workspaces.bindings
        return {
            records.ref(record)
            for cluster in self.contributors
            for record in records.within(cluster).values()
            if record.is_source
        }

    def _is_first_of_its_export(self, item: ObjectRef) -> bool:
        """Tell whether *item* is the one of several bindings of an export that is made."""
        mine = self._sent_bindings[item][0]
        rivals = [
            (unnamed, other.name)
            for other, (reference, unnamed) in self._sent_bindings.items()
            if reference == mine
        ]
        return min(rivals)[1] == item.name

    @cached_property
    def _sent_bindings(self) -> Mapping[ObjectRef, tuple[tuple[str, str], bool]]:
        """Every binding that is sent here: its export, and whether nobody named it."""
        found: dict[ObjectRef, tuple[tuple[str, str], bool]] = {}
        for item in self.bindings():
            sent = list(self._granted(item))
            if sent:
                lean = self.holders.owning(item, sent).record.lean
                unnamed = not any(self._named(s.cluster, item, s.placements) for s in sent)
                found[item] = (binding_reference(orjson.loads(lean or b"{}")), unnamed)
        return found


def _placements(sent: Iterable[Sent]) -> set[ObjectRef]:
    return {placement for each in sent for placement in each.placements}
