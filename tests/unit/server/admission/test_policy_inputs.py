"""What expressions of a policy see of a write."""

from __future__ import annotations

from typing import Any, Literal

import pytest

from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.server.admission.operation import Operation
from skerry.server.admission.policy_inputs import inputs_of, objects_of
from skerry.server.http.message import Request
from skerry.server.user import User
from tests.kit.machinery.objects import resource
from tests.kit.server.calls import call_of

DEPLOYMENTS = GroupVersionResource("apps", "v1", "deployments")
OBJ: Object = {"metadata": {"name": "web"}, "spec": {"replicas": 3}}


def operation(
    verb: Literal["CREATE", "UPDATE", "DELETE", "CONNECT"] = "CREATE",
    query: str = "",
    body: bytes = b"",
    old: Object | None = None,
    **more: Any,
) -> Operation:
    request = Request("POST", "/", query, {"content-type": "application/json"}, body)
    user = User("ann", groups=("dev",), extra={"k": ("v",)})
    call = call_of(
        resource("deployments", "apps"), user=user, request=request, namespace="shop",
        name="web", verb={"DELETE": "delete"}.get(verb, "create"),
    )  # fmt: skip
    return Operation(call, verb, OBJ, old, **more)


def request_of(asked: Operation) -> Any:
    return inputs_of(asked, DEPLOYMENTS, None).request


def test_a_deleted_object_is_the_old_one() -> None:
    assert objects_of(operation(), DEPLOYMENTS) == (OBJ, None)
    assert objects_of(operation("UPDATE", old={"a": 1}), DEPLOYMENTS) == (OBJ, {"a": 1})
    assert objects_of(operation("DELETE"), DEPLOYMENTS) == (None, OBJ)


def test_a_scale_is_seen_as_one_and_options_of_a_connection_without_metadata() -> None:
    seen, _ = objects_of(operation("UPDATE", subresource="scale"), DEPLOYMENTS)
    assert seen is not None
    assert (seen["kind"], seen["spec"]) == ("Scale", {"replicas": 3})
    options, _ = objects_of(operation("CONNECT"), DEPLOYMENTS)
    assert options == {"spec": {"replicas": 3}}


def test_a_request_says_who_asks_what_of_whom() -> None:
    found = request_of(operation(dry_run=True))
    assert found["userInfo"] == {"username": "ann", "groups": ["dev"], "extra": {"k": ["v"]}}
    assert found["kind"] == {"group": "apps", "version": "v1", "kind": "Deployment"}
    assert (found["name"], found["namespace"], found["operation"]) == ("web", "shop", "CREATE")
    assert found["dryRun"] is True
    assert "subResource" not in found
    scaled = request_of(operation("UPDATE", subresource="scale"))
    assert (scaled["subResource"], scaled["kind"]["kind"]) == ("scale", "Scale")


@pytest.mark.parametrize(
    ("verb", "query", "body", "wanted"),
    [
        ("CREATE", "fieldManager=me", b"", {"kind": "CreateOptions", "fieldManager": "me"}),
        ("UPDATE", "", b"", {"kind": "UpdateOptions"}),
        ("DELETE", "gracePeriodSeconds=5", b"",
         {"kind": "DeleteOptions", "gracePeriodSeconds": 5}),
        ("DELETE", "propagationPolicy=Orphan", b'{"gracePeriodSeconds": 7}',
         {"kind": "DeleteOptions", "gracePeriodSeconds": 7, "propagationPolicy": "Orphan"}),
    ],
)  # fmt: skip
def test_options_are_those_of_the_verb(verb: Any, query: str, body: bytes, wanted: Object) -> None:
    found = request_of(operation(verb, query, body))["options"]
    assert found == {"apiVersion": "meta.k8s.io/v1", **wanted}


@pytest.mark.parametrize("text", ["%C2%B2", "%D9%A3", "9" * 5000, "-1", "soon"])
def test_seconds_that_are_no_number_are_left_out(text: str) -> None:
    found = request_of(operation("DELETE", f"gracePeriodSeconds={text}"))["options"]
    assert "gracePeriodSeconds" not in found


def test_a_connection_has_no_options() -> None:
    assert request_of(operation("CONNECT"))["options"] is None
