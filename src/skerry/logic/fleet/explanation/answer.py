"""The whole answer about one placement: its Locations, its objects, and every pair of them.

An answer has three parts, because people ask three things: is this edge a destination, is this
object meant, and how far does this object get on its way to that edge. The first two are rows; the
third is their product, and a chain of links for each pair that stops at the first that does not
hold. At 100 objects and 10,000 Locations that would be a million chains, so only pairs that pass
both of the first questions are followed, unless somebody asks about few.

``Facts`` is all that is read; nothing here asks a server. The functions are those by which the
controllers act, so what is explained is what is done. Where a fact could not be read the link is
unknown (None), which is neither yes nor no and is never rounded to one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import Any

from pyroaring import BitMap

from skerry.api.edge import Mailbox, is_projected
from skerry.api.edge_categories import Category, category_of
from skerry.api.objects import Object
from skerry.api.refs import ClusterName, ObjectRef
from skerry.logic.fleet.customization.customize import CustomizerName, customizer_name
from skerry.logic.fleet.explanation.links import Chain, Link, object_json
from skerry.logic.fleet.explanation.silence import Silence
from skerry.logic.fleet.explanation.standing import Standing
from skerry.logic.fleet.explanation.way import Copy, Sent, Surroundings, chosen, way
from skerry.logic.fleet.explanation.what import Subject, selections, travelling
from skerry.logic.fleet.placement.destination import DestinationTable
from skerry.logic.fleet.placement.explain import Explanation, explain
from skerry.logic.fleet.placement.grants import Rule
from skerry.logic.fleet.placement.records import Destination
from skerry.logic.fleet.translation.ownership import owned_of
from skerry.logic.fleet.translation.selected import What

# Of a workspace whose path its reader may not know.
UNNAMED = "?"


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything an explanation is made from, as read from the hub."""

    ref: ObjectRef
    what: What | None
    index: DestinationTable
    # Location objects, and where the placement is by its slices.
    locations: Mapping[ObjectRef, Object]
    standing: Standing
    # Mailbox workspaces by name, and why one could not be read.
    mailboxes: Mapping[str, Object]
    unreadable: Mapping[str, str]
    subjects: Sequence[Subject]
    customizers: Mapping[CustomizerName, Object]
    # What is in mailboxes, by mailbox and item; kinds on which edges report.
    copies: Mapping[tuple[str, ObjectRef], Object]
    has_status: Callable[[ObjectRef], bool]
    # Whether copies have no effect on the hub, whatever their kind; on a foreign one they have.
    copies_are_inert: bool = True
    # Since when edges have not been heard of, by UID; and paths of workspaces by cluster.
    silences: Mapping[str, Silence | None] = field(default_factory=dict)
    # What destinations are sent, where the placement has a Rollout, by SyncTarget UID.
    sent: Mapping[str, Sent] = field(default_factory=dict)
    paths: Mapping[ClusterName, str] = field(default_factory=dict)

    def path(self, cluster: ClusterName) -> str:
        return self.paths.get(cluster, UNNAMED)


@dataclass(frozen=True, slots=True)
class LocationAnswer:
    """Whether a Location is a destination, by any of its SyncTargets."""

    ref: ObjectRef
    where: Explanation
    link: Link
    workspace: str = UNNAMED
    # Of a placement with a Rollout.
    revision: int | None = None

    def as_json(self) -> dict[str, Any]:
        revision = {} if self.revision is None else {"revision": self.revision}
        return {
            "location": self.ref.name,
            "workspace": self.workspace,
            "destination": self.link.holds is True,
            **revision,
            "syncTargets": list(self.where.sync_targets) if self.where.selected else [],
            **_why(self.link),
        }


@dataclass(frozen=True, slots=True)
class ObjectAnswer:
    """Whether an object is meant: whether its kind travels, and then whether it is selected."""

    item: ObjectRef
    link: Link

    def as_json(self) -> dict[str, Any]:
        return {**_named(self.item), "selected": self.link.holds is True, **_why(self.link)}


@dataclass(frozen=True, slots=True)
class PairAnswer:
    """How far an object gets on the way to one destination."""

    item: ObjectRef
    ref: ObjectRef
    sync_target: str
    chain: Chain
    workspace: str = UNNAMED

    def as_json(self) -> dict[str, Any]:
        return {
            **_named(self.item),
            "location": self.ref.name,
            "workspace": self.workspace,
            "syncTarget": self.sync_target,
            **self.chain.as_json(),
        }


@dataclass(frozen=True, slots=True)
class Answer:
    """See the module's text."""

    ref: ObjectRef
    locations: tuple[LocationAnswer, ...]
    objects: tuple[ObjectAnswer, ...]
    pairs: tuple[PairAnswer, ...]
    workspace: str = UNNAMED

    def about(self, items: AbstractSet[ObjectRef]) -> Answer:
        """Return only what is about *items*."""
        return replace(
            self,
            objects=tuple(each for each in self.objects if each.item in items),
            pairs=tuple(each for each in self.pairs if each.item in items),
        )

    def as_json(self) -> dict[str, Any]:
        return {
            "placement": self.ref.name,
            "workspace": self.workspace,
            "locations": [each.as_json() for each in self.locations],
            "objects": [each.as_json() for each in self.objects],
            "pairs": [each.as_json() for each in self.pairs],
        }


def answer(facts: Facts, *, every_pair: bool = False) -> Answer:
    """Explain everything in *facts*.

    Pairs are those of selected objects and destinations; *every_pair* adds those that already
    fail at selection, for questions about few objects or few Locations.
    """
    # Where it is by its slices, since a strategy and grants treat that otherwise than newcomers.
    present = facts.standing.present
    locations: list[LocationAnswer] = []
    pairs: list[PairAnswer] = []
    meant = _meant(facts)
    objects = [ObjectAnswer(subject.item, link) for subject, link in meant]
    asked = [(subject, link) for subject, link in meant if every_pair or link.holds]
    for ref in sorted(facts.locations):
        where = explain(facts.index, ref=facts.ref, where=ref, present=present)
        ways = list(_ways(facts, ref, where))
        link = next((link for link in map(chosen, ways) if link.holds), chosen(ways[0]))
        revision = next((way.sent.number for way in ways if way.sent is not None), None)
        locations.append(LocationAnswer(ref, where, link, facts.path(ref.cluster), revision))
        if link.holds or every_pair:
            for around in ways:
                pairs += _pairs(facts, ref, around, asked)
    workspace = facts.path(facts.ref.cluster)
    return Answer(facts.ref, tuple(locations), tuple(objects), tuple(pairs), workspace)


def _meant(facts: Facts) -> list[tuple[Subject, Link]]:
    """Return each object with the first of category and selection that keeps it back."""
    found = zip(facts.subjects, selections(facts.what, facts.subjects), strict=True)
    return [
        (subject, link if (category := travelling(subject)).holds else category)
        for subject, link in found
    ]


def targets_at(index: DestinationTable, ref: ObjectRef, *, selected: bool) -> list[tuple[str, str]]:
    """Return names and UIDs of the SyncTargets a Location leads to, if it is *selected*."""
    number = index.inventory.location_number(ref)
    if number is None or not selected:
        return []
    return [(each.sync_target, each.uid) for each in index.inventory.destinations(number)]


def _ways(facts: Facts, ref: ObjectRef, where: Explanation) -> Iterator[Surroundings]:
    """Yield what lies on the way to each SyncTarget of a Location; one way if it has none.

    That one ends at the Location, so each row of the answer has a link that says why.
    """
    location = facts.locations[ref]
    targets = targets_at(facts.index, ref, selected=where.selected)
    for name, uid in targets:
        mailbox = Mailbox(ref.cluster, uid).workspace
        yield Surroundings(
            where,
            location,
            Destination(ref.cluster, ref.name, name, uid) in facts.standing.destinations,
            facts.mailboxes.get(mailbox),
            facts.unreadable.get(mailbox, ""),
            name,
            mailbox,
            *_grants(facts, ref),
            facts.silences.get(uid),
            facts.sent.get(uid),
        )
    if not targets:
        yield Surroundings(where, location, False, None)


def _grants(facts: Facts, ref: ObjectRef) -> tuple[tuple[Rule, ...] | None, str]:
    """Return what grants let the placement's workspace put at a Location, and who says so.

    None: no grant is needed there. Nothing: one is, and none admits the workspace.
    """
    consent, number = facts.index.consent, facts.index.inventory.location_number(ref)
    if number is None or not consent.is_enforced(number):
        return None, ""
    found = consent.admitting(facts.ref.cluster, number)
    rules = tuple(rule for grant in found for rule in grant.rules)
    return rules, ", ".join(consent.refusing_names(BitMap((number,))))


def _pairs(
    facts: Facts, ref: ObjectRef, around: Surroundings, asked: Sequence[tuple[Subject, Link]]
) -> Iterator[PairAnswer]:
    for subject, selection in asked:
        item = subject.item
        name = customizer_name(subject.object)
        customizer = None if name is None else facts.customizers.get(name)
        would_act = (
            not facts.copies_are_inert and category_of(item.group_resource) is Category.DENATURED
        )
        found = facts.copies.get((around.mailbox_name, item))
        copy = Copy(found, facts.has_status(item), would_act, _other_owner(facts, found))
        chain = way(selection, subject, customizer, around, copy)
        yield PairAnswer(item, ref, around.sync_target, chain, facts.path(ref.cluster))


def _other_owner(facts: Facts, found: Object | None) -> str | None:
    """Return the path of the workspace whose copy it is; None when it is the placement's own.

    Empty where the path of that workspace could not be read.
    """
    owned = None if found is None or not is_projected(found) else owned_of(found)
    if owned is None or owned.cluster == facts.ref.cluster:
        return None
    return facts.paths.get(owned.cluster, "")


def _why(link: Link) -> dict[str, Any]:
    """Return a link without what its row says already: which step it is, and whether it holds."""
    found = link.as_json()
    del found["step"], found["table"], found["holds"]
    return found


def _named(item: ObjectRef) -> dict[str, Any]:
    return {"object": object_json(item)}
