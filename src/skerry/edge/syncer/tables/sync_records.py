"""The rows of ``recorded``, as the journal keeps them; what executors write their entries to.

A record is written before the deed it is about. One without a UID is an *intent*: something may be
at the edge by us, and nobody knows yet. So after a crash at any moment there is no object of ours
without a record, which is what a deletion needs; the price is now and then a record without an
object, which the next look settles.

Only the names are kept in memory, as sets; a record itself is decoded when it is asked for, since a
decision is about one object.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from skerry.api.refs import ObjectRef
from skerry.edge.syncer.tables.journal import Journal
from skerry.logic.fleet.syncing.recorded import (
    PLACED,
    UPSYNCED,
    DownsyncRecord,
    UpsyncRecord,
    placed_key,
    released_key,
    upsynced_key,
)

_META = "meta/"


class SyncRecords:
    """What was placed and brought up, and a few facts; the names of both are kept at hand."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._names: dict[str, set[ObjectRef]] = {
            prefix: {ObjectRef.parse(key.removeprefix(prefix)) for key in journal.keys(prefix)}
            for prefix in (PLACED, UPSYNCED)
        }
        self._placed, self._upsynced = self._names[PLACED], self._names[UPSYNCED]
        # Of what was placed: what the edge has shown.
        self._present = {ref for ref in self._placed if _has_uid(journal.get(placed_key(ref)))}
        self._presence_changed: Callable[[ObjectRef, bool], None] | None = None

    def report_to(self, handler: Callable[[ObjectRef, bool], None]) -> None:
        """Tell *handler*, instead of the one before, when an object begins or ceases to be.

        That is: when the edge has answered that it is there, and when its record ends or becomes
        an intent again.
        """
        self._presence_changed = handler

    # What executors need.

    def put(self, key: str, value: object) -> None:
        """Remember *value*, durably after the next ``flush``; None forgets the key."""
        self._journal.put(key, value)
        for prefix, names in self._names.items():
            if key.startswith(prefix):
                ref = ObjectRef.parse(key.removeprefix(prefix))
                (names.discard if value is None else names.add)(ref)
                if names is self._placed:
                    self._note_presence(ref, _has_uid(value))

    def _note_presence(self, ref: ObjectRef, present: bool) -> None:
        if present == (ref in self._present):
            return
        (self._present.add if present else self._present.discard)(ref)
        if self._presence_changed is not None:
            self._presence_changed(ref, present)

    async def flush(self) -> None:
        """Return when everything put so far is on disk, or ``failure`` says why it is not."""
        await self._journal.flush()

    @property
    def failure(self) -> str:
        """Why the disk refuses to remember; empty while it does not."""
        return self._journal.failure

    # Rows.

    def placed(self, ref: ObjectRef) -> DownsyncRecord | None:
        """Return the record of an object that goes down."""
        raw = self._journal.get(placed_key(ref)) if ref in self._placed else None
        return None if raw is None else DownsyncRecord.decode(raw)

    def set_placed(self, ref: ObjectRef, record: DownsyncRecord) -> None:
        """Remember what the edge answered; a crash before the next flush costs one more apply."""
        self.put(placed_key(ref), record.encode())

    def edge_uid(self, ref: ObjectRef) -> str:
        """Return which object at the edge the record is of; empty when there is none yet."""
        record = self.placed(ref)
        return "" if record is None else record.edge_uid

    def released_uid(self, ref: ObjectRef) -> str:
        """Return the UID of an object that was placed once and left at the edge on purpose."""
        return str(self._journal.get(released_key(ref)) or "")

    def upsynced(self, ref: ObjectRef) -> UpsyncRecord | None:
        """Return the record of an object that was brought up."""
        raw = self._journal.get(upsynced_key(ref)) if ref in self._upsynced else None
        return None if raw is None else UpsyncRecord.decode(raw)

    def set_upsynced(self, ref: ObjectRef, record: UpsyncRecord) -> None:
        """Remember what the mailbox answered."""
        self.put(upsynced_key(ref), record.encode())

    def was_placed(self, ref: ObjectRef) -> bool:
        """Tell whether *ref* is recorded as going down."""
        return ref in self._placed

    def was_upsynced(self, ref: ObjectRef) -> bool:
        """Tell whether *ref* is recorded as brought up."""
        return ref in self._upsynced

    def all_placed(self) -> Iterator[ObjectRef]:
        """Yield the names of everything that goes down; may change while it is read."""
        yield from list(self._placed)

    def all_upsynced(self) -> Iterator[ObjectRef]:
        """Yield the names of everything that was brought up; may change while it is read."""
        yield from list(self._upsynced)

    def is_present(self, ref: ObjectRef) -> bool:
        """Tell whether the edge has shown what is recorded as going down."""
        return ref in self._present

    @property
    def present_count(self) -> int:
        """How many of the objects that go down the edge has shown."""
        return len(self._present)

    # Facts about the hub.

    def fact(self, name: str) -> Any:
        """Return a single remembered value."""
        return self._journal.get(_META + name)

    def set_fact(self, name: str, value: object) -> None:
        """Remember a single value; None forgets it."""
        self._journal.put(_META + name, value)

    def facts(self, prefix: str) -> list[str]:
        """Return the names of the remembered values that begin with *prefix*."""
        return [key.removeprefix(_META) for key in self._journal.keys(_META + prefix)]


def _has_uid(record: Any) -> bool:
    return bool(record and record.get("edge_uid"))
