"""Which rule of an audit policy decides, and what a policy may say."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from skerry.logic.machinery.audit_policy import Audited, Decision, PolicyError, parse_policy

GET_POD = Audited("alice", ("dev", "system:authenticated"), "get", "", "", "pods", "", "shop", "p")
POD_LOG = replace(GET_POD, subresource="log")
PUT_DEPLOYMENT = Audited("bob", ("ops",), "update", "", "apps", "deployments", "", "shop", "web")
NODE = Audited("alice", ("dev",), "get", "", "", "nodes", "", "", "n")
HEALTH = Audited("", (), "get", "/healthz/ping")
REQUESTS = {"pod": GET_POD, "log": POD_LOG, "deployment": PUT_DEPLOYMENT, "node": NODE,
            "health": HEALTH}  # fmt: skip


def policy(*rules: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": list(rules), **more}


@pytest.mark.parametrize(
    ("rule", "matched"),
    [
        ({}, "pod log deployment node health"),
        ({"users": ["alice"]}, "pod log node"),
        ({"users": [""]}, "health"),
        ({"userGroups": ["ops", "x"]}, "deployment"),
        ({"verbs": ["get"]}, "pod log node health"),
        ({"verbs": ["update", "patch"]}, "deployment"),
        ({"namespaces": ["shop"]}, "pod log deployment"),
        ({"namespaces": [""]}, "node"),
        ({"resources": [{"group": ""}]}, "pod log node"),
        ({"resources": [{"group": "apps"}]}, "deployment"),
        ({"resources": [{"group": "", "resources": ["pods"]}]}, "pod"),
        ({"resources": [{"group": "", "resources": ["pods/log"]}]}, "log"),
        ({"resources": [{"group": "", "resources": ["pods/*"]}]}, "pod log"),
        ({"resources": [{"group": "", "resources": ["*/log"]}]}, "log"),
        ({"resources": [{"group": "", "resources": ["*"]}]}, "pod log node"),
        ({"resources": [{"resources": ["pods"], "resourceNames": ["p"]}]}, "pod"),
        ({"resources": [{"resources": ["pods"], "resourceNames": ["q"]}]}, ""),
        ({"resources": [{"group": "apps"}, {"resources": ["nodes"]}]}, "deployment node"),
        ({"resources": [{"group": "*"}]}, ""),
        ({"nonResourceURLs": ["/healthz*"]}, "health"),
        ({"nonResourceURLs": ["/healthz"]}, ""),
        ({"nonResourceURLs": ["*"]}, "health"),
        ({"users": ["alice"], "verbs": ["get"], "namespaces": ["shop"]}, "pod log"),
    ],
)
def test_a_rule_matches_what_kubernetes_would_have_it_match(
    rule: dict[str, Any], matched: str
) -> None:
    found = parse_policy(policy({"level": "Request", **rule}))
    names = [name for name, each in REQUESTS.items() if found.decide(each).level == "Request"]
    assert names == matched.split()


def test_the_first_rule_that_matches_decides_and_without_one_nothing_is_written() -> None:
    found = parse_policy(
        policy(
            {"level": "None", "users": ["alice"], "verbs": ["get"]},
            {"level": "Request", "resources": [{"group": "apps"}]},
            {"level": "Metadata", "namespaces": ["shop"]},
        )
    )
    assert found.decide(GET_POD).level == "None"
    assert found.decide(PUT_DEPLOYMENT).level == "Request"
    assert found.decide(replace(GET_POD, user="bob")).level == "Metadata"
    assert found.decide(HEALTH).level == "None"


def test_stages_that_are_left_out_leave_the_event_out() -> None:
    rule = {"level": "Metadata"}
    for changed in (
        policy(rule, omitStages=["ResponseComplete"]),
        policy({**rule, "omitStages": ["RequestReceived", "ResponseComplete"]}),
    ):
        assert parse_policy(changed).decide(GET_POD).level == "None"
    kept = policy({**rule, "omitStages": ["RequestReceived"]}, omitStages=["Panic"])
    assert parse_policy(kept).decide(GET_POD).level == "Metadata"


def test_a_rule_says_for_itself_what_becomes_of_managed_fields() -> None:
    found = parse_policy(
        policy(
            {"level": "Request", "users": ["alice"], "omitManagedFields": False},
            {"level": "Request"},
            omitManagedFields=True,
        )
    )
    assert found.decide(GET_POD) == Decision("Request", omit_managed_fields=False)
    assert found.decide(PUT_DEPLOYMENT) == Decision("Request", omit_managed_fields=True)


@pytest.mark.parametrize(
    ("document", "wanted"),
    [
        (None, "policy: NoneType: want an object"),
        ([], "policy: list"),
        ({}, "apiVersion: None"),
        ({"apiVersion": "audit.k8s.io/v1beta1", "kind": "Policy"}, "apiVersion: 'audit.k8s.io/v1b"),
        ({"apiVersion": "audit.k8s.io/v1", "kind": "Rules"}, "kind: 'Rules'"),
        (policy(), "rules: want one at least"),
        ({**policy(), "rules": {}}, "rules: dict: want a list"),
        (policy({}), r"rules\[0\].level: None: want one of None, Metadata, Request"),
        (policy({"level": "metadata"}), r"rules\[0\].level: 'metadata'"),
        (policy({"level": "RequestResponse"}), r"rules\[0\].level: RequestResponse: answers are"),
        (
            policy({"level": "None"}, {"level": "Metadata", "user": []}),
            r"rules\[1\]: unknown field",
        ),
        (policy({"level": "Metadata", "users": "alice"}), r"rules\[0\].users: str: want a list"),
        (policy({"level": "Metadata", "verbs": [7]}), r"rules\[0\].verbs\[0\]: 7: want a string"),
        (policy({"level": "Metadata", "omitStages": ["Late"]}), r"rules\[0\].omitStages: 'Late'"),
        (policy({"level": "Metadata"}, omitStages=["Late"]), "omitStages: 'Late'"),
        (policy({"level": "Metadata"}, omitManagedFields="yes"), "omitManagedFields: 'yes'"),
        (policy({"level": "Metadata"}, backend="x"), "policy: unknown field 'backend'"),
        (
            policy({"level": "Metadata", "resources": [{"group": "apps/v1"}]}),
            r"rules\[0\].resources\[0\].group: 'apps/v1'",
        ),
        (
            policy({"level": "Metadata", "resources": ["pods"]}),
            r"rules\[0\].resources\[0\]: str: want an object",
        ),
        (
            policy({"level": "Metadata", "resources": [{"resourceNames": ["x"]}]}),
            "resourceNames: needs resources",
        ),
        (
            policy({"level": "Metadata", "namespaces": ["a"], "nonResourceURLs": ["/x"]}),
            "not for both",
        ),
        (policy({"level": "Metadata", "nonResourceURLs": ["x"]}), "nonResourceURLs: 'x'"),
        (policy({"level": "Metadata", "nonResourceURLs": ["/a*b"]}), "nonResourceURLs"),
    ],
)
def test_a_policy_that_makes_no_sense_is_refused_by_field(document: Any, wanted: str) -> None:
    with pytest.raises(PolicyError, match=wanted):
        parse_policy(document)


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=10,
)


@given(anything, anything)
def test_whatever_a_file_holds_is_a_policy_or_a_refusal(rules: Any, rule: Any) -> None:
    for document in (rules, {**policy(), "rules": rules}, policy(rule), policy({"level": rule})):
        with contextlib.suppress(PolicyError):
            parse_policy(document)


def test_a_policy_from_the_documentation_of_kubernetes_is_understood() -> None:
    text = """
    apiVersion: audit.k8s.io/v1
    kind: Policy
    omitStages: ["RequestReceived"]
    rules:
      - level: Metadata
        resources:
        - group: ""
          resources: ["pods/log", "pods/status"]
      - level: None
        resources:
        - group: ""
          resources: ["configmaps"]
          resourceNames: ["controller-leader"]
      - level: None
        users: ["system:kube-proxy"]
        verbs: ["watch"]
        resources:
        - group: ""
          resources: ["endpoints", "services"]
      - level: None
        userGroups: ["system:authenticated"]
        nonResourceURLs: ["/api*", "/version"]
      - level: Request
        resources:
        - group: ""
        - group: "extensions"
      - level: Metadata
    """
    found = parse_policy(yaml.safe_load(text))
    assert found.decide(POD_LOG).level == "Metadata"
    assert found.decide(GET_POD).level == "Request"
    assert found.decide(PUT_DEPLOYMENT).level == "Metadata"
