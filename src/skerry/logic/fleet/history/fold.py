"""The destinations a placement had at some time, from its records.

Destinations are numbers here: a slot is its own number, and those without slots get numbers beyond
any slot. So a record of thousands of destinations is a few operations on bitmaps, however many of
them it is about.

Folding begins at the newest checkpoint and not with the first record, so that an answer costs what
happened since yesterday. A checkpoint of a large placement has several pages, each an object of its
own, and whoever writes them may die between two.

    record                     destinations   by revision
    Joined at 1: slots 3, 4    {3, 4}         1: {3, 4}
    Revised 1→2: slot 3        {3, 4}         1: {4}, 2: {3}
    Left: slot 4               {3}            2: {3}
    Checkpoint                 exactly what its pages list

Each record sets and none toggles, so one that was written twice changes nothing the second time.

With a page of a checkpoint missing it says which destinations
there were, but not that there were no others: it is passed over as if it had never been begun, and
what it was to stand for is folded itself. A page that somebody deletes has the same effect; where
what came before is gone as well, the state is unknown and no guess is made.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from pyroaring import BitMap

from skerry.api.objects import Object
from skerry.logic.fleet.history.packing import SLOT_LIMIT, Corrupt, Standing, key_of
from skerry.logic.fleet.history.record import Place, Record, in_order, order_of, read
from skerry.logic.fleet.placement.records import Destination

_BEYOND_SLOTS = SLOT_LIMIT


class UnknownThen(Exception):
    """Why the state at a time cannot be known, in a sentence."""


@dataclass(frozen=True, slots=True)
class State:
    """What a placement had: its destinations, by destination; and up to which record that is."""

    standings: Mapping[Destination, Standing]
    last: Record | None = None


class Folder:
    """Takes records one by one, in order, and knows what follows from them.

    Names outlive presence: a destination that left keeps its number, so a later record that has its
    key alone is resolved. Keys that nobody has introduced are about nobody, and passed over.
    """

    def __init__(self) -> None:
        self._destinations: dict[int, Destination] = {}
        self._numbers: dict[int, int] = {}
        self._present = BitMap()
        self._revisions: dict[int, BitMap] = {}
        self._next = _BEYOND_SLOTS
        self._uid = ""
        self._last: Record | None = None

    def take(self, record: Record) -> None:
        """Apply one record; repeated ones change nothing.

        A UID that is not that of the record before is another placement: it begins with nothing.
        """
        if record.uid != self._uid:
            self._clear()  # another placement of the same name
            self._uid = record.uid
        self._last = record
        if record.change == "Checkpoint":
            self._restore(record)
        elif record.change == "Joined":
            self._join(record)
        elif record.change == "Left":
            self._leave(record)
        elif record.change == "Revised" and "object" not in record.object:
            self._revise(record)

    def state(self) -> State:
        """Return what follows from the records taken so far."""
        # Of who is there: a few bytes of text may say something of a billion slots.
        revision_of = {
            number: revision
            for revision, numbers in self._revisions.items()
            for number in numbers & self._present
        }
        found = (
            Standing(
                self._destinations[number],
                number if number < _BEYOND_SLOTS else None,
                revision_of.get(number),
            )
            for number in self._present
            if number in self._destinations
        )
        return State({each.destination: each for each in found}, self._last)

    def _clear(self) -> None:
        self._present.clear()
        self._revisions.clear()

    def _restore(self, record: Record) -> None:
        if record.page == 1:
            self._clear()
        for each in record.standings:
            number = self._number(each)
            self._present.add(number)
            if each.revision is not None:
                self._revisions.setdefault(each.revision, BitMap()).add(number)

    def _join(self, record: Record) -> None:
        numbers = BitMap([self._number(each) for each in record.named])
        self._present |= numbers
        if record.to is not None:
            self._set_revision(numbers, record.to)

    def _leave(self, record: Record) -> None:
        if record.everybody:
            self._clear()
            return
        numbers = self._resolved(record)
        self._present -= numbers
        self._set_revision(numbers, None)

    def _revise(self, record: Record) -> None:
        """Take destinations to another revision; from none at all they get their slots as well."""
        if record.to is None and record.slots is None:
            self._take_slots(record)
            return
        # Who has got a slot is known by it from here on.
        for each in record.named if record.start is None else ():
            key = key_of(each.destination)
            old = self._numbers.get(key)
            number = self._number(each)
            if old is not None and old != number and old in self._present:
                self._present.discard(old)
                self._set_revision(BitMap([old]), None)
                self._present.add(number)
        self._set_revision(self._resolved(record), record.to)

    def _take_slots(self, record: Record) -> None:
        """Have destinations without slots again: their placement has no Rollout any more."""
        numbers = self._resolved(record)
        self._set_revision(numbers, None)
        for number in numbers & self._present:
            if number < _BEYOND_SLOTS:
                self._present.discard(number)
                self._present.add(self._number(Standing(self._destinations[number])))

    def _set_revision(self, numbers: BitMap, revision: int | None) -> None:
        for each, known in self._revisions.items():
            if known.intersect(numbers):
                self._revisions[each] = known - numbers
        if revision is not None:
            there = self._revisions.get(revision)
            if there is None:
                self._revisions[revision] = BitMap(numbers)
            else:
                there |= numbers

    def _resolved(self, record: Record) -> BitMap:
        """Return whom a record is about, as numbers: slots as they are, keys as they were met."""
        if record.slots is not None and not record.keys:
            return record.slots
        found = BitMap(record.slots) if record.slots is not None else BitMap()
        for key in record.keys:
            number = self._numbers.get(key)
            if number is not None:
                found.add(number)
        return found

    def _number(self, standing: Standing) -> int:
        """Return the number of a destination; it gets one, or its slot, if it has none."""
        key = key_of(standing.destination)
        number = standing.slot if standing.slot is not None else self._numbers.get(key)
        if number is None or (standing.slot is None and number < _BEYOND_SLOTS):
            number = self._next
            self._next += 1
        self._numbers[key] = number
        self._destinations[number] = standing.destination
        return number


@dataclass(frozen=True, slots=True)
class Timeline:
    """The records of one placement, in order; and what is wrong with others.

    ``broken`` says of records that cannot be believed why, by how many come before: from there to
    the next checkpoint the state is unknown. ``strangers`` have a name that no record has.
    """

    records: tuple[Record, ...] = ()
    broken: Mapping[int, str] = field(default_factory=dict)
    strangers: tuple[str, ...] = ()

    @property
    def is_whole(self) -> bool:
        """Whether nothing came before the first record."""
        return not self.records or (
            self.records[0].change != "Checkpoint" and "previous" not in self.records[0].object
        )


def timeline(objects: Iterable[Object]) -> Timeline:
    """Read DecisionRecords of one placement."""
    records: list[Record] = []
    broken: dict[int, str] = {}
    strangers: list[str] = []
    for obj in in_order(objects):
        try:
            records.append(read(obj))
        except Corrupt as error:
            if order_of(obj["metadata"]["name"]) is None:
                strangers.append(str(error))
            else:
                broken.setdefault(len(records), str(error))
    return Timeline(tuple(records), broken, tuple(strangers))


def state_at(line: Timeline, moment: datetime, now: datetime) -> State:
    """Return what the placement had at *moment*; raises ``UnknownThen`` rather than guess."""
    if moment > now:
        raise UnknownThen(f"{moment.isoformat()} has not come yet")
    if not line.records:
        raise UnknownThen("no history is kept of it")
    end = _end(line.records, moment)
    oldest = line.records[0].time
    if end == 0:
        if line.is_whole:
            return State({})
        raise UnknownThen(f"its history begins at {oldest.isoformat()}")
    return folded(line, end)


def folded(line: Timeline, end: int) -> State:
    """Return the state after the first *end* records; raises ``UnknownThen`` if one is missing."""
    whole = _whole_checkpoints(line.records[:end])
    starts = (n for n in range(end - 1, -1, -1) if _starts(line.records[n], whole))
    begin = next(starts, None)
    lost = [at for at in line.broken if at < end and (begin is None or at > begin)]
    if lost:
        raise UnknownThen(f"unknown from {line.broken[min(lost)]} to the next checkpoint")
    if begin is None and not line.is_whole:
        raise UnknownThen("the records before are missing, and no checkpoint stands for them")
    folder = Folder()
    for record in believable(line.records[begin or 0 : end]):
        folder.take(record)
    return folder.state()


def believable(records: Sequence[Record]) -> Iterator[Record]:
    """Yield the records that say something: no pages of checkpoints that lack one."""
    whole = _whole_checkpoints(records)
    return (each for each in records if each.change != "Checkpoint" or each.place in whole)


def _whole_checkpoints(records: Iterable[Record]) -> set[Place]:
    """Return the places at which a checkpoint stands with all its pages."""
    pages: dict[Place, set[int]] = {}
    wanted: dict[Place, int] = {}
    for each in records:
        if each.change == "Checkpoint":
            pages.setdefault(each.place, set()).add(each.page)
            wanted[each.place] = each.pages
    return {place for place, there in pages.items() if len(there) >= wanted[place]}


def _starts(record: Record, whole: set[Place]) -> bool:
    return record.change == "Checkpoint" and record.page == 1 and record.place in whole


def _end(records: Sequence[Record], moment: datetime) -> int:
    """Return how many records had been decided at *moment*, by the last that says so.

    From the end, because clocks step back: of records at 14:00, 14:09 and 14:05 all three had been
    decided at 14:05, since what is in front was decided before.
    """
    return next((n + 1 for n in range(len(records) - 1, -1, -1) if records[n].time <= moment), 0)
