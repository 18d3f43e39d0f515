"""Guards at the hub's own door: who would exceed a budget hears it before it is done.

The courtesy that tells early; what counts is what the edge scheduler holds. Both charge the same
books (``status.removals`` of EdgePlacements), so what was admitted here is not asked about again,
and what is confirmed here goes. ``guard_requests`` has what becomes of a request; here is what
requests about placements and inventories do to destinations.

Members of ``system:masters``, and with them the controllers, are not asked: what they do counts
when it takes effect.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import ClassVar

from skerry.api.edge import (
    EDGE_PLACEMENTS,
    PLACEMENT_GUARDS,
    SINGLE_PLACEMENT_SLICES,
    edge_placement_ref,
    placement_of_slice,
)
from skerry.api.errors import Forbidden
from skerry.api.kcp.resources import LOCATIONS, SYNC_TARGETS, WORKSPACES
from skerry.api.objects import Object, labels_of
from skerry.api.refs import ObjectRef
from skerry.app.guard_index import stamped
from skerry.app.guard_requests import (
    Assessment,
    GuardedRequests,
    Objection,
    is_asked,
    name_of,
    protections,
)
from skerry.logic.fleet.guards.book import DESTINATIONS, has_finalizer
from skerry.logic.fleet.guards.budget import Excess, Rule, rules_of
from skerry.logic.fleet.guards.loosening import is_looser, stricter_measures
from skerry.logic.fleet.guards.spec import ADDED, REMOVED, Guard, guard_of
from skerry.logic.fleet.guards.token import member
from skerry.logic.fleet.placement.records import (
    Destination,
    Location,
    Placement,
    SyncTarget,
    is_being_deleted,
    location_of,
    placement_of,
    sync_target_of,
)
from skerry.logic.fleet.placement.slices import destinations_in
from skerry.logic.fleet.placement.whatif import (
    Change,
    Difference,
    LabelWorkspace,
    Put,
    Remove,
    what_if,
)
from skerry.server.admission.operation import Operation

_GUARDS = PLACEMENT_GUARDS.group_resource
_PLACEMENTS = EDGE_PLACEMENTS.group_resource
_SLICES = SINGLE_PLACEMENT_SLICES.group_resource
_LOCATIONS = LOCATIONS.group_resource
_SYNC_TARGETS = SYNC_TARGETS.group_resource
_WORKSPACES = WORKSPACES.group_resource


class _Asked:
    """What one request asks of guards again and again: it touches many placements, at one place."""

    def __init__(self) -> None:
        self._rules: dict[tuple[tuple[int, ...], str], tuple[Rule, ...]] = {}
        self._members: dict[Destination, bytes] = {}

    def rules(self, guards: tuple[Guard, ...], measure: str, *, floor: bool) -> tuple[Rule, ...]:
        """Return what some guards say about a measure."""
        key = tuple(map(id, guards)), measure
        if key not in self._rules:
            self._rules[key] = rules_of(guards, measure, floor=floor)
        return self._rules[key]

    def member(self, destination: Destination) -> bytes:
        """Return what stands for a destination in books."""
        found = self._members.get(destination)
        if found is None:
            found = self._members[destination] = member(destination)
        return found


class GuardAdmission:
    """See the module's text."""

    TYPES: ClassVar = frozenset(
        map(tuple, (_GUARDS, _PLACEMENTS, _SLICES, _LOCATIONS, _SYNC_TARGETS, _WORKSPACES))
    )

    def __init__(self, requests: GuardedRequests) -> None:
        self._requests = requests
        self._index = requests.index

    async def admit(self, operation: Operation) -> None:
        if not self._index.guards or not is_asked(operation):
            return
        if operation.type == _GUARDS:
            _check_guard(operation)
            self._warn_of_stricter(operation)
            return
        if operation.type == _SLICES:
            await self._slice(operation)
            return
        deletes_workspace = operation.type == _WORKSPACES and operation.verb == "DELETE"
        changes = list(() if deletes_workspace else _changes(operation))
        if not changes and not deletes_workspace:
            return
        self._requests.require_complete()
        if deletes_workspace:
            content = (operation.obj.get("spec") or {}).get("cluster", "")
            changes = list(self._index.emptied(content))
        differences = what_if(self._index.table, changes)
        if differences:
            self._requests.settle(operation, await self._assess(operation, differences))

    def _warn_of_stricter(self, operation: Operation) -> None:
        """Warn of guards for all that are stricter than one beside placements would be."""
        cluster, guards = operation.call.info.cluster, self._index.guards
        if operation.verb == "DELETE" or cluster == guards.provider:
            return
        own = guard_of(stamped(operation.obj, cluster))
        for each in guards:
            if each.ref.cluster == guards.provider:
                for measure in stricter_measures(each, own):
                    operation.warn(f"{measure}: PlacementGuard {each.name} is stricter, and counts")

    async def _slice(self, operation: Operation) -> None:
        """Assess a slice that a person takes destinations from: until it is mended, they go."""
        if operation.call.view or operation.verb == "CREATE":
            return
        old = operation.old or operation.obj
        stays = set() if operation.verb == "DELETE" else set(destinations_in(operation.obj))
        lost = tuple(each for each in destinations_in(old) if each not in stays)
        ref = edge_placement_ref(operation.call.info.cluster, placement_of_slice(old))
        if lost and ref in self._index.placements:
            found = await self._assess(operation, [Difference(ref, (), lost)])
            self._requests.settle(operation, found)

    async def _assess(self, operation: Operation, differences: Sequence[Difference]) -> Assessment:
        found, asked = Assessment(), _Asked()
        for each in differences:
            guards = self._index.of(each.placement)
            if not guards:
                continue
            await self._removals(operation, found, each, guards, asked)
            found.effect += [("+", *each.placement, *new) for new in each.added]
            for rule in asked.rules(guards, ADDED, floor=False):
                limit = rule.budget.limit(self._index.total(each.placement))
                if len(each.added) > limit:
                    excess = Excess(rule, len(each.added), len(each.added), limit, limit)
                    self._requests.exceeded(
                        found, operation, guards, excess, each.placement, "additions"
                    )
        return found

    async def _removals(
        self,
        operation: Operation,
        found: Assessment,
        difference: Difference,
        guards: tuple[Guard, ...],
        asked: _Asked,
    ) -> None:
        ref, removed = difference.placement, difference.removed
        if not removed:
            return
        rules = asked.rules(guards, REMOVED, floor=True)
        members = frozenset(map(asked.member, removed))
        total = self._index.total(ref)
        await self._requests.removals(
            operation, found, ref, DESTINATIONS, members, total, guards, rules
        )
        for objection in _protected(operation, guards, removed):
            self._requests.add(found, operation.call.user, guards, objection)


def _check_guard(operation: Operation) -> None:
    """Refuse to loosen or delete a guard to who does not bypass it."""
    if operation.verb == "CREATE":
        return
    cluster, user = operation.call.info.cluster, operation.call.user
    old = guard_of(stamped(operation.old or operation.obj, cluster))
    if operation.verb == "UPDATE":
        if not is_looser(old, guard_of(stamped(operation.obj, cluster))):
            return
    elif not old.enforces:
        return
    if old.lets_pass(user.name, user.groups):
        return
    who = ", ".join(sorted([*old.users, *old.groups])) or "members of system:masters"
    text = f"to loosen or delete a guard needs its spec.bypass, which is {who}"
    raise Forbidden.of(*operation.type, name_of(operation), text)


def _changes(operation: Operation) -> Iterator[Change]:
    """Yield what a request changes of what destinations depend on."""
    cluster = operation.call.info.cluster
    new = stamped(operation.obj, cluster)
    old = None if operation.old is None else stamped(operation.old, cluster)
    if operation.type == _WORKSPACES:
        content = (operation.obj.get("spec") or {}).get("cluster", "")
        labels = new["metadata"].get("labels") or {}
        before = (old or new)["metadata"].get("labels") or {}
        if content and operation.verb == "UPDATE" and labels != before:
            yield LabelWorkspace(content, labels)
        return
    kind, read = _READERS[operation.type]
    if operation.verb == "DELETE" or (old is not None and _lets_go(old, new)):
        yield Remove(kind, ObjectRef(cluster, *operation.type, "", name_of(operation)))
    elif old is None or read(new) != read(old):
        yield Put(read(new))


def _lets_go(old: Object, new: Object) -> bool:
    """Tell whether somebody ends the wait of a deletion for guards by hand, which is to delete."""
    return is_being_deleted(old) and has_finalizer(old) and not has_finalizer(new)


_Reader = tuple[
    type[Placement | Location | SyncTarget], Callable[[Object], Placement | Location | SyncTarget]
]
_READERS: dict[tuple[str, str], _Reader] = {
    _PLACEMENTS: (Placement, placement_of),
    _LOCATIONS: (Location, location_of),
    _SYNC_TARGETS: (SyncTarget, sync_target_of),
}


def _protected(
    operation: Operation, guards: Sequence[Guard], removed: Iterable[Destination]
) -> Iterator[Objection]:
    """Yield what guards say of protected Locations that a request takes from a placement."""
    if operation.type == _LOCATIONS:
        old = operation.old or operation.obj
        ways = {"Delete"} if operation.verb == "DELETE" else {"Relabel"}
        yield from protections(guards, "Location", old["metadata"]["name"], labels_of(old), ways)
    elif operation.type == _PLACEMENTS:
        for name in sorted({each.location for each in removed}):
            yield from protections(guards, "Location", name, None, {"Deselect"})
