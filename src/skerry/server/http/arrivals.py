"""Connections that wait for their handshake, and whose turn it is.

The next one is of the address with the least handshakes under way; of those addresses, the one
that came last. So one address, which may send connections that never say a word, takes turns with
the others, however many it sends; and where all come from one, or each from its own, it is the
newest that is served first.

Turns are kept in a heap in which nothing is ever changed: whatever becomes of an address, its
present turn is added, and turns that do not hold any more are dropped when they come up. Where only
one address waits there are no turns to be kept.
"""

from __future__ import annotations

import heapq
import socket
from collections import OrderedDict
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

# Turns that do not hold, beyond as many as there are connections: few enough to look through.
_SPARE_TURNS = 64


class Arrival(NamedTuple):
    """A connection that was taken, and when."""

    number: int
    taken: socket.socket
    address: str
    since: float


class Arrivals:
    """Who waits, and of which addresses handshakes are under way."""

    def __init__(self) -> None:
        self._numbers = 0
        # In order of arrival: all, and the numbers of each address.
        self._waiting: OrderedDict[int, Arrival] = OrderedDict()
        self._of: dict[str, dict[int, None]] = {}
        self._under_way: dict[str, int] = {}
        self._total = 0
        # Handshakes of the address, its newest connection negated, and the address.
        self._turns: list[tuple[int, int, str]] = []

    def __len__(self) -> int:
        return len(self._waiting)

    def __iter__(self) -> Iterator[Arrival]:
        return iter(self._waiting.values())

    def add(self, taken: socket.socket, address: str, now: float) -> None:
        """Let a connection wait."""
        self._numbers += 1
        number = self._numbers
        self._waiting[number] = Arrival(number, taken, address, now)
        self._of.setdefault(address, {})[number] = None
        self._note_turn(address)

    def oldest(self, limit: int) -> list[Arrival]:
        """Return those who have waited longest."""
        return list(islice(self._waiting.values(), limit))

    def remove(self, arrival: Arrival) -> None:
        """Let a connection wait no longer."""
        del self._waiting[arrival.number]
        numbers = self._of[arrival.address]
        if len(numbers) == 1:
            del self._of[arrival.address]
            return
        if next(reversed(numbers)) == arrival.number:
            numbers.popitem()  # Unlike a deletion, it leaves no gap to be passed by the next.
        else:
            del numbers[arrival.number]
        self._note_turn(arrival.address)

    def pop(self) -> Arrival:
        """Remove and return the next one; there must be one."""
        arrival = self._waiting[next(reversed(self._of[self._next_address()]))]
        self.remove(arrival)
        return arrival

    def may_begin(self, allowed: int) -> bool:
        """Report whether the next one may begin where *allowed* handshakes may be under way.

        An address alone may have them all. Where others come, it counts with no more than what all
        can have, one more address included: whoever comes next has room, whoever was before. All
        handshakes that go on make turns of the loop longer, and so *allowed* smaller.
        """
        if not self._waiting:
            return False
        if self._total < allowed:
            return True
        counts = self._under_way.values()
        if len(counts) >= allowed:
            return False
        share = max(1, allowed // (len(counts) + 1))
        if self._under_way.get(self._next_address(), 0) >= share:
            return False
        return sum(min(each, share) for each in counts) < allowed

    def begin(self, address: str) -> None:
        """Count one more handshake of *address* as under way."""
        self._count(address, 1)

    def end(self, address: str) -> None:
        """Count one less."""
        self._count(address, -1)

    def _count(self, address: str, change: int) -> None:
        self._total += change
        count = self._under_way.get(address, 0) + change
        if count:
            self._under_way[address] = count
        else:
            del self._under_way[address]
        if address in self._of:
            self._note_turn(address)

    def _turn(self, address: str) -> tuple[int, int, str]:
        return self._under_way.get(address, 0), -next(reversed(self._of[address])), address

    def _note_turn(self, address: str) -> None:
        if len(self._of) == 1:
            self._turns.clear()
        elif self._turns and len(self._turns) <= 2 * len(self._waiting) + _SPARE_TURNS:
            heapq.heappush(self._turns, self._turn(address))
        else:
            self._turns = [self._turn(each) for each in self._of]
            heapq.heapify(self._turns)

    def _next_address(self) -> str:
        """Return whose turn it is; somebody must be waiting."""
        if len(self._of) == 1:
            return next(iter(self._of))
        turns = self._turns
        while turns[0][2] not in self._of or turns[0] != self._turn(turns[0][2]):
            heapq.heappop(turns)
        return turns[0][2]
