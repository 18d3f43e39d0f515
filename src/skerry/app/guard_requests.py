"""What becomes of a request that guards object to: a warning, a question, a refusal; or a charge.

A charge commits with the write it is for, on condition that the book has not changed: of two
requests that want the last place in a window one is tried again and meets what the other left.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple

from skerry.api.edge import CONFIRM, EDGE_PLACEMENTS
from skerry.api.errors import Conflict, Forbidden, ServiceUnavailable, qualified
from skerry.api.objects import Object
from skerry.api.refs import ObjectRef
from skerry.app.guard_index import GuardedPlacements
from skerry.kit.clock import Clock
from skerry.logic.fleet.guards.book import (
    DESTINATIONS,
    Book,
    Charge,
    Members,
    Part,
    book_of,
    status_with,
)
from skerry.logic.fleet.guards.budget import Excess, Rule, excesses
from skerry.logic.fleet.guards.spec import CONFIRMED, DENY, WARN, Guard, strictest
from skerry.logic.fleet.guards.token import member, request_token
from skerry.logic.machinery.durations import format_duration
from skerry.server.admission.operation import Operation
from skerry.server.codec import decode, encode
from skerry.server.security.authorization import MASTERS
from skerry.server.user import User
from skerry.store.base import Store, Write

_PLACEMENTS = EDGE_PLACEMENTS.group_resource
# How long a token is good, in minutes: it says by which of them it was made.
_TOKEN_MINUTES = 15


class Objection(NamedTuple):
    """Why a guard objects, and what it wants: Warn, Confirm or Deny."""

    guard: str
    action: str
    text: str


class Fresh(NamedTuple):
    """What a placement would lose that no window has counted, with its book and longest window."""

    placement: ObjectRef
    part: Part
    members: Members
    book: Book
    window: timedelta | None


@dataclass
class Assessment:
    """What a request would do: what guards say of it, and what is to be charged."""

    objections: list[Objection] = field(default_factory=list)
    bypassed: bool = False
    # What it does, part by part; digested only where somebody has to confirm exactly that.
    effect: list[tuple[str, ...]] = field(default_factory=list)
    fresh: list[Fresh] = field(default_factory=list)
    entries: dict[ObjectRef, tuple[str, Object, int]] = field(default_factory=dict)
    # Confirmations that were used: with one more, tokens are others.
    used: list[str] = field(default_factory=list)


def is_asked(operation: Operation) -> bool:
    """Tell whether guards look at a request at all: not at statuses, nor at controllers."""
    return not operation.subresource and MASTERS not in operation.call.user.groups


def name_of(operation: Operation) -> str:
    """Return what a request's object is called."""
    return str(operation.obj["metadata"].get("name") or "")


class GuardedRequests:
    """Judges what requests would do to books, and answers them."""

    def __init__(self, index: GuardedPlacements, store: Store, clock: Clock) -> None:
        self.index = index
        self.store = store
        self.clock = clock

    def require_complete(self) -> None:
        """Refuse for a moment what cannot be judged yet: there is no free pass."""
        if not self.index.is_complete:
            text = "the destinations of placements, which guards ask for, are being read"
            raise ServiceUnavailable(text, details={"retryAfterSeconds": 1})

    # -- judging -----------------------------------------------------------------------------

    async def removals(
        self,
        operation: Operation,
        found: Assessment,
        placement: ObjectRef,
        part: Part,
        members: Members,
        total: int,
        guards: Sequence[Guard],
        rules: Sequence[Rule],
    ) -> None:
        """Take that a placement would lose *members* of *total*."""
        now = self.clock.now()
        book = await self._book(operation, found, placement, part)
        windows = [rule.budget.window for rule in rules if rule.budget.window is not None]
        counted = book.charged(now - min(windows)) if windows else frozenset()
        # What was confirmed was one change; another one asks again.
        fresh = members - counted
        found.effect += [("-", *placement, each.hex()) for each in members]
        found.used += [f"{c.time}" for c in book.charges if c.by]
        window = max(windows, default=None)
        found.fresh.append(Fresh(placement, part, fresh, book, window))
        for excess in excesses(fresh, total, rules, book, now) if fresh else ():
            self.exceeded(found, operation, guards, excess, placement, "removals", part.members)

    def exceeded(
        self,
        found: Assessment,
        operation: Operation,
        guards: Sequence[Guard],
        excess: Excess,
        placement: ObjectRef,
        change: str,
        what: str = DESTINATIONS.members,
    ) -> None:
        """Take that a budget would be exceeded; *change* of *what* says by what."""
        rule = excess.rule
        action = rule.budget.action if rule.enforces else WARN
        window = rule.budget.window
        within = "at once" if window is None else f"within {format_duration(window)}"
        name = f"{self.index.path(placement.cluster)}|{placement.name}"
        # How many objects there are nobody knows here.
        of = f"of {excess.total:,} " if excess.total >= excess.number else ""
        text = (
            f"{rule}: this would bring {change} of placement {name} to {excess.number:,} "
            f"{of}{what} {within} (budget {excess.limit:,})"
        )
        self.add(found, operation.call.user, guards, Objection(rule.guard, action, text))

    def add(
        self, found: Assessment, user: User, guards: Sequence[Guard], objection: Objection
    ) -> None:
        """Take an objection, unless the user bypasses the guard; the floor follows any of them."""
        asked = [g for g in guards if not objection.guard or g.name == objection.guard]
        if any(guard.lets_pass(user.name, user.groups) for guard in asked):
            found.bypassed = True
        else:
            found.objections.append(objection)

    async def _book(
        self, operation: Operation, found: Assessment, ref: ObjectRef, part: Part
    ) -> Book:
        if operation.type == _PLACEMENTS and operation.old is not None:
            # Its own book is written with it.
            return book_of(operation.old.get("status"), part)
        known = self.index.placements.get(ref)
        entry = None if known is None else await self.store.get(known.key)
        if entry is None:
            return Book()
        obj = decode(entry.value, entry.revision)
        found.entries[ref] = entry.key, obj, entry.revision
        return book_of(obj.get("status"), part)

    # -- what comes of it --------------------------------------------------------------------

    def settle(self, operation: Operation, found: Assessment) -> None:
        """Refuse, ask, warn; or let pass and charge."""
        action = strictest(each.action for each in found.objections)
        texts = [each.text for each in found.objections]
        if action == WARN or (action and operation.dry_run):
            for text in texts:
                operation.warn(text)
        elif action == DENY:
            raise Forbidden.of(*operation.type, name_of(operation), "; ".join(texts))
        elif action == CONFIRMED:
            self._confirm(operation, found, texts)
        if operation.dry_run:
            return
        by = "Confirm" if action == CONFIRMED else "Bypass" if found.bypassed else ""
        self._charge(operation, found, by)

    def _confirm(self, operation: Operation, found: Assessment, texts: Sequence[str]) -> None:
        """Take the token that confirms exactly this change, or ask for it."""
        now = self.clock.now()
        minute = int(now.timestamp()) // 60
        metadata = operation.obj["metadata"]
        given = (metadata.get("annotations") or {}).get(CONFIRM, "")
        guards = {each.guard for each in found.objections}
        uid = str(metadata.get("uid") or (operation.old or operation.obj)["metadata"].get("uid"))
        subject = (operation.verb, *operation.type, operation.call.info.cluster, uid)
        effect = set(map(member, found.effect))

        def token(at: int) -> str:
            return request_token(
                (*subject, name_of(operation), str(at), *sorted(found.used)), guards, effect
            )

        if given and any(given == token(minute - ago) for ago in range(_TOKEN_MINUTES + 1)):
            notes = {k: v for k, v in metadata["annotations"].items() if k != CONFIRM}
            operation.obj["metadata"] = {**metadata, "annotations": notes}
            return
        until = datetime.fromtimestamp((minute + _TOKEN_MINUTES) * 60, now.tzinfo)
        group, resource = operation.type
        raise Conflict(
            f'{qualified(group, resource)} "{name_of(operation)}": {"; ".join(texts)}. To do it '
            f"all the same, annotate the {operation.obj.get('kind') or resource} with "
            f"{CONFIRM}={token(minute)} and repeat; the token is good for exactly this change "
            f"until {until:%H:%M} UTC.",
            details={"name": name_of(operation), "group": group, "kind": resource},
        )

    def _charge(self, operation: Operation, found: Assessment, by: str) -> None:
        now = self.clock.now()
        for ref, part, fresh, book, window in found.fresh:
            if not fresh or (window is None and not by):
                continue
            charged = book.with_charge(Charge(now, fresh, by), window or timedelta())
            if operation.type == _PLACEMENTS:
                obj: Object = operation.obj
                obj["status"] = status_with(obj.get("status"), charged, part)
            elif ref in found.entries:
                key, obj, revision = found.entries[ref]
                obj["status"] = status_with(obj.get("status"), charged, part)
                operation.writes.append(Write(key, encode(obj), expected=revision))


def protections(
    guards: Sequence[Guard], kind: str, name: str, labels: Mapping[str, str] | None, lost: set[str]
) -> list[Objection]:
    """Return what guards say of a protected object that would be lost by one of these ways."""
    return [
        Objection(
            guard.name,
            CONFIRMED if guard.enforces else WARN,
            f"PlacementGuard {guard.name} protects {kind} {name}",
        )
        for guard in guards
        for each in guard.protections
        if each.kind == kind and each.against & lost and each.covers(name, labels)
    ]
