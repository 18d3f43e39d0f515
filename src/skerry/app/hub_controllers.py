"""The controllers a hub runs itself, over all its workspaces at once.

They speak to their own server through the in-process transport, like any other client of
``/clusters/*``. Of several hubs over one store one runs them, elected by a Lease in ``root``;
when it goes, another takes over.
"""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Awaitable, Callable

from skerry.api.edge import NOT_PROJECTED
from skerry.api.kcp.resources import API_EXPORTS
from skerry.app.core_controllers import Runnable, embedded_client
from skerry.app.hub_server import HubServer
from skerry.kit.clock import Clock
from skerry.kit.ids import IdSource
from skerry.logic.machinery.workspaces.names import ROOT, WILDCARD
from skerry.runtime.client import Selection
from skerry.runtime.context import ControllerContext
from skerry.runtime.election import LeaderElection, Terms
from skerry.runtime.informer import InformerFactory
from skerry.server.security.signing_rotation import Authorities

_LEASE = "skerry-hub-controllers"
_NAMESPACE = "default"
# Repair may pause for some seconds; nothing users wait for depends on it.
_TERMS = Terms(lease_seconds=6, renew_seconds=4.0, retry_seconds=1.0)


async def run_hub_controllers(
    api: HubServer,
    authorities: Authorities,
    clock: Clock,
    ids: IdSource,
    *,
    started: asyncio.Event,
    alone: bool,
) -> None:
    """Run them from the moment the hub has *started* until cancelled.

    Unless it is *alone* on the store, only while elected.
    """
    await started.wait()
    if alone:
        await _run(api, authorities, clock, ids)
        return
    client = embedded_client(api, "skerry/hub", clock)
    identity = f"skerry-hub-{ids.uid()}"
    while True:
        election = LeaderElection(
            client.for_cluster(ROOT), _LEASE, _NAMESPACE, identity, ids=ids, terms=_TERMS
        )
        await election.run(_leading(api, authorities, clock, ids))


def _leading(
    api: HubServer, authorities: Authorities, clock: Clock, ids: IdSource
) -> Callable[[], Awaitable[None]]:
    async def lead() -> None:
        await _run(api, authorities, clock, ids)

    return lead


async def _run(api: HubServer, authorities: Authorities, clock: Clock, ids: IdSource) -> None:
    # Loaded here, when the hub already answers, and beside it: some of them bring large
    # libraries along.
    loaded = await asyncio.to_thread(importlib.import_module, "skerry.app.edge_controllers")
    client = embedded_client(api, "skerry/core-controllers", clock)
    everywhere = client.for_cluster(WILDCARD)
    factory = InformerFactory(everywhere, ids=ids)
    context = ControllerContext(client=everywhere, factory=factory, ids=ids)
    before = list(authorities.listeners)
    core = _core(context, authorities.bundle, authorities.listeners.append)
    try:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(factory.run())
            for controller in core:
                tasks.create_task(controller.run())
            tasks.create_task(loaded.run_tenancy_controllers(api, clock, ids))
    finally:
        # Another term has controllers of its own.
        authorities.listeners[:] = before


def _core(
    context: ControllerContext,
    root_ca: Callable[[], str],
    on_change: Callable[[Callable[[], None]], None],
) -> list[Runnable]:
    from skerry.controllers.core import root_ca as root_ca_publisher
    from skerry.controllers.core import service_account
    from skerry.controllers.core.garbage import controller as garbage
    from skerry.controllers.core.namespace import controller as namespace
    from skerry.controllers.core.quota import controller as quota

    return [
        namespace.build(context),
        # Owners of copies are elsewhere, so nothing follows from their absence here.
        garbage.build(context, NOT_PROJECTED, (API_EXPORTS,)),
        quota.build(context, Selection(labels=NOT_PROJECTED), workloads=False, clusters=True),
        service_account.build(context),
        root_ca_publisher.build(context, root_ca, on_change),
    ]
