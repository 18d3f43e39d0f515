"""Guards at the hub's own door: who would exceed a budget hears it before it is done.

The courtesy that tells early; what counts is what the edge scheduler holds. Both charge the same
books (``status.removals`` of EdgePlacements), so what was admitted here is not asked about again,
and what is confirmed here goes. A charge commits with the write it is for, on condition that the
book has not changed: of two requests that want the last place in a window one is tried again and
meets what the other left.

Members of ``system:masters``, and with them the controllers, are not asked: what they do counts
when it takes effect.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import ClassVar, NamedTuple

from skerry.api.edge import CONFIRM, EDGE_PLACEMENTS, PLACEMENT_GUARDS
from skerry.api.errors import Conflict, Forbidden, ServiceUnavailable, qualified
from skerry.api.kcp.resources import LOCATIONS, SYNC_TARGETS, WORKSPACES
from skerry.api.objects import Object
from skerry.api.refs import ObjectRef
from skerry.app.guard_index import GuardedPlacements, stamped
from skerry.kit.clock import Clock
from skerry.logic.fleet.guards.book import (
    Book,
    Charge,
    Members,
    book_of,
    has_finalizer,
    status_with,
)
from skerry.logic.fleet.guards.budget import Excess, Rule, excesses, rules_of
from skerry.logic.fleet.guards.loosening import is_looser
from skerry.logic.fleet.guards.spec import (
    ADDED,
    CONFIRMED,
    DENY,
    REMOVED,
    WARN,
    Guard,
    guard_of,
    strictest,
)
from skerry.logic.fleet.guards.token import member, request_token
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
from skerry.logic.fleet.placement.whatif import (
    Change,
    Difference,
    LabelWorkspace,
    Put,
    Remove,
    what_if,
)
from skerry.logic.machinery.durations import format_duration
from skerry.server.admission.operation import Operation
from skerry.server.codec import decode, encode
from skerry.server.security.authorization import MASTERS
from skerry.server.user import User
from skerry.store.base import Store, Write

_GUARDS = PLACEMENT_GUARDS.group_resource
_PLACEMENTS = EDGE_PLACEMENTS.group_resource
_LOCATIONS = LOCATIONS.group_resource
_SYNC_TARGETS = SYNC_TARGETS.group_resource
_WORKSPACES = WORKSPACES.group_resource
_NAMESPACES = ("", "namespaces")
_KINDS = {
    _PLACEMENTS: "EdgePlacement",
    _LOCATIONS: "Location",
    _SYNC_TARGETS: "SyncTarget",
    _WORKSPACES: "Workspace",
    _NAMESPACES: "Namespace",
}
# How long a token is good, in minutes: it says by which of them it was made.
_TOKEN_MINUTES = 15
# Relabelled, a Location or Namespace may be lost; deleted, it is.
_LOST = {"DELETE": frozenset({"Delete"}), "UPDATE": frozenset({"Deselect", "Relabel"})}


class Objection(NamedTuple):
    """Why a guard objects, and what it wants: Warn, Confirm or Deny."""

    guard: str
    action: str
    text: str


@dataclass
class Assessment:
    """What a request would do: what guards say of it, and what is to be charged."""

    objections: list[Objection] = field(default_factory=list)
    bypassed: bool = False
    # What it does, part by part; digested only where somebody has to confirm exactly that.
    effect: list[tuple[str, ...]] = field(default_factory=list)
    # What each placement would lose that no window has counted, with its book and windows.
    fresh: dict[ObjectRef, tuple[Members, Book, timedelta | None]] = field(default_factory=dict)
    entries: dict[ObjectRef, tuple[str, Object, int]] = field(default_factory=dict)
    # Confirmations that were used: with one more, tokens are others.
    used: list[str] = field(default_factory=list)


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

    TYPES: ClassVar = frozenset({tuple(_GUARDS), *map(tuple, _KINDS)})

    def __init__(self, index: GuardedPlacements, store: Store, clock: Clock) -> None:
        self._index = index
        self._store = store
        self._clock = clock

    async def admit(self, operation: Operation) -> None:
        if not self._index.guards or operation.subresource:
            return
        if MASTERS in operation.call.user.groups:
            return
        if operation.type == _GUARDS:
            _check_guard(operation)
            return
        if operation.type == _NAMESPACES:
            self._settle(operation, self._namespace(operation))
            return
        deletes_workspace = operation.type == _WORKSPACES and operation.verb == "DELETE"
        changes = list(() if deletes_workspace else _changes(operation))
        if not changes and not deletes_workspace:
            return
        if not self._index.is_complete:
            text = "the destinations of placements, which guards ask for, are being read"
            raise ServiceUnavailable(text, details={"retryAfterSeconds": 1})
        if deletes_workspace:
            content = (operation.obj.get("spec") or {}).get("cluster", "")
            changes = list(self._index.emptied(content))
        differences = what_if(self._index.table, changes)
        if differences:
            self._settle(operation, await self._assess(operation, differences))

    # -- what a request does -----------------------------------------------------------------

    async def _assess(self, operation: Operation, differences: Sequence[Difference]) -> Assessment:
        found, now = Assessment(), self._clock.now()
        asked = _Asked()
        for each in differences:
            guards = self._index.of(each.placement)
            if not guards:
                continue
            await self._removals(operation, found, each, guards, asked, now)
            found.effect += [("+", *each.placement, *new) for new in each.added]
            for rule in asked.rules(guards, ADDED, floor=False):
                limit = rule.budget.limit(self._total(each.placement))
                if len(each.added) > limit:
                    excess = Excess(rule, len(each.added), len(each.added), limit, limit)
                    self._object(found, operation, guards, excess, each.placement, "additions")
        return found

    async def _removals(
        self,
        operation: Operation,
        found: Assessment,
        difference: Difference,
        guards: tuple[Guard, ...],
        asked: _Asked,
        now: datetime,
    ) -> None:
        ref, removed = difference.placement, difference.removed
        if not removed:
            return
        rules = asked.rules(guards, REMOVED, floor=True)
        book = await self._book(operation, found, ref)
        windows = [rule.budget.window for rule in rules if rule.budget.window is not None]
        members = frozenset(map(asked.member, removed))
        counted = book.charged(now - min(windows)) if windows else frozenset()
        # What was confirmed was one change; another one asks again.
        fresh = members - counted
        found.effect += [("-", *ref, each.hex()) for each in members]
        found.used += [f"{c.time}" for c in book.charges if c.by]
        found.fresh[ref] = fresh, book, max(windows, default=None)
        for excess in excesses(fresh, self._total(ref), rules, book, now) if fresh else ():
            self._object(found, operation, guards, excess, ref, "removals")
        for objection in _protected(operation, guards, removed):
            self._add(found, operation.call.user, guards, objection)

    def _object(
        self,
        found: Assessment,
        operation: Operation,
        guards: Sequence[Guard],
        excess: Excess,
        placement: ObjectRef,
        what: str,
    ) -> None:
        rule = excess.rule
        action = rule.budget.action if rule.enforces else WARN
        text = self._text(excess, placement, what)
        self._add(found, operation.call.user, guards, Objection(rule.guard, action, text))

    def _add(
        self, found: Assessment, user: User, guards: Sequence[Guard], objection: Objection
    ) -> None:
        """Take an objection, unless the user bypasses the guard; the floor follows any of them."""
        asked = [g for g in guards if not objection.guard or g.name == objection.guard]
        if any(guard.lets_pass(user.name, user.groups) for guard in asked):
            found.bypassed = True
        else:
            found.objections.append(objection)

    def _text(self, excess: Excess, placement: ObjectRef, what: str) -> str:
        window = excess.rule.budget.window
        within = "at once" if window is None else f"within {format_duration(window)}"
        name = f"{self._index.path(placement.cluster)}|{placement.name}"
        return (
            f"{excess.rule}: this would bring {what} of placement {name} to {excess.number:,} "
            f"of {excess.total:,} destinations {within} (budget {excess.limit:,})"
        )

    def _total(self, placement: ObjectRef) -> int:
        """Return how many destinations a placement has, by the scheduler's own count."""
        known = self._index.placements.get(placement)
        counted = known.destinations if known is not None else 0
        return counted or len(self._index.table.matching(placement))

    async def _book(self, operation: Operation, found: Assessment, ref: ObjectRef) -> Book:
        if operation.type == _PLACEMENTS and operation.old is not None:
            # Its own book is written with it.
            return book_of(operation.old.get("status"))
        known = self._index.placements.get(ref)
        entry = None if known is None else await self._store.get(known.key)
        if entry is None:
            return Book()
        obj = decode(entry.value, entry.revision)
        found.entries[ref] = entry.key, obj, entry.revision
        return book_of(obj.get("status"))

    def _namespace(self, operation: Operation) -> Assessment:
        """Return what guards say of a Namespace that is deleted or given other labels."""
        found = Assessment()
        cluster = operation.call.info.cluster
        old = (operation.old or operation.obj)["metadata"]
        lost = _LOST.get(operation.verb, frozenset())
        if operation.verb == "UPDATE" and old.get("labels") == operation.obj["metadata"].get(
            "labels"
        ):
            return found
        for ref in [each for each in self._index.placements if each.cluster == cluster]:
            known, guards = self._index.placements[ref], self._index.of(ref)
            if not known.chooses(old.get("labels") or {}):
                continue
            if "Delete" not in lost and known.chooses(
                operation.obj["metadata"].get("labels") or {}
            ):
                continue
            for objection in _protections(guards, "Namespace", old["name"], old, lost):
                self._add(found, operation.call.user, guards, objection)
        found.effect = [("-", cluster, str(old["name"]))]
        return found

    # -- what comes of it --------------------------------------------------------------------

    def _settle(self, operation: Operation, found: Assessment) -> None:
        """Refuse, ask, warn; or let pass and charge."""
        action = strictest(each.action for each in found.objections)
        texts = [each.text for each in found.objections]
        if action == WARN or (action and operation.dry_run):
            for text in texts:
                operation.warn(text)
        elif action == DENY:
            raise Forbidden.of(*operation.type, _name(operation), "; ".join(texts))
        elif action == CONFIRMED:
            self._confirm(operation, found, texts)
        if operation.dry_run:
            return
        by = "Confirm" if action == CONFIRMED else "Bypass" if found.bypassed else ""
        self._charge(operation, found, by)

    def _confirm(self, operation: Operation, found: Assessment, texts: Sequence[str]) -> None:
        """Take the token that confirms exactly this change, or ask for it."""
        minute = int(self._clock.now().timestamp()) // 60
        metadata = operation.obj["metadata"]
        given = (metadata.get("annotations") or {}).get(CONFIRM, "")
        guards = {each.guard for each in found.objections}
        uid = str(metadata.get("uid") or (operation.old or operation.obj)["metadata"].get("uid"))
        subject = (operation.verb, *operation.type, operation.call.info.cluster, uid)
        effect = set(map(member, found.effect))

        def token(at: int) -> str:
            return request_token(
                (*subject, _name(operation), str(at), *sorted(found.used)), guards, effect
            )

        if given and any(given == token(minute - ago) for ago in range(_TOKEN_MINUTES + 1)):
            notes = {k: v for k, v in metadata["annotations"].items() if k != CONFIRM}
            operation.obj["metadata"] = {**metadata, "annotations": notes}
            return
        until = datetime.fromtimestamp((minute + _TOKEN_MINUTES) * 60, self._clock.now().tzinfo)
        group, resource = operation.type
        raise Conflict(
            f'{qualified(group, resource)} "{_name(operation)}": {"; ".join(texts)}. To do it all '
            f"the same, annotate the {_KINDS[operation.type]} with {CONFIRM}={token(minute)} and "
            f"repeat; the token is good for exactly this change until {until:%H:%M} UTC.",
            details={"name": _name(operation), "group": group, "kind": resource},
        )

    def _charge(self, operation: Operation, found: Assessment, by: str) -> None:
        now = self._clock.now()
        for ref, (fresh, book, window) in found.fresh.items():
            if not fresh or (window is None and not by):
                continue
            charged = book.with_charge(Charge(now, fresh, by), window or timedelta())
            if operation.type == _PLACEMENTS:
                operation.obj["status"] = status_with(operation.obj.get("status"), charged)
            elif ref in found.entries:
                key, obj, revision = found.entries[ref]
                obj["status"] = status_with(obj.get("status"), charged)
                operation.writes.append(Write(key, encode(obj), expected=revision))


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
    raise Forbidden.of(*operation.type, _name(operation), text)


def _name(operation: Operation) -> str:
    return str(operation.obj["metadata"].get("name") or "")


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
        yield Remove(kind, ObjectRef(cluster, *operation.type, "", _name(operation)))
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
    operation: Operation, guards: Iterable[Guard], removed: Iterable[Destination]
) -> Iterator[Objection]:
    """Yield what guards say of protected Locations that a request takes from a placement."""
    if operation.type == _LOCATIONS:
        old = (operation.old or operation.obj)["metadata"]
        lost = _LOST.get(operation.verb, frozenset()) - {"Deselect"}
        yield from _protections(guards, "Location", old["name"], old, lost)
    elif operation.type == _PLACEMENTS:
        for name in sorted({each.location for each in removed}):
            yield from _protections(guards, "Location", name, None, frozenset({"Deselect"}))


def _protections(
    guards: Iterable[Guard], kind: str, name: str, metadata: Object | None, lost: frozenset[str]
) -> Iterator[Objection]:
    labels = None if metadata is None else metadata.get("labels") or {}
    for guard in guards:
        for each in guard.protections:
            if each.kind == kind and each.against & lost and each.covers(name, labels):
                action = CONFIRMED if guard.enforces else WARN
                text = f"PlacementGuard {guard.name} protects {kind} {name}"
                yield Objection(guard.name, action, text)
