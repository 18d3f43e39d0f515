"""What the scheduler counts, under kube-scheduler's names, labels and buckets.

Every decision observes a dozen histograms, so they are kept as plain lists and turned into
Prometheus families only when somebody scrapes. Sizes of the queue and the cache are not counted at
all but asked for at that moment.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)

Labels = tuple[str, ...]


def exponential(start: float, factor: float, count: int) -> tuple[float, ...]:
    """Return *count* bucket bounds, each *factor* times the one before."""
    return tuple(start * factor**index for index in range(count))


_ATTEMPT = exponential(0.001, 2, 15)
_PLUGIN = exponential(0.00001, 1.5, 20)
_POINT = exponential(0.0001, 2, 12)


class Histogram:
    """Observations by labels, in fixed buckets."""

    def __init__(
        self, name: str, text: str, labels: Sequence[str], buckets: Sequence[float]
    ) -> None:
        self.name, self._text, self._labels, self._buckets = name, text, tuple(labels), buckets
        self._series: dict[Labels, list[float]] = {}

    def observe(self, labels: Labels, value: float) -> None:
        series = self._series.get(labels)
        if series is None:
            # One count per bucket, one for what lies beyond, and the sum.
            series = self._series[labels] = [0.0] * (len(self._buckets) + 2)
        series[bisect_left(self._buckets, value)] += 1
        series[-1] += value

    def count(self, labels: Labels = ()) -> int:
        """Return how many values were observed."""
        return int(sum(self._series.get(labels, [0.0])[:-1]))

    def family(self) -> Metric:
        family = HistogramMetricFamily(self.name, self._text, labels=self._labels)
        for labels, series in self._series.items():
            running, buckets = 0.0, []
            for bound, found in zip((*self._buckets, float("inf")), series[:-1], strict=True):
                running += found
                buckets.append((_bound(bound), running))
            family.add_metric(labels, buckets=buckets, sum_value=series[-1])
        return family


def _bound(value: float) -> str:
    return "+Inf" if value == float("inf") else f"{value:.12g}"


class Counter:
    """A number that grows, by labels."""

    def __init__(self, name: str, text: str, labels: Sequence[str]) -> None:
        self.name, self._text, self._labels = name, text, tuple(labels)
        self._values: dict[Labels, float] = {}

    def add(self, labels: Labels, amount: float = 1.0) -> None:
        self._values[labels] = self._values.get(labels, 0.0) + amount

    def value(self, *labels: str) -> float:
        return self._values.get(labels, 0.0)

    def family(self) -> Metric:
        family = CounterMetricFamily(self.name, self._text, labels=self._labels)
        for labels, value in self._values.items():
            family.add_metric(labels, value)
        return family


class Gauge:
    """Numbers asked for when scraped."""

    def __init__(self, name: str, text: str, labels: Sequence[str]) -> None:
        self.name, self._text, self._labels = name, text, tuple(labels)
        self.read: Callable[[], Mapping[Labels, float]] = dict

    def family(self) -> Metric:
        family = GaugeMetricFamily(self.name, self._text, labels=self._labels)
        for labels, value in self.read().items():
            family.add_metric(labels, value)
        return family


class SchedulerMetrics:
    """A collector to register with a Prometheus registry; also the framework's recorder."""

    def __init__(self) -> None:
        self.attempts = Counter(
            "scheduler_schedule_attempts_total",
            "Number of attempts to schedule pods, by the result.",
            ("result", "profile"),
        )
        self.attempt_duration = Histogram(
            "scheduler_scheduling_attempt_duration_seconds",
            "Scheduling attempt latency in seconds (scheduling algorithm + binding).",
            ("result", "profile"),
            _ATTEMPT,
        )
        self.algorithm_duration = Histogram(
            "scheduler_scheduling_algorithm_duration_seconds",
            "Scheduling algorithm latency in seconds.",
            (),
            _ATTEMPT,
        )
        self.sli_duration = Histogram(
            "scheduler_pod_scheduling_sli_duration_seconds",
            "End-to-end latency of a pod being scheduled, from first entering the queue.",
            ("attempts",),
            exponential(0.01, 2, 20),
        )
        self.pod_attempts = Histogram(
            "scheduler_pod_scheduling_attempts",
            "Number of attempts to successfully schedule a pod.",
            (),
            exponential(1, 2, 5),
        )
        self.point_duration = Histogram(
            "scheduler_framework_extension_point_duration_seconds",
            "Latency for running all plugins of a specific extension point.",
            ("extension_point", "status", "profile"),
            _POINT,
        )
        self.plugin_duration = Histogram(
            "scheduler_plugin_execution_duration_seconds",
            "Duration for running a plugin at a specific extension point.",
            ("plugin", "extension_point", "status"),
            _PLUGIN,
        )
        self.hint_duration = Histogram(
            "scheduler_queueing_hint_execution_duration_seconds",
            "Latency for running a queueing hint function of a plugin.",
            ("plugin", "event", "hint"),
            _PLUGIN,
        )
        self.event_duration = Histogram(
            "scheduler_event_handling_duration_seconds",
            "Event handling latency in seconds.",
            ("event",),
            _POINT,
        )
        self.permit_duration = Histogram(
            "scheduler_permit_wait_duration_seconds",
            "Duration of waiting on permit.",
            ("result",),
            _ATTEMPT,
        )
        self.preemption_victims = Histogram(
            "scheduler_preemption_victims",
            "Number of selected preemption victims",
            (),
            exponential(1, 2, 7),
        )
        self.preemption_attempts = Counter(
            "scheduler_preemption_attempts_total",
            "Total preemption attempts in the cluster till now",
            (),
        )
        self.queue_incoming = Counter(
            "scheduler_queue_incoming_pods_total",
            "Number of pods added to scheduling queues by event and queue type.",
            ("queue", "event"),
        )
        self.plugin_evaluations = Counter(
            "scheduler_plugin_evaluation_total",
            "Number of attempts to schedule pods by each plugin and the extension point.",
            ("plugin", "extension_point", "profile"),
        )
        self.volume_failures = Counter(
            "scheduler_volume_scheduling_stage_error_total",
            "Volume scheduling stage error count",
            ("operation",),
        )
        self.pending_pods = Gauge(
            "scheduler_pending_pods",
            "Number of pending pods, by the queue type.",
            ("queue",),
        )
        self.unschedulable_pods = Gauge(
            "scheduler_unschedulable_pods",
            "The number of unschedulable pods broken down by plugin name.",
            ("plugin", "profile"),
        )
        # Doubled on purpose: kube-scheduler's subsystem is part of the metric's own name.
        self.cache_size = Gauge(
            "scheduler_scheduler_cache_size",
            "Number of nodes, pods, and assumed (bound) pods in the scheduler cache.",
            ("type",),
        )
        self.tasks = Gauge(
            "scheduler_goroutines",
            "Number of running goroutines split by the work they do such as binding.",
            ("operation",),
        )
        self.inflight_events = Gauge(
            "scheduler_inflight_events",
            "Number of events currently tracked in the scheduling queue.",
            ("event",),
        )

        # Called before each scrape, for counts that are gathered rather than told.
        self.refresh: Callable[[], None] = lambda: None

    def collect(self) -> Iterator[Metric]:
        """Yield every family; Prometheus calls this on each scrape."""
        self.refresh()
        for part in vars(self).values():
            if isinstance(part, Histogram | Counter | Gauge):
                yield part.family()

    def names(self) -> list[str]:
        """Return every metric's name, for documentation."""
        parts = vars(self).values()
        return [part.name for part in parts if isinstance(part, Histogram | Counter | Gauge)]

    def point(self, point: str, status: str, profile: str, seconds: float) -> None:
        self.point_duration.observe((point, status, profile), seconds)

    def plugin(self, plugin: str, point: str, status: str, seconds: float) -> None:
        self.plugin_duration.observe((plugin, point, status), seconds)

    def evaluated(self, plugin: str, point: str, profile: str, count: int = 1) -> None:
        self.plugin_evaluations.add((plugin, point, profile), count)

    def incoming(self, queue: str, event: str) -> None:
        self.queue_incoming.add((queue, event))

    def hinted(self, plugin: str, event: str, hint: str, seconds: float) -> None:
        self.hint_duration.observe((plugin, event, hint), seconds)

    def attempted(self, result: str, profile: str, seconds: float) -> None:
        """Count one finished attempt: scheduled, unschedulable or error."""
        self.attempts.add((result, profile))
        self.attempt_duration.observe((result, profile), seconds)

    def scheduled(self, attempts: int, since_first: float) -> None:
        """Note a pod that got its node."""
        self.pod_attempts.observe((), attempts)
        label = str(attempts) if attempts < 15 else "15+"
        self.sli_duration.observe((label,), since_first)
