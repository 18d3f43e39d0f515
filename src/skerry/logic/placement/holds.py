"""What runs where no grant admits it any more, and the ids by which its removal is confirmed.

Elements (destinations of placements, objects in mailboxes) are grouped by the inventory workspace
that no longer admits them and the workspace they come from. A group's id stands for exactly its
elements: one more or one less, and the id is another, so a confirmation is good for what was shown
and for nothing else. Ids are sums over elements and cost one addition per change.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from heapq import nsmallest
from typing import Generic, NamedTuple, TypeVar

_MODULUS = 1 << 128
_ID_BYTES = 6

O = TypeVar("O", bound=Hashable)  # noqa: E741 - who brings elements
E = TypeVar("E", bound=tuple[object, ...])


class Group(NamedTuple):
    """Elements of one source workspace that one inventory workspace does not admit."""

    inventory: str
    source: str


class Holds(Generic[O, E]):
    """Held elements by who brings them and by group."""

    def __init__(self, prefix: str) -> None:
        """*prefix* begins every id, so that whoever takes confirmations knows his own."""
        self.prefix = prefix
        self._by_owner: dict[O, Mapping[Group, frozenset[E]]] = {}
        self._elements: dict[Group, set[E]] = {}
        self._sums: dict[Group, int] = {}
        self._groups: dict[str, set[str]] = {}

    def replace(self, owner: O, found: Mapping[Group, frozenset[E]]) -> set[str]:
        """Take *found* for all that *owner* has held; returns the inventories with a change."""
        old = self._by_owner.get(owner, {})
        if old == found:
            return set()
        for group, elements in old.items():
            self._change(group, elements - found.get(group, frozenset()), -1)
        for group, elements in found.items():
            self._change(group, elements - old.get(group, frozenset()), 1)
        if found:
            self._by_owner[owner] = found
        else:
            del self._by_owner[owner]
        return {group.inventory for group in old.keys() | found.keys()}

    def groups(self, inventory: str) -> list[Group]:
        """Return the groups of an inventory workspace that hold something."""
        return [Group(inventory, source) for source in sorted(self._groups.get(inventory, ()))]

    def elements(self, group: Group) -> frozenset[E]:
        return frozenset(self._elements.get(group, ()))

    def count(self, group: Group) -> int:
        return len(self._elements.get(group, ()))

    def first(self, group: Group, count: int) -> list[E]:
        """Return the first elements of a group, in order."""
        return nsmallest(count, self._elements.get(group, ()))

    def id(self, group: Group) -> str:
        """Return what confirms the removal of exactly the elements of a group."""
        text = f"{group.inventory}\0{group.source}\0{self._sums.get(group, 0)}"
        digest = hashlib.blake2b(text.encode(), digest_size=_ID_BYTES).hexdigest()
        return f"{self.prefix}{digest}"

    def _change(self, group: Group, elements: Iterable[E], sign: int) -> None:
        held = self._elements.setdefault(group, set())
        total = self._sums.get(group, 0)
        for element in elements:
            (held.add if sign > 0 else held.discard)(element)
            total += sign * _number(element)
        if held:
            self._sums[group] = total % _MODULUS
            self._groups.setdefault(group.inventory, set()).add(group.source)
            return
        del self._elements[group]
        self._sums.pop(group, None)
        sources = self._groups.get(group.inventory, set())
        sources.discard(group.source)
        if not sources:
            self._groups.pop(group.inventory, None)


def _number(element: tuple[object, ...]) -> int:
    text = "\0".join(map(str, element)).encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=16).digest())


class Refusal(NamedTuple):
    """How many things of one owner an inventory workspace refuses, and the first of their names."""

    number: int
    names: tuple[str, ...] = ()


class Refusals(Generic[O]):
    """What is not admitted and does not run, counted by group."""

    def __init__(self) -> None:
        self._by_owner: dict[O, Mapping[Group, Refusal]] = {}
        self._owners: Counter[Group] = Counter()
        self._counts: Counter[Group] = Counter()
        self._names: dict[Group, Counter[str]] = {}
        self._groups: dict[str, set[str]] = {}

    def replace(self, owner: O, found: Mapping[Group, Refusal]) -> set[str]:
        """Take *found* for all that *owner* is refused; returns the inventories with a change."""
        old = self._by_owner.get(owner, {})
        if old == found:
            return set()
        for group, refusal in old.items():
            self._owners[group] -= 1
            self._counts[group] -= refusal.number
            self._names[group].subtract(refusal.names)
            if not self._owners[group]:
                self._forget(group)
        for group, refusal in found.items():
            self._owners[group] += 1
            self._counts[group] += refusal.number
            self._names.setdefault(group, Counter()).update(refusal.names)
            self._groups.setdefault(group.inventory, set()).add(group.source)
        if found:
            self._by_owner[owner] = found
        else:
            del self._by_owner[owner]
        return {group.inventory for group in old.keys() | found.keys()}

    def groups(self, inventory: str) -> list[Group]:
        """Return the groups of an inventory workspace that are refused something."""
        return [Group(inventory, source) for source in sorted(self._groups.get(inventory, ()))]

    def count(self, group: Group) -> int:
        """Return how many things are refused, over all owners."""
        return self._counts[group]

    def owners(self, group: Group) -> int:
        """Return how many owners are refused something."""
        return self._owners[group]

    def names(self, group: Group, count: int) -> list[str]:
        """Return the first names of what is refused, of those that owners gave."""
        found = self._names.get(group, Counter())
        return nsmallest(count, (name for name, number in found.items() if number))

    def _forget(self, group: Group) -> None:
        del self._owners[group], self._counts[group], self._names[group]
        sources = self._groups[group.inventory]
        sources.discard(group.source)
        if not sources:
            del self._groups[group.inventory]
