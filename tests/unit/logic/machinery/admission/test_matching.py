"""Which requests rules and selectors mean."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from skerry.api.kinds import GroupVersionResource
from skerry.logic.machinery.admission.matching import Subject, match_of

DEPLOYMENTS = GroupVersionResource("apps", "v1", "deployments")
BETA = GroupVersionResource("apps", "v1beta1", "deployments")
SUBJECT = Subject(
    "CREATE", [DEPLOYMENTS], "", True, "web", {"tier": "front"}, None, {"env": "prod"}
)
RULE = {"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"]}


def means(subject: Subject = SUBJECT, *, rule: Any = None, **match: Any) -> bool:
    raw = {"resourceRules": [{**RULE, **(rule or {})}], **match}
    return match_of(raw).matched(subject) is not None


@pytest.mark.parametrize(
    ("rule", "wanted"),
    [
        ({}, True),
        ({"operations": ["CREATE"]}, True),
        ({"operations": ["UPDATE", "DELETE"]}, False),
        ({"apiGroups": ["apps"]}, True),
        ({"apiGroups": [""]}, False),
        ({"apiVersions": ["v2"]}, False),
        ({"resources": ["pods", "deployments"]}, True),
        ({"resources": ["deployments/*"]}, False),
        ({"resources": ["*/*"]}, True),
        ({"resourceNames": ["web"]}, True),
        ({"resourceNames": ["other"]}, False),
        ({"scope": "Namespaced"}, True),
        ({"scope": "Cluster"}, False),
    ],
)
def test_a_rule_means_what_all_its_parts_mean(rule: dict[str, Any], wanted: bool) -> None:
    assert means(rule=rule) is wanted


@pytest.mark.parametrize(
    ("resources", "wanted"),
    [
        (["deployments"], False),
        (["*"], False),
        (["deployments/scale"], True),
        (["deployments/*"], True),
        (["*/scale"], True),
        (["*/*"], True),
        (["deployments/status"], False),
    ],
)
def test_a_subresource_is_meant_only_by_name_or_with_a_slash(
    resources: list[str], wanted: bool
) -> None:
    assert means(replace(SUBJECT, subresource="scale"), rule={"resources": resources}) is wanted


def test_an_excluding_rule_outweighs_the_others() -> None:
    excluded = [{**RULE, "resourceNames": ["web"]}]
    assert not means(excludeResourceRules=excluded)
    assert means(replace(SUBJECT, name="other"), excludeResourceRules=excluded)


def test_the_namespace_selector_looks_at_the_namespace_and_ignores_objects_in_none() -> None:
    prod, test = ({"matchLabels": {"env": value}} for value in ("prod", "test"))
    assert means(namespaceSelector=prod)
    assert not means(namespaceSelector=test)
    assert means(replace(SUBJECT, namespace_labels=None), namespaceSelector=test)


def test_the_object_selector_matches_by_the_new_object_or_the_old() -> None:
    wanted: Any = {"objectSelector": {"matchLabels": {"tier": "back"}}}
    assert not means(**wanted)
    assert means(replace(SUBJECT, old_labels={"tier": "back"}), **wanted)
    assert means(replace(SUBJECT, labels={"tier": "back"}, old_labels={}), **wanted)


def test_another_version_is_meant_unless_the_match_is_exact() -> None:
    subject = replace(SUBJECT, resources=[BETA, DEPLOYMENTS])
    match = {"resourceRules": [{**RULE, "apiVersions": ["v1"]}]}
    assert match_of(match).matched(subject) == DEPLOYMENTS
    assert match_of({**match, "matchPolicy": "Exact"}).matched(subject) is None


def test_the_version_of_the_request_goes_before_an_equivalent_one() -> None:
    subject = replace(SUBJECT, resources=[BETA, DEPLOYMENTS])
    assert match_of({"resourceRules": [RULE]}).matched(subject) == BETA


def test_without_rules_everything_is_meant() -> None:
    assert match_of(None).matched(SUBJECT) == DEPLOYMENTS


def test_a_namespace_is_cluster_scoped_whatever_its_path_says() -> None:
    namespaces = GroupVersionResource("", "v1", "namespaces")
    subject = replace(SUBJECT, resources=[namespaces], namespaced=True)
    assert means(subject, rule={"scope": "Cluster"})
    assert not means(subject, rule={"scope": "Namespaced"})
