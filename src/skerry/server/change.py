"""One store event on its way to watchers, rendered at most once per form however many watch."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Literal

from skerry.api.objects import Object
from skerry.server.codec import Metadata, decode, metadata_of
from skerry.store.base import Event

EventType = Literal["ADDED", "MODIFIED", "DELETED"]


@dataclass(frozen=True, slots=True)
class Form:
    """How a watcher wants objects: ``key`` tells forms apart, ``render`` makes the object's JSON
    from a stored value and a revision."""

    key: Hashable
    render: Callable[[bytes, int], bytes]


class Change:
    """A store event with what watchers ask of it, worked out once."""

    __slots__ = ("_current", "_frames", "_object", "_previous", "_previous_object", "event")

    def __init__(self, event: Event) -> None:
        self.event = event
        self._frames: dict[tuple[Hashable, EventType], bytes] = {}
        self._current: Metadata | None = None
        self._previous: Metadata | None = None
        self._object: Object | None = None
        self._previous_object: Object | None = None

    @property
    def current(self) -> Metadata | None:
        """The metadata after the change; None once deleted."""
        if self._current is None and self.event.value is not None:
            self._current = metadata_of(self.event.value)
        return self._current

    @property
    def previous(self) -> Metadata | None:
        """The metadata before the change; None for a new object."""
        if self._previous is None and self.event.previous is not None:
            self._previous = metadata_of(self.event.previous)
        return self._previous

    def object(self) -> Object:
        """Return all of the object after the change, to be looked at only.

        Every kubelet watches the pods of its node by a field: that must not mean decoding each
        pod once per kubelet.
        """
        if self._object is None:
            self._object = decode(self.event.value or b"", self.event.revision)
        return self._object

    def previous_object(self) -> Object:
        """Return all of the object before the change, to be looked at only."""
        if self._previous_object is None:
            self._previous_object = decode(self.event.previous or b"", self.event.previous_revision)
        return self._previous_object

    def shed(self) -> None:
        """Drop the decoded objects and the lines: a change is remembered for long.

        Whoever begins a little in the past has its lines made again, which is cheap; thousands of
        changes that keep them would weigh more than the objects themselves.
        """
        self._object = self._previous_object = None
        self._frames.clear()

    def type(self) -> EventType:
        """What happened, for a watcher that selects everything."""
        if self.event.value is None:
            return "DELETED"
        return "MODIFIED" if self.event.previous is not None else "ADDED"

    def frame(self, form: Form, kind: EventType) -> bytes:
        """Return the line that tells of this change as *kind*, in *form*.

        A deletion shows the last state, at the revision of the deletion: so does an object that
        stopped matching a selector.
        """
        key = (form.key, kind)
        line = self._frames.get(key)
        if line is None:
            value = self.event.previous if kind == "DELETED" else self.event.value
            line = self._frames[key] = event_line(
                kind, form.render(value or b"", self.event.revision)
            )
        return line


def event_line(kind: str, body: bytes) -> bytes:
    """Return one event of a watch stream."""
    return b'{"type":"%b","object":%b}\n' % (kind.encode(), body)
