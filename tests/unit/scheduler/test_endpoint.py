"""Health for everybody, metrics for those who may."""

from __future__ import annotations

import asyncio

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from skerry.runtime.health import HealthEndpoint
from skerry.scheduler.metrics import SchedulerMetrics

NAMES = {
    f"scheduler_{name}"
    for name in (
        "schedule_attempts_total",
        "scheduling_attempt_duration_seconds",
        "scheduling_algorithm_duration_seconds",
        "pod_scheduling_sli_duration_seconds",
        "pod_scheduling_attempts",
        "framework_extension_point_duration_seconds",
        "plugin_execution_duration_seconds",
        "queueing_hint_execution_duration_seconds",
        "event_handling_duration_seconds",
        "permit_wait_duration_seconds",
        "preemption_victims",
        "preemption_attempts_total",
        "pending_pods",
        "queue_incoming_pods_total",
        "unschedulable_pods",
        "plugin_evaluation_total",
        "scheduler_cache_size",
        "goroutines",
        "inflight_events",
        "volume_scheduling_stage_error_total",
    )
}


def endpoint(wrong: str = "", code: int | None = None) -> HealthEndpoint:
    async def authorize(token: str, verb: str, path: str) -> int:
        assert verb == "get"
        return code if code is not None else 200

    registry = CollectorRegistry()
    registry.register(SchedulerMetrics())
    return HealthEndpoint(
        registry,
        health={"leaderElection": lambda: ""},
        ready={"sched-handler-sync": lambda: wrong},
        pages={"/configz": lambda: ("application/json", b"{}"), "/debug/pprof/": lambda: None},
        authorize=None if code is None else authorize,
        withhold_reasons=True,
    )


async def ask(found: HealthEndpoint, path: str) -> tuple[int, str]:
    head = f"GET {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer t\r\n\r\n"
    page = await found.answer(head.encode())
    return page.status, page.body.decode()


async def test_readiness_waits_for_the_handlers() -> None:
    waiting = endpoint("handlers are not fully synchronized")
    assert await ask(waiting, "/livez") == (200, "ok")
    assert await ask(waiting, "/healthz") == (200, "ok")
    status, body = await ask(waiting, "/readyz")
    assert status == 500
    assert "[-]sched-handler-sync failed: reason withheld" in body
    assert await ask(endpoint(), "/readyz") == (200, "ok")


@pytest.mark.parametrize("code", [200, 401, 403])
async def test_only_health_is_for_everybody(code: int) -> None:
    guarded = endpoint(code=code)
    assert (await ask(guarded, "/metrics"))[0] == code
    assert (await ask(guarded, "/configz"))[0] == code
    assert (await ask(guarded, "/healthz"))[0] == 200


async def test_unknown_paths_and_methods_are_refused() -> None:
    assert (await ask(endpoint(), "/nowhere"))[0] == 404
    assert (await ask(endpoint(), "/debug/pprof/"))[0] == 404
    page = await endpoint().answer(b"POST /metrics HTTP/1.1\r\n\r\n")
    assert page.status == 405


async def test_it_speaks_http_over_a_socket() -> None:
    async with endpoint().serving("127.0.0.1", 0) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n")
        answer = await reader.read()
        writer.close()
        await writer.wait_closed()
    assert answer.startswith(b"HTTP/1.1 200 OK")
    assert answer.endswith(b"ok")


def test_metrics_have_kube_schedulers_names() -> None:
    families = SchedulerMetrics().collect()
    counted = {"counter": "_total"}
    assert {each.name + counted.get(each.type, "") for each in families} == NAMES


def test_histograms_count_into_kube_schedulers_buckets() -> None:
    metrics = SchedulerMetrics()
    metrics.attempted("scheduled", "default-scheduler", 0.003)
    registry = CollectorRegistry()
    registry.register(metrics)
    text = generate_latest(registry).decode()
    name = "scheduler_scheduling_attempt_duration_seconds_bucket"
    labels = 'profile="default-scheduler",result="scheduled"'
    assert f'{name}{{le="0.002",{labels}}} 0.0' in text
    assert f'{name}{{le="0.004",{labels}}} 1.0' in text
    assert f'{name}{{le="16.384",{labels}}} 1.0' in text
    attempts = 'scheduler_schedule_attempts_total{profile="default-scheduler",result="scheduled"}'
    assert f"{attempts} 1.0" in text


def test_a_value_on_a_bound_belongs_below_it_and_bounds_are_written_as_go_does() -> None:
    metrics = SchedulerMetrics()
    metrics.scheduled(2, 1.0)
    (family,) = (f for f in metrics.collect() if f.name == "scheduler_pod_scheduling_attempts")
    found = {sample.labels["le"]: sample.value for sample in family.samples if sample.labels}
    assert found == {"1": 0, "2": 1, "4": 1, "8": 1, "16": 1, "+Inf": 1}


def test_many_attempts_share_one_label() -> None:
    metrics = SchedulerMetrics()
    metrics.scheduled(40, 1.0)
    assert metrics.sli_duration.count(("15+",)) == 1
