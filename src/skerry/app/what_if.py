"""What documents would change if they were applied in a workspace, or deleted there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, NamedTuple

from skerry.api.edge import (
    EDGE_PLACEMENTS,
    ROLLOUTS,
    Mailbox,
    edge_placement_ref,
    is_projected,
)
from skerry.api.kinds import ResourceInfo
from skerry.api.objects import Object
from skerry.api.refs import ClusterName, ObjectRef, namespace_ref
from skerry.app.explain_names import Unanswered, document_name, kind_of
from skerry.app.hub_reading import HubReader
from skerry.app.rollout_prospect import prospect
from skerry.controllers.placement_translator.settings import copies_are_inert
from skerry.logic.fleet.explanation.answer import UNNAMED
from skerry.logic.fleet.explanation.changes import (
    Comparison,
    PlacementChange,
    Workload,
    changed_by,
    edited,
    is_label_change,
    item_of,
    must_exist,
    placed_at,
    what_or_none,
)
from skerry.logic.fleet.explanation.contents import Materials, Rules, Taken
from skerry.logic.fleet.explanation.standing import NOWHERE, Standings
from skerry.logic.fleet.guards.foresight import would_hold
from skerry.logic.fleet.guards.freeze import Frozen
from skerry.logic.fleet.guards.index import GuardIndex
from skerry.logic.fleet.placement.destination import DestinationTable
from skerry.logic.fleet.placement.grants import Rule
from skerry.logic.fleet.placement.records import Destination, placement_of
from skerry.logic.fleet.placement.whatif import Change, Difference, Put, hypothetical, what_if
from skerry.logic.fleet.translation.ownership import owned_of
from skerry.runtime.discovery import ServedTypes, discover

# Mailboxes that are read for names which others have there.
MAX_MAILBOXES = 50


class Foresight(NamedTuple):
    """What would change, which of the documents would be new objects, and paths of workspaces.

    ``unread`` counts added destinations at which nobody looked for names that others have.
    ``held`` has the placements of which guards would hold the removals, and why.
    """

    changes: list[PlacementChange]
    created: list[str]
    paths: Mapping[ClusterName, str]
    unread: int = 0
    held: Sequence[tuple[ObjectRef, str]] = ()

    def path(self, cluster: ClusterName) -> str:
        return self.paths.get(cluster, UNNAMED)

    def holds(self) -> list[tuple[str, str]]:
        """Return the placements of which guards would hold the removals, by name, and why."""
        return [(f"{self.path(ref.cluster)}|{ref.name}", why) for ref, why in self.held]

    def as_json(self) -> dict[str, Any]:
        placements = [each.as_json(self.path) for each in self.changes]
        held = [{"placement": name, "why": why} for name, why in self.holds()]
        shown = {"created": self.created, "placements": placements}
        return {**shown, "held": held} if held else shown


async def foresee(
    hub: HubReader, documents: Sequence[Object], *, delete: bool = False
) -> Foresight:
    """Return what *documents* would change, applied (or deleted) in the hub's workspace."""
    return await _Foreseeing(hub, documents, delete).foresight()


class _Foreseeing:
    """One question, and what is read to answer it."""

    def __init__(self, hub: HubReader, documents: Sequence[Object], delete: bool) -> None:
        self._hub = hub
        self._documents = documents
        self._delete = delete
        self._created: list[str] = []
        # Rollouts of the workspace, as the documents would leave them.
        self._rollouts: dict[str, Object] = {}

    async def foresight(self) -> Foresight:
        hub = self._hub
        types, cluster = await discover(hub.own), await hub.cluster()
        placements = await hub.edge_kind(EDGE_PLACEMENTS)
        guards, everywhere = await hub.guards(), await hub.placements_everywhere()
        asks = any(document.get("kind") == "LocationGrant" for document in self._documents)
        asks = asks or any(guard.workspaces is not None for guard in guards)
        inventory = await hub.inventory(everywhere.values(), asks=asks)
        index = inventory.index
        before = Workload(
            {each["metadata"]["name"]: what_or_none(each) for each in placements},
            Materials(
                {each.item: each.object for each in await hub.subjects(types, "")},
                await hub.customizers(),
                inventory.locations,
                copies_are_inert(await hub.own.version()),
            ),
        )
        self._rollouts = {e["metadata"]["name"]: e for e in await hub.edge_kind(ROLLOUTS)}
        after, changed = await self._applied(types, cluster, before)
        standing = await hub.standings()
        going, moved, rules = _moved(index, cluster, placements, after, changed, standing)
        before, after = before.with_rules(rules.before), after.with_rules(rules.after)
        seen = [e for e in moved if e.placement.cluster == cluster or e.placement in everywhere]
        comparison = Comparison(cluster, before, after, seen, lambda ref: going.get(ref, ()))
        taken, unread = await self._taken(types, comparison)
        found = replace(comparison, taken=taken).changes()
        paths = {**inventory.paths(), cluster: hub.workspace}
        others = {each.ref.cluster for each in found} - paths.keys()
        held = would_hold(
            seen,
            guards,
            everywhere,
            index.workspace_labels,
            lambda ref: len(standing(ref).destinations),
            hub.clock.now(),
        )
        paths |= await hub.paths(others)

        def with_rollout(change: PlacementChange) -> PlacementChange:
            rollout, ref = self._rollout_of(change, cluster), change.ref
            if rollout is None:
                return change
            stops = _frozen(ref, everywhere.get(ref), guards, index, hub.clock.now())
            assigned, places = standing(ref).assigned, inventory.locations
            return replace(
                change, rollout=prospect(rollout, going.get(ref, ()), assigned, places, stops)
            )

        found = [with_rollout(each) for each in found]
        return Foresight(found, self._created, paths, unread, held)

    async def _applied(
        self, types: ServedTypes, cluster: ClusterName, before: Workload
    ) -> tuple[Workload, list[Change]]:
        """Return the workspace as the documents would leave it, and changes of destinations."""
        after, changed = before, list[Change]()
        for document in self._documents:
            info = kind_of(types, document)
            live = await self._hub.live(info, document)
            self._check(info, document, live, after)
            obj = edited(live, document)
            if not self._delete and not is_label_change(document):
                obj = await self._hub.completed(info, obj, exists=live is not None)
            obj = placed_at(obj, cluster)
            if info.group_resource == ROLLOUTS.group_resource:
                self._change_rollout(obj)
                continue
            after, change = changed_by(after, info, obj, delete=self._delete)
            changed += change
        return after, changed

    def _rollout_of(self, change: PlacementChange, cluster: ClusterName) -> Object | None:
        """Return the Rollout that a change would start; None where it starts none."""
        own = change.ref.cluster == cluster and change.changes_content
        return self._rollouts.get(change.ref.name) if own else None

    def _change_rollout(self, obj: Object) -> None:
        name = obj["metadata"]["name"]
        if self._delete:
            self._rollouts.pop(name, None)
        else:
            self._rollouts[name] = obj

    def _check(
        self, info: ResourceInfo, document: Object, live: Object | None, so_far: Workload
    ) -> None:
        """Refuse a document about what is not there; note one that would be a new object."""
        if live is not None:
            return
        name, here = document_name(document), self._hub.workspace
        if self._delete:
            raise Unanswered(f"there is no {name} in {here}")
        if must_exist(info, document):
            text = f"there is no {name} in {here}, and metadata alone does not make one"
            raise Unanswered(text)
        space = item_of(info, document).namespace
        if space and namespace_ref(space) not in so_far.materials.objects:
            raise Unanswered(f"{name}: there is no Namespace {space!r} in {here}")
        self._created.append(name)

    async def _taken(self, types: ServedTypes, comparison: Comparison) -> tuple[Taken, int]:
        """Return whose names are where objects would go anew, and how many places were not read."""
        wanted: dict[str, Destination] = {}
        items: set[ObjectRef] = set()
        for destination, there in comparison.arriving():
            wanted[Mailbox(destination.cluster, destination.uid).workspace] = destination
            items |= there
        if not wanted:
            return lambda *_: None, 0
        hub = self._hub
        named = await hub.mailboxes(wanted.keys())
        known = [named[name] for name in sorted(named)]
        copies, _ = await hub.copies(known[:MAX_MAILBOXES], types, items)
        owners = {
            key: owned.cluster
            for key, copy in copies.items()
            if is_projected(copy)
            and (owned := owned_of(copy)) is not None
            and owned.cluster != comparison.cluster
        }
        paths = await hub.paths(owners.values())

        def taken(destination: Destination, item: ObjectRef) -> str | None:
            mailbox = Mailbox(destination.cluster, destination.uid).workspace
            owner = owners.get((mailbox, item))
            return None if owner is None else paths[owner]

        return taken, max(0, len(known) - MAX_MAILBOXES)


class _Granted(NamedTuple):
    """What grants let the workspace place, as they are and as they would be."""

    before: Rules | None
    after: Rules | None


def _moved(
    index: DestinationTable,
    cluster: ClusterName,
    placements: Iterable[Object],
    after: Workload,
    changed: Sequence[Change],
    standing: Standings,
) -> tuple[dict[ObjectRef, Sequence[Destination]], list[Difference], _Granted]:
    """Return where own placements would go, how the destinations of all would differ, and grants.

    All that is asked of the table is asked here, of the one state or the other.
    """
    refs = [edge_placement_ref(cluster, name) for name in after.placements]
    # Tables that others keep up may be a moment behind what was read just now.
    with hypothetical(index, [Put(placement_of(each)) for each in placements]):
        moved = what_if(index, changed, lambda ref: standing(ref).destinations)
        with hypothetical(index, changed):
            going = _going(index, refs, standing)
            everywhere = (*going.values(), *(each.added for each in moved))
            places = {each.location_ref for found in everywhere for each in found}
            granted_then = _rules(index, cluster, places)
        return going, moved, _Granted(_rules(index, cluster, places), granted_then)


def _going(
    index: DestinationTable, refs: Iterable[ObjectRef], standing: Standings
) -> dict[ObjectRef, Sequence[Destination]]:
    """Return where placements go by the table as it is; where they are matters to few of them."""
    going: dict[ObjectRef, Sequence[Destination]] = {}
    for ref in refs:
        there = standing(ref) if index.remembers(ref) else NOWHERE
        going[ref] = index.destinations(ref, there.present, there.destinations)
    return going


def _frozen(
    ref: ObjectRef,
    placement: Object | None,
    guards: GuardIndex,
    index: DestinationTable,
    now: datetime,
) -> Frozen:
    """Return what freezes stop for a placement."""
    labels = placement["metadata"].get("labels") or {} if placement is not None else {}
    return Frozen(guards.of(ref, index.workspace_labels(ref.cluster), labels), now)


def _rules(
    index: DestinationTable, cluster: ClusterName, places: Iterable[ObjectRef]
) -> Rules | None:
    """Return what grants let a workspace place at Locations; None without grants.

    It is what they let through now: whoever asks does so when the table is as it was again.
    """
    if not index.consent.is_used:
        return None
    found = {where: _rules_at(index, cluster, where) for where in places}
    return found.__getitem__


def _rules_at(
    index: DestinationTable, cluster: ClusterName, where: ObjectRef
) -> tuple[Rule, ...] | None:
    number, consent = index.inventory.location_number(where), index.consent
    if number is None or not consent.is_enforced(number):
        return None
    return tuple(r for grant in consent.admitting(cluster, number) for r in grant.rules)
