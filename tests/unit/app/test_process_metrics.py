"""Counts that were shown stay, whoever counted them and whatever became of it."""

from __future__ import annotations

import os
from collections.abc import Sequence

from prometheus_client import CollectorRegistry

from skerry.app.process_beats import STUCK, RestartCounts
from skerry.app.process_metrics import GroupMetrics, KeptMetrics, register_restarts
from skerry.app.process_peers import GroupName, Peers
from skerry.kit.ids import SystemIds
from skerry.kit.metrics import Counter, Gauge
from skerry.server.http.message import Request, Response


class Process:
    """One process of a group, in this one."""

    def __init__(self, group: GroupName, index: int, kept: Sequence[KeptMetrics]) -> None:
        self.registry = registry = CollectorRegistry()
        self.requests = Counter(registry, "requests_total", "Requests.")
        Gauge(registry, "skerry_server_processes", "Processes.").set(1)
        self.peers = Peers(group, index, 2)
        self._metrics = GroupMetrics(registry, self.peers, kept)

    async def scraped(self) -> set[str]:
        answer = await self._metrics.handle(Request("GET", "/metrics"), "")
        assert isinstance(answer, Response)
        assert isinstance(answer.body, bytes)
        lines = answer.body.decode().splitlines()
        return {line for line in lines if not line.startswith("#")}


async def test_whichever_process_is_asked_the_answer_is_about_all() -> None:
    group, kept = GroupName.new(SystemIds()), [KeptMetrics(), KeptMetrics()]
    one, two = (Process(group, index, kept) for index in (0, 1))
    async with one.peers.serving():
        async with two.peers.serving():
            one.requests.inc(amount=3)
            two.requests.inc(amount=4)
            wanted = {"requests_total 7.0", "skerry_server_processes 2.0"}
            assert await one.scraped() == wanted
            assert await two.scraped() == wanted
        # One that is started again in its place goes on counting where it was last seen.
        again = Process(group, 1, kept)
        async with again.peers.serving():
            again.requests.inc()
            wanted = {"requests_total 8.0", "skerry_server_processes 2.0"}
            assert await one.scraped() == wanted


async def test_a_process_that_does_not_answer_counts_as_it_was_last_seen() -> None:
    group, kept = GroupName.new(SystemIds()), [KeptMetrics(), KeptMetrics()]
    one, two = (Process(group, index, kept) for index in (0, 1))
    async with one.peers.serving():
        two.requests.inc(amount=4)
        async with two.peers.serving():
            assert await one.scraped() == {"requests_total 4.0", "skerry_server_processes 2.0"}
        two.requests.inc()
        for _ in range(2):
            # What it counts that only grows; of what is now, nothing is known.
            assert await one.scraped() == {"requests_total 4.0", "skerry_server_processes 1.0"}
        async with two.peers.serving():
            assert await one.scraped() == {"requests_total 5.0", "skerry_server_processes 2.0"}


async def test_a_process_that_never_reported_is_left_out() -> None:
    group = GroupName.new(SystemIds())
    alone = Process(group, 0, [KeptMetrics(), KeptMetrics()])
    alone.requests.inc()
    assert await alone.scraped() == {"requests_total 1.0", "skerry_server_processes 1.0"}


async def test_nobody_without_the_secret_is_answered() -> None:
    group = GroupName.new(SystemIds())
    stranger = Peers(GroupName(group.name, "guessed"), 1, 2)
    async with Process(group, 0, [KeptMetrics()]).peers.serving():
        assert await stranger.ask(0, "metrics") is None


def test_a_report_of_a_process_that_ended_is_read_by_its_successor() -> None:
    kept = KeptMetrics()
    child = os.fork()
    if child == 0:
        process = Process(GroupName("unused", ""), 0, [kept])
        process.requests.inc(amount=5)
        process._metrics._packed()
        process.requests.inc(amount=6)
        process._metrics._packed()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    samples = {s.name: s.value for family in kept.read() for s in family.samples}
    assert samples == {"requests_total": 11.0}


async def test_restarts_are_the_groups_and_not_added_up() -> None:
    group, kept, restarts = (
        GroupName.new(SystemIds()),
        [KeptMetrics(), KeptMetrics()],
        RestartCounts(),
    )
    one, two = (Process(group, index, kept) for index in (0, 1))
    for process in (one, two):
        register_restarts(process.registry, restarts)
    restarts.add(STUCK)
    name = "skerry_server_process_restarts_total"
    wanted = {f'{name}{{reason="stuck"}} 1.0', f'{name}{{reason="ended"}} 0.0'}
    async with one.peers.serving(), two.peers.serving():
        assert await one.scraped() >= wanted
        assert await two.scraped() >= wanted
