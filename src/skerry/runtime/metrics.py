"""Counters of the runtime, under Kubernetes' own names where it has them.

One ``RuntimeMetrics`` per process, on a registry ``app`` chooses. Whoever is given none counts on
a private one that nobody reads, so no code asks whether it should count.
"""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

# From a tenth of a millisecond, an idle queue, to the minutes of one that cannot keep up.
_SECONDS = (0.0001, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 60, 300)


class RuntimeMetrics:
    """Everything queues, controllers, informers, executors and elections count."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        kept = registry or CollectorRegistry()
        self.registry = kept

        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(name, text, labels, registry=kept)

        def gauge(name: str, text: str, *labels: str) -> Gauge:
            return Gauge(name, text, labels, registry=kept)

        def histogram(name: str, text: str, *labels: str) -> Histogram:
            return Histogram(name, text, labels, registry=kept, buckets=_SECONDS)

        self.depth = gauge("workqueue_depth", "Keys waiting.", "name")
        self.adds = counter("workqueue_adds_total", "Keys added.", "name")
        self.retries = counter("workqueue_retries_total", "Keys tried again.", "name")
        self.waited = histogram(
            "workqueue_queue_duration_seconds", "How long a key waited.", "name"
        )
        self.worked = histogram("workqueue_work_duration_seconds", "How long a key took.", "name")
        self.reconciled = counter(
            "controller_runtime_reconcile_total", "Reconciliations.", "controller", "result"
        )
        self.actions = counter(
            "skerry_plan_actions_total", "Actions of plans.", "controller", "verb", "result"
        )
        self.lists = counter("reflector_lists_total", "Lists begun.", "name")
        self.watches = counter("reflector_watches_total", "Watches begun.", "name")
        self.cached = gauge("skerry_informer_objects", "Objects held.", "name")
        self.leading = gauge("leader_election_master_status", "Whether this process leads.", "name")
        self.events_dropped = counter(
            "skerry_events_dropped_total", "Events not written.", "reason"
        )
