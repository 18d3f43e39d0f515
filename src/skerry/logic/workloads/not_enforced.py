"""What an embedded edge accepts and does not act upon: one table, and how an object says so.

An API server takes every kind it serves, whether or not anybody is there to act on it. Whoever
places a NetworkPolicy and sees it "there" believes that it filters; so each such object says that
it does not: an annotation, which the syncer brings up as the cause of its not being well, an Event,
and a condition where the kind has one for that. The reference page is made of the same rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from skerry.api.edge import NOT_ENFORCED
from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object, Raw
from skerry.logic.machinery.conditions import Condition, set_conditions
from skerry.logic.machinery.plan import NOTHING, Action, Announcement, Patch, Plan, Target

REASON: Final = "NotEnforced"


def _always(_: Raw) -> bool:
    return True


class Row(NamedTuple):
    """A kind, or what some of its objects ask for, that has no effect at an embedded edge."""

    gvr: GroupVersionResource
    kind: str
    # What is not done, as a sentence for the object's owner.
    message: str
    # The field that is ignored, for the reference page; empty where it is the whole kind.
    field: str = ""
    applies: Callable[[Raw], bool] = _always
    # The condition by which the kind itself says that it does not work: type and status.
    condition: tuple[str, str] | None = None


def _spec(obj: Raw) -> Raw:
    found = obj.get("spec")
    return found if isinstance(found, Mapping) else {}


def _is_made_by_the_server(obj: Raw) -> bool:
    notes = obj["metadata"].get("annotations") or {}
    return bool(notes.get("apf.kubernetes.io/autoupdate-spec") == "true")


_NETWORKING, _ADMISSION = "networking.k8s.io", "admissionregistration.k8s.io"
_FLOW = "flowcontrol.apiserver.k8s.io"
_SERVICES = GroupVersionResource("", "v1", "services")
_FLOWS = "requests are limited by user, whatever it says"

TABLE: Final = (
    Row(
        GroupVersionResource(_NETWORKING, "v1", "networkpolicies"),
        "NetworkPolicy",
        "traffic of pods is not filtered",
    ),
    Row(
        GroupVersionResource(_NETWORKING, "v1", "ingresses"),
        "Ingress",
        "no ingress controller runs; publish a host port or a node port",
    ),
    Row(
        GroupVersionResource("autoscaling", "v2", "horizontalpodautoscalers"),
        "HorizontalPodAutoscaler",
        "nothing scales; the number of replicas stays as it is",
        condition=("ScalingActive", "False"),
    ),
    Row(
        _SERVICES,
        "Service",
        "no load balancer is provisioned; the Service has its cluster address and node ports",
        "spec.type: LoadBalancer",
        lambda obj: _spec(obj).get("type") == "LoadBalancer",
    ),
    Row(
        _SERVICES,
        "Service",
        "clients are not kept at one pod",
        "spec.sessionAffinity: ClientIP",
        lambda obj: _spec(obj).get("sessionAffinity") == "ClientIP",
    ),
    Row(
        _SERVICES,
        "Service",
        "external addresses are not served",
        "spec.externalIPs",
        lambda obj: bool(_spec(obj).get("externalIPs")),
    ),
    Row(
        GroupVersionResource("node.k8s.io", "v1", "runtimeclasses"),
        "RuntimeClass",
        "containers run as `--runtime` of the edge says",
    ),
    Row(
        GroupVersionResource("storage.k8s.io", "v1", "csidrivers"),
        "CSIDriver",
        "no storage drivers run; volumes are local",
    ),
    Row(
        GroupVersionResource("apiregistration.k8s.io", "v1", "apiservices"),
        "APIService",
        "requests are not passed on to other API servers",
        "spec.service",
        lambda obj: bool(_spec(obj).get("service")),
    ),
    Row(
        GroupVersionResource(_FLOW, "v1", "flowschemas"),
        "FlowSchema",
        _FLOWS,
        applies=lambda obj: not _is_made_by_the_server(obj),
    ),
    Row(
        GroupVersionResource(_FLOW, "v1", "prioritylevelconfigurations"),
        "PriorityLevelConfiguration",
        _FLOWS,
        applies=lambda obj: not _is_made_by_the_server(obj),
    ),
)

# Acted upon by now, and marked by earlier versions: the marks are taken off again.
FORMERLY: Final = (
    GroupVersionResource("policy", "v1", "poddisruptionbudgets"),
    GroupVersionResource("", "v1", "replicationcontrollers"),
    GroupVersionResource(_ADMISSION, "v1", "mutatingwebhookconfigurations"),
    GroupVersionResource(_ADMISSION, "v1", "validatingwebhookconfigurations"),
)
KINDS: Final = tuple(dict.fromkeys([*(row.gvr for row in TABLE), *FORMERLY]))


def decide(gvr: GroupVersionResource, obj: Object, now: str) -> Plan:
    """Have *obj* say what of it has no effect here, and no longer once nothing of that is left."""
    rows = [row for row in TABLE if row.gvr == gvr and row.applies(obj)]
    metadata = obj["metadata"]
    if "deletionTimestamp" in metadata:
        return NOTHING
    message = "; ".join(row.message for row in rows)
    said = (metadata.get("annotations") or {}).get(NOT_ENFORCED, "")
    target = Target(gvr, metadata["name"], metadata.get("namespace", ""))
    actions: list[Action] = []
    announcements: list[Announcement] = []
    if message != said:
        notes = {"uid": metadata["uid"], "annotations": {NOT_ENFORCED: message or None}}
        actions.append(Patch(target, {"metadata": notes}, REASON, absent_is_fine=True))
        if message:
            announcements.append(Announcement(obj, "Warning", REASON, message))
    actions += _conditions(rows, obj, target, now)
    return Plan(actions, announcements) if actions else NOTHING


def _conditions(rows: list[Row], obj: Object, target: Target, now: str) -> list[Action]:
    wanted: list[Condition] = [
        {"type": row.condition[0], "status": row.condition[1], "reason": REASON,
         "message": row.message}
        for row in rows
        if row.condition is not None
    ]  # fmt: skip
    before = (obj.get("status") or {}).get("conditions") or []
    ours = {each["type"] for each in before if each.get("reason") == REASON}
    gone = ours - {each["type"] for each in wanted}
    after = set_conditions(before, wanted, now, dropped=gone)
    if after == before:
        return []
    patch = {"metadata": {"uid": obj["metadata"]["uid"]}, "status": {"conditions": after}}
    return [Patch(target, patch, REASON, subresource="status", absent_is_fine=True)]
