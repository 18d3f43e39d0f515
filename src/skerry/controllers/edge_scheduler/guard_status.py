"""The status of PlacementGuards: what they hold, and whether they can do what they say.

What is held stands in the books of placements, which the scheduler and the placement translator
write. So a guard's status is read from there, and is the same whoever led meanwhile.

A hold names the guards it is by. A guard lists a hold under two conditions: its name is among
those, and it reaches the placement at all. The second is not idle: guards beside their placements
are all called ``./name``, so one of another workspace may have the same name.

``Valid`` is False also where nothing is wrong with the guard itself: a freeze of content has no
effect on a placement without a Rollout, since nothing then says when content goes where. Whoever
wrote the guard should learn of that from the guard, and not when it fails to freeze.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from skerry.api.edge import API_VERSION, PLACEMENT_GUARDS, REMOVALS_HELD
from skerry.api.objects import Object
from skerry.api.refs import ObjectRef
from skerry.controllers.edge_scheduler.guards import GuardState
from skerry.kit.timestamps import rfc3339
from skerry.logic.fleet.guards.book import Hold, hold_of
from skerry.logic.fleet.guards.freeze import CONTENT, unknown_zones
from skerry.logic.fleet.guards.spec import Guard
from skerry.logic.fleet.placement.destination import DestinationTable
from skerry.logic.machinery.conditions import condition, set_conditions
from skerry.logic.machinery.plan import NOTHING, Plan, Target, Update
from skerry.runtime.index import Key
from skerry.runtime.informer import Informer

VALID, HOLDING = "Valid", "Holding"
# Entries of status.held, and names in a message; none is lost by being left out for now.
_MAX_ENTRIES = 50
_MAX_NAMED = 5


class HeldHere(NamedTuple):
    """What is held of one placement: destinations, objects or both."""

    placement: ObjectRef
    holds: tuple[Hold, ...]


class GuardReports:
    """What placements say is held of them, by the guards that hold it.

    It follows events of placements: guards that reach one are enqueued when its holds are others.
    """

    def __init__(self, state: GuardState, enqueue: Callable[[ObjectRef], None]) -> None:
        """*enqueue* gets guards with news."""
        self.state = state
        self.enqueue = enqueue
        self._held: dict[ObjectRef, HeldHere] = {}

    def placement_changed(self, ref: ObjectRef, placement: Object | None) -> None:
        """Take what a placement says is held; None: it is gone."""
        removals = ((placement or {}).get("status") or {}).get("removals") or {}
        found = (hold_of(removals.get(each)) for each in ("held", "heldObjects"))
        holds = tuple(each for each in found if each is not None)
        before = self._held.get(ref)
        if before is None and not holds:
            return
        if holds:
            self._held[ref] = HeldHere(ref, holds)
        else:
            del self._held[ref]
        if before is None or before.holds != holds:
            for guard in self.state.guards:
                if self.state.guards.reaches(guard.ref, ref):
                    self.enqueue(guard.ref)

    def of(self, guard: Guard) -> list[tuple[ObjectRef, Hold]]:
        """Return what a guard holds, by placement."""
        return [
            (ref, hold)
            for ref, here in sorted(self._held.items())
            if self.state.guards.reaches(guard.ref, ref)
            for hold in here.holds
            if guard.name in hold.guards
        ]


@dataclass(frozen=True, slots=True)
class ObservedGuard:
    """A guard, what it holds, and what stands in its way."""

    guard: Guard
    object: Object
    # With the placements' names for people.
    held: tuple[tuple[str, Hold], ...] = ()
    # Placements whose content it would freeze, and that have no Rollout.
    without_rollout: tuple[str, ...] = ()
    unknown_zones: tuple[str, ...] = ()


class GuardObserver:
    """Reads what there is to report about one guard."""

    def __init__(
        self,
        reports: GuardReports,
        index: DestinationTable,
        guards: Informer,
        placements: Informer,
        has_rollout: Callable[[ObjectRef], bool],
        is_ready: Callable[[], bool],
    ) -> None:
        """*is_ready* returns whether the paths of workspaces are known."""
        self._reports = reports
        self._index = index
        self._guards = guards
        self._placements = placements
        self._has_rollout = has_rollout
        self._is_ready = is_ready

    async def observe(self, ref: ObjectRef) -> ObservedGuard | None:
        guard = self._reports.state.guards.get(ref)
        obj = self._guards.index.get(Key(ref.cluster, "", ref.name))
        if guard is None or obj is None or not self._is_ready():
            return None  # enqueued again when the paths are known
        locations = ((e.ref.name, e.labels) for e in self._index.inventory.locations())
        return ObservedGuard(
            guard,
            obj,
            tuple((self._text(each), hold) for each, hold in self._reports.of(guard)),
            tuple(self._text(each) for each in self._unrolled(guard)),
            tuple(unknown_zones(guard, locations)),
        )

    def _unrolled(self, guard: Guard) -> Iterable[ObjectRef]:
        """Yield the placements whose content a guard would freeze, if they had a Rollout."""
        if not any(CONTENT in freeze.stops for freeze in guard.freezes):
            return
        state = self._reports.state
        for each in sorted(placement.ref for placement in self._index.placements()):
            obj = self._placements.index.get(Key(each.cluster, "", each.name))
            if obj is not None and guard in state.of(each, obj) and not self._has_rollout(each):
                yield each

    def _text(self, placement: ObjectRef) -> str:
        return f"{self._index.consent.path(placement.cluster)}|{placement.name}"


def decide_guard(observed: ObservedGuard, now: datetime) -> Plan:
    """Bring the status of a guard up to date.

    The list of what is held is left out while it is empty, and cut where it is long.
    """
    old: Mapping[str, Any] = observed.object.get("status") or {}
    wanted = {key: value for key, value in old.items() if key not in ("held", "heldOmitted")}
    wanted["observedGeneration"] = int(observed.object["metadata"].get("generation") or 0)
    if observed.held:
        wanted["held"] = [_entry(text, hold) for text, hold in observed.held[:_MAX_ENTRIES]]
    if len(observed.held) > _MAX_ENTRIES:
        wanted["heldOmitted"] = len(observed.held) - _MAX_ENTRIES
    conditions = [_valid(observed), _holding(observed)]
    wanted["conditions"] = set_conditions(old.get("conditions") or (), conditions, rfc3339(now))
    if wanted == old:
        return NOTHING
    ref = observed.guard.ref
    obj = {
        "apiVersion": API_VERSION,
        "kind": "PlacementGuard",
        **observed.object,
        "status": wanted,
    }
    target = Target(PLACEMENT_GUARDS, ref.name, cluster=ref.cluster)
    return Plan([Update(target, obj, "GuardEvaluated", subresource="status")])


def _entry(placement: str, hold: Hold) -> Object:
    return {
        "placement": placement,
        "name": hold.name,
        "removed": hold.removed,
        "added": 0,
        "since": rfc3339(hold.since),
        "why": hold.why,
    }


def _valid(observed: ObservedGuard) -> Object:
    """Return ``Valid``: what is wrong, or has no effect; a time zone nobody knows is a remark."""
    if observed.guard.errors:
        return condition(VALID, False, "Invalid", "; ".join(observed.guard.errors))
    if observed.without_rollout:
        text = f"without a Rollout content is not frozen: {_named(observed.without_rollout)}"
        return condition(VALID, False, "NeedsRollout", text)
    return condition(VALID, True, VALID, _named(observed.unknown_zones, "; "))


def _holding(observed: ObservedGuard) -> Object:
    """Return ``Holding``, which names what a person has to confirm, and at which placement."""
    if not observed.held:
        text = "" if observed.guard.enforces else "the guard only observes"
        return condition(HOLDING, False, "NothingHeld", text)
    named = [f"{text} ({hold.removed} removed: {hold.name})" for text, hold in observed.held]
    return condition(HOLDING, True, REMOVALS_HELD, _named(named))


def _named(names: Iterable[str], separator: str = ", ") -> str:
    listed = list(names)
    more = len(listed) - _MAX_NAMED
    text = separator.join(listed[:_MAX_NAMED])
    return f"{text} and {more} more" if more > 0 else text
