"""Placements with a Rollout, and how busy what they send is.

Without a Rollout there is nothing to keep: a change of any other placement costs one look.

With the usual ``quiet: 10s`` and ``longest: 2m`` a cut is due

    after one change at 0 s                    at 10 s
    after changes at 0, 4 and 9 s              at 19 s: one revision of three commands
    with a change every five seconds           at 120 s: what is never quiet is cut all the same

The queue keeps the earliest time that a key was added for. So a cut that was put off is looked at
too soon, finds that it has to wait (``wait``), and is enqueued for the rest. Times are monotonic
and in memory; a process that starts takes each Rollout that it finds for a change, and cuts nothing
where that comes to the revision that is there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from skerry.api.refs import ObjectRef
from skerry.logic.fleet.revision.cut import Activity, Settle, due


class Activities:
    """When cuts are due."""

    def __init__(
        self, now: Callable[[], float], enqueue_after: Callable[[ObjectRef, float], None]
    ) -> None:
        self._now = now
        self._enqueue_after = enqueue_after
        self._settling: dict[ObjectRef, Settle] = {}
        self._activity: dict[ObjectRef, Activity] = {}

    def put(self, placement: ObjectRef, settle: Settle | None) -> None:
        """Take that a placement has a Rollout which says this, or None."""
        old = self._settling.get(placement)
        if settle is None:
            self._settling.pop(placement, None)
            self._activity.pop(placement, None)
        elif settle != old:
            self._settling[placement] = settle
            self.touch([placement])
            if old is None or settle.asked != old.asked:
                self._enqueue_after(placement, 0.0)

    def touch(self, placements: Iterable[ObjectRef]) -> None:
        """Take that what these send is different now."""
        if not self._settling:
            return
        now = self._now()
        for placement in placements:
            settle = self._settling.get(placement)
            if settle is not None:
                found = self._activity.get(placement, Activity(now, now)).at(now)
                self._activity[placement] = found
                self._enqueue_after(placement, max(0.0, due(settle, found) - now))

    def settle(self, placement: ObjectRef) -> Settle | None:
        """Return what the Rollout of a placement says; None when there is none."""
        return self._settling.get(placement)

    def wait(self, placement: ObjectRef) -> float:
        """Return how long a cut has to wait yet; 0 when it is due."""
        settle, activity = self._settling.get(placement), self._activity.get(placement)
        if settle is None or activity is None:
            return 0.0
        return max(0.0, due(settle, activity) - self._now())

    def quiet(self, placement: ObjectRef) -> None:
        """Take that a placement's revision is what the workspace has."""
        self._activity.pop(placement, None)

    def __iter__(self) -> Iterator[ObjectRef]:
        return iter(self._settling)

    def __bool__(self) -> bool:
        return bool(self._settling)
