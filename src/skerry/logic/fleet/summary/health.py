"""Is a copy at an edge doing what it is for?

The answer is ``True``, ``False`` or ``Unknown``, one word for why and a sentence. ``Unknown`` means
that nothing was reported to judge by; what is still under way is ``False``, with a reason that
says so.

``status.observedGeneration`` is not looked at: it counts the edge cluster's generations, and the
copy at hand has the mailbox's. Whether the newest content was applied is reported by delivery.

A Deployment with ``spec.replicas: 3``, by its status:

    nothing at all                              Unknown  NotReported
    updatedReplicas: 1                          False    RollingOut: 1 of 3 replicas updated
    updatedReplicas: 3, availableReplicas: 2    False    Unavailable: 2 of 3 replicas available
    the same, and Progressing is False          False    that condition's reason and message
    updatedReplicas: 3, availableReplicas: 3    True

A count that a status leaves out is zero, as Kubernetes writes it. Every field is read as if it were
of any type: an edge may be anybody's, and a status that is malformed is judged and not an error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from skerry.api.objects import Raw, section_of_any

Verdict = Literal["True", "False", "Unknown"]

# Kubernetes allows 1024 and 32768; a person reads a line. Summaries hold a hundred of them.
MAX_REASON_LENGTH = 64
MAX_MESSAGE_LENGTH = 256


@dataclass(frozen=True, slots=True)
class Health:
    """A verdict and why; a healthy object needs no message."""

    status: Verdict
    reason: str = ""
    message: str = ""


HEALTHY: Final = Health("True")
NOT_REPORTED: Final = Health("Unknown", "NotReported", "no state was reported")
NO_HEALTH: Final = Health("Unknown", "NoHealth", "nothing is reported that health shows in")
NO_CONDITION: Final = Health(
    "Unknown", "NoStandardCondition", "the status has no condition to judge by"
)
SUSPENDED: Final = Health("Unknown", "Suspended", "the job is suspended")
SCALING_DISABLED: Final = Health("Unknown", "ScalingDisabled", "scaling is switched off")
# The edge carries the object and does not act upon it, and never will: that is reported, and waited
# for by nobody.
NOT_ENFORCED: Final = "NotEnforced"
# Reasons that ask nobody to wait: there is nothing to be judged, or it is as its owner wants it.
WITHOUT_HEALTH: Final = frozenset(
    (
        *(each.reason for each in (NO_HEALTH, NO_CONDITION, SUSPENDED, SCALING_DISABLED)),
        NOT_ENFORCED,
    )
)

# A Job with pods that may or may not get on: the only True that a cause overrules (``because``).
_RUNNING: Final = "Running"

Rule = Callable[[Raw, Raw], Health]

# Types whose being True means trouble, whatever else is said.
TROUBLE: Final = ("Failed", "Degraded", "Stalled", "ReplicaFailure")
# Types that stand for the whole object, the most specific first.
_GOOD = ("Ready", "Available", "Healthy", "Complete", "Succeeded", "Established", "Programmed")


def health(group: str, kind: str, obj: Raw) -> Health:
    """Judge *obj*, a copy with the status its edge reported."""
    status = obj.get("status")
    if not isinstance(status, Mapping) or not status:
        return NOT_REPORTED
    rule = _RULES.get((group, kind), _by_conditions)
    spec = obj.get("spec")
    return rule(spec if isinstance(spec, Mapping) else {}, status)


def because(found: Health, cause: Health | None) -> Health:
    """Return a verdict with the *cause* that the edge names for it, if it names one.

    Where the state itself says that all is well, a cause is left over from before. A Job that runs
    says no more than that it has pods, so there the cause counts. That something has no effect at
    its edge is said of any verdict, and changes none: on a cluster that did enforce it, nothing of
    it might have health either.
    """
    if cause is not None and cause.reason == NOT_ENFORCED:
        return replace(found, reason=cause.reason, message=cause.message)
    if cause is None or (found.status == "True" and found.reason != _RUNNING):
        return found
    return cause


def has_health(group: str, kind: str) -> bool:
    """Tell whether every object of a kind comes to be healthy or not, sooner or later.

    Of other kinds it depends on what is reported: only conditions tell.
    """
    return (group, kind) in _RULES


def unreported(group: str, kind: str, obj: Raw) -> Health:
    """Judge *obj*, which was applied at its edge, while that has reported no state of it."""
    spec = obj.get("spec")
    if (group, kind) == ("", "Service") and not _is_load_balancer(spec):
        return HEALTHY
    return NOT_REPORTED if has_health(group, kind) else NO_HEALTH


def conditions_of(status: Raw) -> Sequence[Raw]:
    """Return the well-formed conditions of a status."""
    found = status.get("conditions")
    if not isinstance(found, list):
        return ()
    return [c for c in found if isinstance(c, Mapping) and isinstance(c.get("type"), str)]


def _deployment(spec: Raw, status: Raw) -> Health:
    """Judge as ``kubectl rollout status`` does, and by what the conditions say is wrong.

    Conditions come first, since they say why. Who pauses a Deployment wants no update to be waited
    for: then only availability counts.
    """
    for kind, bad in (("Progressing", "False"), ("ReplicaFailure", "True")):
        condition = _condition(status, kind)
        if condition is not None and condition.get("status") == bad:
            return _unhealthy(condition, kind)
    wanted = _number(spec, "replicas", 1)
    updated, available = _number(status, "updatedReplicas"), _number(status, "availableReplicas")
    if updated < wanted and not spec.get("paused"):
        return _short("RollingOut", updated, wanted, "replicas updated")
    if _number(status, "replicas") > max(updated, wanted) and not spec.get("paused"):
        left = _number(status, "replicas") - updated
        return Health("False", "RollingOut", f"{left} old replicas remain")
    return _enough(available, wanted, "replicas available")


def _replica_set(spec: Raw, status: Raw) -> Health:
    failure = _condition(status, "ReplicaFailure")
    if failure is not None and failure.get("status") == "True":
        return _unhealthy(failure, "ReplicaFailure")
    wanted = _number(spec, "replicas", 1)
    return _enough(_number(status, "availableReplicas"), wanted, "replicas available")


def _stateful_set(spec: Raw, status: Raw) -> Health:
    """Judge by updates that are to happen by themselves, then by availability.

    Pods below the partition are to stay as they are, and with ``OnDelete`` all of them, so neither
    is missing from what is updated.
    """
    wanted = _number(spec, "replicas", 1)
    strategy = section_of_any(spec, "updateStrategy")
    rolling = strategy.get("type", "RollingUpdate") == "RollingUpdate"
    under_way = status.get("currentRevision") != status.get("updateRevision")
    partition = _number(section_of_any(strategy, "rollingUpdate"), "partition")
    updated, goal = _number(status, "updatedReplicas"), max(0, wanted - partition)
    if rolling and under_way and updated < goal:
        return _short("RollingOut", updated, goal, "replicas updated")
    # Servers older than 1.22 do not count availability here.
    ready = _number(status, "availableReplicas", _number(status, "readyReplicas"))
    return _enough(ready, wanted, "replicas available")


def _daemon_set(spec: Raw, status: Raw) -> Health:
    """Judge by nodes: how many there are to be is reported by the edge, and in no spec."""
    wanted = _number(status, "desiredNumberScheduled")
    on_delete = section_of_any(spec, "updateStrategy").get("type") == "OnDelete"
    updated = _number(status, "updatedNumberScheduled")
    if updated < wanted and not on_delete:
        return _short("RollingOut", updated, wanted, "nodes updated")
    return _enough(_number(status, "numberAvailable"), wanted, "nodes available")


def _job(spec: Raw, status: Raw) -> Health:
    """Judge by how it ended; before that, by whether it is to run and does."""
    failed = _condition(status, "Failed")
    if failed is not None and failed.get("status") == "True":
        return _unhealthy(failed, "Failed")
    complete = _condition(status, "Complete")
    if complete is not None and complete.get("status") == "True":
        return Health("True", "Complete")
    if spec.get("suspend"):
        return SUSPENDED
    if _number(status, "active"):
        return Health("True", _RUNNING)
    return Health("Unknown", "Pending", "no pod of the job is active")


def _pod(spec: Raw, status: Raw) -> Health:
    """Judge by the phase where that is final; else by what is most specific.

    A container that waits says why ("ImagePullBackOff"), where the condition Ready would only say
    that it is not ready.
    """
    phase = status.get("phase")
    if phase == "Succeeded":
        return Health("True", "Succeeded")
    if phase == "Failed":
        return _unhealthy_because(status.get("reason") or "Failed", status.get("message"))
    if phase == "Unknown":
        return Health("Unknown", "NodeLost", "the node does not answer")
    stuck = _stuck_container(status)
    if stuck is not None:
        return stuck
    ready = _condition(status, "Ready")
    if phase == "Running" and ready is not None and ready.get("status") == "True":
        return HEALTHY
    scheduled = _condition(status, "PodScheduled")
    if scheduled is not None and scheduled.get("status") == "False":
        return _unhealthy(scheduled, "Unschedulable")
    return _unhealthy_because(
        "NotReady" if phase == "Running" else "Pending", (ready or {}).get("message")
    )


def _stuck_container(status: Raw) -> Health | None:
    """Return what a container waits for, unless it is only about to start."""
    # In this order: containers wait until the init containers are through.
    for member in ("initContainerStatuses", "containerStatuses"):
        found = status.get(member)
        for container in found if isinstance(found, list) else ():
            waiting = section_of_any(section_of_any(container, "state"), "waiting")
            reason = waiting.get("reason")
            if reason and reason not in ("ContainerCreating", "PodInitializing"):
                return _unhealthy_because(reason, waiting.get("message"))
    return None


def _autoscaler(_: Raw, status: Raw) -> Health:
    for kind in ("AbleToScale", "ScalingActive"):
        condition = _condition(status, kind)
        if condition is not None and condition.get("status") == "False":
            if condition.get("reason") == "ScalingDisabled":  # its target has no replicas
                return SCALING_DISABLED
            return _inert(condition) or _unhealthy(condition, f"Not{kind}")
    return HEALTHY if _condition(status, "ScalingActive") else NOT_REPORTED


def _disruption_budget(_: Raw, status: Raw) -> Health:
    """Judge whether disruptions are counted; that none is allowed now is what a budget is for."""
    condition = _condition(status, "DisruptionAllowed") or {}
    if condition.get("reason") == "SyncFailed":
        return _unhealthy(condition, "SyncFailed")
    if inert := _inert(condition):
        return inert
    return HEALTHY if "expectedPods" in status else NOT_REPORTED


def _is_load_balancer(spec: object) -> bool:
    return isinstance(spec, Mapping) and spec.get("type") == "LoadBalancer"


def _service(spec: Raw, status: Raw) -> Health:
    if not _is_load_balancer(spec) or section_of_any(status, "loadBalancer").get("ingress"):
        return HEALTHY
    return Health("False", "LoadBalancerPending", "no load balancer has been provisioned")


def _in_phase(*healthy: str) -> Rule:
    """Return a rule for kinds with a phase; one that reports none is judged by conditions."""

    def rule(spec: Raw, status: Raw) -> Health:
        phase = status.get("phase")
        if not isinstance(phase, str) or not phase:
            return _by_conditions(spec, status)
        return HEALTHY if phase in healthy else _unhealthy_because(phase, status.get("message"))

    return rule


def _by_conditions(_: Raw, status: Raw) -> Health:
    """Judge by the conditions Kubernetes recommends every kind to have.

    Trouble counts whatever else is said. Then the first type that there is decides alone: with
    ``Ready`` reported, nobody asks whether ``Available`` agrees.
    """
    for kind in TROUBLE:
        condition = _condition(status, kind)
        if condition is not None and condition.get("status") == "True":
            return _unhealthy(condition, kind)
    for kind in _GOOD:
        condition = _condition(status, kind)
        if condition is None:
            continue
        if condition.get("status") == "True":
            return HEALTHY
        if condition.get("status") == "False":
            return _unhealthy(condition, f"Not{kind}")
        found = _unhealthy_because(
            condition.get("reason") or f"{kind}Unknown", condition.get("message")
        )
        return Health("Unknown", found.reason, found.message)
    return NO_CONDITION


_RULES: Mapping[tuple[str, str], Rule] = {
    ("apps", "Deployment"): _deployment,
    ("apps", "ReplicaSet"): _replica_set,
    ("", "ReplicationController"): _replica_set,
    ("apps", "StatefulSet"): _stateful_set,
    ("apps", "DaemonSet"): _daemon_set,
    ("batch", "Job"): _job,
    ("", "Pod"): _pod,
    ("autoscaling", "HorizontalPodAutoscaler"): _autoscaler,
    ("policy", "PodDisruptionBudget"): _disruption_budget,
    ("", "Service"): _service,
    ("", "Namespace"): _in_phase("Active"),
    ("", "PersistentVolumeClaim"): _in_phase("Bound"),
    ("", "PersistentVolume"): _in_phase("Bound", "Available"),
    ("apis.kcp.io", "APIBinding"): _in_phase("Bound"),
}


def _condition(status: Raw, kind: str) -> Raw | None:
    return next((c for c in conditions_of(status) if c["type"] == kind), None)


def _number(section: Raw, name: str, default: int = 0) -> int:
    value = section.get(name)
    # ``True`` is an int in Python and no number in JSON.
    return value if isinstance(value, int) and not isinstance(value, bool) else default


def _enough(found: int, wanted: int, what: str) -> Health:
    return HEALTHY if found >= wanted else _short("Unavailable", found, wanted, what)


def _short(reason: str, found: int, wanted: int, what: str) -> Health:
    return Health("False", reason, f"{found} of {wanted} {what}")


def _unhealthy(condition: Raw, otherwise: str) -> Health:
    return _unhealthy_because(condition.get("reason") or otherwise, condition.get("message"))


def _inert(condition: Raw) -> Health | None:
    """Return what a condition says that nobody at the edge acts upon; None when it does not."""
    if condition.get("reason") != NOT_ENFORCED:
        return None
    return replace(_unhealthy(condition, NOT_ENFORCED), status="Unknown")


def _unhealthy_because(reason: object, message: object) -> Health:
    """Return a False with an edge's own words, cut to what a summary has room for."""
    text = str(message) if message else ""
    return Health("False", str(reason)[:MAX_REASON_LENGTH], text[:MAX_MESSAGE_LENGTH])
