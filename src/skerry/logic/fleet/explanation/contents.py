"""What an edit not yet made would change in the copies of objects, place by place.

Copies are made as the translator makes them: permitted by grants, of a kind that is not withheld,
customized for the Location. Those that would differ are compared field by field, and destinations
at which the comparison comes out the same are one group. Contents of Secrets are not shown.

Most objects are not customized, and their copy is the same at ten thousand destinations. So a copy
is made once for what it varies by (the Location if it is customized, else the grants there, else
nothing), and two copies are compared once for each pair of them that meets, by identity. A person
who edits one ConfigMap waits for one comparison.

An object that is withheld has no copy; it is listed with its reason and never as a removal. What is
withheld after the edit for the very reason it was before is no news.

By what ``Materials.made`` returns for a destination before and after:

    a copy, the same copy          nothing
    a copy, another copy           the fields that differ
    a reason, a copy               "it would be sent"
    a copy, a reason               withheld, with the reason
    a reason, another reason       withheld, with the new one
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import orjson

from skerry.api.edge_categories import Category, category_of
from skerry.api.kinds import GroupResource
from skerry.api.objects import Object
from skerry.api.refs import ObjectRef
from skerry.logic.fleet.customization.customize import (
    CustomizerName,
    Problem,
    Withheld,
    customize,
    customizer_name,
    wants_customization,
)
from skerry.logic.fleet.placement.grants import Rule
from skerry.logic.fleet.placement.records import Destination
from skerry.logic.fleet.translation.categories import NAMESPACES
from skerry.logic.fleet.translation.copies import copied
from skerry.logic.fleet.translation.grants import NOT_GRANTED, covers, holds_namespaces
from skerry.logic.fleet.translation.merging import name_taken, withheld_kind

# Fields of one comparison; -o json has as many. A person reads no more, and a file has them all.
MAX_FIELDS = 40
_MAX_VALUE = 80
_SECRETS = GroupResource("", "secrets")
# What the translator says of it; nothing is removed for want of a grant alone.
_STAYS = "stays as it is until its removal is confirmed"
# Not None, which is a value in JSON.
_MISSING: Any = object()

# Returns what grants let the workspace place at a Location; None: no grant is needed there.
Rules = Callable[[ObjectRef], Sequence[Rule] | None]
# Returns the path of another workspace whose object has the name at a destination; else None.
Taken = Callable[[Destination, ObjectRef], str | None]


class ContentChange(NamedTuple):
    """How the copies of an object would differ, where they would differ in the same way."""

    item: ObjectRef
    fields: tuple[str, ...]
    destinations: tuple[Destination, ...]


class Foreseen(NamedTuple):
    """An object that would not go to some destinations, and why."""

    item: ObjectRef
    problem: Problem
    destinations: tuple[Destination, ...]


@dataclass(frozen=True, slots=True)
class Materials:
    """What the copies of a workspace's objects are made of."""

    objects: Mapping[ObjectRef, Object] = field(default_factory=dict)
    customizers: Mapping[CustomizerName, Object] = field(default_factory=dict)
    locations: Mapping[ObjectRef, Object] = field(default_factory=dict)
    copies_are_inert: bool = True
    # None: no Location of the fleet is granted, so that none bounds what may go there.
    rules: Rules | None = None

    def made(self, item: ObjectRef, where: ObjectRef) -> Object | Problem | None:
        """Return the copy for a Location, why there is none, or None without such an object.

        Reasons are asked for as an object meets them: a grant, then its kind, then customization.
        """
        source = self.objects.get(item)
        if source is None:
            return None
        kind = item.group_resource
        rules = None if self.rules is None else self.rules(where)
        if rules is not None:
            bare = kind == NAMESPACES
            if not (holds_namespaces(rules) if bare else covers(rules, item)):
                return Problem(NOT_GRANTED, f"{item} is not granted at this Location")
        if not self.copies_are_inert and category_of(kind) is Category.DENATURED:
            return withheld_kind(item)
        name = customizer_name(source)
        customizer = None if name is None else self.customizers.get(name)
        result = customize(copied(kind, source), customizer, self.locations.get(where))
        return result.problem if isinstance(result, Withheld) else result.object

    def made_at(
        self, item: ObjectRef, destinations: Sequence[Destination]
    ) -> list[Object | Problem | None]:
        """Return the copy for each destination; what does not vary by Location is made once."""
        source = self.objects.get(item)
        varies = source is not None and wants_customization(source)
        if self.rules is None and not varies and destinations:
            return [self.made(item, destinations[0].location_ref)] * len(destinations)
        known: dict[object, Object | Problem | None] = {}
        found = []
        for each in destinations:
            where = each.location_ref
            rules = None if self.rules is None else self.rules(where)
            key = where if varies else rules if rules is None else tuple(rules)
            if key not in known:
                known[key] = self.made(item, where)
            found.append(known[key])
        return found

    def rules_at(self, where: ObjectRef) -> frozenset[Rule] | None:
        """Return what may go to a Location; None: no grant is needed there."""
        rules = None if self.rules is None else self.rules(where)
        return None if rules is None else frozenset(rules)

    def regranted(self, after: Materials, destinations: Iterable[Destination]) -> list[Destination]:
        """Return the destinations at which grants would let other kinds through *after*."""
        if self.rules is None and after.rules is None:
            return []
        return [
            each
            for each in destinations
            if self.rules_at(each.location_ref) != after.rules_at(each.location_ref)
        ]

    def differing(self, after: Materials) -> set[ObjectRef]:
        """Return the objects whose copies may differ *after*, among those in both.

        May: an object that asks for customization is among them with any edit of a Location, and
        whether its copies differ is seen when they have been made.
        """
        customizers = {
            name
            for name in {*self.customizers, *after.customizers}
            if self.customizers.get(name) != after.customizers.get(name)
        }
        # Of ten thousand Locations the comparison alone is felt.
        moved = self.locations is not after.locations and self.locations != after.locations
        found = set()
        for item, obj in after.objects.items():
            old = self.objects.get(item)
            if old is None:
                continue
            customized = customizer_name(obj) in customizers or (moved and wants_customization(obj))
            if customized or (old is not obj and old != obj):
                found.add(item)
        return found


NO_MATERIALS = Materials()


def content_changes(
    before: Materials,
    after: Materials,
    items: Iterable[ObjectRef],
    destinations: Sequence[Destination],
) -> tuple[list[ContentChange], list[Foreseen]]:
    """Return how the copies of *items* would differ, and what would be withheld that is not now."""
    changed: dict[tuple[ObjectRef, tuple[str, ...]], list[Destination]] = {}
    withheld: dict[tuple[ObjectRef, Problem], list[Destination]] = {}
    for item in sorted(items):
        compared: dict[tuple[int, int], tuple[str, ...]] = {}
        olds, news = before.made_at(item, destinations), after.made_at(item, destinations)
        for each, old, new in zip(destinations, olds, news, strict=True):
            if isinstance(new, Problem):
                if new != old:
                    sent = old is not None and not isinstance(old, Problem)
                    problem = _of_what_is_there(new) if sent else new
                    withheld.setdefault((item, problem), []).append(each)
                continue
            # Both lists keep their copies alive, so no identity is given twice.
            pair = (id(old), id(new))
            if pair not in compared:
                known = None if isinstance(old, Problem) else old
                compared[pair] = tuple(_fields(item, known, new))
            if compared[pair]:
                changed.setdefault((item, compared[pair]), []).append(each)
    return (
        [ContentChange(*key, tuple(found)) for key, found in changed.items()],
        [Foreseen(*key, tuple(found)) for key, found in withheld.items()],
    )


def _of_what_is_there(problem: Problem) -> Problem:
    """Return why an object that was sent is withheld, with what becomes of its copy."""
    if problem.reason != NOT_GRANTED:
        return problem
    return Problem(NOT_GRANTED, f"{problem.message} and {_STAYS}")


def foreseen(
    after: Materials,
    items: Iterable[ObjectRef],
    destinations: Sequence[Destination],
    taken: Taken = lambda *_: None,
) -> list[Foreseen]:
    """Return which of *items*, going to *destinations* anew, would not arrive, and why."""
    found: dict[tuple[ObjectRef, Problem], list[Destination]] = {}
    for item in sorted(items):
        for each, made in zip(destinations, after.made_at(item, destinations), strict=True):
            if isinstance(made, Problem):
                found.setdefault((item, made), []).append(each)
            elif made is not None and (path := taken(each, item)) is not None:
                found.setdefault((item, name_taken(item, path)), []).append(each)
    return [Foreseen(*key, tuple(where)) for key, where in found.items()]


# -- fields --------------------------------------------------------------------------------------


def _fields(item: ObjectRef, old: Object | None, new: Object | None) -> Iterator[str]:
    """Yield what differs, one line a field; *old* None: it was not sent."""
    if old is None and new is not None:
        yield "it would be sent"
        return
    lines = list(_compared("", old, new, secret=item.group_resource == _SECRETS))
    yield from lines[:MAX_FIELDS]
    if len(lines) > MAX_FIELDS:
        yield f"… and {len(lines) - MAX_FIELDS} more fields"


def _compared(path: str, old: Any, new: Any, *, secret: bool) -> Iterator[str]:
    """Yield the fields that differ, maps member by member.

    Lists of one length are compared item by item; of others nobody can tell which item is which,
    so they are shown as a whole.
    """
    if isinstance(old, dict) and isinstance(new, dict):
        for name in sorted(old.keys() | new.keys()):
            below = f"{path}.{name}" if path else name
            # What is in a Secret is for those who read the Secret.
            hidden = secret and path in ("data", "stringData")
            before, after = old.get(name, _MISSING), new.get(name, _MISSING)
            if hidden and before != after:
                yield f"{below}: (changed; contents of Secrets are not shown)"
            elif not hidden:
                yield from _compared(below, before, after, secret=secret)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for number, (before, after) in enumerate(zip(old, new, strict=True)):
            yield from _compared(f"{path}[{number}]", before, after, secret=secret)
    elif old is _MISSING:
        yield f"{path}: added {_shown(new, secret=secret)}"
    elif new is _MISSING:
        yield f"{path}: removed"
    elif old != new:
        yield f"{path}: {_shown(old, secret=secret)} → {_shown(new, secret=secret)}"


def _shown(value: Any, *, secret: bool) -> str:
    """Return a value on one line, cut; of a Secret no map or list, which may be its contents."""
    if secret and isinstance(value, dict | list):
        return "(not shown)"
    text = value if isinstance(value, str) else orjson.dumps(value).decode()
    text = text.replace("\n", "\\n")
    return text if len(text) <= _MAX_VALUE else f"{text[:_MAX_VALUE]}…"
