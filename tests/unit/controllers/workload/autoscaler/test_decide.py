"""Plans of autoscalers: a workload is scaled, or it is said why not."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from skerry.api.errors import Forbidden
from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.controllers.workload.autoscaler.decide import PERIOD, Decision, decide, refused
from skerry.controllers.workload.autoscaler.observe import Observed, Reading
from skerry.kit.timestamps import rfc3339
from skerry.logic.machinery.plan import Plan, Update
from skerry.logic.workloads.scaling.usage import Sample, Unusable
from skerry.runtime.index import Key

NOW = datetime(2026, 1, 1, tzinfo=UTC)
DEPLOYMENTS = GroupVersionResource("apps", "v1", "deployments")
CPU = {
    "type": "Resource",
    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}},
}
RPS = {"type": "Pods", "pods": {"metric": {"name": "rps"}, "target": {"averageValue": "10"}}}


def autoscaler(*metrics: Any, **spec: Any) -> Object:
    wanted = {"minReplicas": 1, "maxReplicas": 10, "metrics": list(metrics or (CPU,)), **spec}
    return {"metadata": {"name": "h", "namespace": "default", "uid": "u"}, "spec": wanted}


def pods(count: int) -> tuple[Object, ...]:
    since = rfc3339(NOW - timedelta(hours=1))
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": since}
    container = {"name": "c", "resources": {"requests": {"cpu": "1"}}}
    return tuple(
        {
            "metadata": {"name": f"p{number}"},
            "spec": {"containers": [container]},
            "status": {"phase": "Running", "startTime": since, "conditions": [ready]},
        }
        for number in range(count)
    )


def busy(count: int, amount: int) -> dict[str, Sample]:
    return {f"p{number}": Sample(amount, NOW) for number in range(count)}


def observed(replicas: int, *readings: Reading, hpa: Object | None = None, **more: Any) -> Observed:
    metadata = {"name": "web", "namespace": "default"}
    status = {"replicas": replicas, "selector": more.pop("selector", "app=web")}
    scale = {"metadata": metadata, "spec": {"replicas": replicas}, "status": status}
    more.setdefault("pods", pods(replicas))
    return Observed(hpa or autoscaler(), scale=scale, gvr=DEPLOYMENTS, readings=readings, **more)


def status_of(plan: Plan) -> Object:
    (update,) = [a for a in plan if isinstance(a, Update) and a.subresource == "status"]
    return dict(update.object["status"])


def said(decision: Decision) -> dict[str, tuple[str, str]]:
    conditions = status_of(decision.plan)["conditions"]
    return {each["type"]: (each["status"], each["reason"]) for each in conditions}


def events(plan: Plan) -> list[str]:
    return [f"{each.reason}: {each.message}" for each in plan.announcements]


def scaled_to(plan: Plan) -> int | None:
    for action in plan:
        if isinstance(action, Update) and action.subresource == "scale":
            return int(action.object["spec"]["replicas"])
    return None


def test_a_busy_workload_grows_and_says_why() -> None:
    decision = decide(observed(2, busy(2, 1000)), NOW)
    assert scaled_to(decision.plan) == 4
    assert said(decision) == {
        "AbleToScale": ("True", "SucceededRescale"),
        "ScalingActive": ("True", "ValidMetricFound"),
        "ScalingLimited": ("False", "DesiredWithinRange"),
    }
    text = "cpu resource utilization (percentage of request) above target"
    assert events(decision.plan) == [f"SuccessfulRescale: New size: 4; reason: {text}"]
    status = status_of(decision.plan)
    assert (status["currentReplicas"], status["desiredReplicas"]) == (2, 4)
    current = {"averageUtilization": 100, "averageValue": "1"}
    assert status["currentMetrics"] == [
        {"type": "Resource", "resource": {"name": "cpu", "current": current}}
    ]
    assert decision.plan.requeue_after_seconds == PERIOD


def test_an_idle_workload_shrinks_when_it_was_idle_long_enough() -> None:
    hpa = autoscaler()
    first = decide(observed(4, busy(4, 100), hpa=hpa), NOW)
    assert scaled_to(first.plan) is None, "it may just have grown"
    assert said(first)["AbleToScale"] == ("True", "ScaleDownStabilized")
    later = observed(4, busy(4, 100), hpa=hpa, history=first.history)
    assert scaled_to(decide(later, NOW + timedelta(seconds=301)).plan) == 1


def test_bounds_hold_whatever_is_measured() -> None:
    above = decide(observed(12), NOW)
    assert scaled_to(above.plan) == 10
    text = "New size: 10; reason: Current number of replicas above Spec.MaxReplicas"
    assert events(above.plan) == [f"SuccessfulRescale: {text}"]
    below = decide(observed(1, hpa=autoscaler(minReplicas=3)), NOW)
    assert scaled_to(below.plan) == 3


def test_a_workload_of_no_pods_is_left_alone() -> None:
    decision = decide(observed(0), NOW)
    assert scaled_to(decision.plan) is None
    assert said(decision)["ScalingActive"] == ("False", "ScalingDisabled")


def test_without_a_scale_only_that_is_said() -> None:
    found = decide(Observed(autoscaler(), failure='deployments/scale.apps "x" not found'), NOW)
    assert said(found) == {"AbleToScale": ("False", "FailedGetScale")}
    assert events(found.plan) == ['FailedGetScale: deployments/scale.apps "x" not found']


def test_a_metric_that_cannot_be_read_stops_shrinking_and_not_growing() -> None:
    hpa = autoscaler(CPU, RPS)
    gone = Unusable("unable to fetch metrics from custom metrics API: X")
    down = decide(observed(4, busy(4, 100), gone, hpa=hpa), NOW)
    assert said(down)["ScalingActive"] == ("False", "FailedGetPodsMetric")
    assert "invalid metrics (1 invalid out of 2), first error is: " in events(down.plan)[-1]
    assert status_of(down.plan)["currentMetrics"][1] == {"type": ""}
    up = decide(observed(2, busy(2, 1000), gone, hpa=hpa), NOW)
    assert scaled_to(up.plan) == 4
    assert said(up)["ScalingActive"] == ("True", "ValidMetricFound")


def test_a_selector_must_be_there_and_be_nobody_elses() -> None:
    missing = decide(observed(2, selector=""), NOW)
    assert said(missing)["ScalingActive"] == ("False", "InvalidSelector")
    keys = (Key("", "default", "h"), Key("", "default", "other"))
    rivals = decide(observed(2, ambiguous=keys), NOW)
    assert said(rivals)["ScalingActive"] == ("False", "AmbiguousSelector")
    both = "[{h default} {other default}]"
    text = f"pods by selector app=web are controlled by multiple HPAs: {both}"
    assert events(rivals.plan)[0] == f"AmbiguousSelector: {text}"


def test_what_was_said_is_not_written_again() -> None:
    hpa = autoscaler()
    first = decide(observed(2, busy(2, 500), hpa=hpa), NOW)
    hpa["status"] = status_of(first.plan)
    again = decide(observed(2, busy(2, 500), hpa=hpa, history=first.history), NOW)
    assert not again.plan


def test_a_scale_that_is_refused_is_said_and_not_remembered() -> None:
    hpa = autoscaler(
        behavior={
            "scaleUp": {"policies": [{"type": "Pods", "value": 4, "periodSeconds": 60}]},
            "scaleDown": {"policies": []},
        }
    )
    decision = decide(observed(2, busy(2, 1000), hpa=hpa), NOW)
    assert decision.history.grown == ()
    assert [each.number for each in decision.scaled.grown] == [2]
    plan = refused(decision.plan, Forbidden("no"), NOW)
    status = status_of(plan)
    assert status["desiredReplicas"] == 0
    assert "lastScaleTime" not in status
    able = next(each for each in status["conditions"] if each["type"] == "AbleToScale")
    assert (able["status"], able["reason"]) == ("False", "FailedUpdateScale")
    assert events(plan)[0].startswith("FailedRescale: New size: 4; reason: cpu resource")
    assert not refused(Plan(), Forbidden("no"), NOW)


def test_the_first_look_remembers_the_size_it_found() -> None:
    decision = decide(observed(12), NOW)
    assert [each.number for each in decision.history.recommended] == [12]
