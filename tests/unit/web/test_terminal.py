"""A terminal of a tab: what is printed waits for the page, what is typed for the program."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Mapping
from typing import Any

import pytest

from skerry.api.errors import BadRequest
from skerry.logic.fleet.console.frames import MAX_TYPED_BYTES, Shown, Size, Typed
from skerry.web.terminal import WINDOW_BYTES, TabTerminal


class Page:
    """What a page was sent of its terminal."""

    def __init__(self) -> None:
        self.sent: list[Mapping[str, Any]] = []
        self.begun = 0
        self.terminal = TabTerminal(7, (80, 24), self.sent.append, self._begin)

    def _begin(self) -> None:
        self.begun += 1

    @property
    def printed(self) -> bytes:
        return b"".join(base64.b64decode(each["out"]) for each in self.sent if "out" in each)


async def test_a_program_that_prints_without_end_waits_until_the_page_has_shown_some() -> None:
    page, text = Page(), b"0123456789abcdef" * (WINDOW_BYTES // 8)
    async with asyncio.TaskGroup() as tasks:
        showing = tasks.create_task(page.terminal.show(text, error=False))
        await asyncio.sleep(0)
        assert len(page.printed) == WINDOW_BYTES
        for _ in range(3):
            await asyncio.sleep(0)
        assert not showing.done()
        page.terminal.hear(Shown(7, WINDOW_BYTES))
        await showing
    assert page.printed == text


async def test_what_is_typed_is_said_to_be_taken_once_the_program_asks_for_more() -> None:
    page = Page()
    typed = page.terminal.typed()
    page.terminal.hear(Typed(7, b"ls\r"))
    assert await anext(typed) == b"ls\r"
    assert page.sent == []
    page.terminal.hear(Typed(7, b"x"))
    assert await anext(typed) == b"x"
    assert page.sent == [{"id": 7, "taken": 3}]


async def test_a_page_that_keeps_no_bound_is_refused() -> None:
    page = Page()
    page.terminal.hear(Typed(7, b"x" * MAX_TYPED_BYTES))
    with pytest.raises(BadRequest, match="more than 65536 bytes wait for the program"):
        page.terminal.hear(Typed(7, b"x"))
    with pytest.raises(BadRequest, match="shown: 1 bytes, of which 0 were sent"):
        page.terminal.hear(Shown(7, 1))


async def test_the_size_is_known_at_once_and_whenever_it_changes() -> None:
    page = Page()
    sizes = page.terminal.sizes()
    assert await anext(sizes) == (80, 24)
    page.terminal.hear(Size(7, (100, 40)))
    assert await anext(sizes) == (100, 40)


def test_the_page_is_notified_in_which_pod_its_program_runs() -> None:
    page = Page()
    page.terminal.begin("web-1")
    assert (page.begun, page.sent) == (1, [{"id": 7, "running": {"pod": "web-1"}}])
