"""One certificate, requested from the hub and waited for, however long a person takes.

The request is named after its key. Whoever asks again with the same key, after a crash or a lost
answer, meets what became of the first time.
"""

from __future__ import annotations

from collections.abc import Callable

from skerry.api.edge_identity import REQUESTS, certificate_request
from skerry.api.errors import AlreadyExists, Forbidden, NotFound
from skerry.api.objects import Object
from skerry.logic.fleet.syncing.certificates import PendingRequest, Verdict, verdict_of
from skerry.runtime.client import Client, Selection
from skerry.runtime.transport import TransportError

# Between two checks whether the request is still wanted: a person may have given the edge
# another bootstrap credential meanwhile.
_WATCH_SECONDS = 300


class RequestRefused(Exception):
    """A person or the signer has decided against the request; asking again needs another key."""


class NoLongerWanted(Exception):
    """The request was given up before it was decided."""


async def requested(client: Client, pending: PendingRequest) -> Object:
    """Return the CertificateSigningRequest for a key, made now or earlier."""
    body = certificate_request(pending.name, pending.request.encode())
    try:
        return await client.create(REQUESTS, body)
    except AlreadyExists:
        return await client.get(REQUESTS, pending.name)
    except Forbidden as error:
        # A bootstrap credential that has ended meanwhile may still read what it asked for.
        try:
            return await client.get(REQUESTS, pending.name)
        except (Forbidden, NotFound):
            raise error from None


async def certificate_for(
    client: Client,
    pending: PendingRequest,
    *,
    waiting: Callable[[], None],
    wanted: Callable[[], bool],
) -> Verdict:
    """Request a certificate and return it once it is issued.

    *waiting* is called when somebody has to approve, and again now and then; as soon as *wanted*
    is false after such a call, ``NoLongerWanted`` is raised.
    """
    found = await requested(client, pending)
    while not (verdict := _issued(found)).certificate:
        waiting()
        if not wanted():
            raise NoLongerWanted(pending.name)
        found = await _decided(client, found)
    return verdict


def _issued(request: Object) -> Verdict:
    verdict = verdict_of(request)
    if verdict.refusal:
        raise RequestRefused(f"{request['metadata']['name']} was {verdict.refusal}")
    return verdict


async def _decided(client: Client, found: Object) -> Object:
    """Return the request when it was decided, or after a while as it is now."""
    metadata = found["metadata"]
    selection = Selection(fields=f"metadata.name={metadata['name']}")
    async with client.watch(
        REQUESTS,
        selection,
        resource_version=metadata["resourceVersion"],
        timeout_seconds=_WATCH_SECONDS,
    ) as events:
        async for event in events:
            if event.kind == "DELETED":
                raise TransportError(f"request {metadata['name']} is gone; it is made again")
            verdict = Verdict() if event.kind == "BOOKMARK" else verdict_of(event.object)
            if verdict.certificate or verdict.refusal:
                return event.object
    return await client.get(REQUESTS, metadata["name"])
