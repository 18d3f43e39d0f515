"""Decisions as DecisionRecords, and DecisionRecords as what they say.

The name of a record is ``<placement>-<revision>-<counter>-<content>``: the store revision that the
decision followed from, a counter among those of that revision, and a digest of what was decided. A
decision that is repeated after a crash therefore has the same name, and another decision has
another one, so "it exists already" means that exactly this was recorded. Time, cause and the digest
of the record before are no part of the name: they may differ when a decision is repeated.

The short digest in a name makes writing idempotent, and a changed body no longer fits its own name.
The long one, which the next record has under ``previous``, is of everything that never changes:
in a chain nothing can be changed, left out or put between unnoticed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import blake2b
from itertools import islice
from operator import attrgetter
from typing import Any, NamedTuple

import orjson
from pyroaring import BitMap

from skerry.api.edge import API_VERSION, DECIDED_BY, SOURCE_PLACEMENT
from skerry.api.kcp.history import CHANGES, MAX_CAUSES, Change
from skerry.api.objects import Object
from skerry.kit.timestamps import rfc3339_micro
from skerry.logic.fleet.history.fields import check_fields, named_in, time_of, whole_number
from skerry.logic.fleet.history.packing import (
    Corrupt,
    Standing,
    check_state,
    key_of,
    packed_keys,
    packed_slots,
    packed_state,
    unpacked_keys,
    unpacked_slots,
    unpacked_state,
)
from skerry.logic.fleet.placement.slices import label_for

# Destinations are named one by one if they are so few that a person would read them. Newcomers are
# many when a placement is made: what is named costs a server as much as the slice itself.
MAX_READABLE = 20
# Destinations in one record that has them compressed: some 40 bytes of text each, and 150 where
# their names are as long as labels may be. A record takes a million.
_STATE_PAGE = 5_000
_MAX_TEXT = 1024
_NAME_LENGTH = 253
_DESTINATION = attrgetter("destination")
# Anchored at the end alone: a placement may itself be called web-202611182107-0001.
_ENDING = re.compile(r"-([0-9]{12,20})-([0-9]{4,9})-(?:z([0-9]{3}))?([0-9a-f]{8})\Z")


class Reason(NamedTuple):
    """Why: one word for programs, a sentence for people."""

    code: str
    text: str = ""


class Cause(NamedTuple):
    """The change of an object that led to a decision; without ``user`` nobody vouches for one."""

    kind: str
    name: str
    cluster: str = ""
    namespace: str = ""
    resource_version: str = ""
    change: str = ""
    user: str = ""
    audit_id: str = ""
    manager: str = ""


class Subject(NamedTuple):
    """The EdgePlacement that was decided about."""

    name: str
    uid: str
    generation: int = 0


class Maker(NamedTuple):
    """The controller that decided, and its version."""

    controller: str
    version: str = ""


class Item(NamedTuple):
    """One object, and the digests of what was sent of it before and after."""

    group: str
    resource: str
    namespace: str
    name: str
    start: str = ""
    to: str = ""


@dataclass(frozen=True, slots=True)
class Decision:
    """What was decided about some destinations at once.

    ``everybody``: all that there were; ``count``: how many, where nobody keeps which.
    """

    change: Change
    standings: tuple[Standing, ...]
    reason: Reason
    causes: tuple[Cause, ...] = ()
    cause_count: int = 0
    start: int | None = None
    to: int | None = None
    item: Item | None = None
    everybody: int | None = None
    count: int = 0


class Order(NamedTuple):
    """Where a record stands among those of its placement."""

    revision: int
    counter: int
    # Page of a checkpoint, from 1; 0 for any other record.
    checkpoint: int = 0
    content: str = ""


class Head(NamedTuple):
    """The last record of a chain."""

    order: Order
    digest: str


# -- making ----------------------------------------------------------------------------------


def records_of(
    decisions: Iterable[Decision],
    subject: Subject,
    maker: Maker,
    *,
    follows: int,
    head: Head | None,
    now: datetime,
    store: str = "",
) -> list[Object]:
    """Return decisions as objects, chained to *head* and to each other, in order.

    *follows* is the store revision that they follow from.
    """
    found: list[Object] = []
    for page in (page for decision in decisions for page in _pages(decision)):
        body = _body(page, subject, maker, now, store)
        content = _content(body)
        revision = max(follows, head.order.revision if head is not None else 0)
        same = head is not None and head.order.revision == revision
        counter = head.order.counter + 1 if same and head is not None else 0
        number = page.number if page.decision.change == "Checkpoint" else 0
        order = Order(revision, counter, number, content)
        if head is not None:
            body["previous"] = head.digest
        obj = _object(body, subject.name, order)
        found.append(obj)
        head = Head(order, digest(obj))
    return found


def checkpoint_of(
    standings: Sequence[Standing],
    subject: Subject,
    maker: Maker,
    *,
    after: Order,
    time: datetime,
    chains: Mapping[str, str],
) -> list[Object]:
    """Return the records that stand for everything up to *after*, which was decided at *time*.

    *chains* are the digests of the last records by controller. They sort behind *after* and before
    whatever follows it.
    """
    decision = Decision("Checkpoint", tuple(standings), Reason("Retention"))
    found = []
    for page in _pages(decision):
        body = _body(page, subject, maker, time, "")
        body["chains"] = [{"controller": name, "digest": chains[name]} for name in sorted(chains)]
        order = Order(after.revision, after.counter, page.number, _content(body))
        found.append(_object(body, subject.name, order))
    return found


class _Page(NamedTuple):
    decision: Decision
    standings: tuple[Standing, ...]
    number: int
    of: int


def _pages(decision: Decision) -> Iterator[_Page]:
    """Cut a decision into what one record may hold."""
    ordered = tuple(sorted(decision.standings, key=_DESTINATION))
    size = _STATE_PAGE if _is_packed(decision, ordered) else len(ordered)
    count = max(1, -(-len(ordered) // size)) if size else 1
    for number in range(count):
        part = ordered[number * size : (number + 1) * size]
        yield _Page(decision, part, number + 1, count)


def _get_slots(decision: Decision, standings: Iterable[Standing]) -> bool:
    """Tell whether some had no slot before, so that nobody could resolve their new ones."""
    fresh = decision.change == "Revised" and decision.start is None
    return fresh and any(each.slot is not None for each in standings)


def _is_packed(decision: Decision, standings: Sequence[Standing]) -> bool:
    """Tell whether a record has each of its destinations, but not in words."""
    if decision.change == "Checkpoint":
        return True
    whole = decision.change == "Joined" or _get_slots(decision, standings)
    return whole and len(standings) > MAX_READABLE


def _body(page: _Page, subject: Subject, maker: Maker, now: datetime, store: str) -> dict[str, Any]:
    decision = page.decision
    body: dict[str, Any] = {
        "time": rfc3339_micro(now)[:23] + "Z",
        "placement": {"name": subject.name, "uid": subject.uid, "generation": subject.generation},
        "change": decision.change,
        "destinations": _destinations(page),
        "reason": {"code": decision.reason.code, "text": decision.reason.text[:_MAX_TEXT]},
        "by": {"controller": maker.controller, "version": maker.version},
    }
    revisions = {"from": decision.start, "to": decision.to}
    body |= {name: value for name, value in revisions.items() if value is not None}
    if decision.item is not None:
        body["object"] = _item(decision.item)
    if page.of > 1:
        body["page"] = {"number": page.number, "of": page.of}
    if store:
        body["store"] = store
    return {**body, **_causes(decision)}


def _item(item: Item) -> dict[str, str]:
    fields = {
        "group": item.group,
        "resource": item.resource,
        "namespace": item.namespace,
        "name": item.name,
        "from": item.start,
        "to": item.to,
    }
    return {name: value for name, value in fields.items() if value}


def _destinations(page: _Page) -> dict[str, Any]:
    decision, standings = page.decision, page.standings
    if decision.everybody is not None:
        return {"count": decision.everybody, "all": True}
    found: dict[str, Any] = {"count": len(standings) or decision.count}
    if _is_packed(decision, standings):
        found["state"] = packed_state(standings)
        if decision.change in ("Checkpoint", "Joined"):
            return found
    slots = [each.slot for each in standings if each.slot is not None]
    if slots:
        found["slots"] = packed_slots(slots)
    if len(slots) < len(standings):
        keys = (key_of(each.destination) for each in standings if each.slot is None)
        found["keys"] = packed_keys(keys)
    if len(standings) <= MAX_READABLE:
        found["named"] = [_named(each) for each in standings]
    return found


def _named(standing: Standing) -> dict[str, Any]:
    (cluster, location, sync_target, uid), slot, _ = standing
    named = {"cluster": cluster, "location": location, "syncTarget": sync_target, "uid": uid}
    return named if slot is None else {"slot": slot, **named}


def _causes(decision: Decision) -> dict[str, Any]:
    if not decision.causes:
        return {}
    first, *others = islice(decision.causes, MAX_CAUSES)
    found: dict[str, Any] = {"cause": _cause(first)}
    if others:
        found["otherCauses"] = [_cause(each) for each in others]
    count = max(decision.cause_count, len(decision.causes))
    if count > 1 + len(others):
        found["causeCount"] = count
    return found


def _cause(cause: Cause) -> dict[str, str]:
    fields = {
        "kind": cause.kind,
        "name": cause.name,
        "namespace": cause.namespace,
        "cluster": cause.cluster,
        "resourceVersion": cause.resource_version,
        "change": cause.change[:_MAX_TEXT],
        "user": cause.user[:_MAX_TEXT],
        "auditID": cause.audit_id[:64],
        "manager": cause.manager[:128],
    }
    return {name: value for name, value in fields.items() if value}


def _object(body: Mapping[str, Any], placement: str, order: Order) -> Object:
    metadata = {
        "name": name_for(placement, order),
        "labels": {
            SOURCE_PLACEMENT: label_for(placement),
            DECIDED_BY: body["by"]["controller"],
        },
    }
    return {"apiVersion": API_VERSION, "kind": "DecisionRecord", "metadata": metadata, **body}


# -- names and digests -----------------------------------------------------------------------


def name_for(placement: str, order: Order) -> str:
    """Return the name of a record; that of a placement too long for it is cut as its label is."""
    # "z" sorts behind every hexadecimal digit.
    kind = f"z{order.checkpoint:03d}" if order.checkpoint else ""
    ending = f"-{order.revision:012d}-{order.counter:04d}-{kind}{order.content}"
    base = placement if len(placement) + len(ending) <= _NAME_LENGTH else label_for(placement)
    return base + ending


def order_of(name: str) -> Order | None:
    """Return where a record stands, by its name; None for a name that no record has."""
    found = _ENDING.search(name[-46:])
    if found is None:
        return None
    return Order(int(found[1]), int(found[2]), int(found[3] or 0), found[4])


def head_of(record: Object) -> Head | None:
    """Return the end of the chain that *record* is the last of; None where it has no place."""
    order = order_of(str(record["metadata"]["name"]))
    return Head(order, digest(record)) if order is not None else None


def in_order(objects: Iterable[Object]) -> list[Object]:
    """Return records in the order of decisions; those with no name of a record come last."""

    def key(obj: Object) -> tuple[bool, tuple[object, ...], str]:
        name = str(obj["metadata"]["name"])
        order = order_of(name)
        return order is None, tuple(order or ()), name

    return sorted(objects, key=key)


def _content(body: Mapping[str, Any]) -> str:
    """Return the digest of what was decided."""
    decided = [
        body["placement"]["uid"],
        body["change"],
        body.get("from"),
        body.get("to"),
        body.get("object"),
        body.get("destinations"),
        body.get("page"),
    ]
    return _hash(decided, 4)


def digest(record: Mapping[str, Any]) -> str:
    """Return the digest of a record: of everything in it that never changes."""
    body = {name: value for name, value in record.items() if name not in _NOT_IN_DIGEST}
    return _hash([record["metadata"]["name"], body], 16)


_NOT_IN_DIGEST = ("apiVersion", "kind", "metadata")


def _hash(value: object, size: int) -> str:
    text = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    return blake2b(text, digest_size=size).hexdigest()


# -- reading ---------------------------------------------------------------------------------


class Place(NamedTuple):
    """Where a checkpoint stands: its placement, the order of its first page, and what it is for."""

    uid: str
    revision: int
    counter: int
    folded: bool


@dataclass(frozen=True, slots=True)
class Record:
    """A DecisionRecord as read. ``slots`` and ``keys`` together are its destinations."""

    name: str
    order: Order
    time: datetime
    change: Change
    uid: str
    count: int
    slots: BitMap | None
    keys: Sequence[int]
    named: tuple[Standing, ...]
    everybody: bool
    start: int | None
    to: int | None
    # Its page and how many there are; a checkpoint says something only with all of them.
    page: int
    pages: int
    object: Mapping[str, Any]

    @property
    def place(self) -> Place:
        """Of a checkpoint: where it stands, which is the same for all its pages.

        Two controllers that write one at the same place write the same. One that a history is
        folded into has one counter; one that begins a chain is part of it, page after page.
        """
        folded = "chains" in self.object
        first = self.order.counter - (0 if folded else self.page - 1)
        return Place(self.uid, self.order.revision, first, folded)

    @property
    def standings(self) -> list[Standing]:
        """Of a checkpoint: all destinations.

        They are unpacked whenever they are asked for. A history has a checkpoint a day, of which
        an answer needs one, and half a kilobyte for each destination is too much to keep of all.
        """
        return unpacked_state(self.object["destinations"]["state"])


def read(obj: Mapping[str, Any]) -> Record:
    """Return what a record says; raises ``Corrupt`` if it cannot be believed."""
    name = str(obj["metadata"]["name"])
    order = order_of(name)
    if order is None:
        raise Corrupt(f"{name}: no name that a record has")
    try:
        if _content(obj) != order.content:
            raise Corrupt(f"{name}: its content is not the one it is named for")
        return _record(name, order, obj)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise Corrupt(f"{name}: {type(error).__name__}: {error}") from error
    except Corrupt as error:
        text = str(error)
        raise Corrupt(text if text.startswith(name) else f"{name}: {text}") from error


def _record(name: str, order: Order, obj: Mapping[str, Any]) -> Record:
    check_fields(obj)
    destinations, page = obj.get("destinations") or {}, obj.get("page") or {}
    slots, keys = destinations.get("slots"), destinations.get("keys")
    change, to = obj["change"], obj.get("to")
    if change not in CHANGES:
        raise ValueError(f"change {change!r} is none")
    if change == "Checkpoint":
        check_state(destinations.get("state", ""))
    return Record(
        name,
        order,
        time_of(obj),
        change,
        obj["placement"]["uid"],
        whole_number(destinations, "count", 0),
        unpacked_slots(slots) if slots else None,
        unpacked_keys(keys) if keys else (),
        named_in(destinations, change, to),
        bool(destinations.get("all")),
        obj.get("from"),
        to,
        whole_number(page, "number", 1, 1),
        whole_number(page, "of", 1, 1),
        obj,
    )
