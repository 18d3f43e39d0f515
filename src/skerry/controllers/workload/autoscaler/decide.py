"""Scale one workload, or say why not."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from skerry.api.errors import ApiError
from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.controllers.workload.autoscaler.observe import Observed, is_within
from skerry.controllers.workload.autoscaler.proposals import Proposal, proposed
from skerry.kit.invariant import present
from skerry.kit.timestamps import rfc3339
from skerry.logic.machinery.conditions import condition, set_conditions
from skerry.logic.machinery.plan import Action, Announcement, Plan, Target, Update
from skerry.logic.workloads.scaling.bounds import History, bounded

AUTOSCALERS = GroupVersionResource("autoscaling", "v2", "horizontalpodautoscalers")
# How often measurements are looked at.
PERIOD = 15.0
_ABLE, _ACTIVE, _LIMITED = "AbleToScale", "ScalingActive", "ScalingLimited"
_RESCALED = "SuccessfulRescale"


class Decision(NamedTuple):
    """What to do, and what to remember: by itself, and once the workload has been scaled."""

    plan: Plan
    history: History
    scaled: History


@dataclass(slots=True)
class _Course:
    """What is being decided about one autoscaler."""

    observed: Observed
    now: datetime
    conditions: list[Object] = field(default_factory=list)
    events: list[Announcement] = field(default_factory=list)
    metrics: list[Object] | None = None

    def say(self, kind: str, status: bool, reason: str, message: str) -> None:
        self.conditions.append(condition(kind, status, reason, message))

    def record_event(self, reason: str, message: str) -> None:
        about = self.observed.autoscaler
        self.events.append(Announcement(about, "Warning", reason, message))


class _Wanted(NamedTuple):
    replicas: int
    why: str
    history: History


def decide(observed: Observed, now: datetime) -> Decision:
    """Return what to do about one autoscaler now; it is looked at again in any case."""
    course = _Course(observed, now)
    scale = observed.scale
    if scale is None:
        course.record_event("FailedGetScale", observed.failure)
        text = (
            f"the HPA controller was unable to get the target's current scale: {observed.failure}"
        )
        course.say(_ABLE, False, "FailedGetScale", text)
        return _undecided(course, observed.history)
    current = int(scale["spec"].get("replicas", 0))
    text = "the HPA controller was able to get the target's current scale"
    course.say(_ABLE, True, "SucceededGetScale", text)
    history = observed.history
    if not history.recommended:
        history = history.recommending(current, now, 0)
    spec = observed.autoscaler["spec"]
    if current == 0 and int(spec.get("minReplicas", 1)) != 0:
        text = "scaling is disabled since the replica count of the target is zero"
        course.say(_ACTIVE, False, "ScalingDisabled", text)
        return _decided(course, current, _Wanted(current, "", history))
    wanted = _wanted(course, current, history)
    if wanted is None:
        return _undecided(course, history, current)
    return _decided(course, current, wanted)


def refused(plan: Plan, error: ApiError, now: datetime) -> Plan:
    """Return what remains of a plan whose workload could not be scaled: to say so."""
    scaled = next((each for each in plan.announcements if each.reason == _RESCALED), None)
    status = next((a for a in plan if isinstance(a, Update) and a.subresource == "status"), None)
    if scaled is None or status is None:
        return Plan()
    old = scaled.about.get("status") or {}
    text = f"the HPA controller was unable to update the target scale: {error}"
    failure = condition(_ABLE, False, "FailedUpdateScale", text)
    wanted = {**status.object["status"], "desiredReplicas": old.get("desiredReplicas", 0)}
    wanted["conditions"] = set_conditions(wanted["conditions"], [failure], rfc3339(now))
    wanted.pop("lastScaleTime", None)
    if "lastScaleTime" in old:
        wanted["lastScaleTime"] = old["lastScaleTime"]
    message = f"{scaled.message}; error: {error}"
    update = Update(
        status.target, {**status.object, "status": wanted}, "ScaleRefused", subresource="status"
    )
    return Plan([update], [Announcement(scaled.about, "Warning", "FailedRescale", message)])


def _wanted(course: _Course, current: int, history: History) -> _Wanted | None:
    """Return the size the workload should have; None where nothing can be said."""
    spec = course.observed.autoscaler["spec"]
    if not is_within(spec, current):
        above = current > int(spec["maxReplicas"])
        bound = "MaxReplicas" if above else "MinReplicas"
        where = "above" if above else "below"
        replicas = int(spec["maxReplicas"] if above else spec.get("minReplicas", 1))
        return _Wanted(replicas, f"Current number of replicas {where} Spec.{bound}", history)
    found = _measured(course, current)
    if found is None:
        return None
    asked = max(found.replicas, 0)
    why = ""
    if asked > current:
        why = f"{found.name} above target"
    elif asked < current:
        why = "All metrics below target"
    result = bounded(spec, current, asked, history, course.now)
    course.say(_ABLE, True, *result.able)
    course.say(_LIMITED, result.is_limited, *result.limited)
    return _Wanted(result.replicas, why, result.history)


def _measured(course: _Course, current: int) -> Proposal | None:
    """Return what the metrics ask for together, the most; None where too few can be asked."""
    observed = course.observed
    if (problem := _selector_problem(course)) is not None:
        course.record_event("FailedComputeMetricsReplicas", problem)
        return None
    metrics = observed.autoscaler["spec"].get("metrics") or ()
    best: Proposal | None = None
    first: tuple[str, str, str] | None = None
    course.metrics, bad = [], 0
    for metric, reading in zip(metrics, observed.readings, strict=True):
        found = proposed(metric, reading, observed, course.now)
        if isinstance(found, Proposal):
            course.metrics.append(found.status)
            if best is None or best.replicas == 0 or found.replicas > best.replicas:
                best = found
            continue
        course.metrics.append({"type": ""})
        course.record_event(found.reason, found.message)
        first, bad = first or found, bad + 1
    if first is not None and (best is None or best.replicas < current):
        reason, message, whole = first
        text = f"the HPA was unable to compute the replica count: {message}"
        course.say(_ACTIVE, False, reason, text)
        count = f"{bad} invalid out of {len(metrics)}"
        course.record_event(
            "FailedComputeMetricsReplicas", f"invalid metrics ({count}), first error is: {whole}"
        )
        return None
    chosen = present(best, "an autoscaler has metrics")
    text = f"the HPA was able to successfully calculate a replica count from {chosen.name}"
    course.say(_ACTIVE, True, "ValidMetricFound", text)
    return chosen


def _selector_problem(course: _Course) -> str | None:
    observed = course.observed
    scale = present(observed.scale, "measured only with a scale")
    selector = (scale.get("status") or {}).get("selector")
    if observed.bad_selector:
        what = "couldn't convert selector into a corresponding internal selector object"
        text = f"{what}: {observed.bad_selector}"
        course.record_event("InvalidSelector", text)
        course.say(_ACTIVE, False, "InvalidSelector", text)
        return text
    if not selector:
        course.record_event("SelectorRequired", "selector is required")
        text = "the HPA target's scale is missing a selector"
        course.say(_ACTIVE, False, "InvalidSelector", text)
        return "selector is required"
    if observed.ambiguous:
        rivals = " ".join(f"{{{key.name} {key.namespace}}}" for key in observed.ambiguous)
        text = f"pods by selector {selector} are controlled by multiple HPAs: [{rivals}]"
        course.record_event("AmbiguousSelector", text)
        course.say(_ACTIVE, False, "AmbiguousSelector", text)
        return text
    return None


def _undecided(course: _Course, history: History, current: int | None = None) -> Decision:
    """Say why nothing is done; with the *current* size where that is known."""
    old = course.observed.autoscaler.get("status") or {}
    status = dict(old)
    if current is not None:
        status = _status(course, old, current, int(old.get("desiredReplicas", 0)))
    return Decision(_plan(course, [], status), history, history)


def _decided(course: _Course, current: int, wanted: _Wanted) -> Decision:
    observed, replicas = course.observed, wanted.replicas
    old = observed.autoscaler.get("status") or {}
    status = _status(course, old, current, replicas)
    history, actions = wanted.history, list[Action]()
    scaled = history
    if replicas != current:
        scale = copy.deepcopy(present(observed.scale, "decided only with a scale"))
        scale["spec"]["replicas"] = replicas
        name, namespace = scale["metadata"]["name"], scale["metadata"]["namespace"]
        target = Target(present(observed.gvr, "a scale has a type"), name, namespace)
        actions.append(Update(target, scale, "Rescale", subresource="scale"))
        text = f"the HPA controller was able to update the target scale to {replicas}"
        course.say(_ABLE, True, "SucceededRescale", text)
        message = f"New size: {replicas}; reason: {wanted.why}"
        course.events.append(Announcement(observed.autoscaler, "Normal", _RESCALED, message))
        status["lastScaleTime"] = rfc3339(course.now)
        behavior = observed.autoscaler["spec"].get("behavior")
        if behavior:
            scaled = history.scaled(current, replicas, course.now, behavior)
    return Decision(_plan(course, actions, status), history, scaled)


def _status(course: _Course, old: Mapping[str, Any], current: int, desired: int) -> Object:
    status: Object = {"desiredReplicas": desired}
    if current:
        status["currentReplicas"] = current
    if "lastScaleTime" in old:
        status["lastScaleTime"] = old["lastScaleTime"]
    if course.metrics:
        status["currentMetrics"] = course.metrics
    return status


def _plan(course: _Course, actions: Sequence[Action], status: Object) -> Plan:
    autoscaler = course.observed.autoscaler
    old = autoscaler.get("status") or {}
    now = rfc3339(course.now)
    status["conditions"] = set_conditions(old.get("conditions") or (), course.conditions, now)
    done = list(actions)
    if status != old:
        metadata = autoscaler["metadata"]
        target = Target(AUTOSCALERS, metadata["name"], metadata["namespace"])
        changed = {**autoscaler, "status": status}
        done.append(Update(target, changed, "StatusChanged", subresource="status"))
    return Plan(done, course.events, requeue_after_seconds=PERIOD)
