"""What a method and a path mean."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.server.request.info import RequestInfo, request_info


def parsed(method: str, path: str, **query: str) -> RequestInfo:
    return request_info(method, path, query, "local")


@pytest.mark.parametrize(
    ("method", "path", "verb", "group", "resource", "subresource", "namespace", "name"),
    [
        ("GET", "/api/v1/pods", "list", "", "pods", "", "", ""),
        ("GET", "/api/v1/namespaces/n/pods", "list", "", "pods", "", "n", ""),
        ("GET", "/api/v1/namespaces/n/pods/p", "get", "", "pods", "", "n", "p"),
        ("HEAD", "/api/v1/namespaces/n/pods/p", "get", "", "pods", "", "n", "p"),
        ("POST", "/api/v1/namespaces/n/pods", "create", "", "pods", "", "n", ""),
        ("PUT", "/api/v1/namespaces/n/pods/p/status", "update", "", "pods", "status", "n", "p"),
        ("PATCH", "/apis/apps/v1/namespaces/n/deployments/d", "patch", "apps", "deployments", "",
         "n", "d"),
        ("DELETE", "/api/v1/namespaces/n/pods", "deletecollection", "", "pods", "", "n", ""),
        ("DELETE", "/api/v1/namespaces/n/pods/p", "delete", "", "pods", "", "n", "p"),
        ("GET", "/api/v1/namespaces", "list", "", "namespaces", "", "", ""),
        ("GET", "/api/v1/namespaces/n", "get", "", "namespaces", "", "n", "n"),
        ("PUT", "/api/v1/namespaces/n/finalize", "update", "", "namespaces", "finalize", "n", "n"),
        ("GET", "/api/v1/namespaces/n/status", "get", "", "namespaces", "status", "n", "n"),
        ("GET", "/api/v1/watch/namespaces/n/pods", "watch", "", "pods", "", "n", ""),
        ("GET", "/api/v1/watch/pods", "watch", "", "pods", "", "", ""),
        ("GET", "/api/v1/nodes/n/proxy/a/b", "get", "", "nodes", "proxy", "", "n"),
        ("GET", "/apis/apps/v1/deployments/", "list", "apps", "deployments", "", "", ""),
    ],
)  # fmt: skip
def test_paths_name_resources(
    method: str,
    path: str,
    verb: str,
    group: str,
    resource: str,
    subresource: str,
    namespace: str,
    name: str,
) -> None:
    info = parsed(method, path)
    assert info.is_resource
    found = (info.verb, info.group, info.resource, info.subresource, info.namespace, info.name)
    assert found == (verb, group, resource, subresource, namespace, name)


_SEGMENTS = ("", "api", "apps", "v1", "namespaces", "watch", "pods", "status", "finalize", "n", "x")
_PREFIXES = (
    "/api/v1/",
    "/apis/apps/v1/",
    "/api/v1/namespaces/n/",
    "/api/v1/pods//",
    "/",
    "//api/v1/",
)


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "BREW"])
def test_a_path_means_the_same_whether_its_collection_is_known_or_not(method: str) -> None:
    for count in range(4):
        for prefix, *segments in product(_PREFIXES, *(_SEGMENTS,) * count):
            path = prefix + "/".join(segments)
            # With a query nothing that was parsed before is used; this one means nothing.
            expected = request_info(method, path, {"pretty": ""}, "local")
            assert request_info(method, path, {}, "local") == expected, path


def test_what_follows_a_proxy_is_kept() -> None:
    assert parsed("GET", "/api/v1/nodes/n/proxy/a/b").rest == "a/b"


@pytest.mark.parametrize(
    "path", ["/", "/api", "/api/v1", "/apis", "/apis/apps", "/apis/apps/v1", "/healthz", "/version"]
)
def test_other_paths_are_no_resources(path: str) -> None:
    info = parsed("GET", path)
    assert not info.is_resource
    assert info.verb == "get"
    assert parsed("POST", path).verb == "post"


@pytest.mark.parametrize("text", ["1", "t", "true", "TRUE", "", "yes", "f", "maybe"])
def test_anything_but_zero_and_false_begins_a_watch_of_a_collection(text: str) -> None:
    assert parsed("GET", "/api/v1/pods", watch=text).verb == "watch"
    assert parsed("GET", "/api/v1/namespaces/n/pods/p", watch=text).verb == "get"


@pytest.mark.parametrize("text", ["0", "false", "False"])
def test_zero_and_false_do_not(text: str) -> None:
    assert parsed("GET", "/api/v1/pods", watch=text).verb == "list"


def test_a_field_selector_may_pin_one_name() -> None:
    path = "/api/v1/pods"
    assert parsed("GET", path, fieldSelector="metadata.name=a").selected_name == "a"
    assert parsed("GET", path, fieldSelector="x=y,metadata.name==a").selected_name == "a"
    for selector in ("metadata.name!=a", "spec.nodeName=a", "garbage", ""):
        assert parsed("GET", path, fieldSelector=selector).selected_name == ""
    assert parsed("DELETE", path, fieldSelector="metadata.name=a").selected_name == ""


@given(st.text(max_size=30), st.sampled_from(["GET", "POST", "BREW", ""]))
def test_any_path_is_taken_apart(path: str, method: str) -> None:
    info = request_info(method, "/" + path, {}, "local")
    assert info.path == "/" + path
    assert info.is_resource == bool(info.resource or info.is_resource)
