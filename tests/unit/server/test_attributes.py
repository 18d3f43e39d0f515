"""What is authorized is what is done: no text, no verb and no detour stands between."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import quote

import orjson
import pytest

from skerry.server.access import Attributes, Decision
from skerry.server.http.message import Answer, Peer, Request, Response, Stream
from skerry.server.user import User
from tests.kit.server.harness import Everybody, MemorySender, Server, serving
from tests.kit.server.objects import CORE, config_map
from tests.kit.sim.loop import virtual

JANE = User("jane", groups=("system:authenticated",))
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
ROLES = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles"
APPLY = "application/apply-patch+yaml"
NAME = {"name": "x"}
LEASE = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": NAME}
ROLE = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": NAME}


class Only(Everybody):
    """Allows Jane only what she was granted, as ``verb resource``; everybody else everything."""

    def __init__(self, *granted: str) -> None:
        self.granted = set(granted)
        self.asked: list[Attributes] = []

    def authorize(self, user: User, attributes: Attributes) -> Decision:
        if user.name != "jane":
            return Decision(True)
        self.asked.append(attributes)
        a = attributes
        resource = f"{a.resource}/{a.subresource}" if a.subresource else a.resource
        where = f" {a.namespace}" if a.namespace else ""
        action = f"{a.verb} {resource}" if a.resource else f"{a.verb} {a.path}"
        return Decision(bool({action, action + where} & self.granted))


@contextlib.asynccontextmanager
async def serving_jane(*granted: str) -> AsyncIterator[tuple[Server, Only]]:
    only = Only(*granted)
    async with serving(authorizer=only) as server:
        yield server, only


async def asked(
    server: Server, method: str, path: str, body: Any = None, kind: str = "application/json",
    **headers: str,
) -> Answer:  # fmt: skip
    bare, _, query = path.partition("?")
    raw = b"" if body is None else orjson.dumps(body)
    sent = {"content-type": kind, **headers}
    return await server.api.engine.handle(Request(method, bare, query, sent, raw, Peer(user=JANE)))


async def status(server: Server, *request: Any, **headers: str) -> int:
    return (await asked(server, *request, **headers)).status


# -- creating by another verb ----------------------------------------------------------------


@virtual
async def test_apply_needs_create_for_what_is_not_there() -> None:
    async with serving_jane("patch configmaps", "patch leases") as (server, only):
        body = {"apiVersion": "v1", "kind": "ConfigMap", **config_map("x")}
        for path, obj in ((f"{CORE}/configmaps/x", body), (f"{LEASES}/x", LEASE)):
            for query in ("", "&force=true", "&dryRun=All"):
                answer = await asked(server, "PATCH", f"{path}?fieldManager=m{query}", obj, APPLY)
                assert isinstance(answer, Response)
                assert answer.status == 403, answer.body
                assert b"cannot create" in bytes(answer.body)  # type: ignore[arg-type]
            assert (await server.get(path)).status == 404
        only.granted.add("create configmaps")
        path = f"{CORE}/configmaps/x?fieldManager=m"
        assert await status(server, "PATCH", path, body, APPLY) == 201
        only.granted.discard("create configmaps")
        assert await status(server, "PATCH", path, body, APPLY) == 200
        asked_for = [a for a in only.asked if a.verb == "create" and a.resource == "configmaps"]
        assert {a.name for a in asked_for} == {"x"}


@virtual
async def test_put_needs_create_for_what_is_not_there() -> None:
    async with serving_jane("update leases", "update roles", "update configmaps") as (server, only):
        for path, obj in ((f"{LEASES}/x", LEASE), (f"{ROLES}/x", ROLE)):
            assert await status(server, "PUT", path, obj) == 403
            assert await status(server, "PUT", f"{path}?dryRun=All", obj) == 403
            assert (await server.get(path)).status == 404
        # Of types that no update creates, the object is just not there.
        body = {"apiVersion": "v1", "kind": "ConfigMap", **config_map("x")}
        assert await status(server, "PUT", f"{CORE}/configmaps/x", body) == 404
        only.granted.add("create leases")
        assert await status(server, "PUT", f"{LEASES}/x", LEASE) == 201
        only.granted.discard("create leases")
        live = (await server.get(f"{LEASES}/x")).body
        assert await status(server, "PUT", f"{LEASES}/x", live) == 200


@virtual
async def test_a_batch_creates_by_no_other_verb_either() -> None:
    async with serving_jane("patch leases", "update leases", "post /extensions/v1/batch") as (
        server, _,
    ):  # fmt: skip
        parts = [
            {"method": "PUT", "path": f"{LEASES}/x", "body": LEASE},
            {"method": "PATCH", "path": f"{LEASES}/x", "query": "fieldManager=m",
             "contentType": APPLY, "body": LEASE},
        ]  # fmt: skip
        answer = await asked(server, "POST", "/extensions/v1/batch", {"requests": parts})
        assert isinstance(answer, Stream)
        sender = MemorySender()
        await answer.run(sender)
        assert [each["code"] for each in sender.lines.get_nowait()["answers"]] == [403, 403]


# -- running things in pods ------------------------------------------------------------------


@pytest.mark.parametrize("what", ["exec", "attach", "portforward"])
def test_running_in_a_pod_needs_create_by_whatever_method(what: str) -> None:
    @virtual
    async def story() -> None:
        async with serving_jane(f"get pods/{what}") as (server, only):
            path = f"{CORE}/pods/p/{what}?command=id"
            upgrade = {"connection": "Upgrade", "upgrade": "websocket"}
            for method in ("GET", "POST", "HEAD"):
                for headers in ({}, upgrade):
                    assert await status(server, method, path, **headers) == 403, method
            only.granted = {f"create pods/{what}"}
            for method in ("GET", "POST"):
                # Allowed; there is no such pod.
                assert await status(server, method, path, **upgrade) == 404, method

    story()


@virtual
async def test_reading_a_log_needs_get_as_ever() -> None:
    async with serving_jane("get pods/log") as (server, _):
        assert await status(server, "GET", f"{CORE}/pods/p/log") == 404


# -- watches in one stream -------------------------------------------------------------------


async def events(server: Server, *watches: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what a stream says up to its first bookmark of all, or its refusal."""
    answer = await asked(
        server, "POST", "/extensions/v1/watch",
        {"watches": list(watches), "timeoutSeconds": 0.01},
    )  # fmt: skip
    if not isinstance(answer, Stream):
        assert isinstance(answer, Response)
        return [orjson.loads(bytes(answer.body))]  # type: ignore[arg-type]
    sender = MemorySender()
    await answer.run(sender)
    return [sender.lines.get_nowait() for _ in range(sender.lines.qsize())]


_TRICKS = [
    {"resource": "secrets", "namespace": "default/configmaps/"},
    {"resource": "secrets", "namespace": "default/configmaps"},
    {"resource": "secrets", "namespace": "default/configmaps/x"},
    {"resource": "secrets", "namespace": "default/configmaps/x/"},
    {"resource": "secrets", "namespace": "../configmaps"},
    {"resource": "secrets", "namespace": "default%2fconfigmaps%2f"},
    {"resource": "secrets", "namespace": "default?x="},
    {"resource": "secrets", "namespace": "default#"},
    {"resource": "secrets", "namespace": "Default"},
    {"resource": "secrets", "namespace": " default"},
    {"resource": "secrets", "version": "v1/namespaces/default/configmaps"},
    {"resource": "secrets", "version": "v1/watch"},
    {"resource": "configmaps/../secrets"},
    {"resource": "secrets/", "namespace": "default"},
    {"resource": "secrets?watch=true&x="},
    {"resource": "namespaces/default/secrets"},
    {"group": "/api/v1/namespaces/default/configmaps", "resource": "secrets"},
    {"resource": "secrets", "fieldSelector": "metadata.name=a&fieldSelector=x"},
    {"resource": "secrets", "namespace": "default", "fieldSelector": "metadata.name=a"},
    {"resource": "secrets", "namespace": "default"},
    {"resource": "secrets"},
    {"resource": "configmaps"},
]


@virtual
async def test_no_text_in_a_packed_watch_turns_one_type_into_another() -> None:
    granted = ("list configmaps default", "watch configmaps default", "post /extensions/v1/watch")
    async with serving_jane(*granted) as (server, _):
        await server.create(f"{CORE}/secrets", {"metadata": {"name": "a"}, "stringData": {}})
        await server.create(f"{CORE}/configmaps", config_map("m"))
        for trick in _TRICKS:
            received = await events(server, {"id": "w", "version": "v1", **trick})
            kinds = {each.get("object", each).get("kind") for each in received}
            assert kinds <= {"Status", None}, (trick, received)
            assert "ADDED" not in {each.get("type") for each in received}, trick
        fine = {"id": "w", "version": "v1", "resource": "configmaps", "namespace": "default"}
        received = await events(server, fine)
        assert "m" in [each["object"]["metadata"].get("name") for each in received]


@virtual
async def test_a_packed_watch_is_refused_for_a_namespace_that_cannot_be() -> None:
    async with serving() as server:
        for namespace in ("a/b", "A", "", "x" * 64, "-a"):
            watch = {"id": "w", "version": "v1", "resource": "nodes", "namespace": namespace}
            answer = await server.answer(
                "POST", "/extensions/v1/watch", {"watches": [watch], "timeoutSeconds": 0.01}
            )
            assert isinstance(answer, Stream)
            sender = MemorySender()
            await answer.run(sender)
            first = sender.lines.get_nowait()
            if not namespace:
                assert first["type"] == "BOOKMARK"
                continue
            assert first["type"] == "ERROR", first
            assert first["object"]["code"] in (400, 404), first


# -- parts of a batch ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    [
        f"{CORE}/configmaps/../secrets",
        f"{CORE}/configmaps/%2e%2e/secrets",
        f"{CORE}/%2e/secrets",
        f"{CORE}/configmaps?x=/secrets",
        f"{CORE}/configmaps#secrets",
        f"{CORE}/configmaps/%zz",
        f"{CORE}/configmaps/%00",
        f"{CORE}/configmaps/{quote('é')}%ff",
        f"{CORE}/configmaps/é",
    ],
)
def test_a_part_of_a_batch_names_what_a_request_could_name(path: str) -> None:
    @virtual
    async def story() -> None:
        async with serving() as server:
            parts = [{"method": "DELETE", "path": path}]
            answer = await server.answer("POST", "/extensions/v1/batch", {"requests": parts})
            assert isinstance(answer, Response)
            assert answer.status in (400, 404), answer.body

    story()
