"""Workers in turn for everybody, replaced when they end, and gone when they are not needed."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator

import orjson
import pytest
import uvloop

from skerry.api.errors import ServiceUnavailable, TooManyRequests
from skerry.server.catalogue import builtin_types
from skerry.server.offload.families import type_ref
from skerry.server.offload.messages import (
    Done,
    Draft,
    Finish,
    Job,
    Missing,
    Refused,
    TypeRef,
    decode_job,
    encode,
)
from skerry.server.offload.offload import Offload, OffloadSettings
from skerry.server.offload.pool import SystemWorker, WorkerEnded, WorkerPool, system_workers
from skerry.server.request.info import RequestInfo
from skerry.server.request.options import WriteOptions
from skerry.server.user import User
from tests.kit.server.harness import serving

ANN, BOB = User("ann"), User("bob")
CONFIG_MAPS = next(r for r in builtin_types() if r.info.resource == "configmaps")
INFO = RequestInfo("/", "create", True, "", "", "v1", "configmaps", "", "default")
MAPS = "/api/v1/namespaces/default/configmaps"
LARGE = {"metadata": {"name": "large"}, "data": {f"k{i}": "v" for i in range(3000)}}


def job(name: str = "", body: bytes = b"") -> Job:
    reference = type_ref(CONFIG_MAPS)
    assert reference is not None
    assert CONFIG_MAPS.family is not None
    reference = TypeRef(
        reference.builder, reference.key, reference.info, content=CONFIG_MAPS.family.text
    )
    task = Draft("create", "2026-01-01T00:00:00Z", "uid", name or "suffix")
    return Job(
        [reference], INFO, "", {"content-type": "application/json"}, body, WriteOptions(), task
    )


class FakeWorker:
    """Answers on demand, or ends."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.ended = False
        self.spent = False
        self.asked: list[str] = []
        self.answer: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def ask(self, message: bytes, seconds: float) -> bytes:
        task = decode_job(message).task
        assert isinstance(task, Draft)
        self.asked.append(task.suffix)
        try:
            await self.answer
        finally:
            self.answer = asyncio.get_running_loop().create_future()
        return encode(Done(task.suffix.encode(), cpu_seconds=0.5, spent=self.spent))

    async def stop(self) -> None:
        self.ended = True

    def end(self) -> None:
        self.ended = True
        self.answer.set_exception(WorkerEnded())


class Fakes:
    """Starts workers and knows them all."""

    def __init__(self) -> None:
        self.workers: list[FakeWorker] = []

    async def start(self) -> FakeWorker:
        self.workers.append(FakeWorker(len(self.workers) + 1))
        return self.workers[-1]


@contextlib.asynccontextmanager
async def served(pool: WorkerPool) -> AsyncIterator[asyncio.TaskGroup]:
    async with asyncio.TaskGroup() as tasks:
        serving_ = tasks.create_task(pool.serve())
        await asyncio.sleep(0)
        try:
            yield tasks
        finally:
            serving_.cancel()


async def settled() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def test_users_take_turns_and_not_requests() -> None:
    fakes = Fakes()
    pool = WorkerPool(OffloadSettings(workers=1), fakes.start)
    async with served(pool) as tasks:
        for name, user in (("a1", ANN), ("a2", ANN), ("a3", ANN), ("b1", BOB)):
            tasks.create_task(pool.run(job(name), user))
            await settled()
        (worker,) = fakes.workers
        for _ in range(4):
            worker.answer.set_result(None)
            await settled()
        assert worker.asked == ["a1", "a2", "b1", "a3"]


async def test_workers_start_as_they_are_needed_up_to_the_limit() -> None:
    fakes = Fakes()
    pool = WorkerPool(OffloadSettings(workers=2), fakes.start)
    async with served(pool) as tasks:
        running = [tasks.create_task(pool.run(job(str(i)), ANN)) for i in range(3)]
        await settled()
        assert [worker.asked for worker in fakes.workers] == [["0"], ["1"]]
        fakes.workers[1].answer.set_result(None)
        await settled()
        assert fakes.workers[1].asked == ["1", "2"]
        for worker in fakes.workers:
            worker.answer.set_result(None)
        assert [getattr(await task, "text", None) for task in running] == [b"0", b"1", b"2"]
        assert sorted(pool.pids) == [1, 2]
    assert all(worker.ended for worker in fakes.workers)


async def test_a_user_who_queues_too_much_is_asked_to_come_back() -> None:
    fakes = Fakes()
    pool = WorkerPool(OffloadSettings(workers=1, queued_per_user=2), fakes.start)
    async with served(pool) as tasks:
        running = [tasks.create_task(pool.run(job(str(i)), ANN)) for i in range(3)]
        await settled()
        with pytest.raises(TooManyRequests):
            await pool.run(job("too many"), ANN)
        running.append(tasks.create_task(pool.run(job("b"), BOB)))
        for _ in running:
            await settled()
            fakes.workers[0].answer.set_result(None)
        assert len([await task for task in running]) == 4


async def test_what_waits_is_limited_in_bytes() -> None:
    fakes = Fakes()
    pool = WorkerPool(OffloadSettings(workers=1, queued_bytes=3000), fakes.start)
    async with served(pool) as tasks:
        first = tasks.create_task(pool.run(job("1", b"x" * 5000), ANN))
        await settled()
        with pytest.raises(TooManyRequests):
            await pool.run(job("2", b"x" * 5000), BOB)
        fakes.workers[0].answer.set_result(None)
        await first


async def test_who_no_longer_waits_gives_the_turn_away() -> None:
    fakes = Fakes()
    pool = WorkerPool(OffloadSettings(workers=1), fakes.start)
    async with served(pool) as tasks:
        first = tasks.create_task(pool.run(job("1"), ANN))
        await settled()
        waiting = tasks.create_task(pool.run(job("2"), ANN))
        third = tasks.create_task(pool.run(job("3"), BOB))
        await settled()
        waiting.cancel()
        await settled()
        (worker,) = fakes.workers
        worker.answer.set_result(None)
        await first
        await settled()
        worker.answer.set_result(None)
        await third
        assert worker.asked == ["1", "3"]


async def test_a_worker_is_heard_to_the_end_though_nobody_wants_the_answer() -> None:
    fakes = Fakes()
    pool = WorkerPool(OffloadSettings(workers=1), fakes.start)
    async with served(pool) as tasks:
        first = tasks.create_task(pool.run(job("1"), ANN))
        await settled()
        first.cancel()
        await settled()
        second = tasks.create_task(pool.run(job("2"), BOB))
        await settled()
        (worker,) = fakes.workers
        assert worker.asked == ["1"]
        worker.answer.set_result(None)
        await settled()
        worker.answer.set_result(None)
        result = await second
        assert isinstance(result, Done)
        assert result.text == b"2"


async def test_a_job_is_done_again_when_its_worker_ends() -> None:
    fakes = Fakes()
    pool = WorkerPool(OffloadSettings(workers=1), fakes.start)
    async with served(pool) as tasks:
        first = tasks.create_task(pool.run(job("1"), ANN))
        await settled()
        fakes.workers[0].end()
        await settled()
        assert fakes.workers[1].asked == ["1"]
        fakes.workers[1].answer.set_result(None)
        assert isinstance(await first, Done)
        assert pool.pids == [2]


async def test_a_job_that_ends_two_workers_fails_and_others_go_on() -> None:
    fakes = Fakes()
    pool = WorkerPool(OffloadSettings(workers=1), fakes.start)
    async with served(pool) as tasks:
        first = asyncio.ensure_future(pool.run(job("1"), ANN))
        await settled()
        second = tasks.create_task(pool.run(job("2"), BOB))
        for worker in (0, 1):
            fakes.workers[worker].end()
            await settled()
        with pytest.raises(ServiceUnavailable, match="nothing was written"):
            await first
        fakes.workers[2].answer.set_result(None)
        assert isinstance(await second, Done)


async def test_a_worker_that_ended_while_idle_is_not_asked() -> None:
    fakes = Fakes()
    pool = WorkerPool(OffloadSettings(workers=1), fakes.start)
    async with served(pool) as tasks:
        for _ in range(2):
            running = tasks.create_task(pool.run(job("1"), ANN))
            await settled()
            fakes.workers[-1].answer.set_result(None)
            await running
            fakes.workers[-1].ended = True
        assert [worker.pid for worker in fakes.workers] == [1, 2]


async def test_a_worker_that_says_it_is_spent_is_replaced_before_it_is_asked() -> None:
    fakes = Fakes()
    pool = WorkerPool(OffloadSettings(workers=1), fakes.start)
    async with served(pool) as tasks:
        running = [tasks.create_task(pool.run(job(str(i)), ANN)) for i in range(2)]
        await settled()
        fakes.workers[0].spent = True
        fakes.workers[0].answer.set_result(None)
        await settled()
        assert fakes.workers[0].ended
        assert [worker.asked for worker in fakes.workers] == [["0"], ["1"]]
        fakes.workers[1].answer.set_result(None)
        assert [getattr(await task, "text", None) for task in running] == [b"0", b"1"]


async def test_a_worker_that_cannot_start_leaves_its_place_to_the_next() -> None:
    fakes = Fakes()
    broken = True

    async def start() -> FakeWorker:
        if broken:
            raise ServiceUnavailable("no worker")
        return await fakes.start()

    pool = WorkerPool(OffloadSettings(workers=1), start)
    async with served(pool) as tasks:
        with pytest.raises(ServiceUnavailable):
            await pool.run(job("1"), ANN)
        broken = False
        running = tasks.create_task(pool.run(job("2"), ANN))
        await settled()
        fakes.workers[0].answer.set_result(None)
        assert isinstance(await running, Done)


async def test_users_are_charged_for_the_time_their_jobs_took() -> None:
    fakes, charged = Fakes(), dict.fromkeys(("ann", "bob"), 0.0)

    def charge(user: User, seconds: float) -> None:
        charged[user.name] += seconds

    pool = WorkerPool(OffloadSettings(workers=1), fakes.start, charge)
    async with served(pool) as tasks:
        running = tasks.create_task(pool.run(job("1"), ANN))
        await settled()
        fakes.workers[0].answer.set_result(None)
        await running
    assert charged == {"ann": 0.5, "bob": 0.0}


@pytest.mark.looptime
async def test_an_idle_worker_ends_after_a_while() -> None:
    fakes = Fakes()
    pool = WorkerPool(OffloadSettings(workers=1, idle_seconds=60), fakes.start)
    async with served(pool) as tasks:
        running = tasks.create_task(pool.run(job("1"), ANN))
        await settled()
        fakes.workers[0].answer.set_result(None)
        await running
        await asyncio.sleep(59)
        assert pool.pids == [1]
        await asyncio.sleep(2)
        assert pool.pids == []
        assert fakes.workers[0].ended


# -- real processes ----------------------------------------------------------------------------


async def test_a_large_object_goes_through_a_process_and_a_killed_one_loses_nothing() -> None:
    settings = OffloadSettings(workers=1)
    pool = system_workers(settings, "none", lambda *_: None)
    async with serving(offload=Offload(pool, settings)) as server:
        made = await server.create(MAPS, LARGE)
        assert (made.status, len(made.body["data"])) == (201, 3000)
        (pid,) = pool.pids
        os.kill(pid, signal.SIGKILL)
        changed = {"data": {"k0": "w"}}
        patched = await server.patch(f"{MAPS}/large", changed)
        assert (patched.status, patched.body["data"]["k0"]) == (200, "w")
        assert pool.pids != [pid]
        (pid,) = pool.pids
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_a_large_server_does_not_wear_its_workers_out() -> None:
    settings = OffloadSettings(workers=1, memory_bytes=600 << 20)
    held = b"x" * (settings.memory_bytes // 3)
    pool = system_workers(settings, "none", lambda *_: None)
    async with served(pool):
        pids = []
        for _ in range(3):
            assert isinstance(await pool.run(job(body=b'{"metadata":{"name":"a"}}'), ANN), Done)
            pids += pool.pids
    assert len(pids) == 3
    assert len(set(pids)) == 1
    assert len(held) > settings.memory_bytes // 4


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        (OffloadSettings(cpu_seconds=0.02), "needs more than 0.02 s of CPU time"),
        (OffloadSettings(memory_bytes=200 << 20), "needs more than 209715200 bytes of memory"),
    ],
)
async def test_what_needs_too_much_is_refused(settings: OffloadSettings, why: str) -> None:
    worker = await SystemWorker.start(settings, "none")
    pool = WorkerPool(settings, lambda: _ready(worker))
    body = orjson.dumps({"metadata": {"name": "a"}, "data": {f"k{i}": "v" for i in range(90_000)}})
    if "memory" in why:
        body = orjson.dumps({"metadata": {"name": "a"}, "data": {"k": "v" * (60 << 20)}})
    async with served(pool):
        result = await pool.run(job(body=body), ANN)
        assert isinstance(result, Refused)
        assert (result.code, result.status["reason"]) == (413, "RequestEntityTooLarge")
        assert why in result.status["message"]


async def _ready(worker: SystemWorker) -> SystemWorker:
    return worker


async def test_a_process_says_what_it_does_not_know() -> None:
    settings = OffloadSettings()
    unknown = Job(
        [TypeRef("definition", "x", CONFIG_MAPS.info)],
        INFO,
        "",
        {},
        b"",
        WriteOptions(),
        Finish(b""),
    )
    pool = system_workers(settings, "cluster", lambda *_: None)
    async with served(pool):
        assert isinstance(await pool.run(unknown, ANN), Missing)


def test_a_worker_that_ended_while_it_was_idle_ends_no_hub() -> None:
    async def asked() -> None:
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec("true", stdin=pipe, stdout=pipe)
        assert process.stdin is not None
        worker = SystemWorker(process)
        await process.wait()
        process.stdin.close()
        with pytest.raises(WorkerEnded):
            await worker.ask(b"anything", 5)
        await worker.stop()

    # A hub runs on uvloop, which refuses to write to a closed pipe in its own way.
    uvloop.run(asked())
