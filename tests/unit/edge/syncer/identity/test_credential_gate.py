"""Requests wait while there is no credential, and what refuses it is noticed."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import pytest

from skerry.edge.syncer.identity.credential_gate import CredentialGate, Suspicion
from skerry.runtime.transport import (
    NO_HEADERS,
    Answer,
    AnswerStream,
    ConnectionLost,
    TransportError,
)
from tests.kit.sim.loop import virtual


class Hub:
    """Answers everything alike."""

    def __init__(self) -> None:
        self.status = 200
        self.failure: Exception | None = None
        self.paths: list[str] = []

    async def request(
        self,
        method: str,
        path: str,
        query: str = "",
        headers: Mapping[str, str] = NO_HEADERS,
        body: bytes = b"",
    ) -> Answer:
        self.paths.append(path)
        if self.failure is not None:
            raise self.failure
        return Answer(self.status, {}, b"{}")

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        path: str,
        query: str = "",
        headers: Mapping[str, str] = NO_HEADERS,
        body: bytes = b"",
    ) -> AsyncIterator[AnswerStream]:
        self.paths.append(path)
        if self.failure is not None:
            raise self.failure
        yield _Lines(self.status)

    async def close(self) -> None:
        """Nothing is held."""


class _Lines:
    headers: Mapping[str, str] = NO_HEADERS

    def __init__(self, status: int) -> None:
        self.status = status

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield b"{}\n"


class CountedSuspicion(Suspicion):
    def __init__(self) -> None:
        super().__init__()
        self.suspicions = self.distrusts = 0

    def suspect(self) -> None:
        super().suspect()
        self.suspicions += 1

    def distrust(self) -> None:
        super().distrust()
        self.distrusts += 1


class Stage:
    def __init__(self, *, is_open: bool = True) -> None:
        self.hub, self.suspicion = Hub(), CountedSuspicion()
        self.gate = CredentialGate(self.hub, self.suspicion)
        if is_open:
            self.gate.open()

    @property
    def counts(self) -> tuple[int, int]:
        """How often the credential was suspected, and the hub distrusted."""
        return self.suspicion.suspicions, self.suspicion.distrusts

    async def ask(self, path: str = "/api/v1/pods") -> int:
        return (await self.gate.request("GET", path)).status

    async def follow(self, path: str = "/api/v1/pods") -> int:
        async with self.gate.stream("GET", path) as answer:
            return answer.status


@virtual
async def test_requests_wait_at_a_closed_gate_and_pass_once_it_is_open() -> None:
    stage = Stage(is_open=False)
    assert not stage.gate.is_open
    loop = asyncio.get_running_loop()
    waiting = [loop.create_task(stage.ask()), loop.create_task(stage.follow())]
    await asyncio.sleep(86400)
    assert stage.hub.paths == []
    stage.gate.open()
    assert await asyncio.gather(*waiting) == [200, 200]
    stage.gate.shut()
    later = loop.create_task(stage.ask())
    await asyncio.sleep(1)
    assert not later.done()
    later.cancel()


@virtual
@pytest.mark.parametrize(
    ("status", "path", "suspected"),
    [
        (200, "/api/v1/pods", 0),
        (401, "/api/v1/pods", 1),
        (403, "/api/v1/pods", 0),
        # What every edge may do: a lapsed certificate is refused there, too.
        (403, "/clusters/x/extensions/v1/watch", 1),
        (404, "/clusters/x/extensions", 0),
    ],
)
async def test_what_only_a_bad_credential_explains_is_suspected(
    status: int, path: str, suspected: int
) -> None:
    stage = Stage()
    stage.hub.status = status
    assert await stage.ask(path) == status
    assert stage.counts == (suspected, 0)
    assert await stage.follow(path) == status
    assert stage.counts == (2 * suspected, 0)


@virtual
async def test_a_hub_that_hangs_up_may_mean_the_credential() -> None:
    stage = Stage()
    stage.hub.failure = ConnectionLost("closed")
    with pytest.raises(ConnectionLost):
        await stage.ask()
    with pytest.raises(ConnectionLost):
        await stage.follow()
    assert stage.counts == (2, 0)


@virtual
async def test_a_hub_that_nobody_vouches_for_is_distrusted() -> None:
    stage = Stage()
    stage.hub.failure = TransportError("cannot connect")
    stage.hub.failure.__cause__ = ssl.SSLCertVerificationError()
    with pytest.raises(TransportError):
        await stage.ask()
    assert stage.counts == (0, 1)


@virtual
async def test_a_line_that_is_down_says_nothing_about_the_credential() -> None:
    stage = Stage()
    stage.hub.failure = TransportError("cannot connect")
    with pytest.raises(TransportError):
        await stage.ask()
    assert stage.counts == (0, 0)
