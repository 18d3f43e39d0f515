"""What runs where no grant admits it any more, and the ids by which its removal is confirmed.

Elements (destinations of placements, objects in mailboxes) are grouped by the inventory workspace
that no longer admits them and the workspace they come from. A group's id stands for exactly its
elements: one more or one less, and the id is another, so a confirmation is good for what was shown
and for nothing else. Ids are made from sums over elements and cost one addition per change.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Hashable, Mapping
from heapq import nsmallest
from typing import Generic, NamedTuple, TypeVar

_MODULUS = 1 << 128
_ID_BYTES = 6

O = TypeVar("O", bound=Hashable)  # noqa: E741 - who is refused something
E = TypeVar("E", bound=tuple[object, ...])


class Group(NamedTuple):
    """Elements of one source workspace that one inventory workspace does not admit."""

    inventory: str
    source: str


class Holds(Generic[E]):
    """Held elements, each in one group."""

    def __init__(self, prefix: str) -> None:
        """*prefix* begins every id, so that whoever takes confirmations knows his own."""
        self.prefix = prefix
        self._group_of: dict[E, Group] = {}
        self._elements: dict[Group, set[E]] = {}
        self._sums: dict[Group, int] = {}
        self._groups: dict[str, set[str]] = {}

    def put(self, element: E, group: Group | None) -> set[str]:
        """Hold *element* in *group*, or no longer; returns the inventories with a change."""
        old = self._group_of.get(element)
        if old == group:
            return set()
        if old is not None:
            self._drop(element, old)
        if group is None:
            del self._group_of[element]
        else:
            self._group_of[element] = group
            self._elements.setdefault(group, set()).add(element)
            self._sums[group] = (self._sums.get(group, 0) + _number(element)) % _MODULUS
            self._groups.setdefault(group.inventory, set()).add(group.source)
        return {each.inventory for each in (old, group) if each is not None}

    def groups(self, inventory: str) -> list[Group]:
        """Return the groups of an inventory workspace that hold something."""
        return [Group(inventory, source) for source in sorted(self._groups.get(inventory, ()))]

    def elements(self, group: Group) -> frozenset[E]:
        return frozenset(self._elements.get(group, ()))

    def id(self, group: Group) -> str:
        """Return what confirms the removal of exactly the elements of a group."""
        text = f"{group.inventory}\0{group.source}\0{self._sums.get(group, 0)}"
        digest = hashlib.blake2b(text.encode(), digest_size=_ID_BYTES).hexdigest()
        return f"{self.prefix}{digest}"

    def _drop(self, element: E, group: Group) -> None:
        held = self._elements[group]
        held.discard(element)
        if held:
            self._sums[group] = (self._sums[group] - _number(element)) % _MODULUS
            return
        del self._elements[group], self._sums[group]
        sources = self._groups[group.inventory]
        sources.discard(group.source)
        if not sources:
            del self._groups[group.inventory]


def _number(element: tuple[object, ...]) -> int:
    text = "\0".join(map(str, element)).encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=16).digest())


class Refusal(NamedTuple):
    """How many things of one owner an inventory workspace refuses, and the first of their names."""

    number: int
    names: tuple[str, ...] = ()


_NOTHING: Mapping[Group, Refusal] = {}


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
        old = self._by_owner.get(owner, _NOTHING)
        if old == found:
            return set()
        changed = {
            group for group in old.keys() | found.keys() if old.get(group) != found.get(group)
        }
        for group in changed:
            self._exchange(group, old.get(group), found.get(group))
        if found:
            self._by_owner[owner] = found
        else:
            del self._by_owner[owner]
        return {group.inventory for group in changed}

    def _exchange(self, group: Group, old: Refusal | None, new: Refusal | None) -> None:
        names = self._names.setdefault(group, Counter())
        if old is not None:
            self._owners[group] -= 1
            self._counts[group] -= old.number
            names.subtract(old.names)
        if new is not None:
            self._owners[group] += 1
            self._counts[group] += new.number
            names.update(new.names)
            self._groups.setdefault(group.inventory, set()).add(group.source)
        elif not self._owners[group]:
            self._forget(group)

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
