"""Which objects a grant's rules let through, and what of an upsync."""

from __future__ import annotations

import pytest

from skerry.api.kinds import GroupResource
from skerry.api.refs import ObjectRef, namespace_ref
from skerry.logic.fleet.placement.grants import Rule
from skerry.logic.fleet.translation.categories import BINDINGS
from skerry.logic.fleet.translation.grants import (
    covers,
    granted_upsync,
    holds_namespaces,
    not_granted,
)
from skerry.logic.fleet.translation.selected import UpsyncSet

ALL = Rule(None, None)
APPS = Rule(frozenset({"apps"}), None)
CLUSTERED = Rule(None, None, namespaced=False, cluster_scoped=True)
EVERYTHING = Rule(None, None, namespaced=True, cluster_scoped=True)
DEPLOYMENT = ObjectRef("", "apps", "deployments", "a", "x")
SECRET = ObjectRef("", "", "secrets", "a", "x")
ROLE = ObjectRef("", "rbac.authorization.k8s.io", "clusterroles", "", "x")
CRD = ObjectRef("", "apiextensions.k8s.io", "customresourcedefinitions", "", "widgets.example.io")
WIDGETS = (GroupResource("example.io", "widgets"), True)


@pytest.mark.parametrize(
    ("rule", "passing"),
    [
        (ALL, {DEPLOYMENT, SECRET}),
        (APPS, {DEPLOYMENT}),
        (CLUSTERED, {ROLE, CRD, namespace_ref("a")}),
        (EVERYTHING, {DEPLOYMENT, SECRET, ROLE, CRD, namespace_ref("a")}),
        (Rule(frozenset({""}), frozenset({"deployments"})), set()),
    ],
)
def test_a_rule_covers_kinds_of_its_scope(rule: Rule, passing: set[ObjectRef]) -> None:
    items = {DEPLOYMENT, SECRET, ROLE, CRD, namespace_ref("a")}
    assert {item for item in items if covers([rule], item)} == passing
    assert not any(covers([], item) for item in items)


def test_a_definition_is_a_cluster_scoped_object_whatever_it_defines() -> None:
    widgets = Rule(frozenset({"example.io"}), None)
    assert not covers([widgets], CRD, [WIDGETS])
    definitions = Rule(frozenset({CRD.group}), None, namespaced=False, cluster_scoped=True)
    assert covers([widgets, definitions], CRD, [WIDGETS])


def test_a_binding_goes_along_with_what_it_brings() -> None:
    item = ObjectRef("", *BINDINGS, "", "bind-kube")
    assert covers([APPS], item, [(GroupResource("apps", "deployments"), True)])
    assert not covers([APPS], item, [WIDGETS])
    assert not covers([APPS], item)


def test_a_namespace_that_holds_copies_needs_a_rule_for_namespaced_objects() -> None:
    assert holds_namespaces([APPS])
    assert not holds_namespaces([])
    roles = Rule(None, frozenset({"clusterroles"}), namespaced=False, cluster_scoped=True)
    assert not holds_namespaces([roles])


@pytest.mark.parametrize(
    ("resources", "namespaces", "rule", "left"),
    [
        (("pods", "secrets"), ("*",), Rule(None, frozenset({"pods"})), ("pods",)),
        (("pods",), (), ALL, ()),
        (("nodes",), (), CLUSTERED, ("nodes",)),
        (("*",), ("*",), ALL, ()),
        (("*",), ("*",), EVERYTHING, ("*",)),
        (("*",), ("x",), Rule(None, frozenset({"pods", "jobs"})), ("jobs", "pods")),
        (("pods",), ("*",), APPS, ()),
    ],
)
def test_what_comes_up_is_cut_to_the_rules(
    resources: tuple[str, ...], namespaces: tuple[str, ...], rule: Rule, left: tuple[str, ...]
) -> None:
    """A list of all kinds is about cluster-scoped ones as well, so it needs both scopes."""
    found = list(granted_upsync([UpsyncSet("", resources, namespaces, ("*",))], [rule]))
    assert [each.resources for each in found] == ([left] if left else [])
    assert all((each.namespaces, each.names) == (namespaces, ("*",)) for each in found)


def test_what_is_reported_names_the_grant() -> None:
    problem = not_granted(SECRET, "root:imw/eu-only", held=True)
    assert problem.reason == "NotGranted"
    assert problem.message.startswith("secrets a/x is not granted by root:imw/eu-only")
    assert "stays" in problem.message
