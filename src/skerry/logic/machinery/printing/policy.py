"""Columns of the kinds that set rules: disruption budgets, admission, certificates, flows."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from skerry.api.objects import Object
from skerry.logic.machinery.printing.cells import (
    AGE,
    NAME,
    NONE,
    UNSET,
    computed,
    condition,
    field,
    integer,
    is_terminating,
    items,
    read,
    size,
    text,
)
from skerry.logic.machinery.printing.durations import human_duration
from skerry.logic.machinery.resource import Column

DISRUPTION_BUDGET_COLUMNS: tuple[Column, ...] = (
    NAME,
    computed(
        "Min Available",
        lambda obj: _budget(read(obj, "spec", "minAvailable")),
        "How many pods must stay.",
    ),
    computed(
        "Max Unavailable",
        lambda obj: _budget(read(obj, "spec", "maxUnavailable")),
        "How many pods may be away.",
    ),
    integer("Allowed Disruptions", "status", "disruptionsAllowed"),
    AGE,
)


def _budget(amount: Any) -> str:
    return "N/A" if amount is None else str(amount)


def _param_kind(policy: Object) -> str:
    kind = read(policy, "spec", "paramKind")
    return UNSET if kind is None else f"{text(kind, 'apiVersion')}/{text(kind, 'kind')}"


def _param_ref(binding: Object) -> str:
    reference = read(binding, "spec", "paramRef")
    if name := text(reference, "name"):
        # Whether the parameter has a namespace is not known here.
        return f"{text(reference, 'namespace') or '*'}/{name}"
    selector = read(reference, "selector")
    return UNSET if selector is None else _selector_dump(selector)


def _selector_dump(selector: Any) -> str:
    """Return a selector as Go prints the structure, which is what kubectl users see."""
    labels = read(selector, "matchLabels") or {}
    pairs = "".join(f"{key}: {labels[key]}," for key in sorted(labels))
    terms = "".join(
        f"LabelSelectorRequirement{{Key:{text(term, 'key')},Operator:{text(term, 'operator')},"
        f"Values:[{' '.join(items(term, 'values'))}],}},"
        for term in items(selector, "matchExpressions")
    )
    return (
        f"&LabelSelector{{MatchLabels:map[string]string{{{pairs}}},"
        f"MatchExpressions:[]LabelSelectorRequirement{{{terms}}},}}"
    )


def _policy_columns(rules: str) -> tuple[Column, ...]:
    return (
        NAME,
        size(rules.capitalize(), "spec", rules, type="integer"),
        computed("ParamKind", _param_kind, "The kind of the policy's parameters."),
        AGE,
    )


_POLICY_BINDING_COLUMNS: tuple[Column, ...] = (
    NAME,
    field("PolicyName", "spec", "policyName"),
    computed("ParamRef", _param_ref, "The object with the parameters."),
    AGE,
)
_WEBHOOK_COLUMNS: tuple[Column, ...] = (NAME, size("Webhooks", "webhooks", type="integer"), AGE)


def _signing_status(request: Object) -> str:
    kinds = {read(found, "type") for found in items(request, "status", "conditions")}
    status = "Pending"
    if "Denied" in kinds:
        status = "Denied"
    elif "Approved" in kinds:
        status = "Approved"
    if "Failed" in kinds:
        status += ",Failed"
    if read(request, "status", "certificate"):
        status += ",Issued"
    return status


def _requested_duration(request: Object) -> str:
    seconds = read(request, "spec", "expirationSeconds")
    return NONE if seconds is None else human_duration(timedelta(seconds=seconds))


_SIGNER = computed(
    "SignerName", lambda obj: text(obj, "spec", "signerName") or NONE, "Who is asked to sign."
)


def _api_service(obj: Object) -> str:
    service = read(obj, "spec", "service")
    if service is None:
        return "Local"
    return f"{text(service, 'namespace')}/{text(service, 'name')}"


def _availability(obj: Object) -> str:
    found = condition(obj, "Available")
    if found is None:
        return "Unknown"
    status, reason = text(found, "status"), text(found, "reason")
    return status if status == "True" or not reason else f"{status} ({reason})"


def _missing_priority_level(schema: Object) -> str:
    found = condition(schema, "Dangling")
    return "?" if found is None else text(found, "status")


_LIMITED = ("spec", "limited")
_QUEUING = (*_LIMITED, "limitResponse", "queuing")


def _part_of(name: str, parent: tuple[str, ...], key: str, zero: Any) -> Column:
    """Return a column that shows *zero* for a missing field, ``<none>`` for a missing parent."""

    def cell(obj: Object) -> Any:
        found = read(obj, *parent)
        if found is None:
            return NONE
        value = read(found, key)
        return zero if value is None else value

    return computed(name, cell, f"Taken from {'.'.join((*parent, key))}.")


def _claim_state(claim: Object) -> str:
    states = ["deleted"] if is_terminating(claim) else []
    if read(claim, "status", "allocation") is None:
        return ",".join(states or ["pending"])
    states.append("allocated")
    if items(claim, "status", "reservedFor"):
        states.append("reserved")
    return ",".join(states)


_ADMISSION = "admissionregistration.k8s.io"
_FLOW_CONTROL = "flowcontrol.apiserver.k8s.io"

POLICY_COLUMNS: dict[tuple[str, str], tuple[Column, ...]] = {
    (_ADMISSION, "MutatingAdmissionPolicy"): _policy_columns("mutations"),
    (_ADMISSION, "MutatingAdmissionPolicyBinding"): _POLICY_BINDING_COLUMNS,
    (_ADMISSION, "MutatingWebhookConfiguration"): _WEBHOOK_COLUMNS,
    (_ADMISSION, "ValidatingAdmissionPolicy"): _policy_columns("validations"),
    (_ADMISSION, "ValidatingAdmissionPolicyBinding"): _POLICY_BINDING_COLUMNS,
    (_ADMISSION, "ValidatingWebhookConfiguration"): _WEBHOOK_COLUMNS,
    ("apiregistration.k8s.io", "APIService"): (
        NAME,
        computed("Service", _api_service, "The service that answers for this API."),
        computed("Available", _availability, "Whether the API can be used."),
        AGE,
    ),
    ("certificates.k8s.io", "CertificateSigningRequest"): (
        NAME,
        AGE,
        _SIGNER,
        field("Requestor", "spec", "username"),
        computed("RequestedDuration", _requested_duration, "How long it is to be valid."),
        computed("Condition", _signing_status, "Whether it was approved and issued."),
    ),
    ("certificates.k8s.io", "ClusterTrustBundle"): (NAME, _SIGNER),
    (_FLOW_CONTROL, "FlowSchema"): (
        NAME,
        field("PriorityLevel", "spec", "priorityLevelConfiguration", "name"),
        field("MatchingPrecedence", "spec", "matchingPrecedence", default=0),
        _part_of("DistinguisherMethod", ("spec", "distinguisherMethod"), "type", ""),
        AGE,
        computed("MissingPL", _missing_priority_level, "Whether its priority level is missing."),
    ),
    (_FLOW_CONTROL, "PriorityLevelConfiguration"): (
        NAME,
        field("Type", "spec", "type"),
        _part_of("NominalConcurrencyShares", _LIMITED, "nominalConcurrencyShares", 0),
        _part_of("Queues", _QUEUING, "queues", 0),
        _part_of("HandSize", _QUEUING, "handSize", 0),
        _part_of("QueueLengthLimit", _QUEUING, "queueLengthLimit", 0),
        AGE,
    ),
    ("policy", "PodDisruptionBudget"): DISRUPTION_BUDGET_COLUMNS,
    ("resource.k8s.io", "DeviceClass"): (NAME, AGE),
    ("resource.k8s.io", "ResourceClaim"): (
        NAME,
        computed("State", _claim_state, "Whether the claim is allocated and reserved."),
        AGE,
    ),
    ("resource.k8s.io", "ResourceClaimTemplate"): (NAME, AGE),
    ("resource.k8s.io", "ResourceSlice"): (
        NAME,
        field("Node", "spec", "nodeName"),
        field("Driver", "spec", "driver"),
        field("Pool", "spec", "pool", "name"),
        AGE,
    ),
}
