"""The loop, once an hour over all placements of which something is recorded."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping

from skerry.api.edge import (
    DECISION_RECORDS,
    EDGE_PLACEMENTS,
    HISTORY_RETENTION,
    edge_placement_ref,
)
from skerry.api.errors import ApiError
from skerry.api.objects import Object
from skerry.api.refs import CLUSTER_ANNOTATION, ObjectRef
from skerry.controllers.history.decide import ObservedHistory, decide
from skerry.kit.log import Logger
from skerry.logic.fleet.history.record import Maker
from skerry.logic.fleet.history.retention import InvalidRetention, Limits, limits_of
from skerry.runtime.client import Selection
from skerry.runtime.context import ControllerContext
from skerry.runtime.controller import Controller, Reconciler
from skerry.runtime.transport import TransportError
from skerry.runtime.workqueue import WorkQueue

NAME = "history"
_PERIOD_SECONDS = 3600.0
# After a start others come first; a hub that just started has much to do.
_FIRST_SECONDS = 60.0

_log = Logger(NAME)


class HistoryLoop:
    """Keeps the history of every placement within its limits.

    What may be wrong is in single histories, which tenants may write into: one after the other is
    reconciled, so that one that fails keeps no other from its turn.
    """

    def __init__(
        self,
        edge: ControllerContext,
        limits: Limits,
        version: str = "",
        *,
        is_served: bool = True,
        first_seconds: float = _FIRST_SECONDS,
    ) -> None:
        """*is_served*: whether the export offers DecisionRecords, and any are kept."""
        self._edge = edge
        self._limits = limits
        self._is_served = is_served
        self._first_seconds = first_seconds
        self._observed: ObservedHistory | None = None
        self._queue: WorkQueue[ObjectRef] = edge.queue(NAME)
        maker, clock = Maker(NAME, version), edge.client.clock
        self._controller: Controller[ObjectRef, ObservedHistory] = edge.controller(
            NAME,
            Reconciler(
                self._observe,
                lambda observed: decide(observed, clock.now(), maker),
                edge.executor(NAME),
            ),
            self._queue,
            workers=1,
        )

    async def run(self) -> None:
        """Work until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._controller.run())
            tasks.create_task(self._look())

    async def _look(self) -> None:
        clock = self._edge.client.clock
        await clock.sleep(self._first_seconds)
        while True:
            try:
                if self._is_served:
                    await self._once()
            except (ApiError, TransportError) as error:
                _log.warning("history not kept within its limits", error=str(error))
            await clock.sleep(_PERIOD_SECONDS)

    async def _once(self) -> None:
        """Look at every placement of which something is recorded."""
        own = await self._own_limits()
        async for ref, objects in self._histories():
            self._observed = ObservedHistory(ref, objects, own.get(ref, self._limits))
            self._queue.add(ref)
            await self._queue.wait_idle()
        self._observed = None

    async def _observe(self, ref: ObjectRef) -> ObservedHistory | None:
        """Return what has just been read of a placement.

        One that failed comes again when that is no longer at hand: the next hour reads it anew.
        """
        found = self._observed
        return found if found is not None and found.placement == ref else None

    async def _own_limits(self) -> Mapping[ObjectRef, Limits]:
        """Return the limits of the placements that have their own."""
        found: dict[ObjectRef, Limits] = {}
        selection = Selection(metadata_only=True)
        async for page in self._edge.client.pages(EDGE_PLACEMENTS, selection):
            for obj in page.items:
                text = (obj["metadata"].get("annotations") or {}).get(HISTORY_RETENTION)
                if text is None:
                    continue
                ref = ObjectRef.of(EDGE_PLACEMENTS.group_resource, obj)
                try:
                    found[ref] = limits_of(text, self._limits)
                except InvalidRetention as error:
                    _log.warning("history kept as usual", key=ref.qualified_name, error=str(error))
        return found

    async def _histories(self) -> AsyncIterator[tuple[ObjectRef, list[Object]]]:
        """Yield the records of one placement after the other.

        A list comes in the order of workspaces, so one workspace's records are held at a time.
        """
        cluster, held = "", dict[ObjectRef, list[Object]]()
        async for page in self._edge.client.pages(DECISION_RECORDS):
            for obj in page.items:
                where = obj["metadata"]["annotations"][CLUSTER_ANNOTATION]
                if where != cluster:
                    for ref in sorted(held):
                        yield ref, held[ref]
                    cluster, held = where, {}
                name = (obj.get("placement") or {}).get("name", "")
                ref = edge_placement_ref(where, str(name))
                held.setdefault(ref, []).append(obj)
        for ref in sorted(held):
            yield ref, held[ref]
