"""What a request takes of the loop is known, however it is run."""

from __future__ import annotations

import asyncio

import pytest

from skerry.server.http.message import Answer, Request, Response, Sender, Stream
from skerry.server.http.server import HttpServer
from skerry.server.http.settings import HttpSettings
from tests.kit.server.clock import HandClock
from tests.kit.server.wire import GET, connected, turn, until

# Shorter than what is charged of a step at the most, and long enough to be charged.
PIECE = 0.01


class Busy:
    """A handler that keeps the loop busy for a while, waits, and is busy again."""

    def __init__(self, clock: HandClock) -> None:
        self.clock = clock
        self.busy: dict[str, float] = {}

    def work(self, seconds: float) -> None:
        self.clock.advance(seconds)

    async def handle(self, request: Request) -> Answer:
        self.work(2 * PIECE)
        if request.path == "/waiting":
            await asyncio.sleep(0)
            self.clock.advance(0)
            self.work(3 * PIECE)
            await asyncio.sleep(0)
            self.work(PIECE)
        now = self.clock.monotonic()
        self.busy[request.path] = request.busy + now - request.step
        return Response(200, b"{}")


async def served(raw: bytes, answers: int) -> dict[str, float]:
    clock = HandClock()
    handler = Busy(clock)
    server = HttpServer(handler.handle, HttpSettings(), clock)
    port = await server.start()
    try:
        async with connected(port) as client:
            client.send(GET % b"first")
            await client.answer()
            client.send(raw)
            for _ in range(answers):
                await client.answer()
    finally:
        await server.stop(0.5)
    return handler.busy


async def test_a_request_that_never_waits_is_busy_from_its_arrival() -> None:
    assert (await served(GET % b"second", 1)) == pytest.approx(
        {"/first": 2 * PIECE, "/second": 2 * PIECE}
    )


async def test_steps_are_added_up_and_waiting_is_not() -> None:
    assert (await served(GET % b"waiting", 1))["/waiting"] == pytest.approx(6 * PIECE)


async def test_pipelined_requests_do_not_pay_for_each_other() -> None:
    busy = await served(GET % b"waiting" + GET % b"a" + GET % b"b", 3)
    wanted = {"/waiting": 6 * PIECE, "/a": 2 * PIECE, "/b": 2 * PIECE}
    assert {path: busy[path] for path in wanted} == pytest.approx(wanted)


async def test_a_stream_is_charged_while_it_goes_on() -> None:
    clock = HandClock()
    charged: list[float] = []
    going = asyncio.Event()

    async def run(sender: Sender) -> None:
        for _ in range(3):
            clock.advance(PIECE)
            sender.write(b"x")
            await asyncio.sleep(0)
        await going.wait()

    async def handle(request: Request) -> Answer:
        request.charge = charged.append
        return Stream(run)

    server = HttpServer(handle, HttpSettings(), clock)
    port = await server.start()
    try:
        async with connected(port) as client:
            client.send(GET % b"stream")
            await until(lambda: len(charged) == 3, turn)
            going.set()
    finally:
        await server.stop(0.5)
    assert charged == pytest.approx([PIECE] * 3)


async def test_nobody_is_charged_for_a_step_that_took_longer_than_any_does() -> None:
    clock = HandClock()
    charged: list[float] = []

    async def run(sender: Sender) -> None:
        for _ in range(3):
            clock.advance(30)  # as where the process waits for a core
            await asyncio.sleep(0)

    async def handle(request: Request) -> Answer:
        request.charge = charged.append
        return Stream(run)

    server = HttpServer(handle, HttpSettings(), clock)
    port = await server.start()
    try:
        async with connected(port) as client:
            client.send(GET % b"stream")
            await until(lambda: len(charged) >= 3, turn)
    finally:
        await server.stop(0.5)
    assert charged == [0.1] * 3
