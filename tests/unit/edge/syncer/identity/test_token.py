"""The hub's credential and clocks that disagree."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import orjson
import pytest

from skerry.edge.syncer.identity.token import HubToken, claims_of
from skerry.kit.clock import LoopClock
from skerry.kit.ids import SeededIds
from skerry.runtime.client import Client
from skerry.runtime.transport import NO_HEADERS, Answer
from tests.kit.answering import AnsweringTransport
from tests.kit.chain.issuing_hub import token
from tests.kit.sim.loop import virtual

HUB_START = datetime(2030, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)


class Issuer(AnsweringTransport):
    """A hub that issues tokens by its own clock, and counts them."""

    def __init__(self, lifetime: timedelta) -> None:
        self._clock = LoopClock(HUB_START)
        self._lifetime = lifetime
        self.issued = 0

    async def request(
        self,
        method: str,
        path: str,
        query: str = "",
        headers: Mapping[str, str] = NO_HEADERS,
        body: bytes = b"",
    ) -> Answer:
        self.issued += 1
        fresh = token(self._clock.now(), self._lifetime)
        return Answer(201, {}, orjson.dumps({"status": {"token": fresh}}))


def given(folder: Path, lifetime: timedelta, local_now: datetime) -> HubToken:
    """Return a token that arrived just now, in a file dated by the local clock."""
    made = HubToken(token(HUB_START, lifetime), folder / "token")
    os.utime(made.path, (local_now.timestamp(), local_now.timestamp()))
    return made


@pytest.mark.parametrize("skew", [-DAY, timedelta(0), DAY])
@pytest.mark.parametrize("lifetime", [7 * DAY, timedelta(hours=1)])
@virtual
async def test_a_clock_that_is_wrong_by_a_day_neither_misses_nor_multiplies_renewals(
    tmp_path: Path, skew: timedelta, lifetime: timedelta
) -> None:
    issuer = Issuer(lifetime)
    client = Client(issuer, clock=LoopClock(HUB_START + skew))
    kept = given(tmp_path, lifetime, HUB_START + skew)
    async with asyncio.TaskGroup() as tasks:
        renewing = tasks.create_task(kept.run(client, SeededIds(1)))
        await asyncio.sleep(lifetime.total_seconds() * 2.05)
        renewing.cancel()
    # Every fifth of a life, a little late, and once more where the first looked old.
    assert 8 <= issuer.issued <= 11
    newest = claims_of(kept.path.read_text())
    assert newest is not None


@virtual
async def test_a_syncer_that_runs_behind_and_is_often_restarted_renews_in_time(
    tmp_path: Path,
) -> None:
    issuer = Issuer(7 * DAY)
    local = LoopClock(HUB_START - DAY)
    client = Client(issuer, clock=local)
    kept = given(tmp_path, 7 * DAY, local.now())
    text = kept.path.read_text()
    for _ in range(3):
        async with asyncio.TaskGroup() as tasks:
            renewing = tasks.create_task(HubToken(text, kept.path).run(client, SeededIds(1)))
            await asyncio.sleep(DAY.total_seconds() * 0.9)
            renewing.cancel()
    assert issuer.issued >= 1


@pytest.mark.parametrize(
    ("kubeconfig_after", "kept"),
    [(timedelta(seconds=-1), "file"), (timedelta(0), "file"), (timedelta(seconds=1), "kubeconfig")],
)
def test_the_newer_token_counts_and_of_one_second_the_renewed_one(
    tmp_path: Path, kubeconfig_after: timedelta, kept: str
) -> None:
    renewed = token(HUB_START, DAY)
    issued = token(HUB_START + kubeconfig_after, 2 * DAY)
    path = tmp_path / "token"
    path.write_text(renewed)
    HubToken(issued, path)
    assert path.read_text() == {"file": renewed, "kubeconfig": issued}[kept]
