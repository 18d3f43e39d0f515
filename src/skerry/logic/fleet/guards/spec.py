"""PlacementGuards as records, and what is wrong with them.

A schema refuses most of it. What no schema can say (a schedule that is none, a time zone nobody
knows, a window too long) is an error here: a hub of ours answers 422, on any other the guard's
condition ``Valid`` says it. Of a guard with errors the parts that are right still guard.

How many may go at once by a budget, and how many are asked about:

    max: 5                   of 20, 5 may go; 6 are too many
    percent: 50              of 20, 10 may go; 11 are too many
    max: 5, percent: 50      of 20, 11 are too many; of 4, all may go
    ContentChanged, 50       of 20, 10 are too many already: to change half is to ask

The larger number counts, so a share does not ask about each one of a few, nor a number about a
small part of very many.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

from skerry.api.edge import ENFORCE, PLACEMENT_GUARDS
from skerry.api.errors import FieldError
from skerry.api.kcp.guards import LABEL_ZONE
from skerry.api.objects import Object
from skerry.api.refs import ObjectRef
from skerry.logic.fleet.guards.schedule import WallSchedule, shortest_period, zone_named
from skerry.logic.machinery.cron import ScheduleError
from skerry.logic.machinery.durations import DurationError, duration_of
from skerry.logic.machinery.selectors import Selector, SelectorError

REMOVED, ADDED = "DestinationsRemoved", "DestinationsAdded"
OBJECTS, CONTENT = "ObjectsRemoved", "ContentChanged"
WARN, CONFIRMED, DENY = "Warn", "Confirm", "Deny"
# Actions, the strictest last.
_STRICTNESS = (WARN, CONFIRMED, DENY)

_MIN_WINDOW, _MAX_WINDOW = timedelta(seconds=1), timedelta(days=7)
# Whoever is in one of these may pass nearly everything: worth a warning, and sometimes meant.
_EVERYBODY = ("system:authenticated", "system:unauthenticated")

T = TypeVar("T")
_Labels = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Budget:
    """How much of something may happen to one placement; ``window`` None: in one decision."""

    of: str
    max: int | None = None
    percent: int | None = None
    window: timedelta | None = None
    action: str = CONFIRMED

    def limit(self, total: int) -> int:
        """Return how many of *total* may; exceeded is what is above both numbers.

        A share is rounded down: of three, half is one.
        """
        share = 0 if self.percent is None else total * self.percent // 100
        return max(share, self.max or 0)

    def is_exceeded(self, number: int, total: int) -> bool:
        """Tell whether so many of *total* are too many.

        All are the most whose content can change at once, so there a number is exceeded when it is
        reached: ``percent: 100`` is everybody.
        """
        limit = self.limit(total)
        return number > limit or (self.of == CONTENT and number == limit > 0)

    @property
    def stops(self) -> bool:
        """Whether more than a warning comes of it."""
        return self.action != WARN


# What holds without any guard, with the numbers that syncers have for objects. A placement of up to
# 50 destinations may lose them all.
FLOOR = Budget(REMOVED, max=50, percent=50)


@dataclass(frozen=True, slots=True)
class Protection:
    """Objects whose loss asks for a person. Without names and selector it covers nothing."""

    kind: str
    names: frozenset[str]
    selector: Selector
    against: frozenset[str]

    def covers(self, name: str, labels: _Labels | None) -> bool:
        """Tell whether an object is protected; *labels* None: nobody knows them any more."""
        return name in self.names or (labels is not None and self.selector.matches(labels))


@dataclass(frozen=True, slots=True)
class Freeze:
    """Times in which nothing new begins at some Locations."""

    name: str
    schedule: WallSchedule
    duration: timedelta
    # A name, or ``label:`` and the key of a label of each Location.
    zone: str
    # None: everywhere.
    locations: Selector | None
    stops: frozenset[str]


@dataclass(frozen=True, slots=True)
class Guard:
    """A PlacementGuard. ``workspaces`` and ``placements`` None: whatever the labels."""

    ref: ObjectRef
    # As messages and holds call it.
    name: str
    enforces: bool = True
    workspaces: Selector | None = None
    placements: Selector | None = None
    budgets: tuple[Budget, ...] = ()
    protections: tuple[Protection, ...] = ()
    freezes: tuple[Freeze, ...] = ()
    users: frozenset[str] = frozenset()
    groups: frozenset[str] = frozenset()
    errors: tuple[str, ...] = ()

    def concerns(self, workspace: _Labels, placement: _Labels) -> bool:
        """Tell whether a placement with these labels, of its workspace and its own, is meant."""
        if self.workspaces is not None and not self.workspaces.matches(workspace):
            return False
        return self.placements is None or self.placements.matches(placement)

    def lets_pass(self, user: str, groups: Iterable[str]) -> bool:
        """Tell whether a user is among those who bypass the guard."""
        return user in self.users or not self.groups.isdisjoint(groups)


def guard_of(obj: Object) -> Guard:
    """Read a PlacementGuard object; what a server without our schema lets through is an error.

    It never raises: a guard that cannot be read at all guards nothing and says so in ``errors``.
    """
    ref = ObjectRef.of(PLACEMENT_GUARDS.group_resource, obj)
    reader = _Reader()
    try:
        return reader.guard(ref, obj.get("spec") or {})
    except (AttributeError, TypeError, ValueError, KeyError) as error:
        return Guard(ref, ref.name, errors=(f"spec: not a PlacementGuard: {error}",))


def guard_errors(obj: Object) -> list[FieldError]:
    """Return the errors in a PlacementGuard that its schema cannot find, and has let through."""
    reader = _Reader()
    reader.guard(ObjectRef.of(PLACEMENT_GUARDS.group_resource, obj), obj.get("spec") or {})
    return reader.errors


def guard_warnings(obj: Object) -> Sequence[str]:
    """Return what a valid PlacementGuard may not mean as it is, in sentences."""
    return tuple(_doubts(obj.get("spec") or {}))


def _doubts(spec: Mapping[str, Any]) -> Iterator[str]:
    for number, each in enumerate(spec.get("bypass") or ()):
        if each.get("group") in _EVERYBODY:
            yield f"spec.bypass[{number}].group: {each['group']} lets nearly everybody pass"
    if not any(spec.get(part) for part in ("budgets", "protect", "freezes")):
        yield "spec: no budgets, protect or freezes, so the guard guards nothing"


def says_of_objects(guard: Guard) -> bool:
    """Tell whether a guard counts or protects objects, and not only destinations.

    Where none does, a request that deletes an object passes without a look at the placements.
    """
    return any(each.of in (OBJECTS, CONTENT) for each in guard.budgets) or any(
        each.kind == "Namespace" for each in guard.protections
    )


def strictest(actions: Iterable[str]) -> str:
    """Return the strictest of some actions; empty for none."""
    return max(actions, key=_STRICTNESS.index, default="")


class _UnreadableDuration(Exception):
    """Raised out of the part that has the duration; the error is noted already."""


class _Reader:
    """Reads a spec part by part; a part with an error is left out, and the error kept.

    A selector is the exception: unreadable, it selects nothing, so its guard concerns no placement
    and its freeze no Location. To take it for an absent one, which selects all, would stop the
    work of people whom the guard was never about.
    """

    def __init__(self) -> None:
        self.errors: list[FieldError] = []

    def guard(self, ref: ObjectRef, spec: Mapping[str, Any]) -> Guard:
        placements, bypass = spec.get("placements") or {}, spec.get("bypass") or ()
        workspaces = self._selector(placements, "workspaces", "spec.placements")
        selected = self._selector(placements, "selector", "spec.placements")
        budgets = self._each(spec, "budgets", self._budget)
        protections = self._each(spec, "protect", self._protection)
        freezes = self._each(spec, "freezes", self._freeze)
        return Guard(
            ref,
            ref.name,
            spec.get("mode", ENFORCE) == ENFORCE,
            workspaces,
            selected,
            budgets,
            protections,
            freezes,
            frozenset(each["user"] for each in bypass if each.get("user")),
            frozenset(each["group"] for each in bypass if each.get("group")),
            tuple(map(str, self.errors)),
        )

    def _each(
        self, spec: Mapping[str, Any], name: str, read: Callable[[Mapping[str, Any], str], T | None]
    ) -> tuple[T, ...]:
        listed = enumerate(spec.get(name) or ())
        found: list[T] = []
        for number, each in listed:
            with suppress(_UnreadableDuration):
                part = read(each, f"spec.{name}[{number}]")
                if part is not None:
                    found.append(part)
        return tuple(found)

    def _budget(self, obj: Mapping[str, Any], path: str) -> Budget | None:
        window = self._duration(obj, "window", path)
        if window is not None and not _MIN_WINDOW <= window <= _MAX_WINDOW:
            self._wrong(f"{path}.window", obj["window"], "want 1s to 168h")
            return None
        if obj.get("max") is None and obj.get("percent") is None:
            self.errors.append(FieldError.required(path, "want max, percent or both"))
            return None
        action = obj.get("action") or CONFIRMED
        return Budget(obj["of"], obj.get("max"), obj.get("percent"), window, action)

    def _protection(self, obj: Mapping[str, Any], path: str) -> Protection:
        selector = self._selector(obj, "selector", path)
        return Protection(
            obj["kind"],
            frozenset(obj.get("names") or ()),
            Selector(nothing=True) if selector is None else selector,
            frozenset(obj["against"]),
        )

    def _freeze(self, obj: Mapping[str, Any], path: str) -> Freeze | None:
        duration = self._duration(obj, "duration", path)
        zone = obj.get("timeZone") or "UTC"
        if not zone.startswith(LABEL_ZONE) and zone_named(zone) is None:
            self._wrong(f"{path}.timeZone", zone, "unknown time zone")
            return None
        try:
            schedule = WallSchedule(obj["schedule"])
        except ScheduleError as error:
            self._wrong(f"{path}.schedule", obj["schedule"], str(error))
            return None
        if duration is None or duration <= timedelta():
            self._wrong(f"{path}.duration", obj["duration"], "want more than nothing")
            return None
        # Longer, it would begin again before it ends, and nothing could ever begin.
        period = shortest_period(schedule)
        if period is not None and duration > period:
            text = f"longer than the {period} from one beginning to the next"
            self._wrong(f"{path}.duration", obj["duration"], text)
            return None
        locations = self._selector(obj, "locations", path)
        return Freeze(obj["name"], schedule, duration, zone, locations, frozenset(obj["stops"]))

    def _selector(self, obj: Mapping[str, Any], name: str, path: str) -> Selector | None:
        """Return a selector; one that cannot be read selects nothing."""
        if obj.get(name) is None:
            return None
        try:
            return Selector.from_label_selector(obj[name], f"{path}.{name}")
        except SelectorError as error:
            self.errors += error.errors
            return Selector(nothing=True)

    def _duration(self, obj: Mapping[str, Any], name: str, path: str) -> timedelta | None:
        """Return a duration, or None where there is none.

        One that cannot be read is an error and ends the part: whatever is said next of its length
        would be a second error for one field, about a value that nobody wrote.
        """
        if obj.get(name) is None:
            return None
        try:
            return duration_of(obj[name])
        except DurationError as error:
            self._wrong(f"{path}.{name}", obj[name], str(error))
            raise _UnreadableDuration from error

    def _wrong(self, path: str, value: object, detail: str) -> None:
        self.errors.append(FieldError.invalid(path, value, detail))
