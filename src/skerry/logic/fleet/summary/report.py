"""``report``: what one copy of an object tells about its place, read once and kept small.

*Delivered* means that the syncer has applied the content the mailbox holds now; its marks on the
copy say so, and say why where it could not be applied. What cannot be applied is not healthy,
whatever state an older content is still reported in, and whether or not its kind has a state.

Where the state is not well, the mark with the cause at the edge says why: "no such image" tells an
owner more than "1 of 3 replicas".

The report time is when the status was last written, which the server itself notes in
``managedFields``: no clock of an edge enters.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import orjson

from skerry.api.edge import CAUSE, SYNC_ERROR, WITHHELD_FROM, is_projected, is_system_object
from skerry.api.objects import Raw
from skerry.api.refs import ClusterName, ObjectRef
from skerry.logic.fleet.summary.health import (
    MAX_MESSAGE_LENGTH,
    MAX_REASON_LENGTH,
    NOT_ENFORCED,
    NOT_REPORTED,
    Health,
    Verdict,
    because,
    conditions_of,
    health,
    unreported,
)
from skerry.logic.fleet.syncing.delivery import is_delivered
from skerry.logic.fleet.translation.ownership import owned_of
from skerry.logic.fleet.translation.source_generation import recorded_generation

Number = int | float

# An edge may report what it likes; a summary has room for so much of it.
MAX_NUMBERS = 64
MAX_CONDITIONS = 32
MAX_FIELD_LENGTH = 128
_MAX_DEPTH = 8


# A cluster, and a generation of an object in it.
Origin = tuple[ClusterName, int]
NO_ORIGIN: Final[Origin] = ("", 0)


@dataclass(frozen=True, slots=True)
class Report:
    """The state at one destination. ``digest`` tells one status from another.

    ``last_heard`` is None while the destination's Lease lives. Then it says until when it did,
    empty when it never has, and nothing else here is known; see ``freshness``. ``origin`` is the
    workspace whose object the copy is and the generation of that it was made of, where it records
    them. ``withheld_from`` are workspaces for which it is no report, because they place something
    else under the name.
    """

    delivered: bool = False
    reported: bool = False
    health: Health = NOT_REPORTED
    time: str = ""
    numbers: tuple[tuple[str, Number], ...] = ()
    conditions: tuple[tuple[str, str], ...] = ()
    digest: str = ""
    last_heard: str | None = None
    origin: Origin = NO_ORIGIN
    withheld_from: tuple[ClusterName, ...] = ()


NOT_APPLIED: Final = Health("Unknown", "NotApplied", "the syncer has not applied it yet")
ABSENT: Final = Report(health=Health("Unknown", "NotInMailbox", "the mailbox has no copy yet"))
# The owner is named by the placement's conditions; see ``translation.ownership``.
TAKEN: Final = Report(
    health=Health("False", "NameTaken", "another workspace's object has this name there")
)
_DELIVERED = Report(delivered=True)
_UNDELIVERED = Report()


def report_of(group: str, kind: str, obj: Raw) -> Report:
    """Read the copy *obj* of a mailbox."""
    return _withheld(_report(group, kind, obj), obj)


def _report(group: str, kind: str, obj: Raw) -> Report:
    delivered = is_delivered(obj)
    error, cause = _health_of_mark(obj, SYNC_ERROR), _health_of_mark(obj, CAUSE)
    status = obj.get("status")
    if not isinstance(status, Mapping) or not status:
        if error is None and delivered:
            found = because(unreported(group, kind, obj), cause)
            return Report(delivered=True, health=found, origin=_origin(obj))
        return Report(delivered=delivered, health=error or NOT_APPLIED, origin=_origin(obj))
    return Report(
        delivered=delivered,
        reported=True,
        health=error or because(health(group, kind, obj), cause),
        time=reported_at(obj),
        numbers=tuple(sorted(_first(MAX_NUMBERS, _numbers(status)))),
        conditions=tuple(sorted(_first(MAX_CONDITIONS, _conditions(status)))),
        digest=digest_of(status),
        origin=_origin(obj),
    )


def delivery_of(obj: Raw) -> Report:
    """Read of a copy whether it was delivered, or why not: all that kinds without status tell.

    Where it has no effect at its edge, that is reported too.
    """
    return _withheld(_delivery(obj), obj)


def _delivery(obj: Raw) -> Report:
    delivered = is_delivered(obj)
    wrong = _health_of_mark(obj, SYNC_ERROR) or _health_of_mark(obj, CAUSE)
    if wrong is not None:
        return Report(delivered=delivered, health=wrong)
    return _DELIVERED if delivered else _UNDELIVERED


def _withheld(report: Report, obj: Raw) -> Report:
    text = (obj["metadata"].get("annotations") or {}).get(WITHHELD_FROM)
    return replace(report, withheld_from=tuple(text.split(","))) if text else report


def own_report(report: Report, cluster: ClusterName) -> Report:
    """Return what a report says to a workspace that places something under its name."""
    return TAKEN if cluster in report.withheld_from else report


@dataclass(frozen=True, slots=True)
class Copy:
    """An object of some kind in some cluster, whole, as ``reference`` reads it."""

    kind: str
    has_status: bool
    obj: Raw


def reference(
    mailboxes: Mapping[ClusterName, str], copies: Mapping[ObjectRef, Copy]
) -> dict[tuple[ObjectRef, str], Report]:
    """Compute every report from scratch, by item and SyncTarget UID.

    *mailboxes* are SyncTarget UIDs by the cluster of the mailbox. What is in no mailbox, or there
    without being a copy, reports nothing.
    """
    found = {}
    for ref, copy in copies.items():
        uid = mailboxes.get(ref.cluster)
        if (
            uid is None
            or not is_projected(copy.obj)
            or is_system_object(ref.group_resource, copy.obj)
        ):
            continue
        whole = report_of(ref.group, copy.kind, copy.obj) if copy.has_status else None
        found[ref.at(""), uid] = delivery_of(copy.obj) if whole is None else whole
    return found


def _health_of_mark(obj: Raw, mark: str) -> Health | None:
    """Return the health that a mark ``Reason: message`` stands for; None when it is absent.

    What has no effect at its edge is not ill for that.
    """
    text = (obj["metadata"].get("annotations") or {}).get(mark)
    if not isinstance(text, str) or not text:
        return None
    reason, _, message = text.partition(": ")
    status: Verdict = "Unknown" if reason == NOT_ENFORCED else "False"
    return Health(status, reason[:MAX_REASON_LENGTH], message[:MAX_MESSAGE_LENGTH])


def _origin(obj: Raw) -> Origin:
    generation = recorded_generation(obj)
    owned = owned_of(obj) if generation else None
    return (owned.cluster, generation) if owned is not None else NO_ORIGIN


def digest_of(status: object) -> str:
    """Return what tells *status* from any other; empty when there is none."""
    if not status:
        return ""
    text = orjson.dumps(status, option=orjson.OPT_SORT_KEYS)
    return hashlib.blake2b(text, digest_size=12).hexdigest()


def reported_at(obj: Raw) -> str:
    """Return when the status was last written; empty when nobody noted it."""
    times = [
        str(entry.get("time", ""))
        for entry in (obj.get("metadata") or {}).get("managedFields") or ()
        if entry.get("subresource") == "status"
    ]
    return max(times, default="")


def _first(limit: int, pairs: Iterator[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    """Yield the first *limit* pairs with different names."""
    seen: set[str] = set()
    for name, value in pairs:
        if name not in seen:
            if len(seen) == limit:
                return
            seen.add(name)
            yield name, value


def _numbers(section: Raw, prefix: str = "", depth: int = 1) -> Iterator[tuple[str, Number]]:
    """Yield the numbers below a status; what lists hold has no name that lasts."""
    for name, value in sorted(section.items()):
        field = f"{prefix}{name}"
        if isinstance(value, Mapping):
            if depth < _MAX_DEPTH:
                yield from _numbers(value, f"{field}.", depth + 1)
        elif _is_number(value) and len(field) <= MAX_FIELD_LENGTH:
            yield field, value


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _conditions(section: Raw) -> Iterator[tuple[str, str]]:
    for condition in sorted(conditions_of(section), key=lambda found: str(found["type"])):
        status = condition.get("status")
        name = condition["type"][:MAX_REASON_LENGTH]
        yield name, status if status in ("True", "False") else "Unknown"
