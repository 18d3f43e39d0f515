"""What one process of a group has of its own, and what it shares with the others.

A server that runs as one process is a group of one and is handed none of this.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from dataclasses import dataclass, replace

from skerry.app.process_beats import ProcessBeat, RestartCounts
from skerry.app.process_metrics import KeptMetrics
from skerry.app.process_peers import Peers
from skerry.server.batch import PARTS_AT_ONCE
from skerry.server.flow import FlowSettings
from skerry.server.http.settings import HttpSettings
from skerry.server.lanes import LaneSettings
from skerry.server.watch.shared_revisions import ProcessRevisions

# A batch runs so many parts at once, all in one process and in one name, and refusing some would
# refuse most: the next ones are there at once. Two batches, for an edge has two connections.
_MIN_QUEUE = 2 * PARTS_AT_ONCE
# An idle process takes a connection within a millisecond, one in a long turn of its loop after
# some ten of them.
_OTHERS_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class ProcessMember:
    """One process of a group of *count*; made by the supervisor, used in the process."""

    index: int
    count: int
    # They listen in every process: whoever is free takes the next connection.
    sockets: Sequence[socket.socket]
    # The console's, where there is one.
    console: Sequence[socket.socket]
    revisions: ProcessRevisions
    beat: ProcessBeat
    peers: Peers
    # The last reports of all processes, in their order.
    metrics: Sequence[KeptMetrics]
    restarts: RestartCounts
    # Reads as ended once the supervisor asks to stop, or is no more.
    lifeline: int

    @property
    def port(self) -> int:
        """Where the group listens."""
        return int(self.sockets[0].getsockname()[1])

    def follow(self, stopped: asyncio.Event) -> None:
        """Set *stopped* when the supervisor asks for it, or is no more."""
        loop = asyncio.get_running_loop()

        def ended() -> None:
            loop.remove_reader(self.lifeline)
            stopped.set()

        loop.add_reader(self.lifeline, ended)


def flow_share(settings: FlowSettings, processes: int) -> FlowSettings:
    """Return the part of a server's limits that each of its *processes* has.

    Together they let in what the one would, and less than one request each more; but a queue has
    room for two batches in each of them. Processor time is not shared out: each process has a loop
    of its own to protect.
    """
    return replace(
        settings,
        reading=_lane_share(settings.reading, processes),
        mutating=_lane_share(settings.mutating, processes),
        anonymous=_lane_share(settings.anonymous, processes),
        edges=_lane_share(settings.edges, processes),
        watches=_share(settings.watches, processes),
        workspace_watches=_share(settings.workspace_watches, processes),
    )


def http_share(settings: HttpSettings, processes: int) -> HttpSettings:
    """Return the part of the transport's limits that each of *processes* has.

    Connections wait in the kernel, where all take from: in a process wait only those that none
    could begin at once.
    """
    return replace(
        settings,
        waiting=_share(settings.waiting, processes),
        others_seconds=_OTHERS_SECONDS if processes > 1 else 0.0,
        connections=_share(settings.connections, processes),
        stranger_connections=_share(settings.stranger_connections, processes),
        arriving_bytes=max(4 * settings.body_bytes, _share(settings.arriving_bytes, processes)),
    )


def _lane_share(lane: LaneSettings, processes: int) -> LaneSettings:
    queue = max(min(lane.queue, _MIN_QUEUE), _share(lane.queue, processes))
    return replace(
        lane,
        seats=_share(lane.seats, processes),
        queue=queue,
        max_waiting=max(queue, _share(lane.max_waiting, processes)),
    )


def _share(limit: int, processes: int) -> int:
    """Return the part of each, rounded up: nobody has none."""
    return -(-limit // processes)
