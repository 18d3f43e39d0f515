"""Answers about the placements of a workspace, as ``kubectl`` would use it, or of all of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from skerry.api.edge import (
    EDGE_PLACEMENTS,
    PLACEMENT_REVISIONS,
    Mailbox,
    is_projected,
    sync_target_ref,
)
from skerry.api.errors import NotFound
from skerry.api.kcp.resources import API_BINDINGS
from skerry.api.objects import Object
from skerry.api.refs import ClusterName, ObjectRef
from skerry.app.explain_names import Unanswered, kinds_with_status
from skerry.app.hub_reading import FleetInventory, HubReader
from skerry.controllers.placement_translator.settings import copies_are_inert
from skerry.logic.fleet.explanation.answer import Answer, Facts, answer, targets_at
from skerry.logic.fleet.explanation.changes import what_or_none
from skerry.logic.fleet.explanation.problems import PlacementProblem, problems
from skerry.logic.fleet.explanation.silence import Silence, silence
from skerry.logic.fleet.explanation.standing import Standing
from skerry.logic.fleet.explanation.way import Sent
from skerry.logic.fleet.explanation.what import Subject
from skerry.logic.fleet.placement.explain import is_selected
from skerry.logic.fleet.placement.records import Destination, placement_of
from skerry.logic.fleet.placement.whatif import Put, hypothetical
from skerry.logic.fleet.revision.objects import RevisionPage, latest, manifest_of, read_page
from skerry.logic.fleet.translation.categories import DEFINITIONS
from skerry.logic.fleet.translation.ownership import owned_of
from skerry.runtime.client import cluster_of
from skerry.runtime.discovery import ServedTypes, discover

_DEFINING = (DEFINITIONS, API_BINDINGS.group_resource)


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked about: nothing more than a placement, or some Locations and objects of it."""

    placement: str
    location: str = ""
    """Name of a Location, or ``workspace/name``; empty means all."""

    object: str = ""
    """``kind/namespace/name`` or ``kind/name``; empty means all."""

    max_pairs: int | None = None
    """How many pairs of an object and a Location are gone into; of more nothing is read."""


async def explain(hub: HubReader, question: Question) -> Answer:
    """Explain a placement of the workspace."""
    try:
        placement = await hub.own.get(EDGE_PLACEMENTS, question.placement)
    except NotFound as error:
        text = f"there is no EdgePlacement {question.placement!r} in {hub.workspace}"
        raise Unanswered(text) from error
    return await _Asking(hub, placement, question).answer()


async def explain_problems(hub: HubReader, *, everywhere: bool = False) -> list[PlacementProblem]:
    """Return what is wrong with the placements of the workspace, or of all; the worst first.

    Of other workspaces only placements are looked into that do not say they are ready, or of which
    some destinations are not known.
    """
    own = await hub.edge_kind(EDGE_PLACEMENTS)
    found = [await _Asking(hub, each, Question(each["metadata"]["name"])).answer() for each in own]
    if everywhere:
        here = {cluster_of(each) for each in own}
        others = [
            each
            for each in await hub.everywhere(EDGE_PLACEMENTS)
            if cluster_of(each) not in here and not _is_well(each)
        ]
        readers: dict[ClusterName, HubReader] = {}
        for each in others:
            cluster = cluster_of(each)
            reader = readers.setdefault(cluster, hub.elsewhere(cluster))
            question = Question(each["metadata"]["name"])
            found.append(await _Asking(reader, each, question).answer())
    return problems(found)


def _is_well(placement: Object) -> bool:
    status = placement.get("status") or {}
    ready = any(
        each["type"] == "Ready" and each["status"] == "True"
        for each in status.get("conditions") or ()
    )
    return ready and not status.get("unknownDestinations")


class _Asking:
    """One question, and what is read to answer it."""

    def __init__(self, hub: HubReader, placement: Object, question: Question) -> None:
        self._hub = hub
        self._placement = placement
        self._question = question
        self._ref = ObjectRef.of(EDGE_PLACEMENTS.group_resource, placement)

    async def answer(self) -> Answer:
        hub, question = self._hub, self._question
        types = await discover(hub.own)
        inventory = await hub.inventory([self._placement])
        paths = {**await hub.paths([self._ref.cluster]), **inventory.paths()}
        chosen = inventory.named(question.location, paths)
        asked = await hub.subjects(types, question.object)
        self._check_pairs(len(chosen), len(asked))
        subjects = await self._with_defined(types, asked) if question.object else asked
        standing = await hub.standing(self._ref)
        near = self._destinations(inventory, chosen)
        mailboxes = await hub.mailboxes({Mailbox(d.cluster, d.uid).workspace for d in near})
        copies, unreadable = await hub.copies(
            [mailboxes[name] for name in sorted(mailboxes)], types, {each.item for each in asked}
        )
        statuses = kinds_with_status(types)
        now = hub.clock.now()
        facts = Facts(
            self._ref,
            what_or_none(self._placement),
            inventory.index,
            chosen,
            standing,
            mailboxes,
            unreadable,
            subjects,
            await hub.customizers(),
            copies,
            lambda item: item.group_resource in statuses,
            copies_are_inert(await hub.own.version()),
            _silences(inventory, near, now),
            await self._sent(standing),
            {**paths, **await self._owners(copies.values())},
        )
        # Tables that others keep up may be a moment behind what was read just now.
        with hypothetical(inventory.index, [Put(placement_of(self._placement))]):
            facts = replace(facts, locations=_still(inventory, chosen))
            found = answer(facts, every_pair=bool(question.object or question.location))
        return found if subjects is asked else found.about({each.item for each in asked})

    def _check_pairs(self, locations: int, objects: int) -> None:
        limit, found = self._question.max_pairs, locations * max(1, objects)
        if limit is not None and found > limit:
            raise Unanswered(
                f"{found:,} pairs of an object and a Location would be explained, at most "
                f"{limit:,} at once: name a Location, or an object, or both"
            )

    async def _sent(self, standing: Standing) -> dict[str, Sent]:
        """Return what destinations are sent, by SyncTarget UID; nothing without a Rollout."""
        numbers = {
            uid: given.revision for uid, given in standing.assigned.items() if given.revision
        }
        if not numbers:
            return {}
        found = map(read_page, await self._hub.edge_kind(PLACEMENT_REVISIONS))
        pages = [each for each in found if each.placement == self._ref.name]
        newest = latest(pages)
        live = newest.number if newest is not None else 0
        sent = {number: _sent(number, live, pages) for number in set(numbers.values())}
        return {uid: sent[number] for uid, number in numbers.items()}

    async def _owners(self, copies: Iterable[Object]) -> dict[str, str]:
        """Return the paths of other workspaces whose copies are where this one's should be."""
        owned = (owned_of(copy) for copy in copies if is_projected(copy))
        clusters = {each.cluster for each in owned if each is not None}
        return await self._hub.paths(clusters - {self._ref.cluster})

    async def _with_defined(self, types: ServedTypes, asked: list[Subject]) -> list[Subject]:
        """Add everything else when a definition is asked about: what it defines decides."""
        if not any(each.item.group_resource in _DEFINING for each in asked):
            return asked
        items = {each.item for each in asked}
        every = await self._hub.subjects(types, "")
        return asked + [each for each in every if each.item not in items]

    def _destinations(
        self,
        inventory: FleetInventory,
        locations: Mapping[ObjectRef, Object],
    ) -> list[Destination]:
        index = inventory.index
        with hypothetical(index, [Put(placement_of(self._placement))]):
            return [
                Destination(where.cluster, where.name, name, uid)
                for where in _still(inventory, locations)
                for name, uid in targets_at(
                    index, where, selected=is_selected(index, self._ref, where)
                )
            ]


def _still(
    inventory: FleetInventory, locations: Mapping[ObjectRef, Object]
) -> dict[ObjectRef, Object]:
    """Return those of *locations* that the table has."""
    there = inventory.index.inventory.location
    return {ref: obj for ref, obj in locations.items() if there(ref) is not None}


def _silences(
    inventory: FleetInventory, near: Iterable[Destination], now: datetime
) -> dict[str, Silence | None]:
    """Return since when edges have not been heard of, by UID."""
    found: dict[str, Silence | None] = {}
    for each in near:
        target = inventory.sync_targets.get(sync_target_ref(each.cluster, each.sync_target))
        if target is not None:
            found[each.uid] = silence(target, now)
    return found


def _sent(number: int, live: int, pages: Sequence[RevisionPage]) -> Sent:
    manifest = manifest_of(each for each in pages if each.number == number)
    if manifest is None:
        return Sent(number, live)
    return Sent(number, live, {item: each.digest for item, each in manifest.by_item.items()})
