"""Reads and confirms the consent of an inventory workspace, for the command line."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from skerry.api.edge import CONFIRM, LOCATION_CONSENT_NAME, LOCATION_CONSENTS
from skerry.api.errors import NotFound
from skerry.api.objects import Object
from skerry.app.edge_environment import ClientFlags, access_by, endpoint
from skerry.app.explain_names import Unanswered
from skerry.app.hub_settings import HubSettings
from skerry.kit.clock import SystemClock
from skerry.logic.fleet.explanation.consent import outstanding, unnoted
from skerry.logic.fleet.placement.consent_record import confirmed_ids
from skerry.runtime.client import Client, Selection

_ONLY = Selection(fields=f"metadata.name={LOCATION_CONSENT_NAME}")


@asynccontextmanager
async def inventory(settings: HubSettings) -> AsyncIterator[Inventory]:
    """Open the current workspace of a hub."""
    paths = settings.paths()
    here = endpoint("espw", paths, ClientFlags(context=settings.context))
    if not here.workspace:
        raise Unanswered("the current context names no workspace; choose one with kubectl ws")
    access, transports = access_by({"espw": here}, SystemClock(), "skerry/grants")
    try:
        yield Inventory(access.clients["espw"].at("", here.workspace), here.workspace)
    finally:
        for transport in transports:
            await transport.close()


class Inventory:
    """One inventory workspace."""

    def __init__(self, client: Client, workspace: str) -> None:
        self._client = client
        self.workspace = workspace

    async def record(self) -> Object | None:
        """Return the LocationConsent; None when there is none."""
        try:
            return await self._client.get(LOCATION_CONSENTS, LOCATION_CONSENT_NAME)
        except NotFound:
            return None

    async def confirm(self, record: Object, ids: Sequence[str], *, seconds: float) -> None:
        """Confirm *ids*, as they are in *record*, and wait until they have been taken.

        A Conflict when the object has changed since: then something else may be held.
        """
        listed = ",".join(dict.fromkeys([*confirmed_ids(record), *ids]))
        metadata = {
            "resourceVersion": record["metadata"]["resourceVersion"],
            "annotations": {CONFIRM: listed},
        }
        written = await self._client.patch(
            LOCATION_CONSENTS, LOCATION_CONSENT_NAME, {"metadata": metadata}
        )
        try:
            async with asyncio.timeout(seconds):
                taken = await self._taken(written, ids)
        except TimeoutError as error:
            text = f"not taken within {seconds:g} s; do the edge controllers run?"
            raise Unanswered(text) from error
        ignored = unnoted(taken, ids)
        if ignored:
            text = f"{', '.join(ignored)}: what is held has changed; see skerry grants status"
            raise Unanswered(text)

    async def _taken(self, record: Object, ids: Sequence[str]) -> Object | None:
        """Return the object without any of *ids* in its annotation; None when it has gone."""
        version = str(record["metadata"]["resourceVersion"])
        async with self._client.watch(LOCATION_CONSENTS, _ONLY, resource_version=version) as events:
            async for event in events:
                if event.kind == "DELETED":
                    return None
                if event.kind != "BOOKMARK" and not outstanding(event.object, ids):
                    return event.object
        raise Unanswered("the watch ended before the confirmation was taken")
