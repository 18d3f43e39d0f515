"""What a binding says of itself, and what a workspace is born with."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.api.kcp import compute, edge, tenancy
from skerry.api.kinds import GroupResource
from skerry.logic.machinery import crd
from skerry.logic.machinery.builtin import builtin_resources
from skerry.logic.machinery.workspaces.bindings import Export, Taken, bound_status
from skerry.logic.machinery.workspaces.schemas import (
    native_schema_object,
    resources_of,
    schema_object,
)
from skerry.logic.machinery.workspaces.workspace_content import (
    NewWorkspace,
    complete_workspace,
    first_objects,
    logical_cluster,
    owner_of,
    owner_text,
    settle_initializers,
)

NOW, LATER = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"
CLAIM = {"group": "", "resource": "secrets", "all": True}


def offering(plural: str = "widgets") -> dict[str, Any]:
    return {
        "metadata": {"name": f"v1.{plural}.example.io", "uid": f"uid-{plural}"},
        "spec": {
            "group": "example.io",
            "names": {"plural": plural, "kind": plural[:-1].title()},
            "versions": [{"name": "v1", "storage": True}],
        },
    }


def an_export(*plurals: str, **more: Any) -> Export:
    return Export("c", "root:p", "e", "id", tuple(offering(p) for p in plurals), **more)


def reasons(status: dict[str, Any]) -> dict[str, str]:
    return {c["type"]: c.get("reason", c["status"]) for c in status["conditions"]}


def test_a_healthy_binding_is_bound_and_says_so() -> None:
    status = bound_status(an_export("widgets"), (), {}, {}, NOW)
    assert status["phase"] == "Bound"
    assert set(reasons(status).values()) == {"True"}
    assert [each["resource"] for each in status["boundResources"]] == ["widgets"]


def test_binding_again_changes_nothing() -> None:
    once = bound_status(an_export("widgets", "gadgets"), (), {}, {}, NOW)
    assert bound_status(an_export("widgets", "gadgets"), (), {}, once, LATER) == once


def test_what_was_bound_stays_bound() -> None:
    both = bound_status(an_export("widgets", "gadgets"), (), {}, {}, NOW)
    fewer = bound_status(an_export("widgets"), (), {}, both, LATER)
    assert fewer["boundResources"] == both["boundResources"]
    gone = bound_status(None, (), {}, both, LATER)
    assert gone["boundResources"] == both["boundResources"]
    assert (gone["phase"], gone["apiExportClusterName"]) == ("Bound", "c")
    assert reasons(gone)["APIExportValid"] == "APIExportNotFound"


def test_a_schema_that_is_missing_is_named() -> None:
    status = bound_status(an_export(missing=("v1.x.y",)), (), {}, {}, NOW)
    assert status["phase"] == "Binding"
    assert "v1.x.y not found" in status["conditions"][0]["message"]


@pytest.mark.parametrize(
    ("taken", "conflicts"),
    [
        (Taken(GroupResource("example.io", "widgets"), "Other", "x"), True),
        (Taken(GroupResource("example.io", "others"), "Widget", "x"), True),
        (Taken(GroupResource("other.io", "widgets"), "Widget", "x"), False),
        (Taken(GroupResource("example.io", "others"), "Other", "x"), False),
    ],
)
def test_plurals_and_kinds_of_one_group_must_be_free(taken: Taken, conflicts: bool) -> None:
    status = bound_status(an_export("widgets"), [taken], {}, {}, NOW)
    assert (reasons(status)["BindingUpToDate"] == "NamingConflicts") is conflicts


def test_a_claim_holds_when_made_and_accepted() -> None:
    export = an_export("widgets", claims=(CLAIM,))
    accepted = {"permissionClaims": [{**CLAIM, "state": "Accepted"}]}
    rejected = {"permissionClaims": [{**CLAIM, "state": "Rejected"}]}
    assert bound_status(export, (), accepted, {}, NOW)["appliedPermissionClaims"] == [CLAIM]
    assert "appliedPermissionClaims" not in bound_status(export, (), rejected, {}, NOW)
    assert "appliedPermissionClaims" not in bound_status(export, (), {}, {}, NOW)
    unasked = bound_status(an_export("widgets"), (), accepted, {}, NOW)
    assert "appliedPermissionClaims" not in unasked
    assert reasons(unasked)["PermissionClaimsValid"] == "InvalidPermissionClaims"


# -- creation --------------------------------------------------------------------------------


def test_a_workspace_with_initializers_waits_until_the_last_is_gone() -> None:
    new = NewWorkspace("c", "root:w", "https://h/clusters/c", "root:t", NOW, "me", ["a:b", "c:d"])
    workspace: dict[str, Any] = {"kind": "Workspace", "metadata": {"name": "w"}, "spec": {}}
    complete_workspace(workspace, new)
    cluster = logical_cluster(new, None)
    for obj in (workspace, cluster):
        assert obj["status"]["phase"] == "Initializing"
        settle_initializers(obj, ["c:d"], LATER)
        assert obj["status"]["initializers"] == ["c:d"]
        assert obj["status"]["conditions"][0]["message"] == "Initializers still exist: [c:d]"
        settle_initializers(obj, [], LATER)
        assert obj["status"]["phase"] == "Ready"
        assert "initializers" not in obj["status"]
        assert obj["metadata"]["labels"] == {"tenancy.kcp.io/phase": "Ready"}
        assert obj["status"]["conditions"][0]["status"] == "True"


def test_the_owner_is_read_back_from_the_annotation() -> None:
    assert owner_of(owner_text('odd "name"')) == 'odd "name"'
    assert owner_of("") == owner_of("no json") == owner_of("[]") == ""


def test_only_an_owner_becomes_administrator() -> None:
    assert "ClusterRoleBinding" not in [obj["kind"] for obj in first_objects("", "ca")]
    *_, granted = first_objects("me", "ca")
    assert granted["subjects"][0]["name"] == "me"


# -- schemas ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "definition",
    [*edge.definitions(), tenancy.workspace(), tenancy.workspace_type(), compute.sync_target(),
     compute.location()],
    ids=lambda d: d["metadata"]["name"],
)  # fmt: skip
def test_a_schema_brings_the_type_its_definition_defines(definition: dict[str, Any]) -> None:
    [own] = crd.resources_of(definition)
    [bound] = resources_of(schema_object(definition, "v1"), "id")
    assert (bound.info, bound.schema, bound.identity) == (own.info, own.schema, "id")


def test_native_kinds_are_served_in_their_own_form_but_inert() -> None:
    native = next(r for r in builtin_resources() if r.info.resource == "deployments")
    [served] = resources_of(native_schema_object(native, "v124"), "id")
    assert served.schema is native.schema
    assert served.columns == native.columns
    obj = {"metadata": {"name": "d"}, "spec": {}}
    served.default(obj)
    served.prepare_create(obj)
    assert obj == {"metadata": {"name": "d"}, "spec": {}}
