"""The tour ends at the first stop that does not hold, and says why."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from skerry.api.errors import NotFound
from skerry.app.demo import Disappointment, Tour, play
from skerry.kit.clock import LoopClock
from skerry.runtime.client import Client
from skerry.runtime.kubeconfig import ClientConfig


class Notebook:
    """A narrator that remembers."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, str]] = []

    def begin(self, title: str) -> None:
        self.lines.append(("begin", title))

    def end(self, seen: str, milliseconds: float) -> None:
        self.lines.append(("end", seen))

    def fail(self, why: str) -> None:
        self.lines.append(("fail", why))

    def say(self, line: str) -> None:
        self.lines.append(("say", line))


class Scripted(Tour):
    """A tour of stops given by the test."""

    script: list[tuple[str, Callable[[], Awaitable[str]]]]

    def stops(self) -> list[tuple[str, Callable[[], Awaitable[str]]]]:
        return self.script


def scripted(*stops: tuple[str, Any]) -> Tour:
    def acting(outcome: Any) -> Callable[[], Awaitable[str]]:
        async def act() -> str:
            if isinstance(outcome, Exception):
                raise outcome
            return str(outcome)

        return act

    no_transport: Any = None
    tour = Scripted(Client(no_transport), ClientConfig("https://nowhere"))
    tour.script = [(title, acting(outcome)) for title, outcome in stops]
    return tour


async def test_a_tour_that_holds_reports_every_stop() -> None:
    notebook = Notebook()
    assert await play(scripted(("one", "seen 1"), ("two", "seen 2")), notebook, LoopClock())
    assert notebook.lines == [
        ("begin", "one"),
        ("end", "seen 1"),
        ("begin", "two"),
        ("end", "seen 2"),
    ]


async def test_a_stop_that_does_not_hold_ends_the_tour_with_its_reason() -> None:
    notebook = Notebook()
    tour = scripted(("one", Disappointment("saw 1, wanted 2")), ("two", "never"))
    assert not await play(tour, notebook, LoopClock())
    assert notebook.lines == [("begin", "one"), ("fail", "saw 1, wanted 2")]


async def test_a_refusal_of_the_server_and_a_wait_too_long_end_the_tour_too() -> None:
    for problem, expected in (
        (NotFound.of("", "pods", "p"), 'pods "p" not found'),
        (TimeoutError(), "TimeoutError"),
    ):
        notebook = Notebook()
        assert not await play(scripted(("one", problem)), notebook, LoopClock())
        assert notebook.lines[-1] == ("fail", expected)
