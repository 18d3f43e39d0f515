"""The types and limits of a record's fields, as far as readers rely on them.

The API's schema has the same for what is written today. But a record may be older than the schema,
or come from a hub that has another one. Checked once, when a record is read, it is what readers
take for given: none of them checks anything again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import MAXYEAR, MINYEAR, datetime
from typing import Any, Final

from skerry.api.kcp.history import Change
from skerry.kit.timestamps import parse_rfc3339
from skerry.logic.fleet.history.packing import (
    NUMBER_LIMIT,
    SLOT_LIMIT,
    Standing,
    check_number,
    unpacked_state,
)
from skerry.logic.fleet.placement.records import Destination

_CAUSE: Final = ("kind", "name", "change", "user", "manager", "cluster", "auditID")
# The members that are texts, by the field that has them.
_TEXTS: Final[Mapping[str, tuple[str, ...]]] = {
    "placement": ("name", "uid"),
    "by": ("controller",),
    "reason": ("code", "text"),
    "object": ("group", "resource", "namespace", "name"),
    "cause": _CAUSE,
}
_LISTED: Final[Mapping[str, tuple[str, ...]]] = {
    "otherCauses": _CAUSE,
    "chains": ("controller", "digest"),
}
_REQUIRED: Final = (("placement", "name"), ("placement", "uid"), ("by", "controller"))


def check_fields(obj: Mapping[str, Any]) -> None:
    """Raise TypeError, ValueError or KeyError for a record that readers would stumble over."""
    for name, members in _TEXTS.items():
        if name in obj:
            _check_texts(name, obj[name], members)
    for name, members in _LISTED.items():
        for each in _listed(name, obj.get(name, [])):
            _check_texts(name, each, members)
    for name, member in _REQUIRED:
        obj[name][member]
    for each in obj.get("chains", []):
        each["controller"], each["digest"]
    _check_text("previous", obj.get("previous", ""))
    for number in (obj.get("from"), obj.get("to"), obj.get("causeCount")):
        check_number(number, NUMBER_LIMIT)
    check_number(obj["placement"].get("generation"), NUMBER_LIMIT)


def time_of(obj: Mapping[str, Any]) -> datetime:
    """Return when a record was decided; a time that is one in every zone."""
    found = parse_rfc3339(obj["time"])
    if not MINYEAR < found.year < MAXYEAR:
        raise ValueError(
            f"time {obj['time']!r}: want one of the years {MINYEAR + 1} to {MAXYEAR - 1}"
        )
    return found


def whole_number(struct: Mapping[str, Any], name: str, default: int, minimum: int = 0) -> int:
    """Return a member that is a whole number."""
    found = struct.get(name, default)
    if type(found) is not int or not minimum <= found < NUMBER_LIMIT:
        raise ValueError(f"{name}: found {found!r}, want a number from {minimum}")
    return found


def named_in(
    destinations: Mapping[str, Any], change: Change, revision: int | None
) -> tuple[Standing, ...]:
    """Return the destinations that a record has one by one; none of a checkpoint's."""
    if "state" in destinations and change != "Checkpoint":
        packed = unpacked_state(destinations["state"])
        return tuple(each._replace(revision=revision) for each in packed)
    return tuple(_read_named(each, revision) for each in destinations.get("named") or ())


def _read_named(named: Mapping[str, Any], revision: int | None) -> Standing:
    destination = Destination(
        named["cluster"], named["location"], named["syncTarget"], named["uid"]
    )
    for each in destination:
        _check_text("destinations.named", each)
    slot = named.get("slot")
    check_number(slot, SLOT_LIMIT)
    return Standing(destination, slot, revision)


def _check_texts(name: str, struct: Any, members: tuple[str, ...]) -> None:
    if not isinstance(struct, Mapping):
        raise TypeError(f"{name}: found {type(struct).__name__}, want an object")
    for member in members:
        _check_text(name, struct.get(member, ""))


def _check_text(name: str, value: Any) -> None:
    if not isinstance(value, str):
        raise TypeError(f"{name}: found {type(value).__name__}, want a text")


def _listed(name: str, value: Any) -> Iterator[Any]:
    if not isinstance(value, list | tuple):
        raise TypeError(f"{name}: found {type(value).__name__}, want a list")
    return iter(value)
