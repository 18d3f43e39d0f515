"""Asks a question once: makes a StatusQuery that does not last, and hands on its answers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from skerry.api.edge import API_VERSION, COMPLETE, READING, STATUS_QUERIES, VALID
from skerry.api.errors import ApiError, NotFound
from skerry.api.objects import Object
from skerry.app.edge_environment import ClientFlags, access_by, endpoint
from skerry.app.explain_names import Unanswered
from skerry.app.hub_settings import HubSettings
from skerry.kit.clock import SystemClock
from skerry.kit.ids import IdSource
from skerry.logic.fleet.query.asking import AskingError, resource_named
from skerry.logic.machinery.conditions import find_condition
from skerry.runtime.answers import WatchEvent
from skerry.runtime.client import Client, Selection
from skerry.runtime.discovery import discover
from skerry.runtime.transport import TransportError

# Long enough for any answer; what is left behind by somebody killed goes by itself.
ONCE_SECONDS = 300
WATCHED_SECONDS = 86_400


@asynccontextmanager
async def opened(settings: HubSettings, ids: IdSource) -> AsyncIterator[Asking]:
    """Open the current workspace of a hub."""
    here = endpoint("espw", settings.paths(), ClientFlags(context=settings.context))
    if not here.workspace:
        raise Unanswered("the current context names no workspace; choose one with kubectl ws")
    access, transports = access_by({"espw": here}, SystemClock(), "skerry/query")
    try:
        yield Asking(access.clients["espw"].at("", here.workspace), ids)
    finally:
        for transport in transports:
            await transport.close()


class Asking:
    """Questions in one workspace."""

    def __init__(self, client: Client, ids: IdSource) -> None:
        self._client = client
        self._ids = ids

    async def resource(self, name: str) -> tuple[str, str]:
        """Return group and resource of what somebody calls by its name, singular or short name."""
        types = await discover(self._client)
        served = (
            (info.group, info.resource, (info.singular, *info.short_names))
            for info in types.preferred().values()
        )
        try:
            return resource_named(name, served)
        except AskingError as error:
            raise Unanswered(str(error)) from error

    async def answers(self, spec: Object, *, watch: bool, seconds: float) -> AsyncIterator[Object]:
        """Yield the first complete answer and, to *watch*, each that follows; then clean up."""
        ttl = WATCHED_SECONDS if watch else ONCE_SECONDS
        name = f"ask-{self._ids.uid()[:8]}"
        made = await self._client.create(
            STATUS_QUERIES,
            {
                "apiVersion": API_VERSION,
                "kind": "StatusQuery",
                "metadata": {"name": name},
                "spec": {**spec, "ttlSeconds": min(spec.get("ttlSeconds") or ttl, ttl)},
            },
        )
        try:
            version = str(made["metadata"]["resourceVersion"])
            selection = Selection(fields=f"metadata.name={name}")
            async with self._client.watch(
                STATUS_QUERIES, selection, resource_version=version
            ) as events:
                first = await _first(events, seconds)
                yield first
                if not watch:
                    return
                async for event in events:
                    if event.kind == "DELETED":
                        raise Unanswered("the query was deleted meanwhile")
                    if event.kind == "MODIFIED" and _is_answered(event.object):
                        yield event.object["status"]
        finally:
            with suppress(NotFound, ApiError, TransportError):
                await self._client.delete(STATUS_QUERIES, name)


async def _first(events: AsyncIterator[WatchEvent], seconds: float) -> Object:
    try:
        async with asyncio.timeout(seconds):
            async for event in events:
                obj = event.object
                if event.kind == "MODIFIED" and _is_answered(obj):
                    status: Object = obj["status"]
                    return status
    except TimeoutError as error:
        text = f"no answer within {seconds:g} s; do the edge controllers run?"
        raise Unanswered(text) from error
    raise Unanswered("the watch ended before there was an answer")


def _is_answered(query: Object) -> bool:
    """Tell whether a query has an answer; ``Unanswered`` when it will have none."""
    valid, complete = find_condition(query, VALID), find_condition(query, COMPLETE)
    if valid is not None and valid["status"] == "False":
        raise Unanswered(valid["message"])
    if complete is None or complete["reason"] == READING:
        return False
    if complete["status"] == "False" and "rows" not in query["status"]:
        raise Unanswered(complete["message"])
    return True
