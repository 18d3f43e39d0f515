"""What Kubernetes' signers sign, in Kubernetes' words."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from skerry.logic.machinery.certificate_signers import (
    CLIENT,
    KUBELET_CLIENT,
    KUBELET_SERVING,
    Subject,
    approvals,
    lifetime,
    refusal,
)

NODE = Subject("system:node:n", ("system:nodes",))
USAGES = ["digital signature", "key encipherment", "client auth"]
SERVING = ["digital signature", "server auth"]


@pytest.mark.parametrize(
    ("usages", "why"),
    [
        (["client auth"], ""),
        (USAGES, ""),
        (["digital signature"], "missing required usage for client certificate: client auth"),
        (["client auth", "server auth"], "invalid usage for client certificate: server auth"),
    ],
)
def test_a_client_is_signed_for_by_its_usages_alone(usages: list[str], why: str) -> None:
    assert refusal(CLIENT, Subject("whoever", ("a", "b")), usages) == why


@pytest.mark.parametrize(
    ("subject", "why"),
    [
        (NODE, ""),
        (replace(NODE, organizations=()), "subject organization is not system:nodes"),
        (replace(NODE, dns_names=("n",)), "DNS subjectAltNames are not allowed"),
        (replace(NODE, addresses=("10.0.0.1",)), "IP subjectAltNames are not allowed"),
        (replace(NODE, emails=("a@b",)), "Email subjectAltNames are not allowed"),
        (replace(NODE, uris=("x:y",)), "URI subjectAltNames are not allowed"),
        (replace(NODE, common_name="n"), "subject common name does not begin with system:node:"),
    ],
)
def test_a_kubelet_is_signed_for_by_its_name(subject: Subject, why: str) -> None:
    assert refusal(KUBELET_CLIENT, subject, USAGES) == why


def test_a_kubelet_serves_under_names() -> None:
    assert refusal(KUBELET_SERVING, NODE, SERVING) == "DNS or IP subjectAltName is required"
    named = replace(NODE, dns_names=("n",))
    assert refusal(KUBELET_SERVING, named, SERVING) == ""
    why = "usages did not match [digital signature key encipherment server auth]"
    assert refusal(KUBELET_SERVING, named, USAGES) == why


def test_lifetimes_are_kept_within_bounds() -> None:
    minutes = timedelta(minutes=1)
    assert lifetime({"expirationSeconds": 1}) == 10 * minutes
    assert lifetime({"expirationSeconds": 3600}) == 60 * minutes
    assert lifetime({"expirationSeconds": 86400}) == timedelta(days=1) - 5 * minutes
    assert lifetime({"expirationSeconds": 10**9}) == timedelta(days=365) - 5 * minutes
    assert lifetime({}) == timedelta(days=365) - 5 * minutes


def test_only_a_kubelets_request_is_approved_without_a_person() -> None:
    spec = {"signerName": KUBELET_CLIENT, "usages": USAGES, "username": "bootstrapper"}
    assert [name for name, _ in approvals(spec, NODE)] == ["nodeclient"]
    itself = {**spec, "username": "system:node:n"}
    assert [name for name, _ in approvals(itself, NODE)] == ["selfnodeclient", "nodeclient"]
    assert approvals({**spec, "signerName": CLIENT}, NODE) == []
    assert approvals(spec, replace(NODE, dns_names=("n",))) == []
