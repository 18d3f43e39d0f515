"""Contents of revisions, read when rows wait for them.

They hold whatever was placed, Secrets among it, so nobody watches them: each is read when a
destination has a revision that names what its workspace has no longer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from skerry.api.edge import REVISION_CONTENTS
from skerry.api.errors import ApiError, NotFound
from skerry.api.refs import ObjectRef
from skerry.kit.log import Logger
from skerry.logic.fleet.translation.held import content_record
from skerry.logic.fleet.translation.sources import Record
from skerry.logic.fleet.translation.workspaces import Scope
from skerry.runtime.client import Client
from skerry.runtime.transport import TransportError

# Reads in flight.
_SIDE_BY_SIDE = 16
# A content that is not there may be brought back; one that could not be read is tried again.
_AGAIN_SECONDS = 30.0
_RETRY_SECONDS = 1.0
_log = Logger("placement-translator")


class ContentReader:
    """Reads contents; *take* gets each, None where it is not there or is not what it should be."""

    def __init__(
        self,
        client: Client,
        take: Callable[[Scope, Record | None], None],
        is_awaited: Callable[[Scope], bool],
    ) -> None:
        """*is_awaited* tells whether rows still wait for a content."""
        self._client = client
        self._take = take
        self._is_awaited = is_awaited
        self._wanted: dict[Scope, None] = {}
        # Being read, or to be read again in a while.
        self._later: dict[Scope, None] = {}
        self._changed = asyncio.Event()

    def read(self, scope: Scope) -> None:
        """Have a content read, soon unless it was not there a moment ago."""
        if scope not in self._later:
            self._wanted[scope] = None
            self._changed.set()

    async def run(self) -> None:
        """Read what is wanted until cancelled."""
        # Whoever was at work on these was stopped; rows may have waited for them all the while.
        self._wanted.update((scope, None) for scope in self._later if self._is_awaited(scope))
        self._later.clear()
        room = asyncio.Semaphore(_SIDE_BY_SIDE)
        async with asyncio.TaskGroup() as tasks:
            while True:
                self._changed.clear()
                wanted, self._wanted = self._wanted, {}
                self._later.update(wanted)
                for scope in wanted:
                    tasks.create_task(self._read(scope, room))
                await self._changed.wait()

    async def _read(self, scope: Scope, room: asyncio.Semaphore) -> None:
        _, cluster, name, *identity = scope
        async with room:
            try:
                found = await self._client.for_cluster(cluster).get(REVISION_CONTENTS, name)
            except NotFound:
                record = None
            except (ApiError, TransportError) as error:
                _log.warning("content not read", key=name, error=error)
                await self._again(scope, _RETRY_SECONDS)
                return
            else:
                item = ObjectRef("", *identity)
                record = content_record(cluster, item, name, found.get("content") or {})
        if record is not None:
            self._later.pop(scope, None)
            self._take(scope, record)
            return
        self._take(scope, None)
        await self._again(scope, _AGAIN_SECONDS)

    async def _again(self, scope: Scope, seconds: float) -> None:
        await self._client.clock.sleep(seconds)
        self._later.pop(scope, None)
        if self._is_awaited(scope):
            self.read(scope)
