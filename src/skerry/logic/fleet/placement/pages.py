"""Which destination is on which page: the SinglePlacementSlices of one EdgePlacement.

The destinations of a placement are spread over pages, its slices, of at most ``MAX_DESTINATIONS``
each, as endpoints are over EndpointSlices. Whoever reads them reads the union. A page is written
whole and one page at a time, so what the union lacks between two writes is what an edge would lose:
the translator would empty a mailbox, and the edge delete its workload, though the destination
stays. Hence:

* A destination keeps its page until it leaves. Pages are not sorted against each other and never
  merged, so no page gives a destination to another, and one newcomer changes one page.
* Newcomers take the fullest page that has room, then pages of their own.
* The exception is a page that has to go as a whole, because its name is another placement's now
  or nobody would look for it there. Then the receivers are written first and the giver is removed
  afterwards; for a moment a destination stands twice, which readers tolerate, and never nowhere.
* Of a destination that stands twice, the first page keeps it. The others give it up only after that
  page has been written, unchanged if need be. Such a write is conditional on the resourceVersion,
  so it proves that the page is still there: our cache may show a page that was removed by a request
  whose answer was lost.

A page that is larger than the limit, as previous versions wrote them, is left as it is: it only
shrinks, and takes no newcomer.

A process that ends between two writes leaves a state from which the same rules go on.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from itertools import pairwise
from typing import Generic, NamedTuple, TypeVar

# Some 200 bytes each: one more Location costs a write of 100 kB, whatever a placement's size.
MAX_DESTINATIONS = 500

K = TypeVar("K", bound=Hashable)


class PageWrite(NamedTuple, Generic[K]):
    """What one page is to hold; None: the page is to go."""

    name: str
    members: tuple[K, ...] | None


class Pages(NamedTuple, Generic[K]):
    """Writes that lead to the goal. Those of *receivers* may come in any order, even side by
    side; those of *givers* only after all of them, one after the other, up to the first that
    fails. Each must be refused where the page is not as *current* says."""

    receivers: tuple[PageWrite[K], ...]
    givers: tuple[PageWrite[K], ...]


def pages(
    current: Mapping[str, Sequence[K]],
    wanted: Sequence[K],
    names: Sequence[str],
    limit: int = MAX_DESTINATIONS,
) -> Pages[K]:
    """Return the writes after which pages hold exactly *wanted*, each in the order given there.

    *current* is what pages hold, in the order in which they keep what stands twice. *names* are
    those that pages may have, enough of them for everything; the first page there always is. A
    page of any other name has to go.
    """
    layout = _layout(current, wanted, names, limit)
    giving, keepers = _given_up(current, layout)
    receivers: list[PageWrite[K]] = []
    shrinking: dict[str, PageWrite[K]] = {}
    removed: list[PageWrite[K]] = []
    for name in names:
        held, members = current.get(name), layout.get(name, [])
        if not members and name != names[0]:
            if held is not None:
                removed.append(PageWrite(name, None))
        elif name in giving:
            shrinking[name] = PageWrite(name, tuple(members))
        elif held is None or members != list(held) or name in keepers:
            receivers.append(PageWrite(name, tuple(members)))
    usable = set(names)
    removed += [PageWrite(name, None) for name in current if name not in usable]
    # In the order of pages, so that a page which gives and keeps is written before it is relied on.
    ordered = (shrinking[name] for name in current if name in shrinking)
    return Pages(tuple(receivers), (*ordered, *removed))


def _given_up(
    current: Mapping[str, Sequence[K]], layout: Mapping[str, Sequence[K]]
) -> tuple[set[str], set[str]]:
    """Return the pages that give up what another one has or gets, and those that keep it."""
    held = sum(map(len, current.values()))
    if current.keys() <= layout.keys() and len(set().union(*current.values())) == held:
        return set(), set()  # nothing stands twice or moves: nearly always
    home = {each: name for name, members in layout.items() for each in members}
    giving: set[str] = set()
    keepers: set[str] = set()
    for name, members in current.items():
        for each in members:
            keeper = home.get(each, name)
            if keeper != name:
                giving.add(name)
                keepers.add(keeper)
    return giving, keepers


def _layout(
    current: Mapping[str, Sequence[K]], wanted: Sequence[K], names: Sequence[str], limit: int
) -> dict[str, list[K]]:
    """Return what each page is to hold, in the order of *wanted*."""
    rank = {member: number for number, member in enumerate(wanted)}
    usable = set(names)
    settled: set[K] = set()
    found: dict[str, list[K]] = {}
    for name, members in current.items():
        if name in usable:
            kept = dict.fromkeys(each for each in members if each in rank and each not in settled)
            settled.update(kept)
            found[name] = list(kept)
    newcomers = [each for each in wanted if each not in settled]
    changed = _admit(found, newcomers, names, limit)
    for name, members in found.items():
        # What was written in order and lost some is in order still.
        if name in changed or not _ascending(members, rank):
            members.sort(key=rank.__getitem__)
    return found


def _admit(
    found: dict[str, list[K]], newcomers: Sequence[K], names: Sequence[str], limit: int
) -> set[str]:
    """Put newcomers on the fullest pages with room, then on new ones; returns which."""
    order = {name: number for number, name in enumerate(names)}
    with_room = [name for name in found if len(found[name]) < limit]
    with_room.sort(key=lambda name: (-len(found[name]), order[name]))
    fresh = (name for name in names if name not in found)
    changed: set[str] = set()
    position = 0
    for name in (*with_room, *fresh):
        if position == len(newcomers):
            break
        page = found.setdefault(name, [])
        taken = newcomers[position : position + limit - len(page)]
        page += taken
        position += len(taken)
        changed.add(name)
    return changed


def _ascending(members: Sequence[K], rank: Mapping[K, int]) -> bool:
    numbers = [rank[each] for each in members]
    return all(a < b for a, b in pairwise(numbers))
