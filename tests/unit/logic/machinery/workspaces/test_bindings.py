"""What a binding says of itself."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.api.kinds import GroupResource
from skerry.logic.machinery.workspaces.bindings import Export, Taken, bound_status
from tests.kit.machinery.workspace_bindings import LATER, NOW

CLAIM = {"group": "", "resource": "secrets", "all": True}
ACCEPTED = {"permissionClaims": [{**CLAIM, "state": "Accepted"}]}


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


def said(status: dict[str, Any], kind: str) -> dict[str, Any]:
    return next(dict(c) for c in status["conditions"] if c["type"] == kind)


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
    assert "v1.x.y not found" in said(status, "APIExportValid")["message"]
    assert reasons(status)["Ready"] == "WaitingForEstablished"


def test_a_fault_that_comes_later_does_not_make_a_binding_unready() -> None:
    """Whoever waits for Ready asks whether the types are there, and they still are."""
    bound = bound_status(an_export("widgets", claims=(CLAIM,)), (), ACCEPTED, {}, NOW)
    gone = bound_status(None, (), ACCEPTED, bound, LATER)
    assert reasons(gone) == {**reasons(bound), "APIExportValid": "APIExportNotFound"}
    assert said(gone, "APIExportValid")["lastTransitionTime"] == LATER
    assert said(gone, "Ready")["lastTransitionTime"] == NOW
    taken = Taken(GroupResource("example.io", "gadgets"), "Other", "x")
    clash = bound_status(an_export("widgets", "gadgets"), [taken], {}, bound, LATER)
    assert reasons(clash)["Ready"] == reasons(clash)["InitialBindingCompleted"] == "True"
    assert reasons(clash)["BindingUpToDate"] == "NamingConflicts"


def test_a_binding_that_was_never_bound_says_what_it_waits_for() -> None:
    absent = bound_status(None, (), {}, {}, NOW)
    assert reasons(absent) == {
        "Ready": "WaitingForEstablished",
        "APIExportValid": "APIExportNotFound",
        "InitialBindingCompleted": "WaitingForEstablished",
    }
    taken = Taken(GroupResource("example.io", "widgets"), "Other", "x")
    clash = bound_status(an_export("widgets"), [taken], {}, {}, NOW)
    assert reasons(clash)["Ready"] == reasons(clash)["InitialBindingCompleted"] == "NamingConflicts"
    keyless = Export("c", "root:p", "e", "", ())
    assert said(bound_status(keyless, (), {}, {}, NOW), "APIExportValid")["severity"] == "Warning"


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
    accepted = ACCEPTED
    rejected = {"permissionClaims": [{**CLAIM, "state": "Rejected"}]}
    assert bound_status(export, (), accepted, {}, NOW)["appliedPermissionClaims"] == [CLAIM]
    assert "appliedPermissionClaims" not in bound_status(export, (), rejected, {}, NOW)
    assert "appliedPermissionClaims" not in bound_status(export, (), {}, {}, NOW)
    unasked = bound_status(an_export("widgets"), (), accepted, {}, NOW)
    assert "appliedPermissionClaims" not in unasked
    assert reasons(unasked)["PermissionClaimsValid"] == "InvalidPermissionClaims"
    assert said(unasked, "PermissionClaimsValid")["message"] == (
        "1 unexpected and/or invalid permission claims (showing first 1): unexpected/invalid claim "
        'for secrets. (identity "")'
    )
    refused = bound_status(an_export("widgets"), (), rejected, {}, NOW)
    assert reasons(refused)["PermissionClaimsValid"] == "True"
