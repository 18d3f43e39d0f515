"""What travels through a tunnel: requests about pods, and nothing that could become another."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.logic.machinery.edges.tunnel import (
    PodRequest,
    TunnelRequestError,
    answer_of,
    opening_of,
    pod_request,
    read_answer,
    read_opening,
    tunnel_path,
)

SHOP = "/api/v1/namespaces/shop/pods"
WEBSOCKET = {"upgrade": "websocket", "connection": "Upgrade", "sec-websocket-key": "abc"}


@pytest.mark.parametrize(
    ("path", "wanted", "verb"),
    [
        (SHOP, PodRequest("shop", "", "pods"), "list"),
        (f"{SHOP}/web-1", PodRequest("shop", "web-1", "pods"), "get"),
        (f"{SHOP}/web-1/log", PodRequest("shop", "web-1", "log"), "get"),
        (f"{SHOP}/web-1/exec", PodRequest("shop", "web-1", "exec"), "create"),
        (f"{SHOP}/web-1/attach", PodRequest("shop", "web-1", "attach"), "create"),
        (f"{SHOP}/web-1/portforward", PodRequest("shop", "web-1", "portforward"), "create"),
    ],
)
def test_pods_are_asked_for_with_the_verbs_of_kubernetes(
    path: str, wanted: PodRequest, verb: str
) -> None:
    assert pod_request(path) == wanted
    assert wanted.verb == verb


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/",
        "/api",
        "/api/v1/pods",
        "/api/v1/namespaces/shop",
        "/api/v1/namespaces/shop/secrets",
        "/api/v1/namespaces/shop/secrets/pods",
        "/api/v1/namespaces//pods",
        "/api/v1/namespaces/../pods",
        "/api/v1/namespaces/shop/pods/",
        "/api/v1/namespaces/shop/pods/..",
        "/api/v1/namespaces/shop/pods/../secrets",
        "/api/v1/namespaces/shop/pods/web/proxy",
        "/api/v1/namespaces/shop/pods/web/ephemeralcontainers",
        "/api/v1/namespaces/shop/pods/web/eviction",
        "/api/v1/namespaces/shop/pods/web/log/more",
        "/api/v1/namespaces/shop/pods/web?x/log",
        "/api/v1/namespaces/shop/pods/web%2flog",
        "/api/v1/namespaces/Shop/pods",
        "/api/v1/watch/namespaces/shop/pods",
        "/apis/v1/namespaces/shop/pods",
        "//api/v1/namespaces/shop/pods",
    ],
)
def test_nothing_else_is_asked_of_an_edge(path: str) -> None:
    with pytest.raises(TunnelRequestError):
        pod_request(path)


@given(st.lists(st.text("/.%?ao\n ", max_size=6), max_size=9))
def test_a_path_that_is_taken_is_made_of_names_alone(words: list[str]) -> None:
    path = "/".join(["", "api", "v1", "namespaces", *words])
    try:
        wanted = pod_request(path)
    except TunnelRequestError:
        return
    made = f"/api/v1/namespaces/{wanted.namespace}/pods"
    if wanted.pod:
        made += f"/{wanted.pod}" + ("" if wanted.action == "pods" else f"/{wanted.action}")
    assert path == made


def test_credentials_of_whoever_asks_stay_at_the_hub() -> None:
    headers = {
        **WEBSOCKET,
        "authorization": "Bearer secret",
        "cookie": "a=b",
        "impersonate-user": "root",
        "x-remote-user": "root",
        "accept": "*/*",
    }
    opening, _ = read_opening(opening_of("GET", f"{SHOP}/web/exec", "command=sh", headers))
    assert opening.headers == {**WEBSOCKET, "accept": "*/*"}
    assert opening.upgrade == "websocket"


def test_the_edge_strips_what_a_hub_would_have_it_send() -> None:
    raw = {"method": "GET", "path": SHOP, "query": "", "headers": {"impersonate-user": "root"}}
    opening, _ = read_opening(orjson.dumps(raw))
    assert opening.headers == {}


@pytest.mark.parametrize(
    ("method", "path", "query", "headers"),
    [
        ("DELETE", f"{SHOP}/web", "", {}),
        ("POST", SHOP, "", {}),
        ("POST", f"{SHOP}/web/log", "", {}),
        ("PUT", f"{SHOP}/web/exec", "", WEBSOCKET),
        ("GET", f"{SHOP}/web/exec", "", {}),
        ("GET", f"{SHOP}/web/log", "", WEBSOCKET),
        ("GET", SHOP, "watch=true", {}),
        ("GET", SHOP, "%77atch=1", {}),
        ("GET", f"{SHOP}/web/log", "a=\r\nhost: other", {}),
        ("GET", f"{SHOP}/web/log", "a" * 40_000, {}),
        ("GET", f"{SHOP}/web/exec", "", {**WEBSOCKET, "upgrade": "websocket\r\nx: y"}),
    ],
)
def test_both_sides_refuse_what_is_not_for_a_tunnel(
    method: str, path: str, query: str, headers: dict[str, str]
) -> None:
    with pytest.raises(TunnelRequestError):
        opening_of(method, path, query, headers)
    raw = {"method": method, "path": path, "query": query, "headers": headers}
    with pytest.raises(TunnelRequestError):
        read_opening(orjson.dumps(raw))


@pytest.mark.parametrize("raw", [b"", b"[]", b"{}", b'{"status": "200", "headers": {}}', b"\xff"])
def test_what_an_edge_or_a_hub_garbles_is_refused(raw: bytes) -> None:
    with pytest.raises(TunnelRequestError):
        read_answer(raw, upgrade=False)
    with pytest.raises(TunnelRequestError):
        read_opening(raw)


@pytest.mark.parametrize("status", [-1, 0, 100, 101, 199, 600, 10**9, True])
def test_an_edge_answers_with_a_status_that_fits_the_request(status: Any) -> None:
    with pytest.raises(TunnelRequestError):
        read_answer(orjson.dumps({"status": status, "headers": {}}), upgrade=False)


def test_an_edge_says_nothing_that_a_browser_would_run() -> None:
    headers = {
        "content-type": "text/html",
        "set-cookie": "a=b",
        "location": "https://elsewhere",
        "sec-websocket-accept": "x\r\ny: z",
    }
    answer = read_answer(answer_of(200, headers), upgrade=False)
    assert (answer.content_type, answer.headers) == ("text/plain", ())


def test_an_upgrade_keeps_what_its_protocol_needs() -> None:
    headers = {"upgrade": "websocket", "sec-websocket-accept": "abc", "date": "now"}
    answer = read_answer(answer_of(101, headers), upgrade=True)
    assert (answer.status, answer.protocol) == (101, "websocket")
    assert answer.headers == (("sec-websocket-accept", "abc"),)


def test_a_syncer_dials_in_its_mailbox() -> None:
    assert tunnel_path() == "/extensions/v1/tunnel"
    assert tunnel_path("abc") == "/clusters/abc/extensions/v1/tunnel"
