"""The metrics of a group: whichever process is asked, the answer is about all of them.

What a process has reported is kept where its successor finds it, so a count that was shown once
never shrinks, though the process that counted was killed. What it counted after that is lost.
While a process does not answer, because it is stuck or about to be started again, the others show
of it what it reported last.
"""

from __future__ import annotations

import asyncio
import mmap
import zlib
from collections.abc import Sequence

import msgspec
from prometheus_client import CollectorRegistry

from skerry.app.process_beats import RestartCounts
from skerry.app.process_peers import Peers
from skerry.kit.log import Logger
from skerry.kit.metric_sums import Family, exposition_of, families_of, lasting, summed
from skerry.kit.metrics import CONTENT_TYPE, Reading
from skerry.server.http.message import Answer, Request, Response

log = Logger("processes")

METRICS = "metrics"
# Compressed; memory that nobody writes to costs nothing.
_HALF = 2 << 20
_HEAD = 8


def register_restarts(registry: CollectorRegistry, restarts: RestartCounts) -> None:
    """Have every process report how often the supervisor started one again."""
    Reading(
        registry,
        "skerry_server_process_restarts_total",
        "Processes of this server that were started again, because they had ended or were stuck.",
        ("reason",),
        restarts.by_reason,
    )


class KeptMetrics:
    """The last report of one process, in memory that outlives it; made before it is forked.

    There are two halves, written in turns, each with a check: a process that is killed while it
    writes leaves the report before.
    """

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, 2 * _HALF)

    def write(self, families: list[Family]) -> None:
        """Keep *families* as the last report."""
        packed = zlib.compress(msgspec.msgpack.encode(families), 1)
        if len(packed) > _HALF - _HEAD:
            log.warning("metrics are not kept for the next process", bytes=len(packed))
            return
        memory, newest = self._memory, self._newest()
        half = 1 if newest is not None and newest[0] == 0 else 0
        begin = half * _HALF
        memory[begin : begin + _HEAD] = bytes(_HEAD)
        memory[begin + _HEAD : begin + _HEAD + len(packed)] = packed
        head = len(packed).to_bytes(4, "big") + zlib.crc32(packed).to_bytes(4, "big")
        memory[begin : begin + _HEAD] = head
        # The other half is not valid any more: the newer one counts.
        other = (1 - half) * _HALF
        memory[other : other + 4] = bytes(4)

    def read(self) -> list[Family]:
        """Return the last report; nothing where there is none."""
        newest = self._newest()
        if newest is None:
            return []
        return msgspec.msgpack.decode(zlib.decompress(newest[1]), type=list[Family])

    def _newest(self) -> tuple[int, bytes] | None:
        """Return the half that counts and what is in it."""
        for half in (0, 1):
            begin = half * _HALF
            head = self._memory[begin : begin + _HEAD]
            length = int.from_bytes(head[:4], "big")
            packed = self._memory[begin + _HEAD : begin + _HEAD + length]
            if length and zlib.crc32(packed) == int.from_bytes(head[4:], "big"):
                return half, packed
        return None


class GroupMetrics:
    """Answers ``/metrics`` for the group."""

    def __init__(
        self, registry: CollectorRegistry, peers: Peers, kept: Sequence[KeptMetrics]
    ) -> None:
        """*kept* are the last reports of all processes, in their order."""
        self._registry = registry
        self._peers = peers
        self._kept = kept
        # What the processes before this one, in its place, have reported.
        self._before = kept[peers.own].read()
        peers.answers[METRICS] = self._own

    async def _own(self, _: bytes) -> bytes:
        return await asyncio.get_running_loop().run_in_executor(None, self._packed)

    def _packed(self) -> bytes:
        families = summed([families_of(self._registry), self._before])
        self._kept[self._peers.own].write(lasting(families))
        return msgspec.msgpack.encode(families)

    async def handle(self, _: Request, __: str) -> Answer:
        """Answer with the sum over all processes."""
        answers = await self._peers.ask_all(METRICS)

        def part(index: int, kept: KeptMetrics) -> list[Family]:
            answer = answers.get(index)
            if answer is None:
                return kept.read()
            return msgspec.msgpack.decode(answer, type=list[Family])

        def body() -> bytes:
            return exposition_of(summed([part(n, kept) for n, kept in enumerate(self._kept)]))

        loop = asyncio.get_running_loop()
        return Response(body=await loop.run_in_executor(None, body), content_type=CONTENT_TYPE)
