"""Things by their labels: an inverted index of compressed bitmaps.

For each key and value the set of things that have it. A selector's things are an intersection,
so finding them costs microseconds for a hundred thousand things and does not depend on how many
labels they have besides.

It is the mirror of ``demands``, which is given labels and finds selectors. A term that admits
absence is the one that is easily got wrong: ``NotIn`` is also true of whoever lacks the label
altogether, as Kubernetes has it, so it takes away from everybody and not from those who have the
key. Terms narrow the result one after another, and nothing more is looked up once it is empty.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyroaring import BitMap

from skerry.logic.fleet.placement.postings import Postings
from skerry.logic.fleet.placement.terms import Term, Terms

_NONE = BitMap()


class LabelIndex:
    """Numbers and their labels."""

    __slots__ = ("_having", "_labels", "_valued", "everything")

    def __init__(self) -> None:
        self.everything = BitMap()
        self._labels: dict[int, Mapping[str, str]] = {}
        self._having: dict[str, BitMap] = {}
        self._valued: dict[str, Postings[str]] = {}

    def labels(self, number: int) -> Mapping[str, str]:
        """Return the labels *number* has now."""
        return self._labels[number]

    def put(self, number: int, labels: Mapping[str, str]) -> None:
        """Give *number* exactly these labels."""
        old = self._labels.get(number, {})
        self._labels[number] = labels
        self.everything.add(number)
        for key, value in old.items():
            if labels.get(key) != value:
                self._drop(number, key, value)
        for key, value in labels.items():
            if old.get(key) != value:
                self._add(number, key, value)

    def remove(self, number: int) -> None:
        """Forget *number*."""
        for key, value in self._labels.pop(number).items():
            self._drop(number, key, value)
        self.everything.discard(number)

    def select(self, terms: Terms, within: BitMap | None = None) -> BitMap:
        """Return who satisfies every term, of those in *within*."""
        found = self.everything if within is None else within
        for key, term in terms:
            if not found:
                return BitMap()
            found = self._satisfying(found, key, term)
        return BitMap(found)

    def _satisfying(self, among: BitMap, key: str, term: Term) -> BitMap:
        having = self._having.get(key, _NONE)
        valued = self._valued.get(key)
        named = _NONE if valued is None else valued.union(term.values)
        if not term.complement:
            welcome = among & named
            return welcome | (among - having) if term.absent else welcome
        return among - named if term.absent else (among & having) - named

    def _add(self, number: int, key: str, value: str) -> None:
        having = self._having.get(key)
        if having is None:
            having = self._having[key] = BitMap()
            self._valued[key] = Postings()
        having.add(number)
        self._valued[key].add(value, number)

    def _drop(self, number: int, key: str, value: str) -> None:
        having = self._having[key]
        having.discard(number)
        self._valued[key].discard(value, number)
        if not having:
            del self._having[key], self._valued[key]
