"""Where a reflector's watches come from: one request each, or a share of a common stream.

Both keep the same promise: events of one type in order, from the revision asked for, with
bookmarks. A watch that ends well is begun again by whoever needs it.

A *compact* watch may tell less, to readers that hold what they were sent before: PATCHED carries
the difference to the object they have, DELETED its name, and UNCHANGED, while the state is
reported anew, the names of what is as they know it. RESET takes back what was sent of a state whose
end never came. Ordinary watches never say any of these.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Literal, Protocol

from skerry.api.errors import Forbidden, NotFound, Unauthorized
from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.kit.ids import IdSource
from skerry.runtime.client import EVERYTHING, Client, Selection
from skerry.runtime.transport import TransportError

NoticeKind = Literal[
    "ADDED", "MODIFIED", "DELETED", "BOOKMARK", "PATCHED", "UNCHANGED", "RESET", "ERROR"
]

# Between five and ten minutes, as client-go: long enough to be cheap, spread over the clients.
_WATCH_SECONDS = 300
# A watch that outlives its own time limit by this much is dead without saying so.
_OVERTIME_SECONDS = 30
# The first minor version of Kubernetes that knows the parameters of a streaming list at all.
_STREAMING_SINCE_MINOR = 27


@dataclass(frozen=True, slots=True)
class Notice:
    """One thing a watch tells."""

    kind: NoticeKind
    object: Object


@dataclass(frozen=True, slots=True)
class Watched:
    """What is to be watched, and from where on.

    Without ``resource_version`` the state comes first, as ADDED, closed by a BOOKMARK annotated
    ``k8s.io/initial-events-end``. ``known_version`` then says up to which revision the reader of
    a compact watch has seen everything.
    """

    gvr: GroupVersionResource
    selection: Selection = EVERYTHING
    resource_version: str = ""
    known_version: str = ""
    compact: bool = False


class WatchSource(Protocol):
    """Begins watches."""

    async def reports_state(self) -> bool:
        """Tell whether a watch may begin with the state; else it must be listed."""

    def state_refused(self) -> bool:
        """Take note that one was refused; tells whether a list is worth trying."""

    def watch(self, watched: Watched) -> AbstractAsyncContextManager[AsyncIterator[Notice]]:
        """Open a watch; inside, iterate. Errors the server tells are raised."""


class OrdinaryWatches:
    """Watches as every Kubernetes server has them: each a request of its own."""

    def __init__(self, client: Client, ids: IdSource) -> None:
        self._client = client
        self._ids = ids

    async def reports_state(self) -> bool:
        facts = self._client.facts
        if facts.streaming_lists is None:
            try:
                version = await self._client.version()
            except (Forbidden, NotFound, Unauthorized):
                version = {}  # not for us to know; a paged list always works
            minor = "".join(filter(str.isdigit, version.get("minor", "")))
            facts.streaming_lists = int(minor or 0) >= _STREAMING_SINCE_MINOR
        return facts.streaming_lists

    def state_refused(self) -> bool:
        self._client.facts.streaming_lists = False
        return True

    @asynccontextmanager
    async def watch(self, watched: Watched) -> AsyncIterator[AsyncIterator[Notice]]:
        seconds = int(_WATCH_SECONDS * (1 + self._ids.fraction()))
        try:
            async with (
                asyncio.timeout(seconds + _OVERTIME_SECONDS),
                self._client.watch(
                    watched.gvr,
                    watched.selection,
                    resource_version=watched.resource_version,
                    timeout_seconds=seconds,
                    initial_events=not watched.resource_version,
                ) as events,
            ):
                yield (Notice(event.kind, event.object) async for event in events)
        except TimeoutError as error:
            raise TransportError("the watch went silent") from error
