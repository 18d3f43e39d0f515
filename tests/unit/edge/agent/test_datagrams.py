"""Datagrams find one endpoint, and answers their client."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from skerry.edge.agent.datagrams import DatagramForwarder
from skerry.edge.agent.network import Backend
from skerry.edge.agent.runtime import CannotStart


def bound() -> socket.socket:
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    made.setblocking(False)
    made.bind(("127.0.0.1", 0))
    return made


def unbound() -> socket.socket:
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    made.setblocking(False)
    return made


@asynccontextmanager
async def forwarding(
    resolve: Callable[[], Backend | None], open_socket: Callable[[], socket.socket] = unbound
) -> AsyncIterator[Backend]:
    """Yield the address of a forwarder."""
    forwarder, service = DatagramForwarder(resolve, "dns", open_socket), bound()
    forwarder.take(service)
    address: Backend = service.getsockname()
    await forwarder.serve()
    try:
        yield address
    finally:
        await forwarder.stop()


async def received(at: socket.socket) -> tuple[bytes, Backend]:
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(10):
        data, sender = await loop.sock_recvfrom(at, 100)
    return data, sender


async def test_an_answer_comes_back_to_who_asked_from_where_it_asked() -> None:
    with bound() as endpoint, bound() as one, bound() as two:
        async with forwarding(endpoint.getsockname) as service:
            for client, text in ((one, b"1"), (two, b"2")):
                client.sendto(text, service)
                data, sender = await received(endpoint)
                assert data == text
                endpoint.sendto(data * 2, sender)
            assert await received(two) == (b"22", service)
            assert await received(one) == (b"11", service)


async def test_a_client_stays_with_its_endpoint_while_it_keeps_sending() -> None:
    with bound() as first, bound() as second, bound() as client:
        turns = iter([first.getsockname(), second.getsockname()])
        async with forwarding(lambda: next(turns)) as service:
            senders = []
            for _ in range(2):
                client.sendto(b"x", service)
                senders.append((await received(first))[1])
            assert senders[0] == senders[1]


async def test_where_nobody_listens_the_next_datagram_finds_another() -> None:
    gone = bound()
    address = gone.getsockname()
    gone.close()
    with bound() as endpoint, bound() as client:
        turns = iter([address, *[endpoint.getsockname()] * 100])
        async with forwarding(lambda: next(turns)) as service:
            reading = asyncio.create_task(received(endpoint))
            while not reading.done():
                client.sendto(b"x", service)
                await asyncio.wait([reading], timeout=0.01)
            assert (await reading)[0] == b"x"


async def test_without_an_endpoint_or_a_socket_a_datagram_is_lost_and_nothing_else() -> None:
    def refused() -> socket.socket:
        if len(asked) < 2:
            raise CannotStart("no network")
        return unbound()

    asked: list[int] = []
    with bound() as endpoint, bound() as client:

        def resolve() -> Backend | None:
            asked.append(1)
            return None if len(asked) == 3 else endpoint.getsockname()

        async with forwarding(resolve, refused) as service:
            reading = asyncio.create_task(received(endpoint))
            while not reading.done():
                client.sendto(b"x", service)
                await asyncio.wait([reading], timeout=0.01)
            assert (await reading)[0] == b"x"
