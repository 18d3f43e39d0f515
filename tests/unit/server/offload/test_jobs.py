"""What a worker answers is what the loop would have answered."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from skerry.kit.clock import LoopClock
from skerry.kit.ids import SeededIds
from skerry.server.codec import encode
from skerry.server.http.message import Peer, Request, Response
from skerry.server.offload.jobs import same
from skerry.server.offload.offload import Offload, OffloadSettings
from skerry.store.base import Entry
from skerry.store.memory import MemoryStore
from tests.kit.server.harness import ADMIN, Reply, Server, serving
from tests.kit.server.loopback import EAGER, Loopback, eager
from tests.kit.server.objects import NAMESPACE, POPULATION, thing
from tests.kit.server.requests import requests
from tests.kit.sim.loop import run_virtual

Asked = tuple[str, str, bytes, dict[str, str]]
MAPS = "/api/v1/namespaces/default/configmaps"
THINGS = f"/apis/example.org/v1/namespaces/{NAMESPACE}/things"


class SameIds(SeededIds):
    """Identifiers that do not depend on how many were drawn before."""

    def uid(self) -> str:
        return "00000000-0000-4000-8000-000000000000"

    def suffix(self, length: int = 5) -> str:
        return "b" * length


async def populated(server: Server) -> None:
    for (group, version, resource), obj in POPULATION:
        path = f"/apis/{group}/{version}" if group else f"/api/{version}"
        if resource != "customresourcedefinitions":
            path += f"/namespaces/{NAMESPACE}"
        await server.create(f"{path}/{resource}", obj)


async def answers(sequence: list[Asked], offload: Offload | None) -> list[tuple[Any, ...]]:
    """Return how a server answers writes and reads, one after the other."""
    store = MemoryStore("store")
    found: list[tuple[Any, ...]] = []
    async with serving(store, LoopClock(), ids=SameIds(1), offload=offload) as server:
        await populated(server)
        for method, path, body, headers in sequence:
            bare, _, query = path.partition("?")
            request = Request(method, bare, query, headers, body, Peer(user=ADMIN))
            answer = await server.api.engine.handle(request)
            if isinstance(answer, Response):
                text = answer.body if isinstance(answer.body, bytes) else b"".join(answer.body)
                found.append((answer.status, text, sorted(answer.headers)))
    return found


def _of_one_object(asking: Asked) -> bool:
    """Whether a worker may have to do with it, and it learns nothing of time."""
    method, path, _, _ = asking
    return method in ("POST", "PUT", "PATCH", "GET") and "resourceVersion=" not in path


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(requests().filter(_of_one_object), min_size=1, max_size=4))
def test_any_request_is_answered_alike_with_and_without_workers(sequence: list[Asked]) -> None:
    here = run_virtual(answers(sequence, None))
    there = run_virtual(answers(sequence, eager()))
    for ours, theirs in zip(here, there, strict=True):
        # A worker reads the body after the object was looked up, so that an absent one is reported
        # before a bad body.
        if theirs[0] == 404 and ours[0] in (400, 413, 415, 422):
            continue
        assert ours == theirs


WRITES: dict[str, Callable[[Server], Awaitable[Reply]]] = {
    "create": lambda s: s.create(MAPS, {"metadata": {"name": "b"}, "data": {"x": "1"}}),
    "create with a generated name": lambda s: s.create(MAPS, {"metadata": {"generateName": "b-"}}),
    "create with unknown fields": lambda s: s.create(
        f"{MAPS}?fieldValidation=Warn", {"metadata": {"name": "b"}, "oops": 1}
    ),
    "create what is invalid": lambda s: s.create(MAPS, {"metadata": {"name": "B"}}),
    "create what is there": lambda s: s.create(MAPS, {"metadata": {"name": "a"}}),
    "rehearse": lambda s: s.create(f"{MAPS}?dryRun=All", {"metadata": {"name": "b"}}),
    "replace": lambda s: s.put(f"{MAPS}/a", {"metadata": {"name": "a"}, "data": {"k": "w"}}),
    "replace by the same": lambda s: s.put(
        f"{MAPS}/a", {"data": {"k": "v"}, "metadata": {"name": "a"}}
    ),
    "replace another version": lambda s: s.put(
        f"{MAPS}/a", {"metadata": {"name": "a", "resourceVersion": "1"}}
    ),
    "patch": lambda s: s.patch(f"{MAPS}/a", {"data": {"k": None, "l": "w"}}),
    "patch by JSON": lambda s: s.patch(
        f"{MAPS}/a", [{"op": "add", "path": "/data/l", "value": "w"}], "json"
    ),
    "patch by strategy": lambda s: s.patch(f"{MAPS}/a", {"data": {"l": "w"}}, "strategic"),
    "patch nothing": lambda s: s.patch(f"{MAPS}/a", {}),
    "apply": lambda s: s.patch(
        f"{MAPS}/a?fieldManager=m&force=true",
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "w"}},
        "apply",
    ),
    "apply against another": lambda s: s.patch(
        f"{MAPS}/a?fieldManager=m",
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "w"}},
        "apply",
    ),
    "apply what is new": lambda s: s.patch(
        f"{MAPS}/b?fieldManager=m",
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b"}},
        "apply",
    ),
    "read as YAML": lambda s: s.get(f"{MAPS}/a", headers={"accept": "application/yaml"}),
    "read as a Table": lambda s: s.get(
        f"{MAPS}/a", headers={"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
    ),
    "read in print": lambda s: s.get(f"{MAPS}/a?pretty=true"),
}


@pytest.fixture
async def both() -> AsyncIterator[tuple[Server, Server, Loopback]]:
    loopback = Loopback()
    async with (
        serving(MemoryStore("s"), LoopClock(), ids=SameIds(1)) as here,
        serving(
            MemoryStore("s"), LoopClock(), ids=SameIds(1), offload=Offload(loopback, EAGER)
        ) as there,
    ):
        for server in (here, there):
            await server.create(MAPS, {"metadata": {"name": "a"}, "data": {"k": "v"}})
        yield here, there, loopback


@pytest.mark.parametrize("name", WRITES)
async def test_a_request_is_answered_alike_by_a_worker(
    name: str, both: tuple[Server, Server, Loopback]
) -> None:
    here, there, loopback = both
    before = len(loopback.done)
    ours, theirs = await WRITES[name](here), await WRITES[name](there)
    assert (ours.status, ours.warnings) == (theirs.status, theirs.warnings)
    assert _timeless(ours.body) == _timeless(theirs.body)
    assert len(loopback.done) > before
    stored = [await server.get(MAPS) for server in (here, there)]
    assert _timeless(stored[0].body) == _timeless(stored[1].body)


def _timeless(body: Any) -> Any:
    """Two servers of one test need not have begun in the same second."""
    text = orjson.dumps(body, default=str).decode()
    return "".join(part for part in text.split('"') if not part.endswith("Z"))


async def test_small_bodies_stay_and_large_ones_go() -> None:
    loopback = Loopback()
    async with serving(offload=Offload(loopback, OffloadSettings())) as server:
        await server.create(MAPS, {"metadata": {"name": "small"}, "data": {"k": "v" * 4000}})
        assert loopback.done == []
        many = {f"k{i}": "v" for i in range(2000)}
        made = await server.create(MAPS, {"metadata": {"name": "large"}, "data": many})
        assert (made.status, len(made.body["data"])) == (201, 2000)
        assert loopback.done == ["Draft", "Draft", "Finish"]
        assert loopback.missing == 1
        # A small patch of a large object is as much work.
        patched = await server.patch(f"{MAPS}/large", {"data": {"k0": "w"}})
        assert patched.body["data"]["k0"] == "w"
        assert loopback.done[3:] == ["Change", "Finish"]


@pytest.mark.parametrize(
    ("body", "media", "heavy"),
    [
        (b"x" * 4096, "application/json", False),
        (b"[" + b"1," * 2000 + b"1]", "application/json", False),
        (b"[" + b"1," * 3000 + b"1]", "application/json", True),
        (b'{"a":"' + b"x" * 200_000 + b'"}', "application/json", False),
        (b'{"a":"' + b"x" * 300_000 + b'"}', "application/json", True),
        (b"a: b\n" * 900, "application/yaml", True),
        (b"a" * 9000, "application/yaml", False),
        (b"\x0a\x01a" * 8000, "application/vnd.kubernetes.protobuf", True),
    ],
)
def test_what_is_heavy(body: bytes, media: str, heavy: bool) -> None:
    offload = Offload(Loopback(), OffloadSettings())
    assert offload.is_heavy(body, media) is heavy
    assert not Offload().is_heavy(body, media)


async def test_custom_types_are_built_again_by_a_worker() -> None:
    loopback = Loopback()
    async with serving(offload=Offload(loopback, EAGER)) as server:
        await populated(server)
        refused = await server.create(THINGS, thing("w", size="wrong"))
        assert refused.status == 422
        assert "spec.size" in refused.body["message"]
        assert (await server.create(THINGS, thing("w", size=3))).status == 201
        assert loopback.missing == 2  # of the built-in types, and of this one


_TEXTS = st.text("ab01", max_size=4)
_DATA = st.dictionaries(_TEXTS, _TEXTS, max_size=4)


def _stored(data: dict[str, str]) -> bytes:
    metadata = {"name": "one"}
    return encode({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})


@given(_DATA, _DATA)
@example({"a": "10"}, {"a": "01"})
@example({"a": "0"}, {"a": "1"})
def test_what_is_stored_is_the_same_if_it_says_the_same_in_whatever_order(
    before: dict[str, str], after: dict[str, str]
) -> None:
    entry = Entry("/one", _stored(before), 7)
    assert same(_stored(dict(reversed(before.items()))), entry)
    assert same(_stored(after), entry) is (before == after)
