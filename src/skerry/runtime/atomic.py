"""Writes of one cluster that happen together or not at all, where the server offers that.

What one decision writes is then one request and one transaction. Nobody can see half of it, and a
process that dies leaves none or all of it. A server that does not offer it, as any but ours, is
asked again once in a while; whoever writes goes step by step then. So it is with a single cluster
that refuses it, as one does that has just gone; that says nothing of the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final, NamedTuple
from urllib.parse import urlencode

from skerry.api.errors import (
    ApiError,
    BadRequest,
    Denied,
    Forbidden,
    MethodNotAllowed,
    NotFound,
    RequestEntityTooLarge,
    from_status,
)
from skerry.api.objects import Object
from skerry.runtime.client import Client
from skerry.runtime.transport import TransportError

EXTENSION = "atomic-batch"
# A server that is replaced by one of another version is rare, and asking costs a request.
_ASK_AGAIN_SECONDS = 60.0
# What a part is answered with that would have been written, had it been for that part alone.
NOT_TRIED: Final = Denied(424, "FailedDependency", "another part was not carried out", {})


class Part(NamedTuple):
    """One write; ``quiet`` wants no answer but that it was done."""

    method: str
    path: str
    query: Mapping[str, str]
    body: Object
    accept: str = ""
    quiet: bool = False


class Written(NamedTuple):
    """What came of parts: the answers, or of each why it was not written.

    ``failed`` is the first that was refused itself; None if none was, or all were written.
    """

    answers: Sequence[Object] = ()
    errors: Sequence[ApiError] = ()
    failed: int | None = None


class AtomicWriter:
    """Sends parts together, to servers that take them so."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._ask_at = 0.0
        # Until when clusters that refused are not tried again; few, as old ones are forgotten.
        self._refused: dict[str, float] = {}

    async def is_offered(self, cluster: str) -> bool:
        """Tell whether the server takes writes to *cluster* together."""
        now = self._client.clock.monotonic()
        if now < max(self._ask_at, self._refused.get(cluster, 0.0)):
            return False
        client = self._client.for_cluster(cluster)
        with suppress(ApiError):  # whatever an ordinary server says to that question
            if EXTENSION in await client.extensions(again=self._ask_at > 0.0):
                self._ask_at = 0.0
                return True
        self._ask_later()
        return False

    async def write(self, cluster: str, parts: Sequence[Part]) -> Written | None:
        """Write all *parts* or none; None: the server does not take them so, and none is written.

        Raises ``TransportError`` where nobody knows.
        """
        client = self._client.for_cluster(cluster)
        path = (await client.extensions()).get(EXTENSION)
        if path is None:
            return None
        body = {"requests": [_request(client.base, part) for part in parts]}
        try:
            whole = await client.call("POST", client.base + path, {}, body)
        except (BadRequest, RequestEntityTooLarge):
            return None
        except (Forbidden, NotFound):
            self._refuse(cluster)
            return None
        except MethodNotAllowed:
            self._ask_later()  # another server, or another version of it
            return None
        return _read(whole, len(parts))

    def _refuse(self, cluster: str) -> None:
        now = self._client.clock.monotonic()
        self._refused = {name: until for name, until in self._refused.items() if until > now}
        self._refused[cluster] = now + _ASK_AGAIN_SECONDS

    def _ask_later(self) -> None:
        self._ask_at = self._client.clock.monotonic() + _ASK_AGAIN_SECONDS


def _request(base: str, part: Part) -> Object:
    return {
        "method": part.method,
        "path": part.path.removeprefix(base),
        "query": urlencode(part.query),
        "body": part.body,
        "accept": part.accept,
        "quiet": part.quiet,
    }


def _read(whole: Object, count: int) -> Written:
    answers = whole.get("answers") or ()
    if len(answers) != count:
        raise TransportError(f"{len(answers)} answers to a batch of {count}")
    codes = [int(each["code"]) for each in answers]
    if all(code < 300 for code in codes):
        return Written([each.get("body") or {} for each in answers])
    refused = [n for n, code in enumerate(codes) if code >= 300 and code != NOT_TRIED.code]
    errors: list[ApiError] = [NOT_TRIED] * count
    for number in refused:
        errors[number] = from_status(codes[number], answers[number].get("body") or {})
    return Written((), errors, refused[0] if refused else None)
