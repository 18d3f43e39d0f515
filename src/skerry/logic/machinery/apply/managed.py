"""``metadata.managedFields``: who owns what, as entries that are stored with the object.

An entry is known by its manager, its operation, its subresource and, for updates, its version; an
applier has one entry whatever version it applies at. Entries read from a stored object are trusted
to be in the form this module writes; what a client sends is brought into it first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from skerry.logic.machinery.apply.fieldset import FieldSet, canonical, union_all

APPLY: Final = "Apply"
UPDATE: Final = "Update"

# Kubernetes' figure: enough for every controller of an object, few enough to store.
MAX_UPDATE_MANAGERS: Final = 10
ANCIENT: Final = "ancient-changes"
# Each is compared with every change. Objects have a few; one that a hundred programs apply to is
# unheard of.
MAX_ENTRIES: Final = 500
BEFORE_FIRST_APPLY: Final = "before-first-apply"
MAX_MANAGER_BYTES: Final = 128

Key = tuple[str, str, str, str]


class Entry(msgspec.Struct, frozen=True):
    """One manager's fields. ``raw`` is the entry as stored, while it still says the same."""

    manager: str
    operation: str
    api_version: str
    fields: FieldSet
    time: str | None = None
    subresource: str = ""
    raw: Mapping[str, Any] | None = None

    @property
    def key(self) -> Key:
        version = "" if self.operation == APPLY else self.api_version
        return (self.manager, self.operation, version, self.subresource)

    def holding(self, fields: FieldSet) -> Entry:
        """Return this entry with other fields."""
        return self if fields is self.fields else replace(self, fields=fields, raw=None)

    def encoded(self) -> dict[str, Any]:
        """Return the entry as it is stored, members in the order of the API type."""
        if self.raw is not None:
            return dict(self.raw)
        entry: dict[str, Any] = {
            "manager": self.manager,
            "operation": self.operation,
            "apiVersion": self.api_version,
        }
        if self.time is not None:
            entry["time"] = self.time
        entry["fieldsType"] = "FieldsV1"
        entry["fieldsV1"] = self.fields
        if self.subresource:
            entry["subresource"] = self.subresource
        return entry


Managed = dict[Key, Entry]


def manager_name(field_manager: str, user_agent: str) -> str:
    """Return who a request's changes belong to: as it says, else by its program's name."""
    if field_manager:
        return field_manager
    printable = "".join(filter(str.isprintable, user_agent.partition("/")[0]))
    return printable.encode()[:MAX_MANAGER_BYTES].decode(errors="ignore") or "unknown"


def decoded(entries: Any, *, trusted: bool) -> Managed:
    """Return stored (*trusted*) or sent entries by key; raise ``ValueError`` if they are not so."""
    if entries is None:
        return {}
    if not isinstance(entries, list):
        raise ValueError(f"managedFields: want a list, got {type(entries).__name__}")
    if not trusted and len(entries) > MAX_ENTRIES:
        raise ValueError(f"managedFields: {len(entries)} entries: want at most {MAX_ENTRIES}")
    managed: Managed = {}
    for index, raw in enumerate(entries):
        entry = _entry(raw, index, trusted)
        managed[entry.key] = entry
    return managed


def _entry(raw: Any, index: int, trusted: bool) -> Entry:
    if not isinstance(raw, dict):
        raise ValueError(f"managed fields entry {index}: want an object")
    text = {name: _text(raw, name, index) for name in _TEXTS}
    if text["operation"] not in (APPLY, UPDATE):
        raise ValueError("operation must be `Apply` or `Update`")
    if not text["apiVersion"]:
        raise ValueError("apiVersion must not be empty")
    if not text["fieldsType"]:
        raise ValueError(f"missing fieldsType in managed fields entry {index}")
    if text["fieldsType"] != "FieldsV1":
        kind = text["fieldsType"]
        raise ValueError(f'invalid fieldsType "{kind}" in managed fields entry {index}')
    fields = raw.get("fieldsV1") or {}
    return Entry(
        manager=text["manager"],
        operation=text["operation"],
        api_version=text["apiVersion"],
        fields=fields if trusted else canonical(fields),
        time=text["time"] or None,
        subresource=text["subresource"],
        raw=raw if trusted else None,
    )


_TEXTS: Final = ("manager", "operation", "apiVersion", "time", "fieldsType", "subresource")


def _text(raw: Mapping[str, Any], name: str, index: int) -> str:
    value = raw.get(name)
    if value is not None and not isinstance(value, str):
        raise ValueError(f"managed fields entry {index}: {name} must be a string")
    return value or ""


def is_reset(entries: Any) -> bool:
    """Tell whether a client asks to forget all ownership: no entries, or a single empty one."""
    return entries in ([], [{}])


def encoded(managed: Managed) -> list[dict[str, Any]]:
    """Return the entries that own something, in Kubernetes' order."""
    kept = [entry for entry in managed.values() if entry.fields]
    if len(kept) > 1:  # which a new object never has; the order needs its times read
        kept.sort(key=_order)
    return [entry.encoded() for entry in kept]


def _order(entry: Entry) -> tuple[str, float, str, str, str]:
    time = seconds(entry.time)
    return (entry.operation, time, entry.manager, entry.api_version, entry.subresource)


def seconds(time: str | None) -> float:
    """Return *time* as a number to sort by; no time is the oldest of all."""
    if not time:
        return 0.0
    try:
        return float(int(datetime.fromisoformat(time).timestamp()))
    except ValueError:
        return 0.0


def capped(managed: Managed) -> Managed:
    """Merge the oldest update managers of each version into one until there are few enough."""
    if len(managed) <= MAX_UPDATE_MANAGERS:
        return managed
    updaters = [entry for entry in managed.values() if entry.operation == UPDATE]
    if len(updaters) <= MAX_UPDATE_MANAGERS:
        return managed
    left = {entry.key for entry in updaters}
    firsts: dict[str, Entry] = {}
    # What goes into the bucket of each version; the sets are united at the end, all at once.
    buckets: dict[str, list[Entry]] = {}
    for entry in sorted(updaters, key=lambda entry: (seconds(entry.time), entry.key)):
        version = entry.api_version
        first = firsts.setdefault(version, entry)
        # One entry gives up nothing by being called ancient; merging starts with a second.
        if first is not entry:
            bucket = _bucket(version).key
            if version not in buckets:
                held = managed.get(bucket)
                buckets[version] = [first if held is None or held is entry else held]
                left.discard(buckets[version][0].key)
            buckets[version].append(entry)
            left.discard(entry.key)
            left.add(bucket)
        if len(left) <= MAX_UPDATE_MANAGERS:
            break
    result = {key: e for key, e in managed.items() if e.operation != UPDATE or key in left}
    for version, entries in buckets.items():
        fields = union_all(entry.fields for entry in entries)
        # The younger time is the truer one for what the bucket now holds.
        merged = replace(_bucket(version), fields=fields, time=entries[-1].time)
        result.pop(merged.key, None)
        result[merged.key] = merged
    return result


def _bucket(version: str) -> Entry:
    return Entry(ANCIENT, UPDATE, version, {})


def same_but_for_times(
    left: Sequence[Mapping[str, Any]], right: Sequence[Mapping[str, Any]]
) -> bool:
    """Tell whether two lists of entries say the same of ownership, whenever it was said."""
    return len(left) == len(right) and _ownership(left) == _ownership(right)


def _ownership(entries: Sequence[Mapping[str, Any]]) -> dict[tuple[Any, ...], Any]:
    return {
        tuple(entry.get(name) for name in _TEXTS if name != "time"): entry.get("fieldsV1")
        for entry in entries
    }
