"""Events about pods, in the name of the profile that acted, as kube-scheduler records them.

A few tasks write while bindings, which pods wait for, have all other connections. The buffer holds
a burst of tens of thousands of pods.
"""

from __future__ import annotations

from skerry.api.objects import Object
from skerry.logic.machinery.plan import EventType
from skerry.runtime.client import Client
from skerry.runtime.event_series import EventSeries
from skerry.runtime.events import EventRecorder
from skerry.runtime.metrics import RuntimeMetrics
from skerry.scheduler.cache.pod import DEFAULT_SCHEDULER

# About half a kilobyte each.
_BUFFER = 50_000
_WRITERS = 2


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
        self._recorder = EventRecorder(
            client,
            DEFAULT_SCHEDULER,
            metrics=metrics,
            writer=EventSeries(client, instance),
            buffer=buffer,
            tasks=_WRITERS,
        )
        self.run = self._recorder.run
        self.flush = self._recorder.flush

    def event(self, pod: Object, type_: EventType, reason: str, action: str, note: str) -> None:
        """Record one; what informers keep of a pod does not say its kind."""
        profile = (pod.get("spec") or {}).get("schedulerName") or DEFAULT_SCHEDULER
        about = {"apiVersion": "v1", "kind": "Pod", **pod}
        self._recorder.record(about, type_, reason, note, controller=profile, action=action)
