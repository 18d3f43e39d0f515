"""Conversion webhooks, called: a request goes on once what it needs converted has been.

A request that needs an object at another version stops, the webhook is asked, and the request
begins again with the answer at hand (``logic.machinery.remote_conversion``). What was committed
is never begun again: whoever shows the result of a write completes that part by itself.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextvars import ContextVar
from typing import Final, TypeVar

import orjson

from skerry.api.errors import Denied
from skerry.api.objects import Object
from skerry.kit.ids import IdSource
from skerry.logic.machinery.remote_conversion import (
    FETCHED,
    ConversionFailed,
    ConversionNeeded,
    ConversionWebhook,
    failure_of,
    objects_of,
    request_of,
)
from skerry.server.codec import decode
from skerry.server.request.call import Call
from skerry.server.webhook_client import WebhookClient, WebhookError, reviewed

R = TypeVar("R")
# Kubernetes' figure.
_SECONDS: Final = 30.0
# What one review asks for at most: a list of any length is converted in so many objects and bytes.
_MAX_OBJECTS: Final = 500
_MAX_BYTES: Final = 1 << 20
# A write compares, merges and shows a handful of objects; more is a webhook that answers otherwise
# each time.
_MAX_ROUNDS: Final = 20


class Conversions:
    """Fetches conversions for requests. One for a server."""

    def __init__(self, client: WebhookClient, ids: IdSource) -> None:
        self._client = client
        self._ids = ids

    async def run(self, call: Call, action: Callable[[], Awaitable[R]]) -> R:
        """Return what *action* makes for *call* with everything converted that it needs."""
        fetching = _Fetching(self._client, self._ids, call.info.cluster)
        return await fetching.run(action)


class _Fetching:
    """The conversions of one request."""

    def __init__(self, client: WebhookClient, ids: IdSource, cluster: str) -> None:
        self._client = client
        self._ids = ids
        self._cluster = cluster

    async def run(self, action: Callable[[], Awaitable[R]]) -> R:
        known, current = FETCHED.set({}), _CURRENT.set(self)
        try:
            return await completed(action)
        finally:
            FETCHED.reset(known)
            _CURRENT.reset(current)

    async def fetch(
        self, webhook: ConversionWebhook, objects: Sequence[Object], api_version: str
    ) -> None:
        """Have *objects* known at *api_version*; raises the error that their failure becomes."""
        known = FETCHED.get()
        for some in _batches(objects):
            uid = self._ids.uid()
            body = request_of(webhook, uid, api_version, some)
            try:
                answer = await self._reviewed(webhook, some[0], body)
                converted = objects_of(webhook, uid, api_version, some, answer)
            except ConversionFailed as error:
                raise Denied(500, "", str(error), {}) from error
            if known is not None:
                for obj, found in zip(some, converted, strict=True):
                    known[api_version, orjson.dumps(obj)] = orjson.dumps(found)

    async def _reviewed(self, webhook: ConversionWebhook, first: Object, body: bytes) -> object:
        try:
            return await reviewed(self._client, webhook.client, self._cluster, body, _SECONDS)
        except WebhookError as error:
            raise failure_of(first, f"failed: {error}") from error


_CURRENT: Final[ContextVar[_Fetching | None]] = ContextVar("fetching", default=None)


async def completed(action: Callable[[], Awaitable[R]]) -> R:
    """Return what *action* makes, begun again as often as a conversion is missing."""
    for _ in range(_MAX_ROUNDS):
        try:
            return await action()
        except ConversionNeeded as needed:
            current = _CURRENT.get()
            if current is None:
                raise
            await current.fetch(needed.webhook, [needed.obj], needed.api_version)
    raise Denied(500, "", "conversion webhook: the same object is converted differently", {})


def later(compute: Callable[[], R]) -> Callable[[], Awaitable[R]]:
    """Return *compute* as something to wait for."""

    async def action() -> R:
        return compute()

    return action


async def prefetch(call: Call, values: Sequence[tuple[bytes, int]]) -> None:
    """Have stored *values* known at the version of *call*, a few hundred with each request."""
    webhook, current = call.resource.webhook, _CURRENT.get()
    if webhook is None or current is None:
        return
    wanted = call.resource.info.api_version
    missing = [
        obj
        for value, revision in values
        if (obj := decode(value, revision))["apiVersion"] != wanted
    ]
    if missing:
        await current.fetch(webhook, missing, wanted)


def forget() -> None:
    """Drop what was converted so far: a stream goes on for long."""
    known = FETCHED.get()
    if known is not None:
        known.clear()


def continued() -> Callable[[Callable[[], Awaitable[R]]], Awaitable[R]]:
    """Return what runs a later part of the request, a stream, with conversions of its own."""
    current = _CURRENT.get()

    async def run(action: Callable[[], Awaitable[R]]) -> R:
        return await (action() if current is None else current.run(action))

    return run


def _batches(objects: Sequence[Object]) -> Iterator[Sequence[Object]]:
    some: list[Object] = []
    size = 0
    for obj in objects:
        size += len(orjson.dumps(obj))
        if some and (size > _MAX_BYTES or len(some) >= _MAX_OBJECTS):
            yield some
            some, size = [], 0
        some.append(obj)
    if some:
        yield some
