"""Whatever is asked, the server answers, and never that it failed itself."""

from __future__ import annotations

import asyncio
import contextlib

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skerry.server.http.message import Answer, Peer, Request, Response, Stream
from tests.sim.loop import run_virtual
from tests.unit.server.harness import ADMIN, MemorySender, Server, serving
from tests.unit.server.objects import NAMESPACE, POPULATION
from tests.unit.server.requests import requests

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


async def followed(stream: Stream) -> None:
    """Let a stream run for a while of virtual time."""
    sender = MemorySender()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(100):
            await stream.run(sender)


async def answers_all(sequence: list[tuple[str, str, bytes, dict[str, str]]]) -> None:
    async with serving() as server:
        await populate(server)
        for method, path, body, headers in sequence:
            answer = await asked(server, method, path, body, headers)
            if isinstance(answer, Stream):
                await followed(answer)
            assert answer.status < 500 or answer.status in _UNDERSTOOD, (method, path, answer)
            if isinstance(answer, Response) and answer.status >= 400:
                assert b'"Status"' in answer.body, answer
        # Whatever was stored can be read, in every form.
        for gvr, _ in POPULATION:
            where = f"/apis/{gvr.group}/{gvr.version}" if gvr.group else f"/api/{gvr.version}"
            for accept in ("", "application/yaml", "application/json;as=Table;v=v1;g=meta.k8s.io"):
                listed = await asked(
                    server, "GET", f"{where}/{gvr.resource}", b"", {"accept": accept}
                )
                assert listed.status == 200


@settings(
    max_examples=120,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(st.lists(requests(), min_size=1, max_size=5))
def test_no_request_makes_the_server_fail(
    sequence: list[tuple[str, str, bytes, dict[str, str]]],
) -> None:
    run_virtual(answers_all(sequence))
