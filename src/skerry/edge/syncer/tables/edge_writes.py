"""What we wrote at the edge and its watch has not shown yet.

The edge's answer to an apply is fresher than any watch, so it is laid over the watch until that
has caught up: without it each apply would look like drift. An apply without an answer is another
matter: it may still take effect, and until it cannot, an absent object is not known to be absent.

It is not the controllers' ``write_overlay``, whose answers count for as long as a cache has read
the server's history less far. An edge is somebody else's server: its store may be restored and
count its revisions again, and then no watch would ever catch up. So an answer is believed for
seconds, and when the watch has not shown it by then, the edge itself is asked.
"""

from __future__ import annotations

from dataclasses import dataclass

from skerry.api.objects import Object
from skerry.api.refs import ObjectRef
from skerry.kit.clock import Clock
from skerry.logic.fleet.syncing.difference import OVERLAY_SECONDS
from skerry.logic.fleet.syncing.present import present
from skerry.logic.fleet.syncing.wanted import revision_of

# A request outlives its lost connection by no more than servers let requests run.
_SETTLING_SECONDS = 75.0


@dataclass(frozen=True, slots=True)
class _Answer:
    live: Object
    until: float


class EdgeWrites:
    """Answers, unanswered requests and refusals of one session, by object."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._answers: dict[ObjectRef, _Answer] = {}
        # The content an immutable field refused.
        self._refused: dict[ObjectRef, str] = {}
        # When an apply was last sent whose outcome is unknown; before our time, all of them.
        self._unanswered: dict[ObjectRef, float] = {}
        self._began = clock.monotonic()

    def answer(self, ref: ObjectRef) -> Object | None:
        """Return the row of ``present`` that the last answer makes, while it is to be believed."""
        known = self._answers.get(ref)
        return known.live if known is not None and known.until > self._clock.monotonic() else None

    def is_overdue(self, ref: ObjectRef) -> bool:
        """Tell whether the watch should have shown our last write by now, and did not."""
        known = self._answers.get(ref)
        return known is not None and known.until <= self._clock.monotonic()

    def settling_seconds(self, ref: ObjectRef) -> float:
        """Return how much longer an apply without an answer may still take effect."""
        since = self._unanswered.get(ref, self._began)
        return max(0.0, since + _SETTLING_SECONDS - self._clock.monotonic())

    def is_refused(self, ref: ObjectRef) -> bool:
        """Tell whether some content of *ref* was refused for an immutable field."""
        return ref in self._refused

    def refused(self, ref: ObjectRef, digest: str) -> bool:
        """Tell whether exactly this content was refused for an immutable field."""
        return self._refused.get(ref) == digest

    # What came of a write.

    def answered(self, ref: ObjectRef, obj: Object) -> None:
        """Take the edge's answer to an apply."""
        self._refused.pop(ref, None)
        until = self._clock.monotonic() + OVERLAY_SECONDS
        self._answers[ref] = _Answer(present(obj), until)

    def lost(self, ref: ObjectRef) -> None:
        """Take it that nobody knows what came of a request."""
        self._unanswered[ref] = self._clock.monotonic()

    def settled(self, ref: ObjectRef) -> None:
        """Take it that every request was answered."""
        self._unanswered.pop(ref, None)

    def refuse(self, ref: ObjectRef, digest: str) -> None:
        """Take it that this content changes a field that cannot change."""
        self._refused[ref] = digest

    def seen(self, ref: ObjectRef, old: Object | None, new: Object | None) -> None:
        """Take a change that the watch showed: it has caught up with our own write, or not."""
        known = self._answers.get(ref)
        shown = new or old
        if known is not None and shown is not None and _revision(shown) >= _revision(known.live):
            del self._answers[ref]


def _revision(obj: Object) -> int:
    return revision_of(obj["metadata"].get("resourceVersion"))
