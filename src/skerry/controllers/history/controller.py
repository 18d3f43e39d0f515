"""The loop, once an hour over all placements of which something is recorded."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass

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
from skerry.runtime.transport import TransportError

NAME = "history"
_PERIOD_SECONDS = 3600.0
# After a start others come first; a hub that just started has much to do.
_FIRST_SECONDS = 60.0

_log = Logger(NAME)


@dataclass(frozen=True, slots=True)
class HistoryLoop:
    """Keeps the history of every placement within its limits."""

    edge: ControllerContext
    limits: Limits
    version: str = ""
    # Whether the export offers DecisionRecords, and any are kept.
    is_served: bool = True
    first_seconds: float = _FIRST_SECONDS

    async def run(self) -> None:
        """Work until cancelled."""
        clock = self.edge.client.clock
        await clock.sleep(self.first_seconds)
        while True:
            try:
                if self.is_served:
                    await self.once()
            except (ApiError, TransportError) as error:
                _log.warning("history not kept within its limits", error=str(error))
            await clock.sleep(_PERIOD_SECONDS)

    async def once(self) -> None:
        """Look at every placement of which something is recorded."""
        executor, clock = self.edge.executor(NAME), self.edge.client.clock
        maker = Maker(NAME, self.version)
        limits = await self._limits()
        async for ref, objects in self._histories():
            observed = ObservedHistory(ref, objects, limits.get(ref, self.limits))
            await executor.execute(decide(observed, clock.now(), maker))

    async def _limits(self) -> Mapping[ObjectRef, Limits]:
        """Return the limits of the placements that have their own."""
        found: dict[ObjectRef, Limits] = {}
        selection = Selection(metadata_only=True)
        async for page in self.edge.client.pages(EDGE_PLACEMENTS, selection):
            for obj in page.items:
                text = (obj["metadata"].get("annotations") or {}).get(HISTORY_RETENTION)
                if text is None:
                    continue
                ref = ObjectRef.of(EDGE_PLACEMENTS.group_resource, obj)
                try:
                    found[ref] = limits_of(text, self.limits)
                except InvalidRetention as error:
                    _log.warning("history kept as usual", key=ref.qualified_name, error=str(error))
        return found

    async def _histories(self) -> AsyncIterator[tuple[ObjectRef, list[Object]]]:
        """Yield the records of one placement after the other.

        A list comes in the order of workspaces, so one workspace's records are held at a time.
        """
        cluster, held = "", dict[ObjectRef, list[Object]]()
        async for page in self.edge.client.pages(DECISION_RECORDS):
            for obj in page.items:
                where = obj["metadata"]["annotations"][CLUSTER_ANNOTATION]
                if where != cluster:
                    for ref in sorted(held):
                        yield ref, held[ref]
                    cluster, held = where, {}
                ref = edge_placement_ref(where, str(obj["placement"]["name"]))
                held.setdefault(ref, []).append(obj)
        for ref in sorted(held):
            yield ref, held[ref]
