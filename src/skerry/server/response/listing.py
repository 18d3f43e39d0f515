"""Bodies of lists, made in turns: however many items there are, others are served in between."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any, Final

from skerry.server.codec import dump, loads
from skerry.server.request.selection import Selection
from skerry.server.response.representation import Representation
from skerry.store.base import Entry

Items = Sequence[tuple[bytes, int]]
# Shows an item elsewhere, if that takes long.
Element = Callable[[bytes, int], Awaitable[bytes | None]]

# As many objects of an ordinary size as make a block that is worth sending.
_ITEMS_PER_PART: Final = 32
# What is handled before others have their turn: as it is stored, and where it must be decoded.
_TURN_BYTES: Final = 4 << 20
_TURN_DECODED_BYTES: Final = 64 << 10


# Cost of deciding whether an object is selected: in general, by a requirement, and where its fields
# are asked for, by the bytes that are decoded. About 5 ms together.
_TURN_COST: Final = 5000
_OBJECT_COST: Final = 2
_DECODED_PER_COST: Final = 128


def turns(entries: Sequence[Entry], selection: Selection) -> Iterator[tuple[Sequence[Entry], bool]]:
    """Yield *entries* in parts that are looked through without a pause, and whether more follow."""
    start, cost = 0, 0
    for index, entry in enumerate(entries):
        cost += _OBJECT_COST + selection.terms // 8
        if selection.needs_object:
            cost += len(entry.value) // _DECODED_PER_COST
        if cost > _TURN_COST:
            yield entries[start : index + 1], index + 1 < len(entries)
            start, cost = index + 1, 0
    if start < len(entries):
        yield entries[start:], False


def rendered_turns(items: Items, *, decodes: bool) -> Iterator[Items]:
    """Yield *items* in parts that are rendered without a pause."""
    limit = _TURN_DECODED_BYTES if decodes else _TURN_BYTES // 8
    start = waiting = 0
    for index, (value, _) in enumerate(items):
        waiting += len(value)
        if waiting > limit:
            yield items[start : index + 1]
            start, waiting = index + 1, 0
    if start < len(items):
        yield items[start:]


async def collected(
    shown: Representation, items: Items, metadata: dict[str, Any], remote: Element
) -> Sequence[bytes]:
    """Return the body of a list in parts."""
    if shown.pretty:
        return [await _pretty(shown, items, metadata)]
    head, separator, tail = shown.around(metadata, empty=not items)
    parts = [head]
    waiting = 0
    limit = _TURN_DECODED_BYTES if shown.decodes else _TURN_BYTES
    # Joined here, a few at a time: ten thousand parts would each be looked at again.
    for start in range(0, len(items), _ITEMS_PER_PART):
        some = items[start : start + _ITEMS_PER_PART]
        waiting += sum(len(value) for value, _ in some)
        if shown.decodes:
            made = await _decoded(shown, some, remote)
        else:
            made = [shown.item(value, revision) for value, revision in some]
        if start:
            made[0] = separator + made[0]
        parts.append(separator.join(made))
        if waiting > limit:
            waiting = 0
            await asyncio.sleep(0)
    parts.append(tail)
    return parts


async def _decoded(shown: Representation, items: Items, remote: Element) -> list[bytes]:
    made: list[bytes] = []
    waiting = 0
    for value, revision in items:
        piece = await remote(value, revision)
        made.append(shown.item(value, revision) if piece is None else piece)
        waiting += len(value) * shown.cost
        if waiting > _TURN_DECODED_BYTES:
            waiting = 0
            await asyncio.sleep(0)
    return made


async def _pretty(shown: Representation, items: Items, metadata: dict[str, Any]) -> bytes:
    """Return a list for a person to read: indented as a whole."""
    head, _, tail = shown.around(metadata, empty=False)
    document = loads(head + tail)
    listed = document[shown.list_field]
    waiting = 0
    for value, revision in items:
        listed.append(loads(shown.item(value, revision)))
        waiting += len(value)
        if waiting > _TURN_DECODED_BYTES:
            waiting = 0
            await asyncio.sleep(0)
    return dump(document, pretty=True)
