"""The hub's ends of all tunnels, by the mailbox whose edge dialled.

An edge has one; a newer one takes its place, because an edge that dials again has lost the other,
whether or not the hub has noticed. A tunnel is a stream in the mailbox like any other: revoking
the edge ends it, and with it every session that goes through.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from skerry.api.edge_identity import EDGE_GROUPS
from skerry.api.errors import BadRequest, Forbidden
from skerry.kit.clock import Clock
from skerry.kit.log import Logger
from skerry.kit.timestamps import rfc3339
from skerry.server.extensions import Visit
from skerry.server.http.message import Answer, Duplex, Sender, Upgrade
from skerry.server.streaming.websocket import as_duplex
from skerry.wire.tunnel import PROTOCOL, Tunnel

_PING_SECONDS: Final = 30.0
# Three questions without an answer.
_SILENT_SECONDS: Final = 95.0
# Of so many edges it is remembered why they have no tunnel any more; the oldest are forgotten.
_LOSSES: Final = 10_000

_log = Logger("tunnel")


class TunnelLines:
    """Every tunnel that is open, and why others are not."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._open: dict[str, Tunnel] = {}
        self._losses: dict[str, str] = {}
        # Ends the connection of a tunnel, which is another task's.
        self._ends: dict[Tunnel, Callable[[], object]] = {}

    def __len__(self) -> int:
        return len(self._open)

    def of(self, mailbox: str) -> Tunnel | None:
        """Return the tunnel of a mailbox's edge, if there is one."""
        return self._open.get(mailbox)

    def absence(self, mailbox: str) -> str:
        """Say why there is no tunnel."""
        lost = self._losses.get(mailbox)
        return lost or "its syncer has not dialled one; skerry syncer --tunnel does"

    async def handle(self, visit: Visit) -> Answer:
        """Answer a syncer that dials its tunnel."""
        user = visit.user
        if user.groups != EDGE_GROUPS or user.home != visit.cluster:
            raise Forbidden("a tunnel is dialled by the edge of this mailbox, with its certificate")
        if visit.request.headers.get("upgrade", "") != PROTOCOL:
            raise BadRequest(f"Upgrade request required: want Upgrade: {PROTOCOL}")

        async def run(sender: Sender) -> None:
            await self._keep(visit.cluster, as_duplex(sender))

        return Upgrade(run, 101, "", (), None, 0, protocol=PROTOCOL)

    async def _keep(self, mailbox: str, duplex: Duplex) -> None:
        """Keep a tunnel until it ends."""
        tunnel = Tunnel(duplex, asyncio.Event)
        why = "the edge was shut out, or the hub stops"
        try:
            async with asyncio.TaskGroup() as tasks:
                hearing = tasks.create_task(_heard(tunnel, duplex))
                asking = tasks.create_task(self._asked(tunnel))
                self._take(mailbox, tunnel, hearing)
                _log.info("tunnel open", mailbox=mailbox)
                await asyncio.wait((hearing,))
                asking.cancel()
            why = "the edge has dialled anew" if hearing.cancelled() else hearing.result()
        finally:
            self._drop(mailbox, tunnel, why)
            _log.info("tunnel ended", mailbox=mailbox, cause=why)

    def _take(self, mailbox: str, tunnel: Tunnel, hearing: asyncio.Task[str]) -> None:
        before = self._open.get(mailbox)
        self._open[mailbox] = tunnel
        self._ends[tunnel] = hearing.cancel
        self._losses.pop(mailbox, None)
        if before is not None:
            self._ends[before]()

    def _drop(self, mailbox: str, tunnel: Tunnel, why: str) -> None:
        self._ends.pop(tunnel, None)
        if self._open.get(mailbox) is tunnel:
            del self._open[mailbox]
            self._losses.pop(mailbox, None)
            if len(self._losses) >= _LOSSES:
                del self._losses[next(iter(self._losses))]
            self._losses[mailbox] = f"it was lost at {rfc3339(self._clock.now())}: {why}"
        tunnel.lose(f"its tunnel was lost: {why}")

    async def _asked(self, tunnel: Tunnel) -> None:
        """Ask now and then whether the edge is there; its answers are heard elsewhere."""
        while True:
            await self._clock.sleep(_PING_SECONDS)
            tunnel.ping()


async def _heard(tunnel: Tunnel, duplex: Duplex) -> str:
    async def read() -> bytes:
        async with asyncio.timeout(_SILENT_SECONDS):
            return await duplex.read()

    return await tunnel.hear(read, "the edge")
