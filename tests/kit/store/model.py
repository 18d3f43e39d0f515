"""What a store should do, in the plainest terms: a list of events and a dictionary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from skerry.store.base import Entry, Event, Write


@dataclass
class Model:
    """Believes the store about the numbers of revisions and about nothing else."""

    start: int
    events: list[Event] = field(default_factory=list)
    entries: dict[str, Entry] = field(default_factory=dict)
    compacted: int = 0

    def first_misfit(self, writes: Sequence[Write]) -> tuple[int, int] | None:
        """Return index and actual revision of the first expectation that does not hold."""
        for index, write in enumerate(writes):
            entry = self.entries.get(write.key)
            actual = entry.revision if entry else 0
            if write.expected not in (None, actual):
                return index, actual
        return None

    def committed(self, writes: Sequence[Write], revisions: Sequence[int]) -> None:
        """Take over a commit that succeeded with these revisions, checking that they are new."""
        for write, revision in zip(writes, revisions, strict=True):
            before = self.entries.pop(write.key, None)
            if write.value is None and before is None:
                assert revision == 0
                continue
            assert revision > self.newest
            self.events.append(
                Event(
                    revision,
                    write.key,
                    write.value,
                    before.value if before else None,
                    before.revision if before else 0,
                )
            )
            if write.value is not None:
                self.entries[write.key] = Entry(write.key, write.value, revision)

    @property
    def newest(self) -> int:
        return self.events[-1].revision if self.events else self.start

    def known(self) -> list[int]:
        """Return every revision worth asking about: the start and each event's."""
        return [self.start, *(event.revision for event in self.events)]

    def at(self, revision: int, prefix: str = "") -> list[Entry]:
        """Return the entries below *prefix* as they were at *revision*, in order."""
        found: dict[str, Entry] = {}
        for event in self.events:
            if event.revision > revision:
                break
            found.pop(event.key, None)
            if event.value is not None:
                found[event.key] = Entry(event.key, event.value, event.revision)
        return [found[key] for key in sorted(found) if key.startswith(prefix)]

    def after(self, revision: int, prefix: str = "") -> list[Event]:
        """Return the events below *prefix* above *revision*."""
        return [e for e in self.events if e.revision > revision and e.key.startswith(prefix)]
