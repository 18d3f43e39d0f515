"""Finding the places a path means, and putting a value there.

A definite path whose last members are missing has them made, as many levels as it takes: what is
absent (or null) on the way becomes a map. A list is never made longer: an index beyond its end
means no place, and nothing happens. A definite path that would lead through text or a number
means a mistake and is an error.

All places are found before anything is replaced, so a value is never searched for the path that
brought it in; where a place lies inside another one, the outer one counts.

In ``{"spec": {"list": [{"a": 1}]}}`` the value 9 goes

    $.spec.list[0].a      in place of the 1
    $.spec.new.deep       into a map that is made: ``{"new": {"deep": 9}}``
    $.spec.list[3].a      nowhere: the list has no such item
    $.spec.missing[0]     nowhere: a list is never made
    $.spec.list.a         nowhere, with an error: a list has no members
    $.spec.list[*].b      nowhere: an indefinite path finds and never makes
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from skerry.logic.fleet.customization.paths import Path
from skerry.logic.machinery.jsonpath import (
    Descent,
    Every,
    Filter,
    Items,
    Members,
    Number,
    Slice,
    Step,
    Union,
)


class UnreachablePath(ValueError):
    """A definite path that leads through something that has no members."""


class Place(NamedTuple):
    """A member of a map or an item of a list."""

    holder: Any
    key: str | int

    @property
    def value(self) -> Any:
        return self.holder[self.key]


_ROOT = "$"


def replaced(document: Any, path: Path, value: Any) -> Any:
    """Return *document* with *value* at every place *path* means; changes it in place."""
    root = {_ROOT: document}
    if path.definite:
        _replace_definite(Place(root, _ROOT), path, value)
        return root[_ROOT]
    # Children first: a parent replaced later simply covers them.
    for place in reversed(list(_places(Place(root, _ROOT), path.steps))):
        place.holder[place.key] = copy.deepcopy(value)
    return root[_ROOT]


def _replace_definite(place: Place, path: Path, value: Any) -> None:
    """Go down step by step; where nothing is, all that is left of the path is made at once.

    What stands at the place itself is not looked at: a value may be put over one of any type.
    """
    for position, step in enumerate(path.steps):
        here = place.holder.get(place.key) if isinstance(place.holder, dict) else place.value
        if here is None:
            _make(place, path.steps[position:], value)
            return
        following = _followed(here, step, path)
        if following is None:
            return
        place = following
    place.holder[place.key] = copy.deepcopy(value)


def _make(place: Place, steps: Sequence[Step], value: Any) -> None:
    """Put maps within maps, and *value* innermost, where nothing is; lists are never made."""
    made = copy.deepcopy(value)
    for step in reversed(steps):
        if not isinstance(step, Members):
            return
        made = {step.names[0]: made}
    place.holder[place.key] = made


def _followed(here: Any, step: Step, path: Path) -> Place | None:
    """Return the next place of a definite path; None beyond a list's end."""
    if isinstance(here, dict) and isinstance(step, Members):
        return Place(here, step.names[0])
    if isinstance(here, dict) and isinstance(step, Number) and str(step.index) in here:
        return Place(here, str(step.index))
    if isinstance(here, list):
        index = _index(step)
        if index is not None:
            return Place(here, index) if index < len(here) else None
    raise UnreachablePath(f"path {path.text!r}: {_shown(step)} cannot be found in {_seen(here)}")


def _index(step: Step) -> int | None:
    """Return the item that a step of a definite path means; None for a member."""
    match step:
        case Number(index):
            return index
        case Items(indexes):
            return indexes[0]
        case _:
            return None


def _shown(step: Step) -> str:
    match step:
        case Members(names):
            return f"member {names[0]!r}"
        case Items(indexes):
            return f"item {indexes[0]}"
        case Number(index):
            return f"item {index}"
        case _:  # pragma: no cover - indefinite paths never get here
            return "*"


def _seen(here: Any) -> str:
    if isinstance(here, dict | list):
        return "a map" if isinstance(here, dict) else "a list"
    return repr(here)


def _places(start: Place, steps: Iterable[Step]) -> Iterator[Place]:
    """Yield every place that steps lead to, parents before what is in them."""
    places: Iterable[Place] = (start,)
    for step in steps:
        places = _distinct(after for place in places for after in _after(place, step))
    yield from places


def _distinct(places: Iterable[Place]) -> list[Place]:
    """Drop repetitions: ``$....a`` comes by each place more than once."""
    return list({(id(place.holder), place.key): place for place in places}.values())


def _after(place: Place, step: Step) -> Iterator[Place]:
    value = place.value
    match step:
        case Descent():
            yield from _descended(place)
        case Every():
            yield from _children(value)
        case Members(names):
            if isinstance(value, dict):
                yield from (Place(value, name) for name in names if name in value)
        case Number(index):
            yield from _numbered(value, index)
        case Items() | Slice():
            if isinstance(value, list):
                yield from (Place(value, index) for index in _indexes(step, len(value)))
        case Union() | Filter():  # pragma: no cover - not in the dialect of replacements
            return


def _indexes(step: Items | Slice, length: int) -> Iterable[int]:
    if isinstance(step, Items):
        return (index for index in step.indexes if index < length)
    return range(length)[step.start : step.end : step.stride]


def _numbered(value: Any, index: int) -> Iterator[Place]:
    """Yield where ``.0`` leads: to an item of a list, or to the member called "0" of a map."""
    if isinstance(value, list) and index < len(value):
        yield Place(value, index)
    elif isinstance(value, dict) and str(index) in value:
        yield Place(value, str(index))


def _children(value: Any) -> Iterator[Place]:
    if isinstance(value, dict):
        yield from (Place(value, key) for key in value)
    elif isinstance(value, list):
        yield from (Place(value, index) for index in range(len(value)))


def _descended(place: Place) -> Iterator[Place]:
    """Yield a place and all within it, in document order; no recursion, however deep it is."""
    waiting = [place]
    while waiting:
        next_place = waiting.pop()
        yield next_place
        waiting += reversed(list(_children(next_place.value)))
