"""Client configurations: what they say, what is refused, what is filled in."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.logic.machinery.webhook_clients import client_config, client_errors, default_client


def service(**more: Any) -> dict[str, Any]:
    return {"service": {"name": "s", "namespace": "n", **more}}


def test_a_url_is_taken_apart() -> None:
    found = client_config({"url": "https://h.example.com:8443/a/b", "caBundle": "eA=="})
    assert (found.host, found.port, found.path) == ("h.example.com", 8443, "/a/b")
    assert (found.ca_bundle, found.service) == (b"x", None)
    assert client_config({"url": "https://h"}).port == 443


@pytest.mark.parametrize(
    ("given", "asked"),
    [
        ("", "/"),
        ("/", "/"),
        ("//failing", "/failing"),
        ("/a/", "/a"),
        ("/a//b", "/a/b"),
        ("/a/../b", "/b"),
        ("/a%2Fb", "/a%2Fb"),
    ],
)
def test_a_path_is_asked_for_as_kubernetes_client_does(given: str, asked: str) -> None:
    found = client_config({"url": f"https://h:1{given}"})
    assert (found.path, found.url) == (asked, f"https://h:1{asked if given else ''}")
    assert client_config(service(path=given)).path == asked


def test_a_service_is_known_by_its_name() -> None:
    found = client_config(service(path="/v"))
    assert found.service is not None
    assert (found.host, found.url) == ("s.n.svc", "https://s.n.svc:443/v")
    assert client_config({**service(), "caBundle": "é"}).ca_bundle is None


def test_the_port_of_a_service_is_filled_in() -> None:
    raw = service()
    default_client(raw)
    assert raw["service"]["port"] == 443
    default_client(None)


@pytest.mark.parametrize(
    ("raw", "field", "text"),
    [
        ({}, "", "Required value: exactly one of url or service is required"),
        ({"url": "http://a/b"}, ".url", "'https' is the only allowed URL scheme"),
        ({"url": "https:///b"}, ".url", "host must be specified"),
        ({"url": "https://u:p@a/b"}, ".url", "user information is not permitted in the URL"),
        ({"url": "https://a/b#f"}, ".url", "fragments are not permitted in the URL"),
        ({"url": "https://a/b?q=1"}, ".url", "query parameters are not permitted in the URL"),
        ({"url": "https://a:port/"}, ".url", "url must be a valid URL"),
        ({"url": "https://[::1/"}, ".url", "url must be a valid URL"),
        (service(port=70000), ".service.port", "port is not valid"),
        (service(path="x"), ".service.path", "must start with a '/'"),
        (service(path="//"), ".service.path", "segment[0] may not be empty"),
        (service(path="/a//b/"), ".service.path", "segment[1] may not be empty"),
        ({"service": {"namespace": "n"}}, ".service.name", "service name is required"),
    ],
)
def test_what_leads_nowhere_is_refused(raw: dict[str, Any], field: str, text: str) -> None:
    found = [error for error in client_errors(raw, "c") if error.field == f"c{field}"]
    assert any(text in error.message for error in found)


def test_a_good_configuration_is_accepted() -> None:
    assert client_errors(service(path="/a/b.c/"), "c") == []
    assert client_errors({"url": "https://127.0.0.1:1/x"}, "c") == []
