"""The metrics of a group: whichever process is asked, the answer is about all of them.

What a process has reported is kept where its successor finds it, so a count that was shown once
never shrinks, though the process that counted was killed. What it counted after that is lost.
"""

from __future__ import annotations

import asyncio
import mmap
import zlib

import msgspec
from prometheus_client import CollectorRegistry

from skerry.app.process_peers import Peers
from skerry.kit.log import Logger
from skerry.kit.metric_sums import Family, exposition_of, families_of, lasting, summed
from skerry.kit.metrics import CONTENT_TYPE
from skerry.server.http.message import Answer, Request, Response

log = Logger("processes")

METRICS = "metrics"
# Compressed; memory that nobody writes to costs nothing.
_HALF = 2 << 20
_HEAD = 8


class KeptMetrics:
    """The last report of one process, in memory that outlives it; made before it is forked.

    There are two halves, written in turns, each with a check: a process that is killed while it
    writes leaves the report before.
    """

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, 2 * _HALF)
        self._next = 0

    def write(self, families: list[Family]) -> None:
        """Keep *families* as the last report."""
        packed = zlib.compress(msgspec.msgpack.encode(families), 1)
        if len(packed) > _HALF - _HEAD:
            log.warning("metrics are not kept for the next process", bytes=len(packed))
            return
        begin = self._next * _HALF
        memory = self._memory
        memory[begin : begin + _HEAD] = bytes(_HEAD)
        memory[begin + _HEAD : begin + _HEAD + len(packed)] = packed
        head = len(packed).to_bytes(4, "big") + zlib.crc32(packed).to_bytes(4, "big")
        memory[begin : begin + _HEAD] = head
        # The other half is not valid any more: the newer one counts.
        self._next = 1 - self._next
        memory[self._next * _HALF : self._next * _HALF + 4] = bytes(4)

    def read(self) -> list[Family]:
        """Return the last report; nothing where there is none."""
        for half in (0, 1):
            begin = half * _HALF
            head = self._memory[begin : begin + _HEAD]
            length = int.from_bytes(head[:4], "big")
            packed = self._memory[begin + _HEAD : begin + _HEAD + length]
            if length and zlib.crc32(packed) == int.from_bytes(head[4:], "big"):
                self._next = 1 - half
                return msgspec.msgpack.decode(zlib.decompress(packed), type=list[Family])
        return []


class GroupMetrics:
    """Answers ``/metrics`` for the group."""

    def __init__(self, registry: CollectorRegistry, peers: Peers, kept: KeptMetrics) -> None:
        self._registry = registry
        self._peers = peers
        self._kept = kept
        # What the processes before this one, in its place, have reported.
        self._before = kept.read()
        peers.answers[METRICS] = self._own

    async def _own(self, _: bytes) -> bytes:
        return await asyncio.get_running_loop().run_in_executor(None, self._packed)

    def _packed(self) -> bytes:
        families = summed([families_of(self._registry), self._before])
        self._kept.write(lasting(families))
        return msgspec.msgpack.encode(families)

    async def handle(self, _: Request, __: str) -> Answer:
        """Answer with the sum over all processes that are there."""
        answers = await self._peers.ask_all(METRICS)

        def body() -> bytes:
            parts = [msgspec.msgpack.decode(each, type=list[Family]) for each in answers.values()]
            return exposition_of(summed(parts))

        loop = asyncio.get_running_loop()
        return Response(body=await loop.run_in_executor(None, body), content_type=CONTENT_TYPE)
