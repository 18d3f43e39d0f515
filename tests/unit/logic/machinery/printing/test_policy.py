"""What the rows of budgets, admission, certificates and flows say of objects with gaps."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from skerry.logic.machinery.printing.policy import POLICY_COLUMNS

NOW = datetime(2025, 6, 6, tzinfo=UTC)
ADMISSION, FLOWS = "admissionregistration.k8s.io", "flowcontrol.apiserver.k8s.io"


def shown(group: str, kind: str, column: str, **fields: Any) -> Any:
    [found] = [each for each in POLICY_COLUMNS[group, kind] if each.name == column]
    return found.cell({"metadata": {"name": "n"}, **fields}, NOW)


def test_a_budget_shows_what_it_does_not_limit() -> None:
    spec = {"minAvailable": 0}
    assert shown("policy", "PodDisruptionBudget", "Min Available", spec=spec) == "0"
    assert shown("policy", "PodDisruptionBudget", "Max Unavailable", spec=spec) == "N/A"


@pytest.mark.parametrize(
    ("conditions", "certificate", "text"),
    [
        ((), "", "Pending"),
        (("Approved",), "", "Approved"),
        (("Approved",), "PEM", "Approved,Issued"),
        (("Denied", "Approved"), "", "Denied"),
        (("Approved", "Failed"), "", "Approved,Failed"),
    ],
)
def test_a_request_for_a_certificate_shows_how_far_it_got(
    conditions: tuple[str, ...], certificate: str, text: str
) -> None:
    status = {"conditions": [{"type": each} for each in conditions], "certificate": certificate}
    kind = "certificates.k8s.io", "CertificateSigningRequest"
    assert shown(*kind, "Condition", status=status) == text
    assert shown(*kind, "RequestedDuration", spec={"expirationSeconds": 3600}) == "60m"
    assert shown(*kind, "RequestedDuration", spec={}) == "<none>"


def test_a_policy_binding_shows_its_parameter_by_name_or_by_selector() -> None:
    def reference(**found: Any) -> Any:
        kind = "ValidatingAdmissionPolicyBinding"
        return shown(ADMISSION, kind, "ParamRef", spec={"paramRef": found} if found else {})

    assert reference() == "<unset>"
    assert reference(name="a") == "*/a"
    assert reference(name="a", namespace="b") == "b/a"
    term = {"key": "k", "operator": "In", "values": ["x", "y"]}
    assert reference(
        selector={"matchLabels": {"b": "2", "a": "1"}, "matchExpressions": [term]}
    ) == (
        "&LabelSelector{MatchLabels:map[string]string{a: 1,b: 2,},MatchExpressions:"
        "[]LabelSelectorRequirement{LabelSelectorRequirement{Key:k,Operator:In,Values:[x y],},},}"
    )


def test_an_api_shows_who_answers_and_why_nobody_does() -> None:
    kind = "apiregistration.k8s.io", "APIService"
    assert shown(*kind, "Service", spec={}) == "Local"
    service = {"namespace": "n", "name": "s"}
    assert shown(*kind, "Service", spec={"service": service}) == "n/s"
    assert shown(*kind, "Available") == "Unknown"
    for status, reason, text in (
        ("True", "Passed", "True"),
        ("False", "MissingEndpoints", "False (MissingEndpoints)"),
        ("False", "", "False"),
    ):
        conditions = [{"type": "Available", "status": status, "reason": reason}]
        assert shown(*kind, "Available", status={"conditions": conditions}) == text


def test_a_missing_part_is_none_and_a_missing_field_of_it_its_zero() -> None:
    kind = "PriorityLevelConfiguration"
    assert shown(FLOWS, kind, "Queues", spec={}) == "<none>"
    queuing = {"limited": {"limitResponse": {"queuing": {"handSize": 6}}}}
    assert shown(FLOWS, kind, "Queues", spec=queuing) == 0
    assert shown(FLOWS, kind, "HandSize", spec=queuing) == 6


def test_a_claim_shows_every_state_it_is_in() -> None:
    def state(**status: Any) -> Any:
        return shown("resource.k8s.io", "ResourceClaim", "State", status=status)

    assert state() == "pending"
    assert state(allocation={}) == "allocated"
    assert state(allocation={}, reservedFor=[{}]) == "allocated,reserved"
    going = {"name": "n", "deletionTimestamp": "2025-06-06T00:00:00Z"}
    assert shown("resource.k8s.io", "ResourceClaim", "State", metadata=going) == "deleted"
