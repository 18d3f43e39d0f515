"""The core controllers beside a server: its dispatcher feeds them, writes take the transport."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Protocol

from skerry.app.api_server import ApiServer
from skerry.app.fed_watches import FedWatches
from skerry.kit.clock import Clock
from skerry.kit.ids import IdSource
from skerry.runtime.client import Client
from skerry.runtime.context import ControllerContext
from skerry.runtime.embedded import EmbeddedTransport
from skerry.runtime.facts import ServerFacts
from skerry.runtime.informer import InformerFactory
from skerry.runtime.watching import OrdinaryWatches
from skerry.server.http.message import Peer, Request
from skerry.server.security.signing_rotation import Authorities
from skerry.server.user import User

_USER = User("system:kube-controller-manager", groups=("system:masters", "system:authenticated"))


class Runnable(Protocol):
    """What a controller is to whoever starts it."""

    async def run(self) -> None: ...


def embedded_transport(api: ApiServer, user: User = _USER) -> EmbeddedTransport:
    """Return a transport straight into *api*, acting as *user*."""
    peer = Peer(user=user)

    def make_request(
        *, method: str, path: str, query_string: str, headers: Mapping[str, str], body: bytes
    ) -> Request:
        return Request(method, path, query_string, headers, body, peer)

    return EmbeddedTransport(api.engine.handle, make_request)


def embedded_client(api: ApiServer, user_agent: str, clock: Clock) -> Client:
    """Return a client for controllers beside *api*, whose informers read one after the other.

    All begin in the same moment, when the server has just started and its clients come back. A
    request takes several turns of the loop, and each turn would last as long as a piece of every
    state.
    """
    facts = ServerFacts(reading=asyncio.Semaphore(1))
    return Client(embedded_transport(api), user_agent=user_agent, clock=clock, facts=facts)


def fed_factory(api: ApiServer, client: Client, ids: IdSource) -> InformerFactory:
    """Return informers that the dispatcher of *api*, a plain server, feeds; *client* is into it."""
    source = FedWatches(api, OrdinaryWatches(client, ids))
    return InformerFactory(client, ids=ids, source=source)


async def run_core_controllers(
    api: ApiServer, authorities: Authorities, clock: Clock, ids: IdSource
) -> None:
    """Run all of them until cancelled."""
    # Loaded by whoever runs them: a hub that is starting has other things to do first.
    from skerry.controllers.core import root_ca, service_account, volume_protection
    from skerry.controllers.core.garbage import controller as garbage
    from skerry.controllers.core.namespace import controller as namespace
    from skerry.controllers.core.quota import controller as quota

    client = embedded_client(api, "skerry/core-controllers", clock)
    factory = fed_factory(api, client, ids)
    context = ControllerContext(client=client, factory=factory, ids=ids)
    controllers: list[Runnable] = [
        namespace.build(context),
        garbage.build(context),
        quota.build(context),
        service_account.build(context),
        volume_protection.build(context),
        root_ca.build(context, authorities.bundle, authorities.listeners.append),
    ]
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(factory.run())
        for controller in controllers:
            tasks.create_task(controller.run())
