"""How things stand with every object, and what that comes to.

The executors of downsync and upsync write here, one outcome for each object, the last one. The
status write-back marks copies by it, ``reporting`` makes conditions of it, and events of the edge
look here for whom they concern: a kind that is served now enqueues what waited for it.

Nothing of it is kept on disk. When a session begins, everything that is recorded as placed is
enqueued and gets its outcome anew; until then the counts are too small, and nothing is in trouble.

Counts are kept up with each change, because they are read for every report: ten thousand objects
are never passed over to say how many of them are well.
"""

from __future__ import annotations

from collections.abc import Iterator

from skerry.api.refs import ObjectRef
from skerry.edge.syncer.metrics import SyncerMetrics
from skerry.kit.signal import Signal
from skerry.logic.fleet.syncing.outcome import GONE, REMOVING, SyncOutcome

# Reasons that only say that the hub has not been heard yet: no trouble of the object's.
_QUIET = frozenset(("HubAway", "NoSyncerConfig", "Deleting"))
_TROUBLED = ("Failed", "Held", "Waiting")


class Outcomes:
    """The last outcome of each object; those in trouble are listed.

    What is Gone is not kept, so memory follows what is at the edge or is to be there.
    """

    def __init__(self, metrics: SyncerMetrics) -> None:
        self.changed = Signal[[]]()
        self._all: dict[ObjectRef, SyncOutcome] = {}
        self.troubled: dict[ObjectRef, SyncOutcome] = {}
        self._counts: dict[str, int] = {}
        self._removing = 0
        self._gauge = metrics.objects

    @property
    def applied(self) -> int:
        """How many objects are at the edge as wanted."""
        return self._counts.get("Applied", 0)

    @property
    def wanted(self) -> int:
        """How many objects are to be at the edge: those of any outcome that are not to go."""
        return len(self._all) - self._removing

    @property
    def refused(self) -> int:
        """How many objects the edge did not take."""
        return self._counts.get("Failed", 0)

    def set(self, ref: ObjectRef, outcome: SyncOutcome) -> None:
        """Take the newest outcome of *ref*; the same one again is no change and sends nothing."""
        before = self._all.pop(ref, GONE)
        if outcome.state != "Gone":
            self._all[ref] = outcome
        if before == outcome:
            return
        self._count(before.state, -1)
        self._count(outcome.state, 1)
        self._removing += (outcome.reason in REMOVING) - (before.reason in REMOVING)
        if outcome.state in _TROUBLED and outcome.reason not in _QUIET:
            self.troubled[ref] = outcome
        else:
            self.troubled.pop(ref, None)
        self.changed.send()

    def get(self, ref: ObjectRef) -> SyncOutcome:
        """Return the last outcome of *ref*; Gone when there is none."""
        return self._all.get(ref, GONE)

    def forget(self, ref: ObjectRef) -> None:
        self.set(ref, GONE)

    def waiting_in(self, namespace: str) -> Iterator[ObjectRef]:
        """Yield the troubled objects of one namespace."""
        yield from [ref for ref in self.troubled if ref.namespace == namespace]

    def _count(self, state: str, by: int) -> None:
        if state != "Gone":
            self._counts[state] = self._counts.get(state, 0) + by
            self._gauge.labels(state).set(self._counts[state])
