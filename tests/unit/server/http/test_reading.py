"""Bytes to requests: in pieces or whole, known by their bytes or parsed, and what is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.api.errors import ApiError
from skerry.kit.clock import Clock, SystemClock
from skerry.server.http.message import Request
from skerry.server.http.reading import Read, RequestReader
from skerry.server.http.settings import HttpSettings

HEAD = b" HTTP/1.1\r\nHost: a\r\nAccept: */*\r\n\r\n"


class Bodies:
    """Accounts for bodies up to a limit."""

    def __init__(self, limit: int) -> None:
        self.limit, self.held = limit, 0

    def take(self, sender: str, size: int) -> bool:
        if self.held + size > self.limit:
            return False
        self.held += size
        return True

    def give_back(self, sender: str, size: int) -> None:
        self.held -= size


class Desk:
    """A reader with small limits, and what it read."""

    def __init__(self, limit: int = 1 << 30) -> None:
        self.settings = HttpSettings(body_bytes=200_000, header_bytes=500, url_bytes=100)
        self.clock: Clock = SystemClock()
        self.bodies = Bodies(limit)
        self.tick = 0.0
        self.read: list[Read] = []
        self.invited = 0
        self.reader = RequestReader(self, self.read.append, self._invite)  # type: ignore[arg-type]

    def _invite(self) -> None:
        self.invited += 1

    def feed(self, *pieces: bytes) -> Desk:
        for piece in pieces:
            self.reader.feed(piece)
        return self

    @property
    def requests(self) -> list[Request]:
        return [each[0] for each in self.read]

    @property
    def refusal(self) -> ApiError:
        error = self.read[-1][3]
        assert error is not None
        return error


def essence(request: Request) -> tuple[object, ...]:
    return (request.method, request.path, request.query_string, dict(request.headers), request.body)


def test_a_request_is_read_whole() -> None:
    (found,) = Desk().feed(b"GET /api/v1?a=1" + HEAD).requests
    assert essence(found) == ("GET", "/api/v1", "a=1", {"host": "a", "accept": "*/*"}, b"")


@given(st.data())
def test_it_does_not_matter_where_the_bytes_are_cut(data: st.DataObject) -> None:
    whole = (
        b"POST /x%20y?q=1 HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello"
        b"GET /z" + HEAD + b"GET /z" + HEAD
    )
    cuts = sorted(data.draw(st.sets(st.integers(1, len(whole) - 1), max_size=6)))
    pieces = [whole[a:b] for a, b in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    together, apart = Desk().feed(whole), Desk().feed(*pieces)
    assert [essence(r) for r in apart.requests] == [essence(r) for r in together.requests]
    assert [r.path for r in together.requests] == ["/x y", "/z", "/z"]
    assert together.requests[0].body == b"hello"


def test_a_request_known_by_its_bytes_is_the_one_the_parser_would_make() -> None:
    desk = Desk().feed(b"GET /a" + HEAD, b"DELETE /b?x=1" + HEAD, b"GET /c" + HEAD)
    fresh = [
        Desk().feed(line + HEAD).requests[0] for line in (b"GET /a", b"DELETE /b?x=1", b"GET /c")
    ]
    assert [essence(r) for r in desk.requests] == [essence(r) for r in fresh]


def test_another_block_of_headers_is_not_taken_for_the_known_one() -> None:
    other = b" HTTP/1.1\r\nHost: a\r\nAccept: text/x\r\n\r\n"
    first, second = Desk().feed(b"GET /a" + HEAD, b"GET /a" + other).requests
    assert (first.headers["accept"], second.headers["accept"]) == ("*/*", "text/x")


@pytest.mark.parametrize(
    ("head", "code"),
    [
        (b"GET /" + b"x" * 200 + HEAD, 414),
        (b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"y" * 600 + b"\r\n\r\n", 431),
        (b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"y" * 600, 431),
        (b"GET / HTTP/1.1\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 200001\r\n\r\n", 413),
        (b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", 501),
        (b"POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nExpect: tea\r\n\r\n", 417),
        (
            (
                b"POST / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: x\r\n"
                b"Content-Length: 3\r\n\r\nabc"
            ),
            400,
        ),
        (b"CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n", 405),
        (b"not http at all\r\n\r\n", 400),
    ],
)
def test_what_is_refused_ends_the_connection(head: bytes, code: int) -> None:
    desk = Desk().feed(head)
    assert desk.refusal.code == code
    assert desk.reader.ended
    desk.feed(b"GET /" + HEAD)
    assert len(desk.read) == 1


def test_a_repeated_header_is_a_list_but_for_users_and_credentials() -> None:
    (found,) = (
        Desk()
        .feed(
            b"GET / HTTP/1.1\r\nHost: a\r\nAccept: x\r\nAccept: y\r\nAuthorization: one\r\n"
            b"Authorization: two\r\nImpersonate-Group: a,b\r\nImpersonate-Group: c\r\n\r\n"
        )
        .requests
    )
    assert found.headers["accept"] == "x, y"
    assert found.headers["authorization"] == "one"
    assert found.headers["impersonate-group"] == "a,b\nc"


def test_a_trailer_does_not_pass_for_a_header() -> None:
    (found,) = (
        Desk()
        .feed(
            b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
            b"3\r\nabc\r\n0\r\nX-Remote-User: root\r\n\r\n"
        )
        .requests
    )
    assert found.body == b"abc"
    assert "x-remote-user" not in found.headers


def test_a_client_that_waits_to_be_asked_is_asked() -> None:
    desk = Desk().feed(
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nExpect: 100-continue\r\n\r\n"
    )
    assert desk.invited == 1
    assert desk.reader.awaits_continue
    desk.feed(b"x")
    assert desk.requests[0].body == b"x"
    assert not desk.reader.awaits_continue


def test_large_bodies_are_accounted_for_until_they_are_handed_on() -> None:
    desk = Desk()
    desk.feed(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 150000\r\n\r\n", b"x" * 100_000)
    assert desk.bodies.held == 100_000
    desk.feed(b"x" * 50_000)
    assert desk.requests[0].held == ("", 150_000)


def test_too_much_at_once_is_refused_and_given_back() -> None:
    desk = Desk(limit=120_000)
    desk.feed(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 150000\r\n\r\n", b"x" * 100_000)
    desk.feed(b"x" * 50_000)
    assert desk.refusal.code == 429
    assert desk.bodies.held == 0


def test_after_an_offered_upgrade_nothing_is_read_as_http() -> None:
    desk = Desk().feed(
        b"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
        b"GET /smuggled" + HEAD
    )
    assert [r.path for r in desk.requests] == ["/"]
    assert desk.read[0][1] is False
