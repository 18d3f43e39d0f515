"""Columns of the kinds that describe the cluster itself: nodes, events, quotas, leases, RBAC."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from skerry.api.objects import Object
from skerry.logic.machinery.printing.cells import (
    AGE,
    CREATED_AT,
    NAME,
    NONE,
    UNKNOWN,
    computed,
    condition,
    field,
    flag,
    integer,
    items,
    name_of,
    number,
    read,
    size,
    text,
    timed,
)
from skerry.logic.machinery.printing.durations import since
from skerry.logic.machinery.resource import Column

_ROLE_LABEL_PREFIX = "node-role.kubernetes.io/"
_ROLE_LABEL = "kubernetes.io/role"


def _node_status(node: Object) -> str:
    ready = condition(node, "Ready")
    if ready is None:
        word = "Unknown"
    else:
        word = "Ready" if read(ready, "status") == "True" else "NotReady"
    return f"{word},SchedulingDisabled" if read(node, "spec", "unschedulable") else word


def _node_roles(node: Object) -> str:
    labels = read(node, "metadata", "labels") or {}
    roles = {key.removeprefix(_ROLE_LABEL_PREFIX) for key in labels if _names_role(key)}
    roles.add(labels.get(_ROLE_LABEL) or "")
    return ",".join(sorted(roles - {""})) or NONE


def _names_role(label: str) -> bool:
    return label.startswith(_ROLE_LABEL_PREFIX)


def _address_column(name: str, kind: str) -> Column:
    def cell(node: Object) -> str:
        for address in items(node, "status", "addresses"):
            if read(address, "type") == kind:
                return text(address, "address")
        return NONE

    return computed(name, cell, f"The node's first address of type {kind}.", priority=1)


def _node_info(name: str, fact: str) -> Column:
    return computed(
        name,
        lambda node: text(node, "status", "nodeInfo", fact) or UNKNOWN,
        "As the node reports it.",
        priority=1,
    )


NODE_COLUMNS: tuple[Column, ...] = (
    NAME,
    computed("Status", _node_status, "Whether the node is ready and takes pods."),
    computed("Roles", _node_roles, "Roles the node's labels name."),
    AGE,
    field("Version", "status", "nodeInfo", "kubeletVersion"),
    _address_column("Internal-IP", "InternalIP"),
    _address_column("External-IP", "ExternalIP"),
    _node_info("OS-Image", "osImage"),
    _node_info("Kernel-Version", "kernelVersion"),
    _node_info("Container-Runtime", "containerRuntimeVersion"),
)


def _first(event: Object, *paths: tuple[str, ...]) -> Any:
    """Return the first field that is set: events are one object seen through two APIs."""
    for path in paths:
        found = read(event, *path)
        if found:
            return found
    return None


_SUBJECT = (("involvedObject",), ("regarding",))
_FIRST_TIMES = (("firstTimestamp",), ("deprecatedFirstTimestamp",), ("eventTime",))
_LAST_TIMES = (("lastTimestamp",), ("deprecatedLastTimestamp",))


def _first_seen(event: Object, now: datetime) -> str:
    return since(_first(event, *_FIRST_TIMES), now)


def _last_seen(event: Object, now: datetime) -> str:
    series = read(event, "series")
    if series is not None:
        return since(read(series, "lastObservedTime"), now)
    return since(_first(event, *_LAST_TIMES, *_FIRST_TIMES), now)


def _event_count(event: Object) -> int:
    series = read(event, "series")
    if series is not None:
        return number(series, "count")
    # One that was seen once has no count in the newer API.
    return _first(event, ("count",), ("deprecatedCount",)) or 1


def _event_subject(event: Object) -> str:
    subject = _first(event, *_SUBJECT)
    kind, name = text(subject, "kind").lower(), text(subject, "name")
    return f"{kind}/{name}" if name else kind


def _event_source(event: Object) -> str:
    source = _first(event, ("source",), ("deprecatedSource",))
    component = text(source, "component") or text(event, "reportingComponent")
    instance = text(source, "host") or text(event, "reportingInstance")
    component = component or text(event, "reportingController")
    return f"{component}, {instance}" if instance else component


EVENT_COLUMNS: tuple[Column, ...] = (
    timed("Last Seen", _last_seen, "How long ago it last happened."),
    field("Type", "type"),
    field("Reason", "reason"),
    computed("Object", _event_subject, "What it happened to."),
    computed(
        "Subobject",
        lambda event: text(_first(event, *_SUBJECT), "fieldPath"),
        "Which part of the object.",
        priority=1,
    ),
    computed("Source", _event_source, "Who says so.", priority=1),
    computed(
        "Message",
        lambda event: str(_first(event, ("message",), ("note",)) or "").strip(),
        "What happened.",
    ),
    timed("First Seen", _first_seen, "How long ago it first happened.", priority=1),
    computed("Count", _event_count, "How often it happened.", priority=1),
    Column("Name", "string", lambda event, _: name_of(event), "name", NAME.description, 1),
)


def _quota_column(name: str, *, limits: bool) -> Column:
    def cell(quota: Object) -> str:
        hard = read(quota, "status", "hard") or {}
        used = read(quota, "status", "used") or {}
        return ", ".join(
            f"{resource}: {used.get(resource, '0')}/{hard[resource]}"
            for resource in sorted(hard)
            if resource.startswith("limits.") is limits
        )

    return computed(name, cell, "What is used of what may be used.")


RESOURCE_QUOTA_COLUMNS: tuple[Column, ...] = (
    NAME,
    AGE,
    _quota_column("Request", limits=False),
    _quota_column("Limit", limits=True),
)


def _subjects_column(name: str, kind: str) -> Column:
    def cell(binding: Object) -> str:
        return ", ".join(_subjects(binding, kind))

    return computed(name, cell, f"Subjects of kind {kind}.", priority=1)


def _subjects(binding: Object, kind: str) -> Sequence[str]:
    found = [each for each in items(binding, "subjects") if read(each, "kind") == kind]
    if kind == "ServiceAccount":
        return [f"{text(each, 'namespace')}/{text(each, 'name')}" for each in found]
    return [text(each, "name") for each in found]


ROLE_BINDING_COLUMNS: tuple[Column, ...] = (
    NAME,
    computed(
        "Role",
        lambda obj: f"{text(obj, 'roleRef', 'kind')}/{text(obj, 'roleRef', 'name')}",
        "The role that is given.",
    ),
    AGE,
    _subjects_column("Users", "User"),
    _subjects_column("Groups", "Group"),
    _subjects_column("ServiceAccounts", "ServiceAccount"),
)


def _component_cell(key: str) -> Column:
    return computed(
        key.capitalize(),
        lambda obj: text(condition(obj, "Healthy", "conditions"), key),
        f"The {key} of the component's health.",
    )


def _component_status(component: Object) -> str:
    healthy = condition(component, "Healthy", "conditions")
    if healthy is None:
        return "Unknown"
    return "Healthy" if read(healthy, "status") == "True" else "Unhealthy"


def _config_map_size(config_map: Object) -> int:
    return len(read(config_map, "data") or ()) + len(read(config_map, "binaryData") or ())


_NAME_AND_CREATION = (NAME, CREATED_AT)

CLUSTER_COLUMNS: dict[tuple[str, str], tuple[Column, ...]] = {
    ("", "ComponentStatus"): (
        NAME,
        computed("Status", _component_status, "Whether the component is healthy."),
        _component_cell("message"),
        _component_cell("error"),
    ),
    ("", "ConfigMap"): (NAME, computed("Data", _config_map_size, "How many keys."), AGE),
    ("", "Event"): EVENT_COLUMNS,
    ("", "LimitRange"): _NAME_AND_CREATION,
    ("", "Namespace"): (NAME, field("Status", "status", "phase"), AGE),
    ("", "Node"): NODE_COLUMNS,
    ("", "ResourceQuota"): RESOURCE_QUOTA_COLUMNS,
    ("", "Secret"): (NAME, field("Type", "type"), size("Data", "data"), AGE),
    ("", "ServiceAccount"): (NAME, size("Secrets", "secrets"), AGE),
    ("apiextensions.k8s.io", "CustomResourceDefinition"): _NAME_AND_CREATION,
    ("coordination.k8s.io", "Lease"): (NAME, field("Holder", "spec", "holderIdentity"), AGE),
    ("coordination.k8s.io", "LeaseCandidate"): (
        NAME,
        field("LeaseName", "spec", "leaseName"),
        field("BinaryVersion", "spec", "binaryVersion"),
        field("EmulationVersion", "spec", "emulationVersion"),
        AGE,
    ),
    ("events.k8s.io", "Event"): EVENT_COLUMNS,
    ("node.k8s.io", "RuntimeClass"): (NAME, field("Handler", "handler"), AGE),
    ("rbac.authorization.k8s.io", "ClusterRole"): _NAME_AND_CREATION,
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): ROLE_BINDING_COLUMNS,
    ("rbac.authorization.k8s.io", "Role"): _NAME_AND_CREATION,
    ("rbac.authorization.k8s.io", "RoleBinding"): ROLE_BINDING_COLUMNS,
    ("scheduling.k8s.io", "PriorityClass"): (
        NAME,
        integer("Value", "value"),
        flag("Global-Default", "globalDefault"),
        AGE,
        field("PreemptionPolicy", "preemptionPolicy"),
    ),
}
