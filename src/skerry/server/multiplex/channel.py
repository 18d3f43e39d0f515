"""One watch among those that share a stream.

A channel renders changes for its one reader. In the *compact* form it leaves managedFields out
and tells of a change by the patch that makes the new object of the one the reader has: an echo of
an annotation costs a line, not the object.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any, Protocol

import orjson

from skerry.api.errors import ApiError, Gone
from skerry.api.objects import Object
from skerry.logic.machinery.patch.delta import delta
from skerry.server.access import Attributes
from skerry.server.change import Change, EventType
from skerry.server.codec import decode, dump, metadata_of
from skerry.server.request.call import Call
from skerry.server.request.options import EVERYTHING
from skerry.server.request.selection import Selection
from skerry.server.response.listing import turns
from skerry.server.response.representation import Representation
from skerry.server.rest.read import Reader
from skerry.server.watch.watch_event_type import watch_event_type
from skerry.store.base import Entry

# Bytes of objects that are decoded and reported before others have their turn, a few milliseconds;
# and what a name alone comes to in the same measure, so that a line holds some hundreds.
_TURN_BYTES = 64 << 10
_NAME_BYTES = 128


class Writer(Protocol):
    """Where the lines of all channels of a stream go, in the order they came."""

    def line(self, line: bytes) -> None:
        """Note one line."""

    def flush(self) -> None:
        """Send what was noted."""

    def failed(self, channel: Channel, error: ApiError) -> None:
        """Tell of *error* and end the channel."""


class Channel:
    """One type, watched for one reader."""

    view = ""

    def __init__(
        self,
        identity: str,
        call: Call,
        selection: Selection,
        shown: Representation,
        writer: Writer,
        *,
        compact: bool,
    ) -> None:
        self.prefix = call.prefix
        self.needs = tuple(_right(call, verb) for verb in ("list", "watch"))
        self.after = 0
        self._head = b'{"watch":%b,"type":"' % orjson.dumps(identity)
        self._call = call
        self._selection = selection
        self._shown = shown
        self._writer = writer
        self._compact = compact

    # What the dispatcher calls.

    def offer(self, change: Change) -> bool:
        event = change.event
        if event.revision <= self.after:
            return False
        kind = watch_event_type(self._selection, change)
        if kind is None:
            return False
        self._writer.line(self._event_line(change, kind))
        return True

    def flush(self) -> None:
        self._writer.flush()

    def expire(self, oldest: int) -> None:
        self._writer.failed(self, Gone(f"too old resource version: {self.after} ({oldest})"))

    # Lines.

    def event(self, kind: str, body: bytes) -> bytes:
        """Return one event of this channel."""
        return b'%b%b","object":%b}\n' % (self._head, kind.encode(), body)

    def bookmark(self, revision: int) -> bytes:
        """Return the line that ends the state this channel begins with."""
        return self.event("BOOKMARK", self._shown.bookmark(revision, initial_events_end=True))

    async def state(self, reader: Reader, known: int) -> AsyncIterator[Sequence[bytes]]:
        """Yield the lines of the present state, in pieces; ``after`` is then its revision.

        What has not changed since *known*, up to which the reader has seen everything, is reported
        by name only.
        """
        async for revision, entries, _, _ in reader.pages(self._call, EVERYTHING, self._selection):
            self.after = revision
            for some, _ in turns(entries, self._selection):
                meant = [e for e in some if self._selection.matches(e.value, e.revision, key=e.key)]
                for part in _parts(meant, known):
                    yield self._pieces(part, known)

    def _pieces(self, entries: Sequence[Entry], known: int) -> list[bytes]:
        lines: list[bytes] = []
        names: list[list[str]] = []
        for entry in entries:
            if entry.revision > known:
                lines.append(self.event("ADDED", dump(self._object(entry.value, entry.revision))))
            else:
                metadata = metadata_of(entry.value)
                names.append([metadata.namespace, metadata.name])
        if names:
            lines.append(self.event("UNCHANGED", dump({"names": names})))
        return lines

    def _event_line(self, change: Change, kind: EventType) -> bytes:
        event = change.event
        value = event.previous if kind == "DELETED" else event.value
        new = self._object(value or b"", event.revision)
        if not self._compact or kind == "ADDED":
            return self.event(kind, dump(new))
        if kind == "DELETED":
            return self.event(kind, dump(_outline(new)))
        old = self._object(event.previous or b"", event.previous_revision)
        whole, patch = dump(new), dump(_patch(old, new))
        if len(patch) < len(whole):
            return self.event("PATCHED", patch)
        return self.event(kind, whole)

    def _object(self, value: bytes, revision: int) -> Object:
        obj = self._shown.shaped(self._shown.at_version(decode(value, revision)))
        if self._compact:
            obj["metadata"].pop("managedFields", None)
        return obj


def _parts(entries: Sequence[Entry], known: int) -> Iterator[Sequence[Entry]]:
    """Yield *entries* in parts that are reported without a pause; those that are only named cost
    little."""
    start = waiting = 0
    for index, entry in enumerate(entries):
        waiting += len(entry.value) if entry.revision > known else _NAME_BYTES
        if waiting > _TURN_BYTES:
            yield entries[start : index + 1]
            start, waiting = index + 1, 0
    if start < len(entries):
        yield entries[start:]


def _right(call: Call, verb: str) -> Attributes:
    info = call.info
    return Attributes(
        cluster=info.cluster,
        verb=verb,
        group=info.group,
        version=info.version,
        resource=info.resource,
        namespace=info.namespace,
        name=info.selected_name,
    )


def _outline(obj: Object) -> dict[str, Any]:
    """Return what tells a reader which of its objects has gone; it has the rest."""
    kept = ("name", "namespace", "uid", "resourceVersion")
    metadata = {name: obj["metadata"][name] for name in kept if name in obj["metadata"]}
    return {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "metadata": metadata}


def _patch(old: Object, new: Object) -> dict[str, Any]:
    """Return what tells a reader that has *old* of *new*."""
    before, now = old["metadata"], new["metadata"]
    head = {name: now[name] for name in ("name", "namespace", "resourceVersion") if name in now}
    base = {**old, "metadata": {**before, "resourceVersion": now["resourceVersion"]}}
    return {"metadata": head, "from": before["resourceVersion"], "patch": delta(base, new)}
