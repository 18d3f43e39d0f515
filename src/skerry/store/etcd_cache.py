"""What a read has to ask of etcd, given what is known already: pure.

**The rule.** A value that was seen lately is given out when etcd says, in the answer to a question
that was sent after the read began, that its key was last written at the revision we know. A
question is one read-only transaction for many keys: of each key whose value is known, the
condition that it still stands at its revision; of each other, a range. When every condition holds
etcd sends the values that were not known, and nothing else. When one does not, the failure branch
has read all keys of the question at that moment, and what was known is not used.

**Why this rule.** One could also ask for ``meta/last`` only, and give out what is known once the
live stream has been followed that far. Per key that costs as much, since a condition is encoded
once for each value and etcd compares a number. But then a read waits for the stream whenever
anybody writes anything, and its truth hangs on every way a stream can break: a reopening, a
compaction that skips events, an own write that was acknowledged before the stream shows it. Here
etcd itself vouches for every value. The stream only brings newer values in place of older ones, so
that conditions seldom fail; when it is late, broken or silent, an answer is larger and as right.

A revision of etcd belongs to one value of a key, for ever. That is no longer so when somebody puts
an old snapshot in place of etcd's data while servers go on running; resource versions mean nothing
then either, and the servers have to be restarted.

A transaction of conditions and no range would be answered by etcd without asking a majority. Ours
always has one: a key that is known is read by the failure branch.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from skerry.store import etcd_messages as messages
from skerry.store.base import Entry, Event, StoreError
from skerry.store.etcd_layout import Layout, Numbering

# As much as the SQLite store keeps of what it read lately.
_MAX_BYTES = 24 << 20
# With as many operations as etcd takes by default, a failure branch of values
# that are known stays below 8 MiB.
_MAX_VALUE_BYTES = 64 << 10
# Nobody knows how long the other values are. etcd takes 1.5 MiB, so these are 48 MiB at worst.
_MAX_UNKNOWN = 32
# Names in requests may be long; etcd refuses messages above 2 MiB, and one name must not have
# others refused.
_MAX_REQUEST_BYTES = 1 << 20
# Two copies of the key in the condition, the objects around it, and its place in the table.
_OVERHEAD_BYTES = 500

Outcome = Entry | StoreError | None


@dataclass(frozen=True, slots=True)
class Question:
    """One transaction, and what its answer will mean."""

    request: bytes
    keys: Sequence[str]
    known: dict[str, Entry]
    numbering: Numbering

    def outcomes(self, answer: messages.Transacted) -> dict[str, Outcome]:
        """Return what each key holds; an error where it is no value of ours."""
        known = self.known if answer.succeeded else {}
        asked = [key for key in self.keys if key not in known]
        found: dict[str, Outcome] = dict(known)
        for key, ranged in zip(asked, answer.ranges, strict=True):
            found[key] = self._outcome(key, ranged)
        return found

    def _outcome(self, key: str, ranged: messages.Ranged) -> Outcome:
        if not ranged.entries:
            return None
        try:
            return self.numbering.entry(ranged.entries[0], key)
        except StoreError as error:
            # The others of the question have nothing to do with it.
            return error


@dataclass(slots=True)
class _Held:
    entry: Entry
    # The condition that it still holds, and the range if not; made when first asked.
    part: bytes = b""

    def size(self) -> int:
        return len(self.entry.value) + 2 * len(self.entry.key) + _OVERHEAD_BYTES


class ReadCache:
    """A bounded cache of values; the one used longest ago goes first."""

    def __init__(
        self,
        layout: Layout,
        numbering: Numbering,
        *,
        max_operations: int,
        max_bytes: int = _MAX_BYTES,
    ) -> None:
        self._layout = layout
        self._numbering = numbering
        self._max_operations = max_operations
        self._max_bytes = max_bytes
        self._held: OrderedDict[str, _Held] = OrderedDict()
        self._bytes = 0

    def question(self, keys: Iterable[str]) -> Question:
        """Return the question for as many of *keys*, from the first on, as fit into one."""
        taken: list[str] = []
        known: dict[str, Entry] = {}
        parts: list[bytes] = []
        size = 0
        for key in keys:
            held = self._held.get(key)
            part = self._unknown(key) if held is None else self._condition(held)
            size += len(part)
            unknown = len(taken) - len(known)
            full = len(taken) == self._max_operations or size > _MAX_REQUEST_BYTES
            if taken and (full or (held is None and unknown == _MAX_UNKNOWN)):
                break
            taken.append(key)
            parts.append(part)
            if held is not None:
                self._held.move_to_end(key)
                known[key] = held.entry
        return Question(b"".join(parts), taken, known, self._numbering)

    def learn(self, outcomes: dict[str, Outcome]) -> None:
        """Remember what was read."""
        for key, found in outcomes.items():
            if isinstance(found, Entry):
                self._put(found)
            else:
                self._drop(key)

    def follow(self, events: Iterable[Event]) -> None:
        """Replace values that are remembered by newer ones."""
        for event in events:
            if event.key not in self._held:
                continue
            if event.value is None:
                self._drop(event.key)
            else:
                self._put(Entry(event.key, event.value, event.revision))

    def _put(self, entry: Entry) -> None:
        held = self._held.get(entry.key)
        if held is not None and held.entry.revision >= entry.revision:
            # An answer may arrive after the stream has shown what came later.
            return
        self._drop(entry.key)
        if len(entry.value) > _MAX_VALUE_BYTES:
            return
        fresh = self._held[entry.key] = _Held(entry)
        self._bytes += fresh.size()
        while self._bytes > self._max_bytes:
            _, oldest = self._held.popitem(last=False)
            self._bytes -= oldest.size()

    def _drop(self, key: str) -> None:
        held = self._held.pop(key, None)
        if held is not None:
            self._bytes -= held.size()

    def _condition(self, held: _Held) -> bytes:
        """Return a part of a transaction: fields of several parts may simply be joined."""
        if not held.part:
            key = self._layout.key(held.entry.key)
            revision = self._numbering.etcd_revision(held.entry.revision)
            read = messages.range_operation(messages.range_request(key))
            held.part = messages.txn_request([messages.written_at(key, revision)], [], [read])
        return held.part

    def _unknown(self, key: str) -> bytes:
        read = messages.range_operation(messages.range_request(self._layout.key(key)))
        return messages.txn_request([], [read], [read])
