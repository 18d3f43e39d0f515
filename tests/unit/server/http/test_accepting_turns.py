"""Who is taken in when others hold what there is: addresses take turns, and so do processes."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from skerry.server.http.accepting import Acceptor, Strangers, listening_sockets
from skerry.server.http.settings import HttpSettings
from skerry.server.security.pki import Pki, open_pki, server_names
from tests.kit.server.certificates import client_context, server_context
from tests.kit.server.wire import PATIENCE_SECONDS, turn, until

# Longer than any test: who holds a handshake that never comes holds it to the end.
LIMITS = HttpSettings(handshakes=4, header_seconds=1000.0, stranger_connections=100)
# For a connection to be left to other processes until somebody takes it.
FOR_EVER = 1000.0
# Shorter than anybody would notice.
A_MOMENT = 0.01


@pytest.fixture(scope="module")
def pki(tmp_path_factory: pytest.TempPathFactory) -> Pki:
    return open_pki(tmp_path_factory.mktemp("pki"), server_names())


class Host:
    """What an acceptor needs of its server; closed at the end, with all that came."""

    def __init__(self, settings: HttpSettings) -> None:
        self.settings = settings
        self.loop = asyncio.get_running_loop()
        self.strangers = Strangers(settings.stranger_connections)


class Door:
    """A listening socket, who takes from it, and who came."""

    def __init__(self, listening: socket.socket, tls: ssl.SSLContext) -> None:
        self._listening = listening
        self._tls = tls
        self._cleanup = contextlib.AsyncExitStack()

    def acceptor(self, settings: HttpSettings) -> Acceptor:
        """Return one more process, as it were."""
        taking = self._listening.dup()
        made = Acceptor(Host(settings), [taking], self._tls, asyncio.Protocol)
        self._cleanup.push_async_callback(made.close)
        made.start()
        return made

    def come(self, address: str, count: int = 1) -> None:
        """Connect from *address*, and say nothing ever."""
        for _ in range(count):
            came = socket.create_connection(
                self._listening.getsockname(), source_address=(address, 0)
            )
            self._cleanup.callback(came.close)

    async def visit(self, tls: ssl.SSLContext, address: str = "127.0.0.1") -> None:
        """Connect from *address* as a client does, and see the handshake through."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            _, writer = await asyncio.open_connection(
                *self._listening.getsockname(),
                ssl=tls,
                server_hostname="127.0.0.1",
                local_addr=(address, 0),
            )
        self._cleanup.callback(writer.close)

    async def close(self) -> None:
        await self._cleanup.aclose()
        self._listening.close()


@contextlib.asynccontextmanager
async def opened(tls: ssl.SSLContext) -> AsyncIterator[Door]:
    (listening,) = await listening_sockets("127.0.0.1", 0, 1000)
    made = Door(listening, tls)
    try:
        yield made
    finally:
        await made.close()


@pytest.fixture
async def door(pki: Pki) -> AsyncIterator[Door]:
    async with opened(server_context(pki)) as made:
        yield made


@pytest.fixture
def tls(pki: Pki) -> ssl.SSLContext:
    return client_context(pki.ca.certificate)


@pytest.fixture(params=[0.0, A_MOMENT], ids=["alone", "in a group"])
def limits(request: pytest.FixtureRequest) -> HttpSettings:
    return replace(LIMITS, others_seconds=request.param)


async def saturated(door: Door, acceptor: Acceptor, address: str, waiting: int = 0) -> None:
    """Have *address* hold all handshakes, and some more connections waiting."""
    door.come(address, LIMITS.handshakes + waiting)
    await until(lambda: acceptor.handshakes == LIMITS.handshakes, turn)
    await until(lambda: acceptor.waiting == waiting, turn)


# Addresses.


async def test_one_address_has_all_handshakes_while_nobody_else_comes(
    door: Door, limits: HttpSettings
) -> None:
    acceptor = door.acceptor(limits)
    await saturated(door, acceptor, "127.0.0.2", waiting=5)
    for _ in range(10):
        await turn()
    assert (acceptor.handshakes, acceptor.waiting) == (4, 5)


async def test_an_address_that_says_nothing_keeps_no_other_waiting(
    door: Door, limits: HttpSettings, tls: ssl.SSLContext
) -> None:
    acceptor = door.acceptor(limits)
    await saturated(door, acceptor, "127.0.0.2", waiting=5)
    for _ in range(5):
        # Newer ones of the other come all the time.
        door.come("127.0.0.2")
        visiting = asyncio.ensure_future(door.visit(tls))
        await turn()
        door.come("127.0.0.2", 3)
        await visiting
    # The others are as before.
    await until(lambda: acceptor.handshakes == 4, turn)


async def test_several_addresses_that_say_nothing_keep_no_other_waiting(
    door: Door, limits: HttpSettings, tls: ssl.SSLContext
) -> None:
    acceptor = door.acceptor(replace(limits, handshakes=12))
    for host in (2, 3, 4):
        door.come(f"127.0.0.{host}", 20)
        await until(lambda: acceptor.waiting >= 8, turn)
    await until(lambda: acceptor.handshakes + acceptor.waiting == 60, turn)
    await door.visit(tls)
    assert 12 < acceptor.handshakes < 30


async def test_those_who_wait_too_long_make_room_for_who_cannot_come_in(
    pki: Pki, tls: ssl.SSLContext
) -> None:
    serving = server_context(pki)
    begun: list[object] = []
    wrapped = serving.wrap_bio

    def counted(*arguments: Any, **named: Any) -> ssl.SSLObject:
        begun.append(arguments)
        return wrapped(*arguments, **named)

    serving.wrap_bio = counted  # type: ignore[method-assign]
    async with opened(serving) as door:
        limits = replace(LIMITS, handshakes=1, waiting=4, header_seconds=0.2)
        acceptor = door.acceptor(limits)
        door.come("127.0.0.2", 30)
        await until(lambda: (acceptor.handshakes, acceptor.waiting) == (1, 4), turn)
        await door.visit(tls)
    assert len(begun) < 15, "one after the other it would be after 26"


# Processes that share a socket.


async def test_a_process_that_cannot_begin_leaves_connections_to_one_that_can(door: Door) -> None:
    limits = replace(LIMITS, others_seconds=FOR_EVER)
    first = door.acceptor(limits)
    await saturated(door, first, "127.0.0.2")
    door.come("127.0.0.2", 3)
    for _ in range(10):
        await turn()
    second = door.acceptor(limits)
    await until(lambda: second.handshakes == 3, turn)
    door.come("127.0.0.1")
    await until(lambda: second.handshakes == 4, turn)
    assert (first.handshakes, first.waiting, second.waiting) == (4, 0, 0)


async def test_a_process_takes_no_more_than_it_can_begin(door: Door) -> None:
    limits = replace(LIMITS, handshakes=5, others_seconds=FOR_EVER)
    first = door.acceptor(limits)
    door.come("127.0.0.1", 9)
    await until(lambda: first.handshakes == 5, turn)
    assert first.waiting == 0
    second = door.acceptor(limits)
    await until(lambda: second.handshakes == 4, turn)


async def test_processes_that_are_free_divide_a_burst(door: Door) -> None:
    limits = replace(LIMITS, handshakes=100, others_seconds=FOR_EVER)
    both = [door.acceptor(limits) for _ in range(2)]
    door.come("127.0.0.1", 60)
    await until(lambda: sum(each.handshakes for each in both) == 60, turn)
    assert all(20 <= each.handshakes <= 40 for each in both)


async def test_what_is_lost_with_a_process_is_what_it_had_begun(
    door: Door, tls: ssl.SSLContext
) -> None:
    limits = replace(LIMITS, others_seconds=FOR_EVER)
    first = door.acceptor(limits)
    await saturated(door, first, "127.0.0.2")
    visiting = [asyncio.ensure_future(door.visit(tls)) for _ in range(5)]
    for _ in range(10):
        await turn()
    await first.close()
    door.acceptor(limits)
    await asyncio.gather(*visiting)


async def test_a_process_goes_on_once_a_handshake_ended(door: Door, tls: ssl.SSLContext) -> None:
    """Those that come after the moment wait in the kernel, not for another moment."""
    limits = replace(LIMITS, others_seconds=FOR_EVER, header_seconds=0.2)
    first = door.acceptor(limits)
    await saturated(door, first, "127.0.0.1")
    await asyncio.gather(*(door.visit(tls) for _ in range(10)))


async def test_what_nobody_can_begin_waits_for_its_turn_up_to_a_limit(door: Door) -> None:
    limits = replace(LIMITS, others_seconds=A_MOMENT, waiting=3)
    both = [door.acceptor(limits) for _ in range(2)]
    door.come("127.0.0.1", 20)
    await until(lambda: all((each.handshakes, each.waiting) == (4, 3) for each in both), turn)
    for _ in range(10):
        await turn()
    assert [each.waiting for each in both] == [3, 3]


# What only closes connections.


@pytest.mark.parametrize("waiting", [0, 1, 2])
async def test_listening_goes_on_after_those_who_waited_were_closed(
    door: Door, tls: ssl.SSLContext, limits: HttpSettings, waiting: int
) -> None:
    acceptor = door.acceptor(replace(limits, waiting=waiting, stranger_connections=1))
    await door.visit(tls, "127.0.0.2")
    await until(lambda: acceptor.handshakes == 0, turn)
    # All at once, and each one too many: none of them begins a handshake.
    door.come("127.0.0.2", 8)
    for _ in range(10):
        await turn()
    await door.visit(tls)
