"""A store that answers late or not at all: what is asked of the server ends all the same."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from skerry.app.settings import StoreSettings
from skerry.server.flow import FlowSettings
from tests.kit.server.harness import MemorySender, Reply
from tests.kit.server.hub import CONFIG_MAPS, Hub, config_map, running_hub
from tests.kit.store.etcd_process import EtcdProcess
from tests.kit.store.slow_disk import SlowDisk

_PATIENCE_SECONDS = 30.0
_BEYOND = 50
# How many requests of one principal are let in: the seats it may hold, and its queue.
_LIMITS = FlowSettings().mutating
_LET_IN = int(_LIMITS.seats * _LIMITS.share) + _LIMITS.queue


def writers(hub: Hub, cluster: str, prefix: str, count: int) -> dict[str, asyncio.Task[Reply]]:
    """Begin to create so many ConfigMaps as alice; return the requests by name."""
    path = f"/clusters/{cluster}{CONFIG_MAPS}"
    return {
        name: asyncio.create_task(hub.ask("alice", "POST", path, config_map(name)))
        for name in (f"{prefix}{number}" for number in range(count))
    }


async def stored(hub: Hub, cluster: str) -> set[str]:
    listed = await hub.get(cluster, CONFIG_MAPS)
    return {item["metadata"]["name"] for item in listed["items"]}


async def added(sender: MemorySender, wanted: set[str]) -> None:
    """Wait until a watch has reported all of *wanted*."""
    missing = set(wanted)
    while missing:
        event = await sender.lines.get()
        assert event["type"] == "ADDED"
        missing.discard(event["object"]["metadata"]["name"])


# -- a disk ----------------------------------------------------------------------------------------


@pytest.fixture
def disk() -> Iterator[SlowDisk]:
    disk = SlowDisk()
    with disk.installed():
        yield disk


async def test_while_the_disk_is_busy_one_tenant_waits_and_others_read(
    tmp_path: Path, disk: SlowDisk
) -> None:
    settings = StoreSettings(kind="sqlite", path=tmp_path / "store.db")
    async with running_hub(tmp_path, settings) as hub, asyncio.timeout(_PATIENCE_SECONDS):
        mine = await hub.workspace("root", "mine", admin="alice")
        theirs = await hub.workspace("root", "theirs", admin="bob")
        await hub.create(theirs, CONFIG_MAPS, config_map("a"), user="bob")
        with disk.held():
            asked = writers(hub, mine, "w", _LET_IN + _BEYOND)
            await _done(asked, _BEYOND)
            for _ in range(20):
                assert (await hub.get(theirs, f"{CONFIG_MAPS}/a", user="bob"))["metadata"][
                    "name"
                ] == "a"
                assert (await hub.ask("", "GET", "/livez")).status == 200
            # There are seats left for somebody else; that takes as long as the disk does.
            path = f"/clusters/{theirs}{CONFIG_MAPS}"
            late = asyncio.create_task(hub.ask("bob", "POST", path, config_map("b")))
            await asyncio.sleep(0)
            # Who waits is known, and nobody more.
            assert sum(not each.done() for each in asked.values()) <= _LET_IN
            assert await stored(hub, mine) & asked.keys() == set()
        assert (await late).status == 201
        replies = {name: await each for name, each in asked.items()}
        statuses = Counter(reply.status for reply in replies.values())
        assert set(statuses) == {201, 429}
        assert statuses[429] >= _BEYOND
        for reply in replies.values():
            if reply.status == 429:
                assert reply.body["reason"] == "TooManyRequests"
                assert int(dict(reply.headers)["Retry-After"]) >= 1
        acknowledged = {name for name, reply in replies.items() if reply.status == 201}
        assert await stored(hub, mine) & asked.keys() == acknowledged
        again = await hub.ask(
            "kcp-admin", "POST", f"/clusters/{mine}{CONFIG_MAPS}", config_map("z")
        )
        assert again.status == 201


async def _done(asked: dict[str, asyncio.Task[Reply]], count: int) -> None:
    while sum(each.done() for each in asked.values()) < count:
        await asyncio.sleep(0.005)


# -- etcd ------------------------------------------------------------------------------------------


@pytest.fixture
def etcd(tmp_path: Path) -> Iterator[EtcdProcess]:
    process = EtcdProcess(tmp_path / "etcd")
    process.start()
    yield process
    process.kill()


@pytest.mark.etcd
async def test_while_etcd_is_stuck_requests_fail_in_time_and_nothing_acknowledged_is_lost(
    tmp_path: Path, etcd: EtcdProcess
) -> None:
    settings = StoreSettings(kind="etcd", etcd_servers=(etcd.url,), etcd_timeout_seconds=1.0)
    async with running_hub(tmp_path, settings) as hub, asyncio.timeout(_PATIENCE_SECONDS):
        path = f"/clusters/root{CONFIG_MAPS}"
        watch = await hub.watch("kcp-admin", f"{path}?watch=true")
        mine = await hub.workspace("root", "mine", admin="alice")
        early = [await each for each in writers(hub, mine, "early", 20).values()]
        assert {reply.status for reply in early} == {201}
        with etcd.stuck():
            loop = asyncio.get_running_loop()
            begun = loop.time()
            asked = writers(hub, mine, "meanwhile", _LET_IN + _BEYOND)
            reads = [
                asyncio.create_task(
                    hub.ask("kcp-admin", "GET", f"/clusters/{mine}{CONFIG_MAPS}/early0")
                )
                for _ in range(50)
            ]
            assert (await hub.ask("kcp-admin", "GET", "/livez/ping")).status == 200
            failed = [await each for each in (*asked.values(), *reads)]
            # Those that had a seat, and those that waited for one: two answers' time each.
            assert loop.time() - begun < 10
        assert Counter(reply.status for reply in failed).keys() <= {503, 429}
        for reply in failed:
            assert reply.body["kind"] == "Status"
            assert reply.body["details"]["retryAfterSeconds"] >= 1
            if reply.status == 503:
                assert "etcd" in reply.body["message"]
        # Of a write that was sent nobody knows; the answer says so.
        for each in asked.values():
            if each.result().status == 503:
                assert "its outcome is unknown" in each.result().body["message"]
        late: set[str] = set()
        while len(late) < 10:
            for name, each in writers(hub, mine, f"late{len(late)}-", 10).items():
                if (await each).status == 201:
                    late.add(name)
        assert await stored(hub, mine) >= late | {f"early{n}" for n in range(20)}
        await hub.create("root", CONFIG_MAPS, config_map("seen"))
        await added(watch, {"seen"})
