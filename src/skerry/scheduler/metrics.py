"""What the scheduler counts, under kube-scheduler's names, labels and buckets.

Sizes of the queue and the cache are not counted but asked for when somebody scrapes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from skerry.kit.metrics import Counter, Histogram, Labels, Reading, exponential_buckets

_ATTEMPT = exponential_buckets(0.001, 2, 15)
_PLUGIN = exponential_buckets(0.00001, 1.5, 20)
_POINT = exponential_buckets(0.0001, 2, 12)

Read = Callable[[], Mapping[Labels, float]]


def _as_go_writes(bound: float) -> str:
    return f"{bound:.12g}"


@dataclass(frozen=True, slots=True)
class Sizes:
    """What is asked for when somebody scrapes; *refresh* is called before."""

    pending_pods: Read = dict
    unschedulable_pods: Read = dict
    cache_size: Read = dict
    tasks: Read = dict
    inflight_events: Read = dict
    refresh: Callable[[], None] = lambda: None


class SchedulerMetrics(Collector):
    """A collector to register with a Prometheus registry; also the framework's recorder."""

    def __init__(self) -> None:
        # A statement per metric, in the order of kube-scheduler's page: long, nothing to follow.
        self._registry = CollectorRegistry()
        self.sizes = Sizes()
        self.attempts = Counter(
            self._registry,
            "scheduler_schedule_attempts_total",
            "Number of attempts to schedule pods, by the result.",
            ("result", "profile"),
        )
        self.attempt_duration = self._histogram(
            "scheduler_scheduling_attempt_duration_seconds",
            "Scheduling attempt latency in seconds (scheduling algorithm + binding).",
            ("result", "profile"),
            _ATTEMPT,
        )
        self.algorithm_duration = self._histogram(
            "scheduler_scheduling_algorithm_duration_seconds",
            "Scheduling algorithm latency in seconds.",
            (),
            _ATTEMPT,
        )
        self.sli_duration = self._histogram(
            "scheduler_pod_scheduling_sli_duration_seconds",
            "End-to-end latency of a pod being scheduled, from first entering the queue.",
            ("attempts",),
            exponential_buckets(0.01, 2, 20),
        )
        self.pod_attempts = self._histogram(
            "scheduler_pod_scheduling_attempts",
            "Number of attempts to successfully schedule a pod.",
            (),
            exponential_buckets(1, 2, 5),
        )
        self.point_duration = self._histogram(
            "scheduler_framework_extension_point_duration_seconds",
            "Latency for running all plugins of a specific extension point.",
            ("extension_point", "status", "profile"),
            _POINT,
        )
        self.plugin_duration = self._histogram(
            "scheduler_plugin_execution_duration_seconds",
            "Duration for running a plugin at a specific extension point.",
            ("plugin", "extension_point", "status"),
            _PLUGIN,
        )
        self.hint_duration = self._histogram(
            "scheduler_queueing_hint_execution_duration_seconds",
            "Latency for running a queueing hint function of a plugin.",
            ("plugin", "event", "hint"),
            _PLUGIN,
        )
        self.event_duration = self._histogram(
            "scheduler_event_handling_duration_seconds",
            "Event handling latency in seconds.",
            ("event",),
            _POINT,
        )
        self.permit_duration = self._histogram(
            "scheduler_permit_wait_duration_seconds",
            "Duration of waiting on permit.",
            ("result",),
            _ATTEMPT,
        )
        self.preemption_victims = self._histogram(
            "scheduler_preemption_victims",
            "Number of selected preemption victims",
            (),
            exponential_buckets(1, 2, 7),
        )
        self.preemption_attempts = Counter(
            self._registry,
            "scheduler_preemption_attempts_total",
            "Total preemption attempts in the cluster till now",
            (),
        )
        self.queue_incoming = Counter(
            self._registry,
            "scheduler_queue_incoming_pods_total",
            "Number of pods added to scheduling queues by event and queue type.",
            ("queue", "event"),
        )
        self.plugin_evaluations = Counter(
            self._registry,
            "scheduler_plugin_evaluation_total",
            "Number of attempts to schedule pods by each plugin and the extension point.",
            ("plugin", "extension_point", "profile"),
        )
        self.volume_failures = Counter(
            self._registry,
            "scheduler_volume_scheduling_stage_error_total",
            "Volume scheduling stage error count",
            ("operation",),
        )
        Reading(
            self._registry,
            "scheduler_pending_pods",
            "Number of pending pods, by the queue type.",
            ("queue",),
            self._read(lambda sizes: sizes.pending_pods),
        )
        Reading(
            self._registry,
            "scheduler_unschedulable_pods",
            "The number of unschedulable pods broken down by plugin name.",
            ("plugin", "profile"),
            self._read(lambda sizes: sizes.unschedulable_pods),
        )
        # Doubled on purpose: kube-scheduler's subsystem is part of the metric's own name.
        Reading(
            self._registry,
            "scheduler_scheduler_cache_size",
            "Number of nodes, pods, and assumed (bound) pods in the scheduler cache.",
            ("type",),
            self._read(lambda sizes: sizes.cache_size),
        )
        Reading(
            self._registry,
            "scheduler_goroutines",
            "Number of running goroutines split by the work they do such as binding.",
            ("operation",),
            self._read(lambda sizes: sizes.tasks),
        )
        Reading(
            self._registry,
            "scheduler_inflight_events",
            "Number of events currently tracked in the scheduling queue.",
            ("event",),
            self._read(lambda sizes: sizes.inflight_events),
        )

    def _read(self, choose: Callable[[Sizes], Read]) -> Read:
        """Return what reads one of the sizes there are when somebody scrapes."""

        def read() -> Mapping[Labels, float]:
            return choose(self.sizes)()

        return read

    def _histogram(
        self, name: str, meaning: str, labels: Sequence[str], buckets: Sequence[float]
    ) -> Histogram:
        return Histogram(self._registry, name, meaning, labels, buckets, _as_go_writes)

    def collect(self) -> Iterable[Metric]:
        """Yield every family; Prometheus calls this on each scrape."""
        self.sizes.refresh()
        return self._registry.collect()

    def point(self, point: str, status: str, profile: str, seconds: float) -> None:
        self.point_duration.observe(seconds, (point, status, profile))

    def plugin(self, plugin: str, point: str, status: str, seconds: float) -> None:
        self.plugin_duration.observe(seconds, (plugin, point, status))

    def evaluated(self, plugin: str, point: str, profile: str, count: int = 1) -> None:
        self.plugin_evaluations.inc((plugin, point, profile), count)

    def incoming(self, queue: str, event: str) -> None:
        self.queue_incoming.inc((queue, event))

    def hinted(self, plugin: str, event: str, hint: str, seconds: float) -> None:
        self.hint_duration.observe(seconds, (plugin, event, hint))

    def attempted(self, result: str, profile: str, seconds: float) -> None:
        """Count one finished attempt: scheduled, unschedulable or error."""
        self.attempts.inc((result, profile))
        self.attempt_duration.observe(seconds, (result, profile))

    def scheduled(self, attempts: int, since_first: float) -> None:
        """Note a pod that got its node."""
        self.pod_attempts.observe(attempts, ())
        label = str(attempts) if attempts < 15 else "15+"
        self.sli_duration.observe(since_first, (label,))
