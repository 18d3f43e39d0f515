"""What has to be read once before rows can be trusted, and what is derived anew then.

Watches report by themselves when they are complete, and rows that depend on one are pending until
then (``fleet.tables.completeness``). Four things are no watch of their own, or concern everybody:

    the types of every workspace   asked of the system's own cluster; nothing is decided before
    APIResourceSchemas             all kinds are derived anew when the last has been read
    what grants depend on          from the first grant on; rows of granted places wait for it
    whoever may name a revision    all informers; before that nothing may be swept

A hub that does not answer is asked again, ever more seldom. Discovery that lacks a group is as bad
as none: a type that is missing there would look like one that no workspace has, and its copies like
copies of nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Protocol

from skerry.api.errors import ApiError
from skerry.controllers.placement_translator.events import NAME
from skerry.controllers.placement_translator.settings import copies_are_inert
from skerry.controllers.placement_translator.sweeping import Sweeper
from skerry.kit.ids import IdSource
from skerry.kit.log import Logger
from skerry.logic.fleet.translation.types import common_types
from skerry.logic.fleet.translation.workspaces import Workspaces
from skerry.runtime.backoff import Backoff
from skerry.runtime.client import Client
from skerry.runtime.discovery import discover
from skerry.runtime.informer import Informer
from skerry.runtime.transport import TransportError

_BACKOFF = Backoff(min_seconds=0.1, max_seconds=30.0)

_log = Logger(NAME)


class Handlers(Protocol):
    """What hears of it."""

    def retype_all(self) -> None: ...

    def grants_read(self) -> None: ...


class Startup:
    """Reads what is read once; ``run`` again after another process led."""

    def __init__(
        self,
        system: Client,
        ids: IdSource,
        workspaces: Workspaces,
        handlers: Handlers,
        schemas: Informer,
    ) -> None:
        """*system* is a client of the system's own cluster.

        It binds and defines nothing, so it serves what every workspace has and no others.
        """
        self._system = system
        self._ids = ids
        self._workspaces = workspaces
        self._handlers = handlers
        self._schemas = schemas
        # What grants depend on, from the first of them on.
        self._depended_on: Sequence[Informer] = ()
        self._grants_found = asyncio.Event()

    def grants_depend_on(self, informers: Sequence[Informer]) -> None:
        """Take that there is a grant, and what has to be read to know what it admits."""
        self._depended_on = informers
        self._grants_found.set()

    async def run(self) -> None:
        """Read it all; returns when there is nothing left to wait for."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._learn_types())
            tasks.create_task(self._learn_schemas())
            tasks.create_task(self._learn_grants())

    async def _learn_types(self) -> None:
        attempt = 0
        while True:
            try:
                types = await discover(self._system)
                version = await self._system.version()
            except (ApiError, TransportError) as error:
                attempt += 1
                _log.warning("discovery failed", attempt=attempt, error=error)
            else:
                if not types.failed:
                    break
                attempt += 1
                _log.warning("discovery is not complete", attempt=attempt, error=str(types.failed))
            await self._system.clock.sleep(_BACKOFF.seconds(attempt, self._ids))
        inert = copies_are_inert(version)
        self._workspaces.learn_hub(common_types(types.resources), copies_are_inert=inert)
        self._handlers.retype_all()

    async def _learn_schemas(self) -> None:
        await self._schemas.wait_synced()
        self._handlers.retype_all()

    async def _learn_grants(self) -> None:
        await self._grants_found.wait()
        for informer in self._depended_on:
            await informer.wait_synced()
        self._handlers.grants_read()


async def sweep_when_read(sweeper: Sweeper, informers: Sequence[Informer]) -> None:
    """Sweep revisions once everything that may name them has been read."""
    for informer in informers:
        await informer.wait_synced()
    await sweeper.run()
