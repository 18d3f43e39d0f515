"""Events about pods, in the name of the profile that acted, as kube-scheduler records them.

A few tasks write while bindings, which pods wait for, have all other connections; where the server
takes several writes in one request, as many as one bindings' request has room for. The buffer
holds a burst of tens of thousands of pods.
"""

from __future__ import annotations

from skerry.api.errors import ApiError
from skerry.api.objects import Object
from skerry.logic.machinery.plan import EventType
from skerry.runtime.batching import EXTENSION
from skerry.runtime.client import Client
from skerry.runtime.event_series import EventSeries
from skerry.runtime.events import EventRecorder
from skerry.runtime.metrics import RuntimeMetrics
from skerry.runtime.transport import TransportError
from skerry.scheduler.cache.pod import DEFAULT_SCHEDULER

# About half a kilobyte each.
_BUFFER = 50_000
_WRITERS = 2
_WRITERS_TOGETHER = 32
_RETRY_SECONDS = 1.0


class PodEvents:
    """The framework's ``Events``; *instance* names the process. ``run`` writes until cancelled."""

    def __init__(
        self,
        client: Client,
        instance: str,
        metrics: RuntimeMetrics | None = None,
        *,
        buffer: int = _BUFFER,
    ) -> None:
        self._client = client
        self._recorder = EventRecorder(
            client,
            DEFAULT_SCHEDULER,
            metrics=metrics,
            writer=EventSeries(client, instance),
            buffer=buffer,
        )
        self.flush = self._recorder.flush

    async def run(self) -> None:
        """Write until cancelled."""
        together = await self._travel_together()
        await self._recorder.run(_WRITERS_TOGETHER if together else _WRITERS)

    async def _travel_together(self) -> bool:
        """Ask whether the server takes several writes in one request, until it answers."""
        while True:
            try:
                return EXTENSION in await self._client.extensions()
            except (ApiError, TransportError):
                await self._client.clock.sleep(_RETRY_SECONDS)

    def event(self, pod: Object, type_: EventType, reason: str, action: str, note: str) -> None:
        """Record one; what informers keep of a pod does not say its kind."""
        profile = (pod.get("spec") or {}).get("schedulerName") or DEFAULT_SCHEDULER
        about = {"apiVersion": "v1", "kind": "Pod", **pod}
        self._recorder.record(about, type_, reason, note, controller=profile, action=action)
