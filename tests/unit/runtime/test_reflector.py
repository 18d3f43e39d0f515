"""What a reflector does when the server is not as one would wish."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import Any
from urllib.parse import parse_qs

import orjson
import pytest

from skerry.api import errors
from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.kit.clock import LoopClock
from skerry.kit.ids import SeededIds
from skerry.runtime.answers import EventKind
from skerry.runtime.client import Client
from skerry.runtime.facts import ServerFacts
from skerry.runtime.reflector import Reflector
from skerry.runtime.transport import NO_HEADERS, Answer, AnswerStream, Unreachable
from tests.kit.sim.loop import virtual
from tests.kit.sim.twin import TwinStream

PODS = GroupVersionResource("", "v1", "pods")


class Names:
    """A sink that remembers names only."""

    def __init__(self) -> None:
        self.notified: list[str] = []

    async def replace(self, items: Sequence[str]) -> None:
        self.notified.append(f"={','.join(items)}")

    def apply(self, kind: EventKind, item: str) -> None:
        self.notified.append(f"{kind} {item}")


def pod(name: str, revision: int) -> Object:
    return {"metadata": {"name": name, "resourceVersion": str(revision), "uid": name}}


def page(revision: int, *items: Object, more: str = "") -> Object:
    metadata = {"resourceVersion": str(revision), "continue": more}
    return {"kind": "PodList", "apiVersion": "v1", "metadata": metadata, "items": list(items)}


class Script:
    """Answers lists and watches in order; when the script is over, everything hangs."""

    def __init__(self, *answers: Any, minor: str = "20") -> None:
        self._answers = list(answers)
        self._minor = minor
        self.asked: list[dict[str, str]] = []

    async def request(
        self,
        method: str,
        path: str,
        query: str = "",
        headers: Mapping[str, str] = NO_HEADERS,
        body: bytes = b"",
    ) -> Answer:
        if path == "/version":
            if not self._minor:
                return Answer(403, {}, orjson.dumps(errors.Forbidden("no").status()))
            return Answer(200, {}, orjson.dumps({"minor": self._minor}))
        content = await self._next(query)
        if isinstance(content, errors.ApiError):
            return Answer(content.code, {}, orjson.dumps(content.status()))
        return Answer(200, {}, orjson.dumps(content))

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        path: str,
        query: str = "",
        headers: Mapping[str, str] = NO_HEADERS,
        body: bytes = b"",
    ) -> AsyncIterator[AnswerStream]:
        content = await self._next(query)
        if isinstance(content, errors.ApiError):
            yield TwinStream(content.code, _chunks([orjson.dumps(content.status())]))
            return
        lines = [orjson.dumps({"type": kind, "object": obj}) + b"\n" for kind, obj in content]
        yield TwinStream(200, _chunks(lines))

    async def close(self) -> None:
        """Nothing is held."""

    async def _next(self, query: str) -> Any:
        self.asked.append({name: values[0] for name, values in parse_qs(query).items()})
        if not self._answers:
            await asyncio.Event().wait()
        await asyncio.sleep(2)  # longer than what counts as a watch that ended at once
        return self._answers.pop(0)


async def _chunks(items: list[bytes]) -> AsyncIterator[bytes]:
    for item in items:
        yield item


async def followed(script: Script, seconds: float = 300) -> list[str]:
    sink = Names()
    client = Client(script, clock=LoopClock())
    reflector = Reflector(
        client, PODS, sink, lambda obj: str(obj["metadata"]["name"]), ids=SeededIds(1)
    )
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(reflector.run())
        await asyncio.sleep(seconds)
        running.cancel()
    return sink.notified


@virtual
async def test_pages_are_put_together_and_the_watch_begins_at_their_revision() -> None:
    script = Script(page(5, pod("a", 1), more="x"), page(5, pod("b", 2)), [("ADDED", pod("c", 7))])
    assert await followed(script) == ["=a,b", "ADDED c"]
    assert [asked.get("resourceVersion") for asked in script.asked] == [None, None, "5", "7"]


@virtual
async def test_pages_that_expire_are_asked_for_all_at_once() -> None:
    script = Script(page(5, pod("a", 1), more="x"), errors.Gone("old"), page(9, pod("b", 2)))
    assert await followed(script) == ["=b"]
    assert [asked.get("limit") for asked in script.asked[:3]] == ["500", "500", None]


@virtual
async def test_a_forgotten_revision_is_listed_again_at_once() -> None:
    gone = errors.Gone("too old resource version").status()
    script = Script(page(5), [("ADDED", pod("a", 6)), ("ERROR", gone)], page(9, pod("b", 8)))
    assert await followed(script, 7) == ["=", "ADDED a", "=b"]


@virtual
async def test_a_bookmark_moves_the_place_to_resume_from() -> None:
    script = Script(page(5), [("BOOKMARK", {"metadata": {"resourceVersion": "50"}})])
    assert await followed(script) == ["="]
    assert script.asked[-1]["resourceVersion"] == "50"


@virtual
async def test_a_server_that_keeps_refusing_a_revision_is_asked_for_the_state() -> None:
    # A restored server may be behind: it calls the revision too large, never too old.
    refused = errors.Timeout("Too large resource version: 500, current: 3")
    script = Script(page(500, pod("a", 1)), refused, refused, refused, page(3, pod("b", 2)))
    assert await followed(script) == ["=a", "=b"]


@virtual
async def test_a_server_that_is_starting_is_not_asked_for_the_state_again() -> None:
    starting = errors.ServiceUnavailable("the server is starting")
    busy = errors.TooManyRequests("later")
    script = Script(
        page(5, pod("a", 1)), starting, busy, starting, starting, [("ADDED", pod("b", 6))]
    )
    assert await followed(script) == ["=a", "ADDED b"]


class Away(Script):
    """Goes away after ten seconds, for a minute; notes when watches begin."""

    def __init__(self) -> None:
        super().__init__(minor="20")
        self.began: list[float] = []

    async def _next(self, query: str) -> Any:
        return page(5, pod("a", 1))

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        path: str,
        query: str = "",
        headers: Mapping[str, str] = NO_HEADERS,
        body: bytes = b"",
    ) -> AsyncIterator[AnswerStream]:
        now = asyncio.get_running_loop().time()
        if 10 <= now < 70:
            raise Unreachable("refused")
        self.began.append(now)
        yield TwinStream(200, self._silence(10 - now if now < 10 else 1000))

    async def _silence(self, seconds: float) -> AsyncIterator[bytes]:
        await asyncio.sleep(seconds)
        return
        yield b""


@virtual
async def test_all_come_back_soon_after_the_first_to_whom_a_server_answers_again() -> None:
    server = Away()
    client = Client(server, clock=LoopClock())
    reflectors = [Reflector(client, PODS, Names(), str, ids=SeededIds(n)) for n in range(40)]
    async with asyncio.TaskGroup() as tasks:
        running = [tasks.create_task(each.run()) for each in reflectors]
        await asyncio.sleep(68)
        server.began.clear()
        await asyncio.sleep(100)
        for task in running:
            task.cancel()
    assert len(server.began) == 40
    assert max(server.began) - min(server.began) < 3.5


class Timed(Script):
    """Notes when it is asked, and answers a list after *seconds*."""

    def __init__(self, seconds: float) -> None:
        super().__init__(minor="20")
        self.seconds = seconds
        self.times: list[float] = []

    async def _next(self, query: str) -> Any:
        if "watch" in query:
            await asyncio.Event().wait()
        self.times.append(asyncio.get_running_loop().time())
        await asyncio.sleep(self.seconds)
        return page(5, pod("a", 1))


@virtual
@pytest.mark.parametrize(("seconds", "spaced"), [(0.1, 0.1), (5.0, 0.25)])
async def test_states_are_read_one_after_the_other_but_none_holds_up_the_rest(
    seconds: float, spaced: float
) -> None:
    server = Timed(seconds)
    client = Client(server, clock=LoopClock(), facts=ServerFacts(reading=asyncio.Semaphore(1)))
    reflectors = [Reflector(client, PODS, Names(), str, ids=SeededIds(n)) for n in range(4)]
    async with asyncio.TaskGroup() as tasks:
        running = [tasks.create_task(each.run()) for each in reflectors]
        await asyncio.sleep(20)
        for task in running:
            task.cancel()
    waits = [later - sooner for sooner, later in pairwise(server.times)]
    assert waits == pytest.approx([spaced] * 3)


@virtual
async def test_a_server_that_does_not_know_streaming_lists_is_listed() -> None:
    refusal = errors.Invalid("sendInitialEvents is forbidden for watch")
    script = Script(refusal, page(5, pod("a", 1)), minor="27+")
    assert await followed(script) == ["=a"]
    assert script.asked[0]["sendInitialEvents"] == "true"
    assert "sendInitialEvents" not in script.asked[1]


@virtual
async def test_a_server_whose_storage_cannot_stream_a_list_is_listed_at_once() -> None:
    # What kube-apiserver 1.32 answers on an etcd without progress notifications on request.
    refusal = errors.InternalError(
        "a watch stream was requested by the client but the required storage feature "
        "RequestWatchProgress is disabled"
    )
    script = Script(refusal, page(5, pod("a", 1)), [("ADDED", pod("b", 6))], minor="32")
    assert await followed(script, 5) == ["=a"]
    assert "sendInitialEvents" not in script.asked[1]


@virtual
async def test_a_server_that_ignores_the_request_for_a_streaming_list_is_listed() -> None:
    plain = [("ADDED", pod("a", 1)), ("BOOKMARK", {"metadata": {"resourceVersion": "5"}})]
    script = Script(plain, page(5, pod("a", 1)), minor="30")
    assert await followed(script) == ["=a"]


@virtual
async def test_a_streaming_list_is_handed_over_whole_or_not_at_all() -> None:
    end = {"resourceVersion": "9", "annotations": {"k8s.io/initial-events-end": "true"}}
    script = Script(
        [("ADDED", pod("a", 1))],  # breaks off
        [
            ("ADDED", pod("a", 1)),
            ("ADDED", pod("b", 2)),
            ("DELETED", pod("b", 3)),
            ("BOOKMARK", {"metadata": end}),
            ("ADDED", pod("c", 10)),
        ],
        minor="32",
    )
    assert await followed(script) == ["=a", "ADDED c"]
    assert script.asked[-1]["resourceVersion"] == "10"


@virtual
async def test_a_version_that_is_secret_means_a_plain_list() -> None:
    assert await followed(Script(page(5, pod("a", 1)), minor="")) == ["=a"]


@virtual
async def test_failures_are_spaced_out() -> None:
    away = errors.ServiceUnavailable("away")
    script = Script(*[away] * 500)
    await followed(script, 600)
    assert len(script.asked) < 40
