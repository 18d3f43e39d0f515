"""What guards let a placement lose now, before its slices are planned.

A destination that slices hold and nobody wants is *departing*. Where guards concern the placement,
or more depart in one decision than the built-in floor lets go, ``logic.fleet.guards`` judges: what
is held stays in the slices, everything else goes on. Never held are destinations whose SyncTarget
is gone (nothing runs there), and those that an inventory's owner has taken back: that was a
person's word already, and not for the placement's owner to delay.

The order of writes is the promise. First the placement's book is charged, or its confirmation
taken, with the version that was read; only then slices change. A process that dies in between
leaves too much charged, or asks again. One decision writes the placement once.

Slices are cached as digests of what they hold. What departs is read from the server, page by page,
when somebody has to be asked about it.

So a decision may need several reconciles, each of which finds out what the next one needs::

    decide   more departs than the floor lets go, or a guard concerns it   -> examine
    observe  it departs, and nobody knows who it is                        -> Unread: read the pages
    observe  all who depart are known                                      -> Guarded
    allow    who stays, who goes, and what has to be written before that   -> Allowed
    settle   written: those who stay are remembered, the rest is forgotten

Between them nothing is lost by a restart: what is held stands in the placement's status, and
whoever finds ``held`` there asks guards again. What is kept in memory (``_examined``, ``_read``)
only saves the reading.

Two kinds of members occur. ``member`` is the number that slices are cached by; it is made for this
process and is small. ``lasting_member`` is what the book and the name of a hold are made from; it
must be the same for whoever leads next, or a confirmation would be void after a restart.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Literal, NamedTuple

from skerry.api.edge import (
    CONFIRM,
    EDGE_PLACEMENTS,
    GUARD_FINALIZER,
    REMOVALS_HELD,
    slice_owner,
    sync_target_ref,
)
from skerry.api.objects import Object
from skerry.api.refs import ObjectRef
from skerry.controllers.edge_scheduler.observed import Guarded, Observed
from skerry.logic.fleet.guards.book import Book, book_of, has_finalizer, status_with
from skerry.logic.fleet.guards.budget import Loss, Rule, Verdict, judge, rules_of
from skerry.logic.fleet.guards.freeze import JOINING, LEAVING, Frozen
from skerry.logic.fleet.guards.index import GuardIndex
from skerry.logic.fleet.guards.spec import FLOOR, REMOVED, Guard
from skerry.logic.fleet.guards.token import member as lasting_member
from skerry.logic.fleet.placement.destination import DestinationTable
from skerry.logic.fleet.placement.records import Destination, is_being_deleted
from skerry.logic.fleet.placement.slices import member, unpacked_members
from skerry.logic.machinery.plan import Action, Announcement, Target, Update

_FLOOR_COUNT = FLOOR.limit(0)


class Unread(NamedTuple):
    """Pages that have to be read before guards can be asked."""

    pages: tuple[str, ...]


# -- observing ---------------------------------------------------------------------------------


class GuardState:
    """The guards there are, and what is known of destinations that depart."""

    def __init__(
        self,
        index: DestinationTable,
        now: Callable[[], datetime],
        provider: str = "",
        *,
        floor: bool = True,
    ) -> None:
        """*provider* is the cluster whose guards are for all; *floor*: the built-in one counts."""
        self._index = index
        self._now = now
        self.guards = GuardIndex(provider)
        self.floor = floor
        # Placements of which a decision found more departing than the floor lets go.
        self._examined: set[ObjectRef] = set()
        # By member, what pages were read to hold; only of placements with something departing.
        self._read: dict[ObjectRef, dict[int, Destination]] = {}
        # Placements that are being given the finalizer by a decision that goes on without waiting.
        self._finalizing: set[ObjectRef] = set()

    def expect_finalizer(self, ref: ObjectRef, *, expected: bool = True) -> None:
        """Say whether the event of a finalizer that is about to be written is no news."""
        if expected:
            self._finalizing.add(ref)
        else:
            self._finalizing.discard(ref)

    def take_finalizer(self, ref: ObjectRef, old: Object, new: Object) -> bool:
        """Tell whether all that came to a placement is the finalizer that was just written."""
        came = {*_finalizers(new)} - {*_finalizers(old)}
        expected = ref in self._finalizing
        self._finalizing.discard(ref)
        return expected and came == {GUARD_FINALIZER} and {*_finalizers(old)} <= {*_finalizers(new)}

    def examine(self, ref: ObjectRef) -> None:
        """Have the next decision about a placement ask guards."""
        self._examined.add(ref)

    def forget(self, ref: ObjectRef) -> None:
        """Take that a placement is gone, or nothing of it departs."""
        self._examined.discard(ref)
        self._finalizing.discard(ref)
        self._read.pop(ref, None)

    def settle(self, observed: Observed) -> None:
        """Take that a decision about a placement was carried out."""
        guarded = observed.guarded
        if guarded is not None:
            there = {*observed.destinations}
            stays = {member(each): each for each in guarded.departing if each in there}
            if stays:
                self._read[observed.ref] = stays
            elif not is_being_deleted(guarded.placement):
                self.forget(observed.ref)

    def note(self, ref: ObjectRef, destinations: Iterable[Destination]) -> None:
        """Take what a page was read to hold."""
        known = self._read.setdefault(ref, {})
        known.update((member(each), each) for each in destinations)

    def keeping(self, target: ObjectRef) -> set[ObjectRef]:
        """Return the placements that keep a destination at a SyncTarget, though it is unwanted.

        Nobody else finds them when the SyncTarget goes: their selectors do not.
        """
        key = target.cluster, target.name
        return {
            ref
            for ref, known in self._read.items()
            if any((each.cluster, each.sync_target) == key for each in known.values())
        }

    def of(self, ref: ObjectRef, placement: Object) -> tuple[Guard, ...]:
        """Return the guards that concern a placement."""
        labels = placement["metadata"].get("labels") or {}
        return self.guards.of(ref, self._index.workspace_labels(ref.cluster), labels)

    def observe(
        self, observed: Observed, placement: Object, waiting: frozenset[int] = frozenset()
    ) -> Guarded | Unread | None:
        """Return what guards have to know; None where none of them has a say.

        *waiting* are members that they have let go before, and that a Rollout keeps for its pace.
        """
        ref, guards = observed.ref, self.of(observed.ref, placement)
        if not guards and not self._is_asked(observed, placement):
            return None
        rules = rules_of(guards, REMOVED, floor=self.floor)
        wanted = {member(each) for each in observed.destinations}
        pages = _present_pages(observed)
        present = set().union(*pages.values()) if pages else set[int]()
        missing = present - wanted
        known = self._read.get(ref, {})
        unread = missing - known.keys()
        if unread:
            return Unread(tuple(name for name, held in pages.items() if unread & held))
        departing = tuple(sorted(known[each] for each in missing))
        found = Guarded(placement, rules, self._now(), len(present), departing)
        newcomers = [each for each in observed.destinations if member(each) not in present]
        judged = self._judged(found, observed, guards, newcomers)
        gone = frozenset(each for each in departing if member(each) in waiting)
        return replace(judged, exempt=judged.exempt | gone, frozen=judged.frozen - gone)

    def _is_asked(self, observed: Observed, placement: Object) -> bool:
        """Tell whether a placement is to be judged though no guard concerns it."""
        removals = (placement.get("status") or {}).get("removals") or {}
        if observed.ref in self._examined or "held" in removals or is_being_deleted(placement):
            return True
        large = self.floor and len(observed.destinations) > _FLOOR_COUNT
        return large and not has_finalizer(placement)

    def _judged(
        self,
        found: Guarded,
        observed: Observed,
        guards: tuple[Guard, ...],
        newcomers: list[Destination],
    ) -> Guarded:
        frozen = Frozen(guards, found.now)
        stays, barred, ends = set[Destination](), set[Destination](), list[datetime]()
        exempt = frozenset(each for each in found.departing if self.goes(each, observed.refused))
        for each, stop, into in (
            [
                *((each, LEAVING, stays) for each in found.departing if each not in exempt),
                *((each, JOINING, barred) for each in newcomers),
            ]
            if frozen
            else ()
        ):
            until = frozen.stopping(stop, self._labels(each) or {}).until
            if until is not None:
                into.add(each)
                ends.append(until)
        return replace(
            found,
            exempt=exempt,
            frozen=frozenset(stays),
            barred=frozenset(barred),
            until=min(ends, default=None),
            protected=self._protected(found.departing, guards),
        )

    def goes(self, destination: Destination, refused: Iterable[ObjectRef]) -> bool:
        """Tell whether a destination goes whatever guards say."""
        ref = sync_target_ref(destination.cluster, destination.sync_target)
        target = self._index.inventory.sync_target(ref)
        gone = target is None or target.uid != destination.uid
        return gone or destination.location_ref in refused

    def _labels(self, destination: Destination) -> Mapping[str, str] | None:
        location = self._index.inventory.location(destination.location_ref)
        return None if location is None else location.labels

    def _protected(
        self, departing: Iterable[Destination], guards: tuple[Guard, ...]
    ) -> dict[Destination, tuple[str, str]]:
        """Return the destinations at protected Locations, each with the guard and a sentence."""
        protections = [
            (guard, each)
            for guard in guards
            if guard.enforces
            for each in guard.protections
            if each.kind == "Location"
        ]
        found: dict[Destination, tuple[str, str]] = {}
        for each in departing if protections else ():
            labels = self._labels(each)
            # Here nobody knows why a Location is selected no more: the label, or the selector.
            lost = {"Delete"} if labels is None else {"Deselect", "Relabel"}
            for guard, protection in protections:
                if protection.covers(each.location, labels) and protection.against & lost:
                    text = f"PlacementGuard {guard.name} protects Location {each.location}"
                    found[each] = (guard.name, text)
        return found


def _finalizers(placement: Object) -> Sequence[str]:
    found: Sequence[str] = placement["metadata"].get("finalizers") or ()
    return found


def _present_pages(observed: Observed) -> dict[str, set[int]]:
    """Return what pages hold, but for those of a namesake that was deleted."""
    return {
        name: set(unpacked_members(held["members"]))
        for name, held in observed.slices.items()
        if (owner := slice_owner(held["metadata"])) is None or owner == observed.owner
    }


# -- deciding ----------------------------------------------------------------------------------


class Note(NamedTuple):
    """What guards have decided about destinations, to be recorded: ``Held`` or ``Released``.

    ``hold`` is its name; ``confirmed``: by a person.
    """

    change: Literal["Held", "Released"]
    destinations: tuple[Destination, ...]
    hold: str
    code: str
    text: str
    confirmed: bool = False


class Allowed(NamedTuple):
    """What guards make of a decision.

    ``observed`` has the destinations that slices are to hold now. ``before`` has to be written
    first. ``finished``: no slice is to be touched; ``undecided``: until what is written brings the
    placement back. ``notes`` are to be recorded before all of it. ``finalizes``: the finalizer of
    guards is what is written first, and nothing waits for its event.
    """

    observed: Observed
    before: tuple[Action, ...] = ()
    announcements: tuple[Announcement, ...] = ()
    requeue_after_seconds: float | None = None
    finished: bool = False
    notes: tuple[Note, ...] = ()
    undecided: bool = False
    finalizes: bool = False


def exceeds_floor(pages: Collection[Sequence[int]], wanted: Container[int]) -> bool:
    """Tell whether more departs than goes unasked without any guard."""
    total = sum(map(len, pages))
    if total <= _FLOOR_COUNT:
        return False
    departing = sum(1 for held in pages for each in held if each not in wanted)
    return departing > FLOOR.limit(total)


def allow(observed: Observed) -> Allowed:
    """Decide what slices may lose and gain now."""
    guarded = observed.guarded
    if guarded is None:
        return Allowed(observed)
    placement = guarded.placement
    counted = [e for e in guarded.departing if e not in guarded.exempt and e not in guarded.frozen]
    by_member = {lasting_member(each): each for each in counted}
    status = placement.get("status") or {}
    annotations = placement["metadata"].get("annotations") or {}
    loss = Loss(
        placement["metadata"]["uid"],
        frozenset(by_member),
        guarded.present,
        {key: guarded.protected[d] for key, d in by_member.items() if d in guarded.protected},
    )
    book = book_of(status)
    verdict = judge(loss, guarded.rules, book, annotations.get(CONFIRM, ""), guarded.now)
    news, notes = tuple(_news(placement, book, verdict)), tuple(_notes(book, verdict, by_member))
    if is_being_deleted(placement):
        return _deletion(observed, guarded, book, verdict, news)._replace(notes=notes)
    held = {by_member[each] for each in verdict.held} | guarded.frozen
    stays = sorted({*observed.destinations} - guarded.barred | held)
    before, finalizes = _writes(observed, guarded, book, verdict), False
    if not has_finalizer(placement) and _needs_finalizer(guarded.rules, observed):
        needed = _finalized(observed, placement)
        if before or observed.staged is not None:
            # Alone: a placement is written once per decision. The event of it brings us back.
            return Allowed(observed, (needed,), finished=True, undecided=True)
        before, finalizes = (needed,), True
    seconds = None
    if guarded.until is not None:
        seconds = max(1.0, (guarded.until - guarded.now).total_seconds())
    observed = replace(observed, destinations=tuple(stays))
    return Allowed(observed, before, news, seconds, notes=notes, finalizes=finalizes)


def _finalized(observed: Observed, placement: Object) -> Update:
    """Return what keeps a placement that is deleted until guards have been asked."""
    metadata = placement["metadata"]
    finalizers = [*(metadata.get("finalizers") or ()), GUARD_FINALIZER]
    changed = {**placement, "metadata": {**metadata, "finalizers": finalizers}}
    return _update(observed, changed, "GuardNeeded")


def _deletion(
    observed: Observed,
    guarded: Guarded,
    book: Book,
    verdict: Verdict,
    news: tuple[Announcement, ...],
) -> Allowed:
    """Let a placement go that is being deleted, or keep it until a person has confirmed that."""
    if verdict.held or guarded.frozen:
        before = _writes(observed, guarded, book, verdict)
        seconds = None
        if guarded.until is not None:
            seconds = max(1.0, (guarded.until - guarded.now).total_seconds())
        return Allowed(observed, before, news, seconds, finished=True)
    metadata = guarded.placement["metadata"]
    finalizers = [each for each in metadata.get("finalizers") or () if each != GUARD_FINALIZER]
    changed = {**guarded.placement, "metadata": {**metadata, "finalizers": finalizers}}
    return Allowed(observed, (_update(observed, changed, "GuardPassed"),), news, finished=True)


def _needs_finalizer(rules: Iterable[Rule], observed: Observed) -> bool:
    """Tell whether deleting a placement with these destinations would ask for a person."""
    total = len(observed.destinations)
    stopping = (each.budget for each in rules if each.enforces and each.budget.stops)
    return any(total > budget.limit(total) for budget in stopping)


def _writes(
    observed: Observed, guarded: Guarded, book: Book, verdict: Verdict
) -> tuple[Action, ...]:
    """Return what the placement has to say before anything goes."""
    placement = guarded.placement
    if verdict.confirmed:
        metadata = placement["metadata"]
        kept = {k: v for k, v in (metadata.get("annotations") or {}).items() if k != CONFIRM}
        changed = {**placement, "metadata": {**metadata, "annotations": kept}}
        return (_update(observed, changed, "RemovalConfirmed"),)
    if verdict.book == book:
        return ()
    status = status_with(placement.get("status"), verdict.book)
    return (_update(observed, {**placement, "status": status}, "BookChanged", "status"),)


def _update(observed: Observed, obj: Object, reason: str, subresource: str = "") -> Update:
    target = Target(EDGE_PLACEMENTS, observed.ref.name, cluster=observed.ref.cluster)
    return Update(target, obj, reason, subresource)


def _notes(book: Book, verdict: Verdict, departing: Mapping[bytes, Destination]) -> Iterable[Note]:
    """Yield what is held from now on, and what no more."""
    before, hold = book.hold, verdict.book.hold
    if hold is not None and (before is None or before.name != hold.name):
        held = tuple(departing[each] for each in sorted(verdict.held))
        yield Note("Held", held, hold.name, REMOVALS_HELD, hold.why)
    if before is not None and hold is None:
        gone = tuple(departing.values())
        if verdict.confirmed:
            yield Note("Released", gone, before.name, "Confirmed", "confirmed", confirmed=True)
        else:
            text = "what is left fits the budget"
            yield Note("Released", gone, before.name, "WithinBudget", text)


def _news(placement: Object, book: Book, verdict: Verdict) -> Iterable[Announcement]:
    hold = verdict.book.hold
    if verdict.confirmed and book.hold is not None:
        text = f"{book.hold.name}: {book.hold.removed} destinations are removed"
        yield Announcement(placement, "Normal", "RemovalConfirmed", text)
    if hold is not None and (book.hold is None or book.hold.name != hold.name):
        yield Announcement(placement, "Warning", "RemovalsHeld", f"{hold.name}: {hold.why}")
    for each in verdict.warnings:
        yield Announcement(placement, "Warning", "GuardWarning", each.text())
