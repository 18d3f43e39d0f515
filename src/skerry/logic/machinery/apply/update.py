"""Ownership through the two kinds of write: updates, which take, and applies, which ask.

An update (create, replace, any patch but apply) is tracked by comparison: the manager owns what it
changed, whoever owned it before does not, and what disappeared has no owner. An apply states all a
manager wants: what it names it owns, with others if they agree on the value; a field it changes
that another owns is a conflict unless forced; what it named last time and no longer names, and
nobody else owns, goes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Required, TypedDict, Unpack

import msgspec
from msgspec.structs import replace

from skerry.api.errors import BadRequest, Conflict
from skerry.api.objects import Object
from skerry.api.schema import Schema
from skerry.logic.machinery.apply import last_applied
from skerry.logic.machinery.apply.blank import blank_for
from skerry.logic.machinery.apply.check import problem_text, problems
from skerry.logic.machinery.apply.fieldset import (
    FieldSet,
    Path,
    difference,
    intersection,
    path_text,
    paths,
    recursive_difference,
    union,
)
from skerry.logic.machinery.apply.managed import (
    APPLY,
    BEFORE_FIRST_APPLY,
    UPDATE,
    Entry,
    Key,
    Managed,
    capped,
    decoded,
    encoded,
    is_reset,
    same_but_for_times,
)
from skerry.logic.machinery.apply.merge import has_null, merged, without_nulls
from skerry.logic.machinery.apply.prune import pruned
from skerry.logic.machinery.apply.reconcile import reconciled
from skerry.logic.machinery.apply.root import rooted
from skerry.logic.machinery.apply.typed import (
    UNTRACKED_METADATA,
    Comparison,
    NotTyped,
    compare,
    fields_of,
    fields_of_new,
)

_UNTRACKED: FieldSet = {
    "f:apiVersion": {},
    "f:kind": {},
    "f:metadata": {".": {}, **{f"f:{name}": {} for name in sorted(UNTRACKED_METADATA)}},
}


class WriteTerms(TypedDict, total=False):
    """The keyword arguments of both operations; see ``Write``."""

    manager: Required[str]
    api_version: Required[str]
    now: Required[str]
    schema: Required[Schema | None]
    subresource: str
    has_status_subresource: bool
    kind: str
    resource: str
    reset: FieldSet | None
    convert: Callable[[Object, str], Object | None] | None
    schema_at: Callable[[str], Schema | None] | None


class Write(msgspec.Struct, frozen=True):
    """Who writes, at which version of which type, through which subresource, and when."""

    manager: str
    api_version: str
    # RFC 3339, whole seconds.
    now: str
    schema: Schema | None
    subresource: str = ""
    # Then ``status`` has an endpoint of its own, and is not written through any other.
    has_status_subresource: bool = True
    # Only for applies: the kind the endpoint serves, checked if given, and how errors name the
    # type where the object does not.
    kind: str = ""
    resource: str = ""
    # Fields this endpoint does not let through, so that nobody owns them by writing here, where
    # that is other than ``status``, or all but ``status`` for that subresource.
    reset: FieldSet | None = None
    # The object at another version, None if that version is no longer served. Without it every
    # version is taken to look the same.
    convert: Callable[[Object, str], Object | None] | None = None
    schema_at: Callable[[str], Schema | None] | None = None

    def rooted(self) -> Write:
        """Return this write with the schema of a whole object."""
        schema = rooted(self.schema)
        return self if schema is self.schema else replace(self, schema=schema)

    def key_entry(self, operation: str, fields: FieldSet | None = None) -> Entry:
        """Return the entry of this manager, owning *fields* (nothing yet, without them)."""
        manager = self.manager or "unknown"
        return Entry(manager, operation, self.api_version, fields or {}, self.now, self.subresource)

    def at(self, obj: Object, version: str) -> Object | None:
        """Return *obj* at another version; None if there is no such version any more."""
        if self.convert is None or obj.get("apiVersion", self.api_version) == version:
            return obj
        return self.convert(obj, version)

    def schema_of(self, version: str) -> Schema | None:
        if version == self.api_version or self.schema_at is None:
            return self.schema
        return rooted(self.schema_at(version))


class ApplyResult(msgspec.Struct, frozen=True):
    """The object after an apply; not *changed* means nothing is worth writing."""

    object: Object
    changed: bool


def track_update(
    live: Object | None, new: Object, **terms: Unpack[WriteTerms]
) -> list[dict[str, Any]] | None:
    """Return the managedFields of *new*, which is about to replace *live*.

    None means that *new* should have none: an object whose ownership was reset stays untracked
    until somebody applies to it. Entries may be shared with *live*. If *live* or *new* does not fit
    the schema (stored before the schema was) ownership stays as it was.
    """
    write = Write(**terms).rooted()
    if live is None:
        return _first_entries(new, write)
    stored: list[dict[str, Any]] | None = _managed_fields(live)
    managed = _sent_or_stored(live, new, write)
    if not managed:
        return None
    try:
        result = _updated(live, new, managed, write)
    except NotTyped:
        return stored
    if result is managed and managed and all(entry.raw is not None for entry in managed.values()):
        return stored
    return encoded(capped(result)) or None


def _first_entries(new: Object, write: Write) -> list[dict[str, Any]] | None:
    """Return the managedFields of a new object; whatever a client sends of them is forgotten."""
    try:
        return encoded(_created(new, write)) or None
    except NotTyped:
        return None


def _managed_fields(obj: Object | None) -> Any:
    metadata = (obj or {}).get("metadata")
    return metadata.get("managedFields") if isinstance(metadata, dict) else None


def _sent_or_stored(live: Object, new: Object, write: Write) -> Managed:
    """Return the entries to start from.

    Clients may rewrite managedFields, or reset them, but not through a subresource; those that
    leave them out or send nonsense mean no harm and get what is stored.
    """
    stored, sent = _managed_fields(live), _managed_fields(new)
    if write.subresource or sent is None or sent is stored or sent == stored:
        return _stored(stored)
    if is_reset(sent):
        return {}
    try:
        return decoded(sent, trusted=False) or _stored(stored)
    except ValueError:
        return _stored(stored)


def _stored(entries: Any) -> Managed:
    try:
        return decoded(entries, trusted=True)
    except ValueError:
        return {}


def _updated(live: Object, new: Object, managed: Managed, write: Write) -> Managed:
    """Return ownership after an update; *managed* itself if it is the same."""
    comparison = _filtered(compare(live, new, write.schema), write, new)
    if comparison.same:
        return managed
    result = _taken(managed, live, new, comparison, write)
    changed = union(comparison.modified, comparison.added)
    if changed:
        mine = write.key_entry(UPDATE)
        previous = result.get(mine.key)
        held = union(previous.fields, changed) if previous is not None else changed
        result[mine.key] = replace(mine, fields=held)
    return result


def _created(new: Object, write: Write) -> Managed:
    """Return ownership of what did not exist: its maker's, but for what any such object has."""
    fields = fields_of_new(new, write.schema)
    if reset := _reset_fields(write, new):
        fields = recursive_difference(fields, reset)
    if not fields:
        return {}
    mine = write.key_entry(UPDATE, fields)
    return {mine.key: mine}


def _filtered(comparison: Comparison, write: Write, obj: Object) -> Comparison:
    """Return *comparison* without the fields the endpoint does not let through."""
    reset = _reset_fields(write, obj)
    if not reset:
        return comparison
    return Comparison(*(recursive_difference(fields, reset) for fields in comparison))


def _reset_fields(write: Write, obj: Object) -> FieldSet:
    if write.reset is not None:
        return write.reset
    if write.subresource == "status":
        return {f"f:{name}": {} for name in obj if name != "status"}
    return {"f:status": {}} if write.has_status_subresource else {}


def _taken(
    managed: Managed, before: Object, new: Object, comparison: Comparison, write: Write
) -> Managed:
    """Return *managed* without what the change took from or removed under each manager."""
    comparisons: dict[str, Comparison | None] = {write.api_version: comparison}
    result: Managed = {}
    for key, entry in managed.items():
        changes = _comparison_at(comparisons, entry.api_version, before, new, write)
        if changes is None:
            continue
        fields = entry.fields
        for gone in changes:
            fields = difference(fields, gone) if gone else fields
        if fields:
            result[key] = entry.holding(fields)
    return result


def _comparison_at(
    known: dict[str, Comparison | None], version: str, before: Object, new: Object, write: Write
) -> Comparison | None:
    """Return the change as it looks at *version*; None if there is no such version any more."""
    if version in known:
        return known[version]
    old_at, new_at = write.at(before, version), write.at(new, version)
    found: Comparison | None = None
    if old_at is not None and new_at is not None:
        if old_at is before and new_at is new and write.schema_at is None:
            found = known[write.api_version]
        else:
            changes = compare(old_at, new_at, write.schema_of(version))
            found = _filtered(changes, write, new_at)
    known[version] = found
    return found


def apply(
    live: Object | None, applied: Object, *, force: bool = False, **terms: Unpack[WriteTerms]
) -> ApplyResult:
    """Return what applying *applied* makes of *live* (None: of nothing, a create).

    Raises ``Conflict`` naming every field another manager owns at another value, unless *force*.
    Defaulting is the caller's: a default nobody applied has no owner.
    """
    write = Write(**terms).rooted()
    _check_applied(applied, write)
    managed = _stored(_managed_fields(live))
    base: Object = live if live is not None else {}
    try:
        if live is not None and not managed:
            managed = _before_first_apply(live, write)
        return _apply(base, applied, managed, write, force)
    except NotTyped as error:
        text = f"failed to create typed live object ({_described(base, write)}): {error}"
        raise BadRequest(text) from error


def _check_applied(applied: Object, write: Write) -> None:
    kind, version = applied.get("kind", ""), applied.get("apiVersion", "")
    if write.kind and (kind, version) != (write.kind, write.api_version):
        raise BadRequest(f"invalid object type: {version}, Kind={kind}")
    if version != write.api_version:
        raise BadRequest(
            "Incorrect version specified in apply patch. "
            f"Specified patch version: {version}, expected: {write.api_version}"
        )
    if _managed_fields(applied) is not None:
        raise BadRequest("metadata.managedFields must be nil")
    found = problems(applied, write.schema)
    if found:
        where = _described(applied, write)
        raise BadRequest(f"failed to create typed patch object ({where}): {problem_text(found)}")


def _described(obj: Object, write: Write) -> str:
    metadata = obj.get("metadata")
    names = metadata if isinstance(metadata, dict) else {}
    kind = obj.get("kind") or write.kind or write.resource
    place = f"{names.get('namespace', '')}/{names.get('name', '')}"
    return f"{place}; {write.api_version}, Kind={kind}"


def _before_first_apply(live: Object, write: Write) -> Managed:
    """Return ownership of an object nobody tracked: it belongs to whoever made it so far."""
    by_nobody = replace(write, manager=BEFORE_FIRST_APPLY)
    return _created(live, by_nobody)


def _apply(
    live: Object, applied: Object, managed: Managed, write: Write, force: bool
) -> ApplyResult:
    managed = _reconciled(managed, live, write)
    mine = write.key_entry(APPLY)
    last = managed.get(mine.key)
    wanted = fields_of(applied, write.schema)
    wanted = recursive_difference(wanted, _reset_fields(write, applied))
    others = {key: entry for key, entry in managed.items() if key != mine.key}
    held = difference(wanted, _UNTRACKED)
    new = seen = merged(live, applied, write.schema)
    if last is not None and last.fields != held and difference(last.fields, wanted):
        owners = [*others.values(), replace(mine, fields=wanted)]
        rest = pruned(new, last, owners, write.at, write.schema_of)
        # A list that lost its last item is gone; an applied empty one is to be there.
        new, seen = (merged(obj, applied, write.schema) for obj in rest)
    after = others
    if seen is not live:
        after = _contested(live, seen, others, write, force)
    if has_null(applied):
        new = without_nulls(new, write.schema)
    after = {**after, **_own_entry(mine, last, held, new is not live)}
    return _result(live, new, after, applied, write)


def _reconciled(managed: Managed, live: Object, write: Write) -> Managed:
    """Return *managed* as today's schema sees it, which may be another than when it was written."""
    versions = {entry.api_version for entry in managed.values()}
    served = {version for version in versions if write.at(live, version) is not None}
    return {
        key: entry.holding(reconciled(entry.fields, write.schema_of(entry.api_version)))
        for key, entry in managed.items()
        if entry.api_version in served
    }


def _own_entry(mine: Entry, last: Entry | None, held: FieldSet, changed: bool) -> Managed:
    if not held:
        return {}
    if last is not None and not changed and last.fields == held:
        if last.api_version == mine.api_version:
            return {mine.key: last}
        return {mine.key: replace(mine, fields=held, time=last.time)}
    return {mine.key: replace(mine, fields=held)}


def _contested(live: Object, new: Object, others: Managed, write: Write, force: bool) -> Managed:
    """Return the others' ownership after the change; raise if it takes anything unforced."""
    if not others:
        return others
    comparison = _filtered(compare(live or blank_for(write.schema), new, write.schema), write, new)
    if comparison.same:
        return others
    if not force:
        conflicts = _conflicts(live, new, comparison, others, write)
        if write.manager == last_applied.MANAGER and conflicts:
            allowed = last_applied.uncontested_fields(live, write.api_version, write.schema)
            conflicts = last_applied.remaining(conflicts, allowed)
        if conflicts:
            raise _conflict(conflicts)
    return _taken(others, live, new, comparison, write)


def _conflicts(
    live: Object, new: Object, comparison: Comparison, others: Managed, write: Write
) -> list[tuple[Entry, Path]]:
    comparisons: dict[str, Comparison | None] = {write.api_version: comparison}
    changed: dict[str, FieldSet] = {}
    found: list[tuple[Entry, Path]] = []
    for key in sorted(others):
        entry, version = others[key], others[key].api_version
        changes = _comparison_at(comparisons, version, live, new, write)
        if changes is None:
            continue
        if version not in changed:
            changed[version] = union(changes.modified, changes.added)
        taken = intersection(entry.fields, changed[version])
        found += [(entry, path) for path in paths(taken)]
    return found


def _conflict(conflicts: list[tuple[Entry, Path]]) -> Conflict:
    causes = [
        {
            "reason": "FieldManagerConflict",
            "message": f"conflict with {_manager_text(entry)}",
            "field": path_text(path),
        }
        for entry, path in conflicts
    ]
    if len(conflicts) == 1:
        entry, path = conflicts[0]
        text = (
            f"Apply failed with 1 conflict: conflict with {_manager_text(entry)}: {path_text(path)}"
        )
        return Conflict(text, details={"causes": causes})
    lines: list[str] = []
    by_owner: dict[Key, list[tuple[Entry, Path]]] = {}
    for entry, path in conflicts:
        by_owner.setdefault(entry.key, []).append((entry, path))
    for owned in by_owner.values():
        lines.append(f"conflicts with {_manager_text(owned[0][0])}:")
        lines += [f"- {path_text(path)}" for _, path in owned]
    text = f"Apply failed with {len(conflicts)} conflicts: " + "\n".join(lines)
    return Conflict(text, details={"causes": causes})


def _manager_text(entry: Entry) -> str:
    text = f'"{entry.manager}"'
    if entry.subresource:
        text += f' with subresource "{entry.subresource}"'
    return f"{text} using {entry.api_version}" if entry.operation == UPDATE else text


def _result(
    live: Object, new: Object, managed: Managed, applied: Object, write: Write
) -> ApplyResult:
    entries = encoded(managed)
    if write.manager == last_applied.MANAGER:
        new = last_applied.updated(new, applied)
    stored = _managed_fields(live) or []
    if (new is live or new == live) and same_but_for_times(entries, stored):
        return ApplyResult(live, changed=False)
    metadata = {**(new.get("metadata") or {}), "managedFields": entries}
    if not entries:
        del metadata["managedFields"]
    return ApplyResult({**new, "metadata": metadata}, changed=True)
