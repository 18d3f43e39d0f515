"""Requests as the engine sees them: a query is read once, and its first value counts."""

from __future__ import annotations

import pytest

from skerry.server.http.message import Peer, Request, Response, Upgrade


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("", {}),
        ("a=1", {"a": "1"}),
        ("a=1&a=2", {"a": "1"}),
        ("a&b=", {"a": "", "b": ""}),
        ("a=%20+x", {"a": "  x"}),
        ("labelSelector=a%3Db%2Cc", {"labelSelector": "a=b,c"}),
    ],
)
def test_queries(text: str, query: dict[str, str]) -> None:
    assert Request("GET", "/", text).query == query


def test_a_query_is_read_once() -> None:
    request = Request("GET", "/", "a=1")
    assert request.query is request.query


def test_nothing_is_shared_between_requests() -> None:
    one, other = Request("GET", "/"), Request("GET", "/")
    one.query["a"] = "1"
    assert other.query == {}
    assert (one.peer, one.body, one.user) == (Peer(), b"", None)


def test_answers_are_json_unless_they_say() -> None:
    assert (Response().status, Response().content_type) == (200, "application/json")

    async def run(_: object) -> None:
        return None

    assert Upgrade(run).protocol == "websocket"
    assert Upgrade(run).watches == 1
