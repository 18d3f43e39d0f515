"""Records as the journal keeps them, by the name of the object."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from skerry.api.refs import ObjectRef
from skerry.edge.syncer.journal import Journal
from skerry.logic.fleet.syncing.records import Placed, Raised

_PLACED = "placed/"
_RAISED = "raised/"
_RELEASED = "released/"
_META = "meta/"


class Memory:
    """What was placed and brought up, and a few facts."""

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self._placed = {_ref(key, _PLACED) for key in journal.keys(_PLACED)}
        self._raised = {_ref(key, _RAISED) for key in journal.keys(_RAISED)}

    def placed(self, ref: ObjectRef) -> Placed | None:
        """Return the record of an object that goes down."""
        raw = self.journal.get(_PLACED + ref.text) if ref in self._placed else None
        return None if raw is None else Placed.decode(raw)

    def set_placed(self, ref: ObjectRef, record: Placed | None) -> None:
        self.journal.put(_PLACED + ref.text, None if record is None else record.encode())
        (self._placed.discard if record is None else self._placed.add)(ref)

    def edge_uid(self, ref: ObjectRef) -> str:
        """Return which object at the edge the record is of; empty when there is none yet."""
        record = self.placed(ref)
        return "" if record is None else record.edge_uid

    def released(self, ref: ObjectRef) -> str:
        """Return the UID of an object that was placed once and left at the edge on purpose."""
        return str(self.journal.get(_RELEASED + ref.text) or "")

    def set_released(self, ref: ObjectRef, uid: str) -> None:
        self.journal.put(_RELEASED + ref.text, uid or None)

    def raised(self, ref: ObjectRef) -> Raised | None:
        """Return the record of an object that was brought up."""
        raw = self.journal.get(_RAISED + ref.text) if ref in self._raised else None
        return None if raw is None else Raised.decode(raw)

    def set_raised(self, ref: ObjectRef, record: Raised | None) -> None:
        self.journal.put(_RAISED + ref.text, None if record is None else record.encode())
        (self._raised.discard if record is None else self._raised.add)(ref)

    def was_placed(self, ref: ObjectRef) -> bool:
        return ref in self._placed

    def was_raised(self, ref: ObjectRef) -> bool:
        return ref in self._raised

    def all_placed(self) -> Iterator[ObjectRef]:
        """Yield the names of everything that goes down; may change while it is read."""
        yield from list(self._placed)

    def all_raised(self) -> Iterator[ObjectRef]:
        yield from list(self._raised)

    @property
    def placed_count(self) -> int:
        return len(self._placed)

    def fact(self, name: str) -> Any:
        """Return a single remembered value."""
        return self.journal.get(_META + name)

    def set_fact(self, name: str, value: object) -> None:
        self.journal.put(_META + name, value)


def _ref(key: str, prefix: str) -> ObjectRef:
    return ObjectRef.parse(key[len(prefix) :])
