"""Writes gathered for a moment and sent as one request, where the server offers that.

On a thin line most of a small write is not the write: each request carries a credential of a
kilobyte, and each answer the whole object. Writes whose answer nobody needs (``quiet``) wait a
moment for company and travel together, each answered for itself. Whoever sends them cannot tell.

One batch is under way at a time, sent by whoever waited longest. Where that one is given up, the
others are left without an answer, as a lost connection would leave them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import msgspec
import orjson

from skerry.kit.clock import Clock
from skerry.runtime.client import QUIET, ServerFacts
from skerry.runtime.transport import NO_HEADERS, Answer, Transport, TransportError
from skerry.runtime.wrapping import WrappedTransport

# Long enough for a burst of statuses to meet, short enough that nobody notices.
_GATHER_SECONDS = 0.02
_MOST_PARTS = 100
_LARGEST_BODY_BYTES = 64 * 1024
EXTENSION = "batch"


class _Part(msgspec.Struct):
    code: int
    body: msgspec.Raw = msgspec.Raw(b"")


class _Answers(msgspec.Struct):
    answers: list[_Part]


_ANSWERS = msgspec.json.Decoder(_Answers)
_Waiting = tuple[dict[str, Any], "asyncio.Future[Answer]"]


class BatchingTransport(WrappedTransport):
    """A transport to the cluster below *base* that sends quiet writes together.

    It does so once *facts* say that the server takes them.
    """

    def __init__(self, inner: Transport, clock: Clock, base: str, facts: ServerFacts) -> None:
        super().__init__(inner)
        self._clock = clock
        self._base = base
        self._facts = facts
        self._waiting: list[_Waiting] = []
        self._turn = asyncio.Lock()

    async def request(
        self,
        method: str,
        path: str,
        query: str = "",
        headers: Mapping[str, str] = NO_HEADERS,
        body: bytes = b"",
    ) -> Answer:
        if not self._is_gathered(method, path, headers, body):
            return await super().request(method, path, query, headers, body)
        part = {
            "method": method,
            "path": path.removeprefix(self._base),
            "query": query,
            "contentType": headers.get("content-type", ""),
            "body": orjson.Fragment(body),
            "quiet": True,
        }
        waiting: _Waiting = (part, asyncio.get_running_loop().create_future())
        self._waiting.append(waiting)
        try:
            async with self._turn:
                if not waiting[1].done():
                    await self._clock.sleep(_GATHER_SECONDS)
                    await self._send_some(headers)
        finally:
            if waiting in self._waiting:
                self._waiting.remove(waiting)
        return await waiting[1]

    def _is_gathered(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> bool:
        quiet = QUIET.items() <= headers.items()
        small = 0 < len(body) <= _LARGEST_BODY_BYTES
        mine = path.startswith((f"{self._base}/api/", f"{self._base}/apis/"))
        offered = EXTENSION in (self._facts.extensions or {})
        return offered and method == "PATCH" and quiet and small and mine

    async def _send_some(self, headers: Mapping[str, str]) -> None:
        """Send the oldest that wait, and hand the answers out."""
        taken, self._waiting = self._waiting[:_MOST_PARTS], self._waiting[_MOST_PARTS:]
        error = TransportError("the request it went with was given up")
        try:
            answers = await self._sent([part for part, _ in taken], headers)
            for (_, waiting), answer in zip(taken, answers, strict=True):
                if not waiting.done():
                    waiting.set_result(answer)
        except TransportError as failure:
            error = failure
        finally:
            for _, waiting in taken:
                if not waiting.done():
                    waiting.set_exception(TransportError(str(error)))
                    waiting.exception()  # it may be that nobody waits any more

    async def _sent(self, parts: list[dict[str, Any]], headers: Mapping[str, str]) -> list[Answer]:
        kept = {name: headers[name] for name in ("accept", "user-agent") if name in headers}
        kept["content-type"] = "application/json"
        payload = orjson.dumps({"requests": parts})
        path = self._base + (self._facts.extensions or {}).get(EXTENSION, "")
        whole = await super().request("POST", path, "", kept, payload)
        if whole.status in (404, 405):
            self._facts.extensions = None  # another server, or another version of it
            raise TransportError("the server no longer takes batches")
        return _read(whole, len(parts))


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
