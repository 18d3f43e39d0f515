"""What of a request's body an audit event has, and what it never has."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from skerry.server.http.message import Request
from skerry.server.request.info import RequestInfo
from skerry.server.security.audit_objects import OMITTED, add_request_object

SECRET = {"kind": "Secret", "data": {"a": "c2VjcmV0"}}
MAP = {"kind": "ConfigMap", "metadata": {"name": "m", "managedFields": [{"manager": "me"}]}}


def audited(
    body: bytes | Any,
    media: str = "application/json",
    code: int = 201,
    *,
    omit: bool = False,
    **info: Any,
) -> dict[str, Any]:
    """Return the event, with what it says of the request's body as JSON."""
    raw = body if isinstance(body, bytes) else orjson.dumps(body)
    request = Request("POST", "/x", headers={"content-type": media}, body=raw)
    asked = {"verb": "create", "is_resource": True, "resource": "configmaps", **info}
    event: dict[str, Any] = {"annotations": {"kept": "yes"}}
    add_request_object(event, request, RequestInfo("/x", **asked), code, omit_managed_fields=omit)
    found: dict[str, Any] = orjson.loads(orjson.dumps(event))
    return found


def test_an_object_is_there_as_it_was_sent() -> None:
    assert audited(MAP)["requestObject"] == MAP
    assert audited(b"kind: ConfigMap\n", "application/yaml")["requestObject"]["kind"] == "ConfigMap"
    patch = [{"op": "remove", "path": "/data"}]
    found = audited(patch, "application/json-patch+json", verb="patch")
    assert found["requestObject"] == patch


def test_the_bookkeeping_of_apply_is_left_out_where_that_is_asked_for_in_lists_too() -> None:
    assert audited(MAP, omit=True)["requestObject"]["metadata"] == {"name": "m"}
    listed = {"kind": "List", "items": [MAP, "text"]}
    found = audited(listed, omit=True)["requestObject"]
    assert found["items"] == [{"kind": "ConfigMap", "metadata": {"name": "m"}}, "text"]


@pytest.mark.parametrize(
    ("body", "info"),
    [
        (MAP, {"resource": "secrets"}),
        (MAP, {"resource": "secrets:1234"}),
        (MAP, {"resource": "tokenreviews", "group": "authentication.k8s.io"}),
        (MAP, {"resource": "serviceaccounts", "subresource": "token"}),
        (SECRET, {}),
        ({"kind": "TokenRequest"}, {}),
        ({"kind": "List", "items": [MAP, {"items": [SECRET]}]}, {}),
    ],
)
def test_nothing_secret_is_ever_in_it(body: Any, info: dict[str, Any]) -> None:
    found = audited(body, **info)
    assert "requestObject" not in found
    assert found["annotations"] == {"kept": "yes", OMITTED: "secret"}


@pytest.mark.parametrize(
    ("body", "media", "why"),
    [
        (b'"' + b"x" * 65_535 + b'"', "application/json", "65537 bytes are more than 65536"),
        (b"a: " + b"x" * 8190, "application/yaml", "8193 bytes are more than 8192"),
        (b"{", "application/json", "not understood"),
        (b"\xff\xfe", "application/json", "not understood"),
    ],
)
def test_what_is_large_or_no_document_is_named_and_left_out(
    body: bytes, media: str, why: str
) -> None:
    found = audited(body, media)
    assert "requestObject" not in found
    assert found["annotations"][OMITTED] == why


@pytest.mark.parametrize(
    "more",
    [
        {"verb": "get"},
        {"code": 403},
        {"code": 413},
        {"is_resource": False},
        {"subresource": "proxy"},
        {"subresource": "exec"},
        {"body": b""},
    ],
)
def test_where_nothing_was_written_nothing_is_said(more: dict[str, Any]) -> None:
    assert audited(more.pop("body", MAP), **more) == {"annotations": {"kept": "yes"}}
