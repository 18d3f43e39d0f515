"""Probes: one attempt and what it found, and how many agreeing ones count."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from skerry.edge.agent.probes import Prober, Reach, Result, attempt, shown, timing_of


async def run(argv: Sequence[str], seconds: float) -> tuple[int, str]:
    if argv[0] == "hang":
        await asyncio.Event().wait()
    return int(argv[0]), "output"


async def connect(place: Any) -> Any:
    return await asyncio.open_connection(*place)


def reach(place: tuple[str, int] | None = None) -> Reach:
    return Reach(lambda _: place, run, {"web": 80}, connect)


@asynccontextmanager
async def server(answer: bytes) -> Any:
    """Listen and answer every connection with *answer*."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await writer.drain()
        writer.close()

    listening = await asyncio.start_server(serve, "127.0.0.1")
    try:
        yield listening.sockets[0].getsockname()[:2]
    finally:
        listening.close()
        await listening.wait_closed()


async def asked(answer: bytes) -> Result:
    async with server(answer) as place:
        return await attempt({"httpGet": {"port": 80, "path": "/x"}}, reach(place), 5)


@pytest.mark.parametrize(
    ("port", "number"),
    [(80, 80), ("81", 81), ("web", 80), ("unknown", 0), ("²", 0), ("٣", 0), ("9" * 5000, 0)],
)
def test_ports_are_numbers_or_names(port: int | str, number: int) -> None:
    assert reach().port(port) == number


async def test_a_command_succeeds_by_its_exit_code() -> None:
    assert await attempt({"exec": {"command": ["0"]}}, reach(), 5) == Result(True, "output")
    assert await attempt({"exec": {"command": ["3"]}}, reach(), 5) == Result(False, "output")


async def test_an_attempt_has_a_deadline() -> None:
    found = await attempt({"exec": {"command": ["hang", "on"]}}, reach(), 0.01)
    assert found == Result(False, 'command "hang on" timed out')


@pytest.mark.parametrize(
    ("line", "result"),
    [
        (b"HTTP/1.1 200 OK\r\n\r\n", Result(True)),
        (b"HTTP/1.1 302 Found\r\n\r\n", Result(True)),
        (b"HTTP/1.1 404 No\r\n\r\n", Result(False, "HTTP probe failed with statuscode: 404")),
    ],
)
async def test_an_answer_is_judged_by_its_code(line: bytes, result: Result) -> None:
    assert await asked(line) == result


@pytest.mark.parametrize("line", [b"", b"nonsense\r\n", b"HTTP/1.1 " + b"9" * 5000 + b" x\r\n"])
async def test_what_is_no_answer_is_a_failure_and_nothing_worse(line: bytes) -> None:
    found = await asked(line)
    assert not found.success
    assert found.message.startswith('Get "http://localhost:80/x": ')


@pytest.mark.parametrize("handler", [{"tcpSocket": {"port": 1}}, {"httpGet": {"port": 1}}])
async def test_a_port_nobody_has_is_refused(handler: Any) -> None:
    found = await attempt(handler, reach(), 5)
    assert not found.success
    assert "connection refused" in found.message


async def test_a_connection_suffices_for_a_socket() -> None:
    async with server(b"") as place:
        assert await attempt({"tcpSocket": {"port": 1}}, reach(place), 5) == Result(True)
    assert not (await attempt({}, reach(), 5)).success


class Clock:
    """Lets time pass at once, and remembers how long anybody slept."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        await asyncio.sleep(0)


class Answers:
    """A reach whose commands exit with these codes, one after the other."""

    def __init__(self, *codes: int) -> None:
        self._codes = list(codes)

    async def run(self, argv: Sequence[str], seconds: float) -> tuple[int, str]:
        if not self._codes:
            raise asyncio.CancelledError
        return self._codes.pop(0), ""


async def settled(*codes: int, **probe: Any) -> tuple[list[bool], int]:
    """Return the settled results and how many attempts failed."""
    clock: Any = Clock()
    results: list[bool] = []
    failed: list[Result] = []
    ways = Reach(lambda _: None, Answers(*codes).run, {}, connect)
    prober = Prober(
        {"exec": {"command": ["x"]}, **probe}, ways, clock, on_result=results.append,
        unhealthy=failed.append,
    )  # fmt: skip
    with pytest.raises(asyncio.CancelledError):
        await prober.run()
    assert clock.slept[0] == timing_of(probe).delay
    return results, len(failed)


async def test_results_change_after_as_many_agreeing_attempts_as_it_takes() -> None:
    assert await settled(1, 1, 0, 1, 1, 1, failureThreshold=3) == ([True, False], 5)
    assert await settled(0, 1, 0, 0, successThreshold=2, failureThreshold=1) == ([False, True], 1)


async def test_a_prober_stops_at_the_result_it_waits_for() -> None:
    clock: Any = Clock()
    ways = Reach(lambda _: None, Answers(1, 0, 0).run, {}, connect)
    heard: list[bool] = []
    prober = Prober({"exec": {"command": ["x"]}, "failureThreshold": 1}, ways, clock,
                    on_result=heard.append, unhealthy=lambda _: None)  # fmt: skip
    await prober.until(True)
    assert heard == [False, True]


def test_timing_has_the_defaults_of_the_api() -> None:
    found = timing_of({})
    assert (found.delay, found.period, found.deadline) == (0, 10, 1)
    assert (found.successes, found.failures) == (1, 3)


def test_of_a_long_output_an_event_carries_the_beginning() -> None:
    assert len(shown(" " + "x" * 20_000)) == 10 * 1024
