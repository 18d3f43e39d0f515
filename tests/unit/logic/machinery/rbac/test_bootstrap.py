"""The roles a cluster begins with: Kubernetes' names, and who may do what by them."""

from __future__ import annotations

import pytest

from skerry.logic.machinery.rbac.bootstrap import bootstrap_objects
from skerry.logic.machinery.rbac.policy import Action, Policy
from tests.kit.machinery.objects import errors_of, resource

GROUP = "rbac.authorization.k8s.io"
PLURALS = {
    "Role": "roles",
    "ClusterRole": "clusterroles",
    "RoleBinding": "rolebindings",
    "ClusterRoleBinding": "clusterrolebindings",
}
POLICY = Policy()
for _each in bootstrap_objects():
    POLICY.put(_each)


def may(user: str, *groups: str, verb: str, resource: str, **action: str) -> bool:
    return POLICY.decide(user, groups, Action(verb, resource=resource, **action)).allowed


def test_every_object_is_such_as_a_client_could_write() -> None:
    for obj in bootstrap_objects():
        assert errors_of(resource(PLURALS[obj["kind"]], GROUP), obj) == []


def test_tools_find_them_by_label_and_annotation() -> None:
    for obj in bootstrap_objects():
        metadata = obj["metadata"]
        assert metadata["labels"]["kubernetes.io/bootstrapping"] == "rbac-defaults"
        assert metadata["annotations"] == {"rbac.authorization.kubernetes.io/autoupdate": "true"}


def test_each_is_there_once_and_bindings_lead_to_roles() -> None:
    objects = bootstrap_objects()
    names = [(o["kind"], o["metadata"].get("namespace"), o["metadata"]["name"]) for o in objects]
    assert len(set(names)) == len(names)
    for obj in objects:
        if "roleRef" in obj:
            reference = obj["roleRef"]
            place = obj["metadata"].get("namespace") if reference["kind"] == "Role" else None
            assert (reference["kind"], place, reference["name"]) in names


def test_what_is_returned_may_be_changed() -> None:
    bootstrap_objects()[0]["metadata"]["name"] = "changed"
    assert bootstrap_objects()[0]["metadata"]["name"] != "changed"


@pytest.mark.parametrize("verb", ["get", "create", "delete", "escalate"])
def test_masters_may_do_anything(verb: str) -> None:
    assert may("root", "system:masters", verb=verb, resource="anything", group="x.io")


def test_nobody_else_may_do_much() -> None:
    assert not may("alice", "system:authenticated", verb="get", resource="pods", namespace="n")
    assert may(
        "alice",
        "system:authenticated",
        verb="create",
        resource="selfsubjectaccessreviews",
        group="authorization.k8s.io",
    )
    version = Action("get", path="/version")
    assert POLICY.decide("x", ("system:unauthenticated",), version).allowed
    assert not POLICY.decide(
        "x", ("system:unauthenticated",), Action("get", path="/metrics")
    ).allowed


def test_viewers_edit_nothing_and_editors_grant_nothing() -> None:
    def rules(role: str) -> set[tuple[str, str]]:
        found = POLICY.role_rules("ClusterRole", "", role) or ()
        return {(verb, each) for rule in found for verb in rule.verbs for each in rule.resources}

    view, edit, admin = rules("view"), rules("edit"), rules("admin")
    assert ("get", "pods") in view
    assert not {verb for verb, _ in view} - {"get", "list", "watch"}
    assert not any(name == "secrets" for _, name in view)
    assert view < edit < admin
    assert ("create", "pods") in edit
    assert not any(name.startswith("role") and name != "roles/x" for _, name in edit)
    assert ("create", "rolebindings") in admin


def test_every_controller_has_a_role_for_its_account() -> None:
    bound = {
        obj["subjects"][0]["name"]: obj["roleRef"]["name"]
        for obj in bootstrap_objects()
        if obj["metadata"]["name"].startswith("system:controller:") and "subjects" in obj
    }
    assert bound
    assert all(role == f"system:controller:{account}" for account, role in bound.items())
