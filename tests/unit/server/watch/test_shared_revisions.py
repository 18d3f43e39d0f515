"""What one process answered for, every other process of its group knows before it answers."""

from __future__ import annotations

import asyncio
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.api.errors import TooManyRequests
from skerry.server.watch.dispatcher import Dispatcher
from skerry.server.watch.shared_revisions import SharedRevisions
from skerry.store.base import Write
from skerry.store.memory import MemoryStore
from tests.kit.sim.loop import run_virtual

KEY = "/core/things/local/a/one"


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 1 << 62))))
def test_the_newest_is_the_newest_of_all_whoever_noted_it(notes: list[tuple[int, int]]) -> None:
    shared = SharedRevisions(4)
    members = [shared.of(index) for index in range(4)]
    for index, revision in notes:
        members[index].note(revision)
    newest = max((revision for _, revision in notes), default=0)
    assert [member.newest() for member in members] == [newest] * 4


def test_what_a_forked_process_notes_its_siblings_see() -> None:
    shared = SharedRevisions(2)
    child = os.fork()
    if child == 0:
        shared.of(1).note(812)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert status == 0
    assert shared.of(0).newest() == 812


async def test_a_process_waits_for_what_another_one_answered_for() -> None:
    store, shared = MemoryStore("store"), SharedRevisions(2)
    here = Dispatcher(store, acknowledged=shared.of(0))
    there = Dispatcher(store, acknowledged=shared.of(1))
    observed: list[int] = []
    there.observe("/core/things/", lambda change: observed.append(change.event.revision))
    await here.start()
    await there.start()
    async with asyncio.TaskGroup() as tasks:
        running = [tasks.create_task(here.run())]
        (revision,) = await store.commit([Write(KEY, b"{}")])
        # It was not answered for yet, so nobody has to know.
        await there.catch_up()
        await here.acknowledge(revision)
        asking = tasks.create_task(there.catch_up())
        await asyncio.sleep(0)
        assert not asking.done()
        running.append(tasks.create_task(there.run()))
        await asking
        assert observed == [revision]
        for task in running:
            task.cancel()


def test_a_process_that_stays_behind_asks_its_clients_to_try_again() -> None:
    async def story() -> None:
        store, shared = MemoryStore("store"), SharedRevisions(2)
        stuck = Dispatcher(store, acknowledged=shared.of(0))
        await stuck.start()
        (revision,) = await store.commit([Write(KEY, b"{}")])
        shared.of(1).note(revision)
        with pytest.raises(TooManyRequests) as refused:
            await stuck.catch_up()
        assert dict(refused.value.headers)["Retry-After"] == "1"

    run_virtual(story())
