"""Strangers get a share of the server's connections, and nobody all of its memory."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from itertools import count
from typing import Any

import pytest

from skerry.server.http.accepting import Acceptor, Bodies, Pace, Strangers, listening_sockets
from skerry.server.http.message import Answer, Request, Response
from skerry.server.http.server import HttpServer
from skerry.server.http.settings import MIB, HttpSettings
from skerry.server.security.pki import Pki, open_pki, server_names
from skerry.server.user import User
from tests.kit.server.certificates import client_context, server_context
from tests.kit.server.wire import GET, Client, connected, serving, turn, until

POST = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n"


@pytest.fixture(scope="module")
def pki(tmp_path_factory: pytest.TempPathFactory) -> Pki:
    return open_pki(tmp_path_factory.mktemp("pki"), server_names())


async def known(request: Request) -> Answer:
    """Answer as if everybody but /stranger had shown credentials."""
    if request.path != "/stranger":
        request.user = User(request.path)
    return Response(200, b"{}")


async def is_closed(port: int) -> bool:
    """Tell whether a new connection is closed at once; an open one is answered."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(GET % b"stranger")
        async with asyncio.timeout(60):
            return await reader.read(1) == b""
    except ConnectionError:
        return True
    finally:
        writer.close()


async def test_an_address_has_so_many_connections_without_credentials_and_no_more() -> None:
    limits = HttpSettings(stranger_connections=3)
    async with serving(known, limits) as (server, port), contextlib.AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(connected(port)) for _ in range(3)]
        await until(lambda: server.strangers.of("127.0.0.1") == 3, turn)
        assert await is_closed(port)
        clients[0].send(GET % b"stranger")
        await clients[0].answer()
        assert await is_closed(port)
        clients[0].send(GET % b"alice")
        await clients[0].answer()
        assert server.strangers.of("127.0.0.1") == 2
        assert not await is_closed(port)


async def test_closing_makes_room_however_the_connection_ends() -> None:
    limits = HttpSettings(stranger_connections=2)
    async with serving(known, limits) as (server, port):
        for raw in (b"", b"BROKEN\r\n\r\n", GET % b"stranger", GET % b"alice", b"GET / HT"):
            async with connected(port) as client:
                client.send(raw)
                await turn()
        await until(lambda: server.connections == 0, turn)
        assert server.strangers.of("127.0.0.1") == 0


async def test_a_connection_that_shows_no_credentials_is_not_kept_for_long() -> None:
    limits = HttpSettings(idle_seconds=120, stranger_seconds=20)
    async with (
        serving(known, limits) as (server, port),
        connected(port) as stranger,
        connected(port) as friend,
    ):
        for client, name in ((stranger, b"stranger"), (friend, b"alice")):
            client.send(GET % name)
            await client.answer()
        server.expire(server.tick + 21)
        assert await stranger.rest() == b""
        friend.send(GET % b"alice")
        assert (await friend.answer()).status == 200


async def test_handshakes_that_do_not_come_keep_nobody_out_for_long(pki: Pki) -> None:
    limits = HttpSettings(handshakes=2, header_seconds=0.2, stranger_connections=10)
    async with serving(known, limits, server_context(pki)) as (server, port):
        silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(4)]
        acceptor = server._acceptor
        assert acceptor is not None
        await until(lambda: acceptor.handshakes == 2, turn)
        tls = client_context(pki.ca.certificate)
        async with asyncio.timeout(60):
            reader, writer = await asyncio.open_connection(
                "127.0.0.1", port, ssl=tls, server_hostname="127.0.0.1"
            )
            client = Client(reader, writer)
            client.send(GET % b"alice")
            assert (await client.answer()).status == 200
        assert acceptor.handshakes <= 2
        writer.close()
        for _, other in silent:
            other.close()


async def test_who_came_last_is_served_first_and_the_others_after_them(pki: Pki) -> None:
    limits = HttpSettings(handshakes=1, stranger_connections=10)
    tls = client_context(pki.ca.certificate)
    async with serving(known, limits, server_context(pki)) as (server, port):
        _, silent = await asyncio.open_connection("127.0.0.1", port)
        acceptor = server._acceptor
        assert acceptor is not None
        await until(lambda: acceptor.handshakes == 1, turn)
        served: list[int] = []

        async def come(number: int) -> None:
            _, writer = await asyncio.open_connection(
                "127.0.0.1", port, ssl=tls, server_hostname="127.0.0.1"
            )
            served.append(number)
            writer.close()

        async with asyncio.timeout(60), asyncio.TaskGroup() as tasks:
            for number in range(4):
                tasks.create_task(come(number))
                await until(lambda number=number: acceptor.waiting == number + 1, turn)  # type: ignore[misc]
            silent.close()
        assert served == [3, 2, 1, 0]


async def test_no_more_wait_than_may_and_those_who_left_make_room(pki: Pki) -> None:
    limits = HttpSettings(handshakes=1, waiting=2, stranger_connections=10)
    tls = client_context(pki.ca.certificate)
    async with serving(known, limits, server_context(pki)) as (server, port):
        acceptor = server._acceptor
        assert acceptor is not None
        silent = [(await asyncio.open_connection("127.0.0.1", port))[1] for _ in range(5)]
        await until(lambda: acceptor.waiting == 2, turn)
        assert (acceptor.handshakes, acceptor.waiting) == (1, 2)
        for each in silent:
            each.close()
        async with asyncio.timeout(60):
            _, writer = await asyncio.open_connection(
                "127.0.0.1", port, ssl=tls, server_hostname="127.0.0.1"
            )
        assert acceptor.waiting == 0
        writer.close()


async def test_nothing_is_spent_on_those_who_left_while_they_waited(pki: Pki) -> None:
    tls = server_context(pki)
    handshakes: list[object] = []
    wrapped = tls.wrap_bio

    def counted(*arguments: Any, **named: Any) -> ssl.SSLObject:
        handshakes.append(arguments)
        return wrapped(*arguments, **named)

    tls.wrap_bio = counted  # type: ignore[method-assign]
    sockets = await listening_sockets("127.0.0.1", 0, 16)
    port = sockets[0].getsockname()[1]
    for _ in range(5):
        _, left = await asyncio.open_connection("127.0.0.1", port)
        left.write(b"\x16\x03\x01")
        left.close()
        await left.wait_closed()
    server = HttpServer(known)
    await server.start(tls=tls, sockets=sockets)
    async with asyncio.timeout(60):
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", port, ssl=client_context(pki.ca.certificate), server_hostname="127.0.0.1"
        )
        client = Client(reader, writer)
        client.send(GET % b"alice")
        assert (await client.answer()).status == 200
    writer.close()
    await server.stop(1)
    assert len(handshakes) == 1


def test_fewer_handshakes_are_under_way_where_turns_are_long() -> None:
    pace = Pace(64)
    pace.note(0.002)
    assert pace.allowed == 64
    for _ in range(20):
        pace.note(0.05)
    few = pace.allowed
    assert 8 <= few <= 16, "some go on however long turns are"
    for _ in range(64):
        pace.note(0.002)
    assert pace.allowed == 64
    tight = Pace(2)
    tight.note(0.05)
    assert tight.allowed == 2


@pytest.mark.parametrize(("turn_seconds", "all_begin"), [(0.001, True), (0.03, False)])
async def test_handshakes_that_make_turns_long_leave_some_to_wait(
    pki: Pki, turn_seconds: float, all_begin: bool
) -> None:
    """The peers say nothing, so that no handshake ends and makes room."""
    spent = count(0, turn_seconds)
    async with serving(known) as (server, _):
        sockets = await listening_sockets("127.0.0.1", 0, 64)
        acceptor = Acceptor(
            server, sockets, server_context(pki), asyncio.Protocol, lambda: next(spent)
        )
        acceptor.start()
        port = sockets[0].getsockname()[1]
        peers = [(await asyncio.open_connection("127.0.0.1", port))[1] for _ in range(50)]
        await until(lambda: acceptor.handshakes + acceptor.waiting == 50, turn)
        for _ in range(20):
            await turn()
        if all_begin:
            assert (acceptor.handshakes, acceptor.waiting) == (50, 0)
        else:
            assert 12 <= acceptor.handshakes <= 40
        await acceptor.close()
        for each in peers:
            each.close()


async def test_large_bodies_that_arrive_slowly_are_held_within_a_limit() -> None:
    limits = HttpSettings(arriving_bytes=4 * MIB, linger_seconds=0)
    async with serving(known, limits) as (server, port), contextlib.AsyncExitStack() as stack:
        slow = [await stack.enter_async_context(connected(port)) for _ in range(3)]
        for client in slow[:2]:
            client.send(POST % (2 * MIB) + b"x" * (400 * 1024))
        await until(lambda: server.bodies.total == 800 * 1024, turn)
        slow[2].send(POST % (2 * MIB) + b"x" * (400 * 1024))
        assert (await slow[2].answer()).status == 429
        assert server.bodies.total <= MIB
        small = await stack.enter_async_context(connected(port))
        small.send(POST % 1000 + b"x" * 1000)
        assert (await small.answer()).status == 200
    await until(lambda: server.bodies.total == 0, turn)


async def test_a_body_is_held_until_it_was_acted_on() -> None:
    release = asyncio.Event()

    async def handler(_: Request) -> Answer:
        await release.wait()
        return Response(200, b"{}")

    async with serving(handler) as (server, port), connected(port) as client:
        client.send(POST % MIB + b"x" * MIB)
        await until(lambda: server.bodies.total == MIB, turn)
        release.set()
        await client.answer()
        assert server.bodies.total == 0


def test_counts_never_go_below_nothing() -> None:
    strangers, bodies = Strangers(1), Bodies(100)
    strangers.leave("a")
    assert strangers.admit("a")
    assert not strangers.admit("a")
    assert strangers.admit("b")
    assert bodies.take("a", 25)
    assert not bodies.take("a", 1)
    assert bodies.take("b", 25)
    bodies.give_back("a", 25)
    assert bodies.take("a", 25)
    assert bodies.total == 50


async def test_a_server_whose_address_is_taken_says_so() -> None:
    async with serving() as (_, port):
        other = HttpServer(known)
        with pytest.raises(OSError, match="in use"):
            await other.start(port=port)
