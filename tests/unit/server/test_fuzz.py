"""Whatever is asked, the server answers, and never that it failed itself."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skerry.server.http.message import Answer, Peer, Request, Response, Stream
from skerry.store.base import Store
from tests.kit.server.harness import ADMIN, MemorySender, Server, serving
from tests.kit.server.objects import NAMESPACE, POPULATION
from tests.kit.server.requests import requests
from tests.kit.sim.loop import run_virtual
from tests.kit.store.backends import Backend
from tests.kit.store.fixtures import etcd

__all__ = ["etcd"]  # the fixture, found by its name

Asked = tuple[str, str, bytes, dict[str, str]]
# Nobody can connect to a node, and a version from the future does not come: not our failures.
_UNDERSTOOD = (503, 504)


async def populate(server: Server) -> None:
    for (group, version, resource), obj in POPULATION:
        path = f"/apis/{group}/{version}" if group else f"/api/{version}"
        if resource != "customresourcedefinitions":
            path += f"/namespaces/{NAMESPACE}"
        made = await server.create(f"{path}/{resource}", obj)
        assert made.status == 201, made.body


async def asked(
    server: Server, method: str, path: str, body: bytes, headers: dict[str, str]
) -> Answer:
    bare, _, query = path.partition("?")
    request = Request(method, bare, query, headers, body, Peer(user=ADMIN))
    return await server.api.engine.handle(request)


async def followed(stream: Stream, seconds: float) -> None:
    """Let a stream run for a while."""
    sender = MemorySender()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await stream.run(sender)


def is_understood(answer: Answer) -> bool:
    """Tell whether an answer is no failure of the server's own.

    To an applied object with fields that its schema does not have Kubernetes answers 500, too.
    """
    if answer.status < 500 or answer.status in _UNDERSTOOD:
        return True
    return isinstance(answer, Response) and b'"failed to create typed patch object' in answer.body


async def answers_all(
    sequence: list[Asked], store: Store | None = None, seconds: float = 100
) -> None:
    async with serving(store) as server:
        await populate(server)
        for method, path, body, headers in sequence:
            answer = await asked(server, method, path, body, headers)
            if isinstance(answer, Stream):
                await followed(answer, seconds)
            assert is_understood(answer), (method, path, answer)
            if isinstance(answer, Response) and answer.status >= 400:
                # Where nothing is served at all Kubernetes answers in plain text.
                plain = answer.status == 404 and answer.body == b"404 page not found\n"
                assert plain or b'"Status"' in answer.body, answer
        await readable(server)


async def readable(server: Server) -> None:
    """Whatever was stored can be read, in every form."""
    for gvr, _ in POPULATION:
        where = f"/apis/{gvr.group}/{gvr.version}" if gvr.group else f"/api/{gvr.version}"
        for accept in ("", "application/yaml", "application/json;as=Table;v=v1;g=meta.k8s.io"):
            listed = await asked(server, "GET", f"{where}/{gvr.resource}", b"", {"accept": accept})
            # The custom type may have been deleted on the way.
            assert listed.status == 200 or gvr.group == "example.org"


@settings(
    max_examples=60,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(st.lists(requests(), min_size=1, max_size=5))
def test_no_request_makes_the_server_fail(sequence: list[Asked]) -> None:
    run_virtual(answers_all(sequence))


@pytest.mark.parametrize("kind", ["sqlite", pytest.param("etcd", marks=pytest.mark.etcd)])
def test_nor_does_it_over_a_store_on_disk(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    etcd = request.getfixturevalue("etcd") if kind == "etcd" else None
    backend = Backend(kind, tmp_path, etcd)

    async def over_disk(sequence: list[Asked]) -> None:
        store = await backend.open()
        try:
            await answers_all(sequence, store, seconds=0.005)
        finally:
            await store.close()

    @settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck), database=None)
    @given(st.lists(requests().filter(_takes_no_time), min_size=20, max_size=40))
    def many(sequence: list[Asked]) -> None:
        # A loop of our own, so that the one of the test runner stays as it is.
        with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
            runner.run(over_disk(sequence))

    many()


def _takes_no_time(asking: Asked) -> bool:
    """Reads at a version of the future wait for it, and time is real here."""
    return "resourceVersion=" not in asking[1]
