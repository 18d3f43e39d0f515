"""Roles and bindings as objects: what is refused of rules, references and subjects."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.api.objects import Object
from skerry.logic.machinery.builtin.rbac import GROUP, rule_errors
from tests.kit.machinery.objects import created, errors_of, named, resource, update_errors

ROLES, CLUSTER_ROLES = resource("roles", GROUP), resource("clusterroles", GROUP)
BINDINGS = resource("rolebindings", GROUP)
CLUSTER_BINDINGS = resource("clusterrolebindings", GROUP)
RULE: Object = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}
URL: Object = {"verbs": ["get"], "nonResourceURLs": ["/healthz"]}


def binding(to: Any = BINDINGS, role: str = "ClusterRole", **subject: Any) -> Object:
    subjects = [subject] if subject else []
    return named(to, roleRef={"kind": role, "name": "r"}, subjects=subjects)


def fields(kind: Any, obj: Object) -> list[str]:
    return [text.split(": ")[0] for text in errors_of(kind, obj)]


@pytest.mark.parametrize(
    ("rule", "namespaced", "found"),
    [
        (RULE, True, []),
        (URL, False, []),
        (URL, True, ["r.nonResourceURLs"]),
        ({}, True, ["r.verbs", "r.apiGroups", "r.resources"]),
        ({**RULE, "apiGroups": []}, True, ["r.apiGroups"]),
        ({**URL, **RULE}, False, ["r.nonResourceURLs"]),
        ({**URL, "resourceNames": ["a"]}, False, ["r.nonResourceURLs"]),
    ],
)
def test_a_rule_is_about_resources_or_about_paths(
    rule: Object, namespaced: bool, found: list[str]
) -> None:
    assert [error.field for error in rule_errors(rule, "r", namespaced=namespaced)] == found


def test_paths_are_for_the_whole_cluster() -> None:
    assert errors_of(CLUSTER_ROLES, named(CLUSTER_ROLES, rules=[URL])) == []
    assert fields(ROLES, named(ROLES, rules=[RULE, URL])) == ["rules[1].nonResourceURLs"]


def test_an_aggregation_selects_something() -> None:
    def of(**rule: Any) -> list[str]:
        return fields(CLUSTER_ROLES, named(CLUSTER_ROLES, rules=[], aggregationRule=rule))

    assert of() == ["aggregationRule.clusterRoleSelectors"]
    assert of(clusterRoleSelectors=[{"matchLabels": {"a": "b"}}]) == []
    (found,) = of(clusterRoleSelectors=[{"matchLabels": {"a b": "c"}}])
    assert found.startswith("aggregationRule.clusterRoleSelectors[0]")


def test_groups_of_references_and_people_are_filled_in() -> None:
    made = created(BINDINGS, binding(kind="User", name="alice"))
    assert made["roleRef"]["apiGroup"] == GROUP
    assert made["subjects"][0]["apiGroup"] == GROUP
    account = created(BINDINGS, binding(kind="ServiceAccount", name="a", namespace="n"))
    assert "apiGroup" not in account["subjects"][0]


def test_a_binding_of_the_cluster_refers_to_a_role_of_the_cluster() -> None:
    assert errors_of(BINDINGS, binding(role="Role")) == []
    assert fields(CLUSTER_BINDINGS, binding(CLUSTER_BINDINGS, "Role")) == ["roleRef.kind"]


@pytest.mark.parametrize(
    ("reference", "found"),
    [
        ({"kind": "Role"}, ["roleRef.name"]),
        ({"kind": "Role", "name": "a/b"}, ["roleRef.name"]),
        ({"kind": "Role", "name": "a", "apiGroup": "x"}, ["roleRef.apiGroup"]),
        ({"name": "a"}, ["roleRef.kind"]),
    ],
)
def test_a_reference_is_whole(reference: Object, found: list[str]) -> None:
    assert fields(BINDINGS, named(BINDINGS, roleRef=reference)) == found


@pytest.mark.parametrize(
    ("subject", "found"),
    [
        ({"kind": "User", "name": "a b"}, []),
        ({"kind": "User"}, ["subjects[0].name"]),
        ({"kind": "Group", "name": "a", "apiGroup": "x"}, ["subjects[0].apiGroup"]),
        ({"kind": "ServiceAccount", "name": "UP"}, ["subjects[0].name"]),
        ({"kind": "ServiceAccount", "name": "a", "apiGroup": "x"}, ["subjects[0].apiGroup"]),
        ({"kind": "Robot", "name": "a"}, ["subjects[0].kind"]),
    ],
)
def test_a_subject_is_a_user_a_group_or_an_account(subject: Object, found: list[str]) -> None:
    assert fields(BINDINGS, named(BINDINGS, roleRef={"kind": "Role", "name": "r"},
                                  subjects=[subject])) == found  # fmt: skip


def test_only_in_a_namespace_an_account_may_leave_out_its_own() -> None:
    account = {"kind": "ServiceAccount", "name": "a"}
    reference = {"kind": "ClusterRole", "name": "r"}
    assert fields(BINDINGS, named(BINDINGS, roleRef=reference, subjects=[account])) == []
    obj = named(CLUSTER_BINDINGS, roleRef=reference, subjects=[account])
    assert fields(CLUSTER_BINDINGS, obj) == ["subjects[0].namespace"]


def test_a_binding_is_to_one_role_for_ever() -> None:
    (text,) = update_errors(BINDINGS, binding(), {"roleRef": {"name": "other"}})
    assert text.endswith("cannot change roleRef")
    change = {"subjects": [{"kind": "User", "name": "b"}]}
    assert update_errors(BINDINGS, binding(), change) == []


def test_names_of_roles_may_have_colons() -> None:
    obj = named(CLUSTER_ROLES, rules=[RULE])
    obj["metadata"]["name"] = "system:node"
    assert errors_of(CLUSTER_ROLES, obj) == []
