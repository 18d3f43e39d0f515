"""Writes gathered for a moment and sent as one request, where the server offers that.

On a thin line most of a small write is not the write: each request carries a credential of a
kilobyte, and each answer the whole object. Writes whose answer nobody needs (``quiet``) wait a
moment for company and travel together, each answered for itself. Whoever sends them cannot tell.
Where the line is short and it is the server's work that counts, none waits for company, but what
comes while a batch is under way makes up the next one.

A batch is of one cluster, and one batch of it is under way at a time, sent by whoever waited
longest. Where that one is given up, the others are left without an answer, as a lost connection
would leave them.

One connection leads to all clusters, and what was learnt of the server counts for all of them. One
that has just gone, or that lets nobody batch, is no reason to think otherwise of the others: what
was to go together goes one by one there, and each write is answered for itself.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import msgspec
import orjson

from skerry.api.errors import ApiError
from skerry.api.objects import Object
from skerry.kit.clock import Clock
from skerry.runtime.answers import answer_failure, decoded
from skerry.runtime.client import QUIET
from skerry.runtime.facts import ServerFacts
from skerry.runtime.transport import NO_HEADERS, Answer, Transport, TransportError
from skerry.runtime.wrapping import WrappedTransport

# Long enough for a burst of statuses to meet, short enough that nobody notices.
_GATHER_SECONDS = 0.02
_MAX_PARTS = 100
_MAX_BODY_BYTES = 64 * 1024
EXTENSION = "batch"
_KEPT_HEADERS = ("accept", "user-agent")
# A batch that is answered so was not begun, and its parts may be answered otherwise.
_NOT_BEGUN = (403, 404, 405)
# Says whether the server has extensions at all where a cluster does not; who may not ask there
# keeps what is known.
_ROOT = "/clusters/root"
# What a batch may carry, and the cluster it is of: in front of "/api" there is that or nothing.
_RESOURCE = re.compile(r"((?:/clusters/[^/]+)?)/apis?/")


class _Part(msgspec.Struct):
    code: int
    body: msgspec.Raw = msgspec.Raw(b"")


class _Answers(msgspec.Struct):
    answers: list[_Part]


_ANSWERS = msgspec.json.Decoder(_Answers)


@dataclass(slots=True, eq=False)
class _Write:
    """A write that waits for company, and where its answer goes; None sends it as it is."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes
    answer: asyncio.Future[Answer | None]

    def part(self, base: str) -> dict[str, Any]:
        return {
            "method": self.method,
            "path": self.path.removeprefix(base),
            "query": self.query,
            "contentType": self.headers.get("content-type", ""),
            "body": orjson.Fragment(self.body),
            "quiet": True,
        }


@dataclass(slots=True)
class _Line:
    """The writes to one cluster, and the turn of who sends some of them."""

    # Below which path they are.
    base: str
    # Oldest first.
    waiting: dict[_Write, None] = field(default_factory=dict)
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    # How many have no answer yet.
    writes: int = 0


class BatchingTransport(WrappedTransport):
    """A transport that sends quiet writes to a cluster together.

    It does so once *facts* say that the server takes them. One that finds no company within
    *gather_seconds* goes as it is, which costs the server less.
    """

    def __init__(
        self,
        inner: Transport,
        clock: Clock,
        facts: ServerFacts,
        *,
        gather_seconds: float = _GATHER_SECONDS,
    ) -> None:
        super().__init__(inner)
        self._clock = clock
        self._facts = facts
        self._gather_seconds = gather_seconds
        # By their base; of clusters to which something is being written.
        self._lines: dict[str, _Line] = {}

    async def request(
        self,
        method: str,
        path: str,
        query: str = "",
        headers: Mapping[str, str] = NO_HEADERS,
        body: bytes = b"",
    ) -> Answer:
        base = self._gathered_below(path, headers, body)
        if base is None:
            return await super().request(method, path, query, headers, body)
        answer: asyncio.Future[Answer | None] = asyncio.get_running_loop().create_future()
        write = _Write(method, path, query, headers, body, answer)
        line = self._lines.setdefault(base, _Line(base))
        line.writes += 1
        line.waiting[write] = None
        try:
            async with line.turn:
                if not answer.done():
                    if self._gather_seconds:
                        await self._clock.sleep(self._gather_seconds)
                    await self._send_some(line)
        finally:
            line.waiting.pop(write, None)
            line.writes -= 1
            if not line.writes:
                del self._lines[base]
        together = await answer
        if together is None:
            return await super().request(method, path, query, headers, body)
        return together

    def _gathered_below(self, path: str, headers: Mapping[str, str], body: bytes) -> str | None:
        """Return the path of the cluster whose batch a request may join, None for no batch."""
        quiet = QUIET.items() <= headers.items()
        if not quiet or EXTENSION not in (self._facts.extensions or {}):
            return None
        found = _RESOURCE.match(path) if 0 < len(body) <= _MAX_BODY_BYTES else None
        return None if found is None else found[1]

    async def _send_some(self, line: _Line) -> None:
        """Send the oldest that wait, and hand the answers out."""
        taken = list(islice(line.waiting, _MAX_PARTS))
        for write in taken:
            del line.waiting[write]
        error = TransportError("the request it went with was given up")
        try:
            answers = await self._sent(line.base, taken)
            for write, answer in zip(taken, answers, strict=True):
                if not write.answer.done():
                    write.answer.set_result(answer)
        except TransportError as failure:
            error = failure
        finally:
            for write in taken:
                if not write.answer.done():
                    write.answer.set_exception(TransportError(str(error)))
                    write.answer.exception()  # it may be that nobody waits any more

    async def _sent(self, base: str, taken: list[_Write]) -> Sequence[Answer | None]:
        first = taken[0]
        if len(taken) == 1:
            alone = (first.method, first.path, first.query, first.headers, first.body)
            return [await super().request(*alone)]
        batch = (self._facts.extensions or {}).get(EXTENSION)
        if batch is None:  # they were gathered before that was known
            return [None] * len(taken)
        kept = {name: first.headers[name] for name in _KEPT_HEADERS if name in first.headers}
        kept["content-type"] = "application/json"
        payload = orjson.dumps({"requests": [write.part(base) for write in taken]})
        whole = await super().request("POST", base + batch, "", kept, payload)
        if whole.status not in _NOT_BEGUN:
            return _read(whole, len(taken))
        if whole.status == 405:
            self._facts.extensions = None  # another server, or another version of it
        elif whole.status == 404:
            await self._ask_again(base, kept)
        return [None] * len(taken)

    async def _ask_again(self, base: str, headers: Mapping[str, str]) -> None:
        """Learn whether the server has no batches any more, or just no such cluster."""

        async def ask() -> Object:
            answer = await self._inner.request("GET", f"{base}/extensions", "", headers)
            if answer.status == 404 and base:
                answer = await self._inner.request("GET", f"{_ROOT}/extensions", "", headers)
            if answer.status != 200:
                raise answer_failure(answer)
            return decoded(answer.body)

        # Where there is no answer, what is known stays.
        with suppress(ApiError, TransportError):
            await self._facts.known_extensions(ask, again=True)
        if not self._facts.extensions:
            self._facts.extensions = None  # whoever needs them asks anew, perhaps after an upgrade


def _read(whole: Answer, count: int) -> list[Answer]:
    """Return the answers of the parts; a refusal of the whole is one of every part."""
    if whole.status != 200:
        return [whole] * count
    try:
        parts = _ANSWERS.decode(whole.body).answers
    except msgspec.DecodeError as error:
        raise TransportError(f"the answer to a batch cannot be read: {error}") from error
    if len(parts) != count:
        raise TransportError(f"{len(parts)} answers to a batch of {count}")
    return [Answer(part.code, whole.headers, bytes(part.body)) for part in parts]
