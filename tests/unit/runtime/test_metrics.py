"""Counters of the runtime: Kubernetes' names, on the registry that was chosen."""

from __future__ import annotations

from prometheus_client import CollectorRegistry

from skerry.runtime.metrics import RuntimeMetrics


def test_they_are_on_the_registry_that_was_chosen() -> None:
    registry = CollectorRegistry()
    metrics = RuntimeMetrics(registry)
    metrics.adds.labels("q").inc()
    assert metrics.registry is registry
    assert registry.get_sample_value("workqueue_adds_total", {"name": "q"}) == 1


def test_whoever_is_given_none_counts_for_himself() -> None:
    one, other = RuntimeMetrics(), RuntimeMetrics()
    one.adds.labels("q").inc()
    assert other.registry.get_sample_value("workqueue_adds_total", {"name": "q"}) is None


def test_names_are_those_that_dashboards_know() -> None:
    names = {family.name for family in RuntimeMetrics().registry.collect()}
    assert {
        "workqueue_depth",
        "workqueue_adds",
        "workqueue_queue_duration_seconds",
        "workqueue_work_duration_seconds",
        "controller_runtime_reconcile",
        "reflector_lists",
        "leader_election_master_status",
    } <= names
