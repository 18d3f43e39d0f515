"""Hostile and broken input: always a 4xx or 5xx and the end of the connection, never a hang,
never a second answer that a smuggled request could take."""

from __future__ import annotations

import contextlib

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skerry.server.http.message import Answer, Request, Response
from skerry.server.http.server import HttpServer
from skerry.server.http.settings import HttpSettings
from tests.kit.server.wire import GET, connected, exchange, serving, turn, until

SMUGGLED = b"GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n"
POST = b"POST / HTTP/1.1\r\nHost: a\r\n"
OFFERING = POST + b"Connection: Upgrade\r\nUpgrade: foo\r\n"
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n"

MALFORMED = {
    "length and coding": POST + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "coding and length": POST + b"Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n",
    "two lengths": POST + b"Content-Length: 3\r\nContent-Length: 4\r\n\r\nabc",
    "one length twice": POST + b"Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc",
    "list of lengths": POST + b"Content-Length: 3, 3\r\n\r\nabc",
    "signed length": POST + b"Content-Length: +3\r\n\r\nabc",
    "negative length": POST + b"Content-Length: -1\r\n\r\n",
    "hex length": POST + b"Content-Length: 0x3\r\n\r\nabc",
    "empty length": POST + b"Content-Length: \r\n\r\n",
    "endless length": POST + b"Content-Length: 99999999999999999999999\r\n\r\n",
    "bare line feeds": b"GET / HTTP/1.1\nHost: a\n\n",
    "bare line feed in headers": b"GET / HTTP/1.1\r\nHost: a\nX: b\r\n\r\n",
    "bare carriage return": b"GET / HTTP/1.1\r\nHost: a\rX: b\r\n\r\n",
    "folded header": b"GET / HTTP/1.1\r\nHost: a\r\nX: b\r\n c\r\n\r\n",
    "space before colon": b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length : 3\r\n\r\n",
    "empty header name": b"GET / HTTP/1.1\r\nHost: a\r\n: x\r\n\r\n",
    "null in header": b"GET / HTTP/1.1\r\nHost: a\r\nX: \0\r\n\r\n",
    "null in path": b"GET /\0 HTTP/1.1\r\nHost: a\r\n\r\n",
    "encoded null in path": b"GET /%00 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
    "chunk size not hex": CHUNKED + b"zz\r\n",
    "chunk size signed": CHUNKED + b"-1\r\n",
    "chunk size overflow": CHUNKED + b"ffffffffffffffffff\r\na",
    "chunk without end": CHUNKED + b"3\r\nabcdef\r\n0\r\n\r\n",
    "chunk line feed": CHUNKED + b"1\na\r\n0\r\n\r\n",
    "coding not last": POST + b"Transfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n",
    "coding unknown": POST + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "coding stacked": POST + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "coding twice": POST
    + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "coding in 1.0": b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "version 2": b"GET / HTTP/2.0\r\nHost: a\r\n\r\n",
    "version 0.9": b"GET /\r\n\r\n",
    "http/2 preface": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "no host": b"GET / HTTP/1.1\r\n\r\n",
    "two hosts": b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
    "lower-case method": b"get / HTTP/1.1\r\nHost: a\r\n\r\n",
    "unknown method": b"BREW / HTTP/1.1\r\nHost: a\r\n\r\n",
    "upgrade with a body": OFFERING + b"Content-Length: 35\r\n\r\n",
    "upgrade with a padded length": OFFERING + b"Content-Length: 035\r\n\r\n",
    "upgrade with chunks": OFFERING + b"Transfer-Encoding: chunked\r\n\r\n23\r\n",
    "upgrade that expects": OFFERING + b"Content-Length: 35\r\nExpect: 100-continue\r\n\r\n",
    "h2c with a body": b"POST / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\n"
    b"Upgrade: h2c\r\nHTTP2-Settings: AAM\r\nContent-Length: 35\r\n\r\n",
    "websocket with a body": b"GET / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, Upgrade\r\n"
    b"Upgrade: websocket\r\nContent-Length: 35\r\n\r\n",
    "tunnel": b"CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n",
    "tunnel with a body": b"CONNECT a:1 HTTP/1.1\r\nHost: a\r\nContent-Length: 35\r\n\r\n",
    "tls hello": bytes.fromhex("1603010200010001fc0303"),
    "binary": bytes(range(256)),
}


@pytest.mark.parametrize("raw", MALFORMED.values(), ids=MALFORMED.keys())
async def test_malformed_requests_get_one_status_and_the_end_of_the_connection(raw: bytes) -> None:
    async with serving() as (_, port):
        got = await exchange(port, raw + SMUGGLED)
    head, _, body = got.partition(b"\r\n\r\n")
    assert got.count(b"HTTP/1.1 ") == 1
    assert 400 <= int(head.split(b" ")[1]) < 600
    status = orjson.loads(body)
    assert status["kind"] == "Status"
    assert status["code"] == int(head.split(b" ")[1])
    assert b"Connection: close" in head
    assert b"smuggled" not in got


async def test_a_malformed_request_does_not_lose_the_answers_before_it() -> None:
    async with serving() as (_, port):
        got = await exchange(port, GET % b"good" + b"BROKEN\r\n\r\n" + GET % b"never")
    assert got.count(b"HTTP/1.1 200 ") == 1
    assert got.count(b"HTTP/1.1 400 ") == 1
    assert b"never" not in got


async def test_a_body_over_the_limit_is_refused_before_it_is_sent() -> None:
    async with (
        serving(settings=HttpSettings(body_bytes=10)) as (_, port),
        connected(port) as client,
    ):
        client.send(POST + b"Content-Length: 11\r\n\r\n")
        got = await client.answer()
    assert got.status == 413
    assert got.json["reason"] == "RequestEntityTooLarge"
    assert got.json["message"] == "Request entity is too large: limit is 10"


async def test_a_chunked_body_over_the_limit_is_refused_as_soon_as_it_is() -> None:
    async with (
        serving(settings=HttpSettings(body_bytes=10)) as (_, port),
        connected(port) as client,
    ):
        client.send(CHUNKED + b"6\r\nabcdef\r\n6\r\nabcdef\r\n")
        assert (await client.answer()).status == 413


async def test_the_refusal_of_a_large_body_reaches_a_client_that_is_still_sending() -> None:
    limits = HttpSettings(body_bytes=1000, linger_seconds=5)
    async with serving(settings=limits) as (_, port), connected(port) as client:
        client.send(POST + b"Content-Length: 5000000\r\n\r\n")
        client.send(b"x" * 5_000_000)
        await client.writer.drain()
        assert (await client.answer()).status == 413


async def test_a_body_of_exactly_the_limit_is_served() -> None:
    async with (
        serving(settings=HttpSettings(body_bytes=10)) as (_, port),
        connected(port) as client,
    ):
        client.send(POST + b"Content-Length: 10\r\n\r\n0123456789")
        assert (await client.answer()).status == 200


async def test_a_long_target_is_refused_with_414() -> None:
    async with serving(settings=HttpSettings(url_bytes=100)) as (_, port):
        got = await exchange(port, GET % (b"x" * 200))
        assert got.startswith(b"HTTP/1.1 414 ")
        async with connected(port) as client:
            client.send(GET % b"short")
            assert (await client.answer()).status == 200
            client.send(GET % (b"y" * 200))
            assert (await client.answer()).status == 414


@pytest.mark.parametrize(
    "raw",
    [
        b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"x" * 5000 + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\n" + b"X: y\r\n" * 1000 + b"\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"x" * 5000,
        CHUNKED + b"0\r\n" + b"X: y\r\n" * 1000 + b"\r\n",
    ],
    ids=["one", "many", "endless", "trailers"],
)
async def test_large_heads_are_refused_with_431(raw: bytes) -> None:
    async with serving(settings=HttpSettings(header_bytes=2000)) as (_, port):
        assert (await exchange(port, raw)).startswith(b"HTTP/1.1 431 ")


async def test_a_head_that_does_not_come_is_given_up() -> None:
    limits = HttpSettings(header_seconds=10, linger_seconds=0)
    async with serving(settings=limits) as (server, port), connected(port) as client:
        client.send(b"GET / HTTP/1.1\r\nHo")
        await until(lambda: server.connections, turn)
        await until(lambda: any(c._reader.in_head for c in server._connections), turn)
        server.expire(server.tick + 9)
        assert server.connections == 1
        server.expire(server.tick + 11)
        assert (await client.answer()).status == 408
        assert await client.rest() == b""


async def test_a_body_that_does_not_come_is_given_up() -> None:
    limits = HttpSettings(body_seconds=10, linger_seconds=0)
    async with serving(settings=limits) as (server, port), connected(port) as client:
        client.send(POST + b"Content-Length: 9\r\n\r\nhalf")
        await until(lambda: any(c._reader.in_body for c in server._connections), turn)
        server.expire(server.tick + 11)
        assert (await client.answer()).status == 408


async def test_idle_connections_are_closed_whether_used_before_or_not() -> None:
    limits = HttpSettings(idle_seconds=10)
    async with (
        serving(settings=limits) as (server, port),
        connected(port) as fresh,
        connected(port) as used,
    ):
        used.send(GET % b"")
        await used.answer()
        await until(lambda: server.connections == 2, turn)
        server.expire(server.tick + 11)
        assert await fresh.rest() == b""
        assert await used.rest() == b""


async def test_a_peer_that_takes_nothing_is_cut() -> None:
    async def handler(_: Request) -> Answer:
        return Response(200, b"x" * 50_000_000)

    limits = HttpSettings(stalled_seconds=10)
    async with serving(handler, limits) as (server, port), connected(port) as client:
        client.send(GET % b"")
        await until(lambda: any(c._paused for c in server._connections), turn)
        sizes: list[int] = []
        await until(lambda: _steady(sizes, server), turn)
        server.expire(server.tick)
        server.expire(server.tick + 11)
        await until(lambda: server.connections == 0, turn)


def _steady(sizes: list[int], server: HttpServer) -> bool:
    """Whether the kernel's buffers are full: nothing more leaves ours."""
    sizes.append(sum(connection.queued_bytes for connection in server._connections))
    return len(sizes) > 50 and len(set(sizes[-50:])) == 1


@pytest.mark.parametrize(
    ("target", "code"),
    [
        (b"/api/../etc/passwd", 404),
        (b"/api/%2e%2e/%2e%2e/etc/passwd", 404),
        (b"/api/%2e%2e%2fetc", 404),
        (b"/..", 404),
        (b"/./x", 404),
        (b"/%00", 400),
        (b"/a%0d%0aX:%20y", 400),
        (b"/%7f", 400),
        (b"/%zz", 400),
        (b"/%2", 400),
        (b"/%", 400),
        (b"/%ff", 400),
        (b"*", 400),
        (b"ftp://x/y", 400),
        (b"/.well-known/openid-configuration", 200),
        (b"/..a/b..", 200),
        (b"/%252e%252e/x", 200),
        (b"http://example/x?y=z", 200),
    ],
)
async def test_targets_that_name_nothing_are_refused(target: bytes, code: int) -> None:
    async with serving() as (_, port), connected(port) as client:
        client.send(b"OPTIONS " + target + b" HTTP/1.1\r\nHost: a\r\n\r\n")
        assert (await client.answer()).status == code


async def test_an_encoded_slash_is_a_slash_and_is_decoded_once() -> None:
    async with serving() as (_, port), connected(port) as client:
        client.send(GET % b"a%2Fb" + GET % b"a%252fb" + GET % b"%C3%A9")
        assert (await client.answer()).json["path"] == "/a/b"
        assert (await client.answer()).json["path"] == "/a%2fb"
        assert (await client.answer()).json["path"] == "/é"


# Headers that change what the bytes after a head are, in the spellings clients and attackers use.
FRAMING = st.sampled_from(
    [
        b"Connection: Upgrade\r\n", b"Connection: upgrade, keep-alive\r\n", b"Upgrade: foo\r\n",
        b"Connection: close\r\n", b"Upgrade: h2c\r\n", b"Upgrade: websocket\r\n",
        b"UPGRADE: SPDY/3.1\r\n", b"HTTP2-Settings: AAM\r\n", b"Expect: 100-continue\r\n",
        b"Transfer-Encoding: chunked\r\n", b"Trailer: Host\r\n", b"Keep-Alive: 1\r\n",
        b"Connection: HTTP2-Settings\r\n", b"TE: trailers\r\n", b"Content-Length: 0\r\n",
        b"Transfer-Encoding: identity\r\n", b"Proxy-Connection: Upgrade\r\n",
    ]
)  # fmt: skip


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    method=st.sampled_from([b"GET", b"POST", b"PUT", b"PATCH", b"DELETE", b"OPTIONS", b"HEAD"]),
    version=st.sampled_from([b"1.1", b"1.0"]),
    headers=st.lists(FRAMING, max_size=6),
    chunked=st.booleans(),
)
async def test_a_body_is_never_answered_as_a_request_of_its_own(
    method: bytes, version: bytes, headers: list[bytes], chunked: bool
) -> None:
    asked: list[str] = []

    async def handler(request: Request) -> Answer:
        asked.append(request.path)
        return Response(200, b"{}")

    declared = b"Transfer-Encoding: chunked\r\n" if chunked else b"Content-Length: %d\r\n"
    framed = b"%x\r\n%b\r\n0\r\n\r\n" % (len(SMUGGLED), SMUGGLED) if chunked else SMUGGLED
    head = b"%b /first HTTP/%b\r\nHost: a\r\n%b" % (method, version, b"".join(headers))
    head += declared if chunked else declared % len(SMUGGLED)
    async with serving(handler) as (_, port):
        await exchange(port, head + b"\r\n" + framed)
    assert asked in ([], ["/first"])


PIECES = st.sampled_from(
    [
        b"GET ", b"POST ", b"/", b"/x?y ", b" HTTP/1.1", b" HTTP/1.0", b"\r\n", b"\n", b"\r\n\r\n",
        b"Host: a\r\n", b"Content-Length: 5\r\n", b"Content-Length: 0\r\n", b"0\r\n\r\n", b"5\r\n",
        b"Transfer-Encoding: chunked\r\n", b"hello", b"Connection: close\r\n", b"Upgrade: x\r\n",
        b"Connection: upgrade\r\n", b"Expect: 100-continue\r\n", b" ", b":", b"\0", b"%",
        b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", b"CONNECT a:1",
    ]
)  # fmt: skip


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    raw=st.one_of(st.binary(max_size=200), st.lists(PIECES, max_size=15).map(b"".join)),
    cut=st.integers(0, 200),
)
async def test_no_bytes_whatever_crash_or_hang_the_server(raw: bytes, cut: int) -> None:
    async with serving() as (_, port):
        async with connected(port) as client:
            client.send(raw[:cut])
            await turn()
            client.send(raw[cut:])
            if client.writer.can_write_eof():
                with contextlib.suppress(OSError):
                    client.writer.write_eof()
            got = await client.rest()
        assert got == b"" or got.startswith(b"HTTP/1.1 ")
        assert b"HTTP/1.1 500" not in got
        async with connected(port) as other:
            other.send(GET % b"alive")
            assert (await other.answer()).json["path"] == "/alive"
