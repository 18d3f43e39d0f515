"""What is offered beyond Kubernetes: where it is found, and what it takes."""

from __future__ import annotations

import orjson
import pytest

from skerry.api.errors import ApiError, MethodNotAllowed, NotFound, UnsupportedMediaType
from skerry.server.catalogue import TypeSet
from skerry.server.extensions import (
    ATOMIC_BATCH,
    BATCH,
    IN_VIEWS,
    ROOT,
    WATCH,
    Visit,
    ca_bundle,
    extension_handlers,
)
from skerry.server.http.message import Answer, Request, Response
from skerry.server.user import User


async def _done(visit: Visit) -> Answer:
    return Response(body=visit.request.path.encode())


HANDLERS = extension_handlers(_done, _done, _done, {"revisions": "/extensions/v1/revisions"})


async def ask(path: str, method: str = "POST", cluster: str = "root", kind: str = "") -> Response:
    request = Request(method, path, headers={"content-type": kind} if kind else {})
    answer = await HANDLERS[path](Visit(request, cluster, User("ann"), TypeSet(())))
    assert isinstance(answer, Response)
    return answer


async def test_what_there_is_is_named_with_its_paths() -> None:
    body = (await ask(ROOT, "GET")).body
    assert isinstance(body, bytes)
    found = {each["name"]: each["path"] for each in orjson.loads(body)["extensions"]}
    assert found["multiplexed-watch"] == WATCH
    assert found["revisions"] == "/extensions/v1/revisions"
    assert "/extensions/v1/revisions" not in HANDLERS, "it is answered elsewhere"


@pytest.mark.parametrize("path", [WATCH, BATCH, ATOMIC_BATCH])
@pytest.mark.parametrize(
    ("method", "kind", "error"),
    [
        ("GET", "application/json", MethodNotAllowed),
        ("PUT", "application/json", MethodNotAllowed),
        ("POST", "", UnsupportedMediaType),
        # A page of another site can send these without being asked first.
        ("POST", "text/plain", UnsupportedMediaType),
        ("POST", "application/x-www-form-urlencoded", UnsupportedMediaType),
        ("POST", "multipart/form-data; x=application/json", UnsupportedMediaType),
    ],
)
async def test_nothing_but_posted_json_is_acted_on(
    path: str, method: str, kind: str, error: type[ApiError]
) -> None:
    with pytest.raises(error):
        await ask(path, method, kind=kind)


async def test_posted_json_is_acted_on_however_it_is_spelled() -> None:
    for kind in ("application/json", "Application/JSON; charset=utf-8"):
        assert (await ask(BATCH, kind=kind)).body == BATCH.encode()


@pytest.mark.parametrize("cluster", ["", "*"])
@pytest.mark.parametrize("path", sorted(HANDLERS))
async def test_nothing_is_offered_in_no_cluster_or_in_all_of_them(path: str, cluster: str) -> None:
    with pytest.raises(NotFound):
        await ask(path, "GET" if path == ROOT else "POST", cluster, "application/json")


async def test_the_list_is_only_read() -> None:
    with pytest.raises(MethodNotAllowed):
        await ask(ROOT, "POST", kind="application/json")


def test_a_view_offers_no_watch_of_several_types() -> None:
    assert {ROOT, ATOMIC_BATCH} == IN_VIEWS


async def test_the_authorities_are_those_of_the_moment() -> None:
    known = ["one"]
    handler = ca_bundle(lambda: known[0])
    for each in ("one", "two"):
        known[0] = each
        visit = Visit(Request("GET", "/"), "", User("ann"), TypeSet(()))
        answer = await handler(visit)
        assert isinstance(answer, Response)
        assert answer.body == each.encode()
    with pytest.raises(MethodNotAllowed):
        await handler(Visit(Request("POST", "/"), "", User("ann"), TypeSet(())))
