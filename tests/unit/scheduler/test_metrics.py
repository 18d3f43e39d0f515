"""What the scheduler counts, under kube-scheduler's names, and sizes asked for at the scrape."""

from __future__ import annotations

from prometheus_client import CollectorRegistry

from skerry.scheduler.metrics import SchedulerMetrics, Sizes


def value(metrics: SchedulerMetrics, name: str, **labels: str) -> float | None:
    registry = CollectorRegistry()
    registry.register(metrics)
    return registry.get_sample_value(name, labels)


def test_an_attempt_is_counted_and_timed() -> None:
    metrics = SchedulerMetrics()
    metrics.attempted("scheduled", "p", 0.5)
    metrics.attempted("scheduled", "p", 0.5)
    labels = {"result": "scheduled", "profile": "p"}
    assert value(metrics, "scheduler_schedule_attempts_total", **labels) == 2
    assert value(metrics, "scheduler_scheduling_attempt_duration_seconds_sum", **labels) == 1


def test_many_attempts_are_one_label() -> None:
    metrics = SchedulerMetrics()
    metrics.scheduled(3, 1)
    metrics.scheduled(15, 1)
    metrics.scheduled(99, 1)
    assert metrics.sli_duration.count(("3",)) == 1
    assert metrics.sli_duration.count(("15+",)) == 2


def test_sizes_are_read_when_somebody_scrapes_and_refreshed_before() -> None:
    metrics, size = SchedulerMetrics(), [1.0]

    def refresh() -> None:
        size[0] += 1

    metrics.sizes = Sizes(cache_size=lambda: {("pods",): size[0]}, refresh=refresh)
    before = size[0]
    assert value(metrics, "scheduler_scheduler_cache_size", type="pods") == size[0]
    assert size[0] > before


def test_plugins_points_and_hints_have_their_own_series() -> None:
    metrics = SchedulerMetrics()
    metrics.point("Filter", "Success", "p", 0.1)
    metrics.plugin("Fit", "Filter", "Success", 0.1)
    metrics.evaluated("Fit", "Filter", "p", 5)
    metrics.incoming("active", "PodAdd")
    metrics.hinted("Fit", "NodeAdd", "Queue", 0.1)
    assert metrics.point_duration.count(("Filter", "Success", "p")) == 1
    assert metrics.plugin_duration.count(("Fit", "Filter", "Success")) == 1
    assert metrics.plugin_evaluations.value(("Fit", "Filter", "p")) == 5
    assert metrics.queue_incoming.value(("active", "PodAdd")) == 1
    assert metrics.hint_duration.count(("Fit", "NodeAdd", "Queue")) == 1
