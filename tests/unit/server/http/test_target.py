"""Request targets: a path and a query, or a refusal."""

from __future__ import annotations

import pytest

from skerry.api.errors import BadRequest, NotFound
from skerry.server.http.target import parsed_target


@pytest.mark.parametrize(
    ("target", "path", "query"),
    [
        (b"/api/v1/pods?limit=5&watch=1", "/api/v1/pods", "limit=5&watch=1"),
        (b"/a%20b", "/a b", ""),
        (b"/%C3%A4", "/ä", ""),
        (b"/a?x=%2F", "/a", "x=%2F"),
        (b"/clusters/root:a/api?", "/clusters/root:a/api", ""),
        (b"http://host:1/api?x=1#y", "/api", "x=1"),
        (b"HTTPS://host", "/", ""),
        (b"http://host?x=1", "/", "x=1"),
        (b"/.well-known/openid", "/.well-known/openid", ""),
    ],
)
def test_a_target_has_a_decoded_path_and_a_raw_query(target: bytes, path: str, query: str) -> None:
    assert parsed_target(target) == (path, query)


@pytest.mark.parametrize("target", [b"/a/../b", b"/a/./b", b"/..", b"/a/%2e%2e/b"])
def test_dot_segments_lead_nowhere(target: bytes) -> None:
    with pytest.raises(NotFound):
        parsed_target(target)


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (b"api", "want a path"),
        (b"*", "want a path"),
        (b"ftp://host/a", "want a path"),
        (b"http:///a", "invalid authority"),
        (b"http://" + b"h" * 600 + b"/a", "invalid authority"),
        (b"/%", 'invalid URL escape "%"'),
        (b"/%zz", 'invalid URL escape "%zz"'),
        (b"/%FF", "want UTF-8"),
        (b"/a%00b", "control characters"),
        (b"/a%7f", "control characters"),
    ],
)
def test_what_is_no_target_is_refused(target: bytes, message: str) -> None:
    with pytest.raises(BadRequest, match=message):
        parsed_target(target)
