"""Objects that a server keeps for its clients, as kube-apiserver keeps its own.

They are no controller's: each server of a store looks at them now and then, creates what is missing
and corrects what is wrong. Several servers may do so at once. Who loses a race leaves the object to
the winner and looks again the next time.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from skerry.api.errors import AlreadyExists, ApiError, Conflict, NotFound
from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.kit.clock import Clock
from skerry.kit.log import Logger
from skerry.runtime.client import Client
from skerry.runtime.transport import TransportError

log = Logger("apiserver")

Wanted = Callable[[Object | None], Object | None]
"""Returns an object as it should be, given the live one or None; None when that is right."""


async def put(
    client: Client, kind: GroupVersionResource, name: str, namespace: str, wanted: Wanted
) -> None:
    """Bring one object to what is wanted; who wrote meanwhile is met the next time."""
    try:
        live = await client.get(kind, name, namespace)
    except NotFound:
        live = None
    obj = wanted(live)
    if obj is None:
        return
    try:
        if live is None:
            await client.create(kind, obj, namespace)
        else:
            await client.update(kind, obj)
    except (AlreadyExists, Conflict, NotFound):
        return


async def keep_up(
    what: str, ensure: Callable[[], Awaitable[None]], clock: Clock, interval_seconds: float
) -> None:
    """Look again and again until cancelled; a store that is away is met the next time."""
    while True:
        await clock.sleep(interval_seconds)
        try:
            await ensure()
        except (ApiError, TransportError) as error:
            log.warning("object of the server not kept up", what=what, error=error)
