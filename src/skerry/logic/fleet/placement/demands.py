"""Selectors by what they demand: labels find the selectors they satisfy.

Equal selectors are one, whoever has them. For each key the index knows which selectors demand
something of it, which of those name a value, which mean the complement, and which admit absence.
The selectors that a value ``v`` of key ``k`` satisfies are then ``named[k][v] XOR complement[k]``,
and the selectors some labels satisfy are all but those unsatisfied by any key: as many set
operations as there are keys that anybody selects by, however many selectors there are.

Why XOR: a term either lists the values that it admits (``In``, ``matchLabels``) or those that it
does not (``NotIn``; ``Exists`` is the complement of no value at all). A value that is named
satisfies a term of the first sort and fails one of the second, and the other way round for a value
that is not named, so one exclusive or does for both:

    selectors naming ``prod``    a (env In [prod, dev])    b (env NotIn [prod])
    complement                                             b    c (env Exists)
    XOR: ``prod`` satisfies      a                              c

An absent label has no value to be looked up, and what admits absence (``NotIn``,
``DoesNotExist``) is a set of its own. A selector with several keys must survive each of them, which
is why those that *fail* are united and not those that hold. A selector that demands nothing fails
nowhere, and is satisfied by any labels.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pyroaring import BitMap

from skerry.logic.fleet.placement.numbers import Numbers
from skerry.logic.fleet.placement.postings import Postings
from skerry.logic.fleet.placement.terms import Terms


class _Key:
    """The selectors that demand something of one key."""

    __slots__ = ("absent", "complement", "demanding", "named")

    def __init__(self) -> None:
        self.demanding = BitMap()
        self.complement = BitMap()
        self.absent = BitMap()
        self.named: Postings[str] = Postings()

    def unsatisfied(self, value: str | None) -> BitMap:
        """Return the selectors that do not welcome *value*; None stands for an absent label."""
        if value is None:
            return self.demanding - self.absent
        return self.demanding - (self.complement ^ self.named.of(value))


class DemandIndex:
    """Selectors and the numbers of those who have them."""

    __slots__ = ("_all", "_keys", "_numbers", "_owners")

    def __init__(self) -> None:
        self._numbers: Numbers[Terms] = Numbers()
        self._owners: Postings[int] = Postings()
        self._all = BitMap()
        self._keys: dict[str, _Key] = {}

    def __len__(self) -> int:
        return len(self._all)

    def add(self, terms: Terms, owner: int) -> int:
        """Note that *owner* has this selector; returns the selector's number."""
        number = self._numbers.get(terms)
        if number is None:
            number = self._numbers.add(terms)
            self._all.add(number)
            for key, term in terms:
                known = self._keys.setdefault(key, _Key())
                known.demanding.add(number)
                if term.complement:
                    known.complement.add(number)
                if term.absent:
                    known.absent.add(number)
                for value in term.values:
                    known.named.add(value, number)
        self._owners.add(number, owner)
        return number

    def remove(self, number: int, owner: int) -> None:
        """Note that *owner* has this selector no longer; without owners it is forgotten."""
        if not self._owners.discard(number, owner):
            self._forget(number)

    def terms(self, number: int) -> Terms:
        """Return what a selector demands."""
        return self._numbers.item(number)

    def owners(self, number: int) -> BitMap:
        """Return who has a selector."""
        return self._owners.of(number)

    def satisfied(self, labels: Mapping[str, str]) -> BitMap:
        """Return the selectors that *labels* satisfy."""
        unsatisfied = [known.unsatisfied(labels.get(key)) for key, known in self._keys.items()]
        return self._all - BitMap.union(*unsatisfied) if unsatisfied else BitMap(self._all)

    def owners_of(self, numbers: BitMap) -> BitMap:
        """Return everybody who has any of these selectors."""
        return BitMap(self._owners.union(numbers))

    def __iter__(self) -> Iterator[int]:
        return iter(self._all)

    def _forget(self, number: int) -> None:
        self._all.discard(number)
        for key, term in self._numbers.item(number):
            known = self._keys[key]
            known.demanding.discard(number)
            known.complement.discard(number)
            known.absent.discard(number)
            for value in term.values:
                known.named.discard(value, number)
            if not known.demanding:
                del self._keys[key]
        self._numbers.remove(number)
