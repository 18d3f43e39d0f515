"""Several writes in one request: what an edge on a thin line has to say, said at once.

``POST /extensions/v1/batch`` carries requests of one cluster; each goes through the engine as if
it had come alone, in the name of the same user: authorized, limited, admitted, audited. They are
independent: none waits for another's success, and one that fails fails alone. The answers come in
order.

The answer is a stream only so that a batch holds no seat among running requests while its parts
wait for theirs. A few parts are under way at a time, and what each of them takes of the loop is
charged as that of any request: two hundred writes at once would keep everybody else waiting.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Coroutine, Iterator
from typing import Any

import msgspec

from skerry.api.errors import BadRequest, NotFound
from skerry.kit.clock import Clock
from skerry.server.extensions import BATCH, Visit
from skerry.server.http.message import Answer, Peer, Request, Response, Sender, Stream
from skerry.server.http.steps import timed
from skerry.server.http.target import parsed_target

# What a burst of statuses comes to; more is another request.
_MAX_REQUESTS = 200
# Parts under way at a time: their first steps together take the loop for some milliseconds.
PARTS_AT_ONCE = 16
_METHODS = frozenset(("POST", "PUT", "PATCH", "DELETE"))
# Where a token decides which cluster is meant, it must do so for the parts as well.
_KEPT_HEADERS = ("user-agent", "authorization")


class PartTerms(msgspec.Struct, rename="camel", frozen=True):
    """One request of a batch. ``quiet`` wants no body of a success, ``accept`` one of that kind."""

    method: str
    path: str
    query: str = ""
    content_type: str = "application/json"
    body: msgspec.Raw = msgspec.Raw(b"")
    quiet: bool = False
    accept: str = ""


class BatchTerms(msgspec.Struct, frozen=True):
    """A batch."""

    requests: list[PartTerms]


_TERMS = msgspec.json.Decoder(BatchTerms)


class Batches:
    """Carries batches out through *handle*, the engine itself."""

    def __init__(
        self, handle: Callable[[Request], Coroutine[Any, Any, Answer]], clock: Clock
    ) -> None:
        self._handle = handle
        self._now = clock.monotonic

    async def handle(self, visit: Visit) -> Answer:
        """Answer with the codes, and with the bodies that were not declined."""
        parts = parts_of(visit.request.body, _METHODS, _MAX_REQUESTS)

        async def run(sender: Sender) -> None:
            answers = [b""] * len(parts)
            async with asyncio.TaskGroup() as tasks:
                rest = iter(enumerate(parts))
                for _ in range(min(PARTS_AT_ONCE, len(parts))):
                    tasks.create_task(self._some(visit, rest, answers))
            sender.write(b'{"answers":[%b]}' % b",".join(answers))

        return Stream(run=run, watches=0)

    async def _some(
        self, visit: Visit, rest: Iterator[tuple[int, tuple[PartTerms, str]]], answers: list[bytes]
    ) -> None:
        """Carry out one part after another, sharing them with others that do so."""
        for index, part in rest:
            answers[index] = await self._part(visit, *part)
            # Parts that were answered without waiting must not follow each other at once.
            await asyncio.sleep(0)

    async def _part(self, visit: Visit, part: PartTerms, path: str) -> bytes:
        request = request_of(visit, part, path, BATCH)
        return encoded(await timed(self._handle(request), request, self._now))


def request_of(visit: Visit, part: PartTerms, path: str, suffix: str) -> Request:
    """Return one part as a request, in the place of the one that brought it to *suffix*."""
    outer = visit.request
    headers = {name: outer.headers[name] for name in _KEPT_HEADERS if name in outer.headers}
    if part.quiet:
        headers["prefer"] = "return=minimal"
    if part.accept:
        headers["accept"] = part.accept
    return Request(
        part.method,
        outer.path.removesuffix(suffix) + path,
        part.query,
        {**headers, "content-type": part.content_type},
        bytes(part.body),
        Peer(outer.peer.address, user=visit.user),
        outer.impersonator,
        outer.received,
    )


def parts_of(body: bytes, methods: Collection[str], limit: int) -> list[tuple[PartTerms, str]]:
    """Return the parts of a batch, each with its path within the cluster."""
    try:
        parts = _TERMS.decode(body).requests
    except msgspec.DecodeError as error:
        raise BadRequest(f"the requests of a batch: {error}") from error
    if len(parts) > limit:
        raise BadRequest(f"a batch of {len(parts)} requests: want at most {limit}")
    for part in parts:
        if part.method not in methods:
            raise BadRequest(f"method {part.method!r} in a batch: want one that changes something")
    return [(part, _path(part.path)) for part in parts]


def _path(text: str) -> str:
    """Return the path of a part, decoded as that of any request, and refused where that would."""
    try:
        path, query = parsed_target(text.encode("ascii"))
    except (UnicodeEncodeError, NotFound):
        path, query = "", ""
    if query or "?" in text or "#" in text or not path.startswith(("/api/", "/apis/")):
        raise BadRequest(f"path {text[:256]!r} in a batch: want a resource of this cluster")
    return path


def encoded(answer: Answer) -> bytes:
    """Return what a batch says of one part."""
    if not isinstance(answer, Response):
        # Only connections to nodes answer with a stream, and they are not made here.
        return b'{"code":405}'
    body = answer.body if isinstance(answer.body, bytes) else b"".join(answer.body)
    if not body:
        return b'{"code":%d}' % answer.status
    return b'{"code":%d,"body":%b}' % (answer.status, body)
