"""Whether a syncer's two ends are one and the same server.

A syncer that took the hub for its edge would apply the copies of a mailbox to a workspace, and
report on them to itself. Servers are recognized by more than their URL: one may have many. Ours
name their store on every answer; any cluster has a Namespace ``kube-system`` with a UID of its own.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import orjson

from skerry.edge.syncer.tables.store_identity import HEADER
from skerry.runtime.kubeconfig import ClientConfig, connect
from skerry.runtime.transport import TransportError

# Who is away answers later; a syncer is made to wait for that, but not to start.
_PATIENCE_SECONDS = 3.0
_SYSTEM = "/api/v1/namespaces/kube-system"


@dataclass(frozen=True, slots=True)
class ServerIdentity:
    """By what a server is known; empty where it does not say."""

    store: str = ""
    cluster: str = ""

    def is_same(self, other: ServerIdentity) -> bool:
        """Tell whether both are known to be one server."""
        return bool(
            (self.store and self.store == other.store)
            or (self.cluster and self.cluster == other.cluster)
        )


async def same_ends(hub: ClientConfig, edge: ClientConfig) -> str:
    """Return why both ends are the same server, in a sentence; empty where they are not.

    A server that does not answer is taken for another one: the same would not answer either.
    """
    if hub.server.rstrip("/") == edge.server.rstrip("/"):
        return f"both ends lead to {hub.server}"
    found = await asyncio.gather(_identity(hub), _identity(edge))
    if found[0].is_same(found[1]):
        return f"{hub.server} and {edge.server} are the same server"
    return ""


async def _identity(config: ClientConfig) -> ServerIdentity:
    transport = connect(config)
    try:
        async with asyncio.timeout(_PATIENCE_SECONDS):
            answer = await transport.request("GET", _SYSTEM)
    except (TransportError, TimeoutError, OSError):
        return ServerIdentity()
    finally:
        await transport.close()
    store = answer.headers.get(HEADER, "")
    if answer.status != 200:
        return ServerIdentity(store)
    return ServerIdentity(store, str(orjson.loads(answer.body)["metadata"]["uid"]))
