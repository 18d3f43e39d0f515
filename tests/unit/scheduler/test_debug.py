"""Pages that show where every task stands."""

from __future__ import annotations

import asyncio
import sys

from skerry.scheduler.debug import PAGES, command_line, index, tasks


async def waits(ready: asyncio.Event) -> None:
    await inner(ready)


async def inner(ready: asyncio.Event) -> None:
    await ready.wait()


async def test_every_task_is_shown_with_the_calls_it_is_in() -> None:
    ready = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(waits(ready), name="zz-waiting")
        await asyncio.sleep(0)
        text = tasks()[1].decode()
        ready.set()
    lines = text.splitlines()
    assert lines[0].startswith("goroutine profile: total ")
    at = lines.index("zz-waiting:")
    calls = [line.split()[0] for line in lines[at + 1 : at + 3]]
    assert calls == ["waits", "inner"]


def test_the_command_line_has_nul_between_its_words() -> None:
    assert command_line()[1].decode().split("\0") == sys.argv


def test_the_index_names_the_pages_there_are() -> None:
    text = index()[1].decode()
    for path in PAGES:
        assert path.removeprefix("/debug/pprof").strip("/") in text
