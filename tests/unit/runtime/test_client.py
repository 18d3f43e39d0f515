from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import orjson
import pytest

from skerry.api import errors
from skerry.api.kinds import GroupVersionKind, GroupVersionResource
from skerry.kit.clock import LoopClock
from skerry.runtime.client import (
    EVERYWHERE,
    Client,
    DeleteOptions,
    Selection,
    WriteOptions,
    cluster_of,
)
from skerry.runtime.discovery import Mapper, discover
from skerry.runtime.transport import NO_HEADERS, Answer, AnswerStream, TransportError
from tests.kit.sim.loop import virtual
from tests.kit.sim.twin import Twin, TwinStream

CONFIG_MAPS = GroupVersionResource("", "v1", "configmaps")
NAMESPACES = GroupVersionResource("", "v1", "namespaces")
DEPLOYMENTS = GroupVersionResource("apps", "v1", "deployments")
ROLES = GroupVersionResource("rbac.authorization.k8s.io", "v1", "clusterroles")


class Scripted:
    """A transport that answers from a list and remembers what was asked."""

    def __init__(self, *answers: tuple[int, Any] | tuple[int, Any, dict[str, str]]) -> None:
        self._answers = [*answers]
        self.asked: list[tuple[str, str, str, Mapping[str, str], Any]] = []

    async def request(
        self,
        method: str,
        path: str,
        query: str = "",
        headers: Mapping[str, str] = NO_HEADERS,
        body: bytes = b"",
    ) -> Answer:
        self.asked.append((method, path, query, headers, orjson.loads(body) if body else None))
        code, content, *more = self._answers.pop(0)
        text = content if isinstance(content, bytes) else orjson.dumps(content)
        return Answer(code, more[0] if more else {}, text)

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        path: str,
        query: str = "",
        headers: Mapping[str, str] = NO_HEADERS,
        body: bytes = b"",
    ) -> AsyncIterator[AnswerStream]:
        answer = await self.request(method, path, query, headers, body)

        async def chunks() -> AsyncIterator[bytes]:
            yield answer.body

        yield TwinStream(answer.status, chunks())

    async def close(self) -> None:
        """Nothing is held."""


def on(transport: Scripted | Twin) -> Client:
    return Client(transport, clock=LoopClock(), user_agent="skerry/test")


async def test_paths_name_group_cluster_namespace_and_subresource() -> None:
    client = on(Scripted())
    assert client.path(CONFIG_MAPS, "ns", "a") == "/api/v1/namespaces/ns/configmaps/a"
    assert client.path(DEPLOYMENTS) == "/apis/apps/v1/deployments"
    role = client.path(ROLES, "", "system:a/b%")
    assert role == "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:a%2Fb%25"
    one = client.for_cluster("root:org")
    assert one.path(NAMESPACES, "", "x", "finalize") == (
        "/clusters/root:org/api/v1/namespaces/x/finalize"
    )
    view = client.at("/services/apiexport/root/e/", EVERYWHERE)
    assert (
        view.path(DEPLOYMENTS) == "/services/apiexport/root/e/clusters/*/apis/apps/v1/deployments"
    )
    assert view.for_cluster("abc").base == "/services/apiexport/root/e/clusters/abc"
    assert view.for_cluster("") is view


async def test_options_become_query_and_body() -> None:
    transport = Scripted((201, {}), (200, {}), (200, {}), (200, {}))
    client = on(transport)
    options = WriteOptions(field_manager="me", dry_run=True, field_validation="Strict")
    await client.create(CONFIG_MAPS, {"metadata": {"namespace": "ns"}}, options=options)
    await client.patch(CONFIG_MAPS, "a", {}, "ns", kind="apply", force=True)
    await client.delete(
        CONFIG_MAPS,
        "a",
        "ns",
        DeleteOptions("u", "7", "Foreground", grace_seconds=0, dry_run=True),
    )
    await client.delete_collection(CONFIG_MAPS, Selection("ns", labels="a=b"))
    (created, applied, deleted, collected) = transport.asked
    assert created[1:3] == (
        "/api/v1/namespaces/ns/configmaps",
        "fieldManager=me&dryRun=All&fieldValidation=Strict",
    )
    assert created[3]["user-agent"] == "skerry/test"
    assert (applied[2], applied[3]["content-type"]) == (
        "force=true",
        "application/apply-patch+yaml",
    )
    assert deleted[4] == {
        "kind": "DeleteOptions",
        "apiVersion": "v1",
        "preconditions": {"uid": "u", "resourceVersion": "7"},
        "propagationPolicy": "Foreground",
        "gracePeriodSeconds": 0,
        "dryRun": ["All"],
    }
    assert collected[:3] == (
        "DELETE",
        "/api/v1/namespaces/ns/configmaps",
        "labelSelector=a%3Db",
    )


@pytest.mark.parametrize(
    ("code", "content", "wanted"),
    [
        (404, errors.NotFound.of("", "pods", "a").status(), errors.NotFound),
        (409, errors.AlreadyExists.of("", "pods", "a").status(), errors.AlreadyExists),
        (409, errors.Conflict.stale("", "pods", "a").status(), errors.Conflict),
        (410, errors.Gone("old").status(), errors.Gone),
        (403, b"not json", errors.Forbidden),
        (502, b"<html>", errors.ApiError),
    ],
)
async def test_failures_are_the_servers_own(
    code: int, content: object, wanted: type[errors.ApiError]
) -> None:
    with pytest.raises(wanted) as raised:
        await on(Scripted((code, content))).get(CONFIG_MAPS, "a", "ns")
    assert raised.type is wanted
    assert raised.value.message


@virtual
async def test_a_server_that_asks_for_patience_gets_it() -> None:
    busy = errors.TooManyRequests("slow down").status()
    transport = Scripted(
        (429, busy, {"retry-after": "3"}), (503, b"", {"retry-after": "2"}), (200, {})
    )
    await on(transport).get(CONFIG_MAPS, "a", "ns")
    assert asyncio.get_running_loop().time() == pytest.approx(5)


@virtual
async def test_patience_has_an_end() -> None:
    busy = errors.TooManyRequests("slow down").status()
    transport = Scripted(*[(429, busy)] * 20)
    with pytest.raises(errors.TooManyRequests):
        await on(transport).get(CONFIG_MAPS, "a", "ns")
    assert len(transport.asked) == 10


async def test_a_plain_server_error_is_not_repeated() -> None:
    transport = Scripted((500, errors.InternalError("bug").status()))
    with pytest.raises(errors.InternalError):
        await on(transport).create(CONFIG_MAPS, {"metadata": {"name": "a", "namespace": "n"}})


@virtual
async def test_a_list_is_read_in_pages_at_one_revision() -> None:
    twin = Twin()
    client = on(twin)
    await client.create(NAMESPACES, {"metadata": {"name": "ns"}})
    for number in range(7):
        await client.create(CONFIG_MAPS, {"metadata": {"name": f"cm-{number}"}}, "ns")
    page = await client.list_page(CONFIG_MAPS, limit=3)
    await client.delete(CONFIG_MAPS, "cm-6", "ns")
    rest = await client.list_page(CONFIG_MAPS, limit=10, continuation=page.next)
    assert [len(page.items), len(rest.items)] == [3, 4]
    found = await client.list(CONFIG_MAPS, Selection("ns"), page_size=2)
    assert [item["metadata"]["name"] for item in found.items] == [f"cm-{n}" for n in range(6)]
    assert found.resource_version == str(twin.revision)


async def test_items_of_a_list_know_their_kind() -> None:
    content = {"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": [{"metadata": {}}]}
    found = await on(Scripted((200, content))).list(CONFIG_MAPS)
    assert found.items == [{"metadata": {}, "kind": "Pod", "apiVersion": "v1"}]


async def test_a_watch_raises_what_the_server_says_inside_it() -> None:
    gone = orjson.dumps({"type": "ERROR", "object": errors.Gone("too old").status()}) + b"\n"
    client = on(Scripted((200, gone), (410, errors.Gone("x").status()), (200, b"?\n")))
    with pytest.raises(errors.Gone, match="too old"):
        async with client.watch(CONFIG_MAPS) as events:
            await anext(events)
    with pytest.raises(errors.Gone):
        async with client.watch(CONFIG_MAPS):
            pytest.fail("a refused watch was entered")
    with pytest.raises(TransportError, match="not an event"):
        async with client.watch(CONFIG_MAPS) as events:
            await anext(events)


async def test_text_that_is_not_json_is_no_answer() -> None:
    with pytest.raises(TransportError, match="not JSON"):
        await on(Scripted((200, b"hello"))).get(CONFIG_MAPS, "a", "ns")


def test_an_object_says_its_cluster() -> None:
    assert cluster_of({"metadata": {"annotations": {"kcp.io/cluster": "abc"}}}) == "abc"
    assert cluster_of({"metadata": {}}) == ""


async def test_a_hub_is_asked_for_its_version_where_the_client_may_go() -> None:
    # kcp answers /version without a workspace to nobody but system:masters.
    transport = Scripted(*3 * [(200, {"minor": "24"})])
    for client in (on(transport), on(transport).at("", "root:a"), on(transport).at("", EVERYWHERE)):
        assert await client.version() == {"minor": "24"}
    assert [path for _, path, *_ in transport.asked] == [
        "/version",
        "/clusters/root:a/version",
        "/version",
    ]


LEGACY = [
    (200, {"kind": "APIVersions", "versions": ["v1"]}),
    (
        200,
        {
            "resources": [
                {"name": "pods", "kind": "Pod", "namespaced": True, "verbs": ["get"]},
                {"name": "pods/status", "kind": "Pod", "verbs": ["get", "update"]},
            ]
        },
    ),
    (
        200,
        {
            "kind": "APIGroupList",
            "groups": [
                {
                    "name": "apps",
                    "versions": [{"version": "v1beta1"}, {"version": "v1"}],
                    "preferredVersion": {"version": "v1"},
                },
                {"name": "metrics", "versions": [{"version": "v1"}]},
            ],
        },
    ),
    (200, {"resources": [{"name": "deployments", "kind": "Deployment", "namespaced": True}]}),
    (200, {"resources": [{"name": "deployments", "kind": "Deployment", "namespaced": True}]}),
    (503, {}),
]


async def test_legacy_discovery_prefers_the_preferred_and_names_what_failed() -> None:
    types = await discover(on(Scripted(*LEGACY)))
    found = types.preferred()
    assert [str(info.gvr.group_version) for info in found.values()] == ["v1", "apps/v1"]
    (pods, *_) = found.values()
    assert [sub.name for sub in pods.subresources] == ["status"]
    assert [str(version) for version in types.failed] == ["metrics/v1"]


@virtual
async def test_a_mapper_asks_again_for_a_kind_it_does_not_know() -> None:
    twin = Twin()
    kept = twin.types.pop()
    mapper = Mapper(on(twin))
    info = await mapper.resource_for(GroupVersionKind("apps", "v1", "Deployment"))
    assert info.gvr == DEPLOYMENTS
    asked = len(twin.requests)
    await mapper.resource_for(GroupVersionKind("", "v1", "Pod"))
    assert len(twin.requests) == asked
    wanted = GroupVersionKind(kept.group, kept.version, kept.kind)
    with pytest.raises(errors.NotFound, match="no matches for kind"):
        await mapper.resource_for(wanted)
    twin.types.append(kept)
    assert (await mapper.resource_for(wanted)).resource == kept.resource


class Slow(Scripted):
    """Answers when others have had their turn."""

    async def request(
        self,
        method: str,
        path: str,
        query: str = "",
        headers: Mapping[str, str] = NO_HEADERS,
        body: bytes = b"",
    ) -> Answer:
        await asyncio.sleep(0)
        return await super().request(method, path, query, headers, body)


async def test_what_a_server_is_is_asked_once_however_many_wonder() -> None:
    offered = {"extensions": [{"name": "e", "path": "/p"}]}
    transport = Slow((200, offered), (200, {"minor": "32"}))
    client = Client(transport)
    found = await asyncio.gather(*(client.at("", name).extensions() for name in ("a", "b", "")))
    assert found == [{"e": "/p"}] * 3
    versions = await asyncio.gather(client.version(), client.version())
    assert [*versions] == [{"minor": "32"}] * 2
    assert len(transport.asked) == 2


async def test_a_write_may_want_no_more_than_metadata_in_return() -> None:
    transport = Scripted(*[(200, {"metadata": {"name": "a"}})] * 3)
    client, options = on(transport), WriteOptions(metadata_only=True)
    obj = {"metadata": {"name": "a", "namespace": "n"}}
    await client.create(CONFIG_MAPS, obj, options=options)
    await client.update(CONFIG_MAPS, obj, options=options)
    await client.patch(CONFIG_MAPS, "a", {}, "n", options=options)
    for *_, headers, _ in transport.asked:
        assert headers["accept"].startswith("application/json;as=PartialObjectMetadata;")
