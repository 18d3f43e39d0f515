"""Answers name the FlowSchema their request fell to, and FlowSchemas say whether they hold."""

from __future__ import annotations

import asyncio
import tracemalloc
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest

from skerry.api.errors import TooManyRequests
from skerry.app.api_server import ApiServer
from skerry.app.classification import classify_requests
from skerry.kit.clock import LoopClock
from skerry.server.flow import FairFlow
from skerry.server.flow_classes import LEVEL_HEADER, SCHEMA_HEADER, FlowClass, FlowClasses
from skerry.server.request.info import request_info
from skerry.server.user import User
from tests.kit.server.flow import admitted
from tests.kit.server.harness import Server, serving

_GROUP = "/apis/flowcontrol.apiserver.k8s.io/v1"
_SCHEMAS, _LEVELS = f"{_GROUP}/flowschemas", f"{_GROUP}/prioritylevelconfigurations"
Chore = Callable[[], Coroutine[Any, Any, None]]
_ANN = User("ann", groups=("system:authenticated",))


@asynccontextmanager
async def _classifying(flow: FairFlow | None = None) -> AsyncIterator[tuple[Server, FlowClasses]]:
    classes = (flow or FairFlow()).classes
    chores: list[Chore] = []

    async def follow(api: ApiServer) -> None:
        chores.append(await classify_requests(api, classes, LoopClock()))

    async with serving(prepared=follow) as server:
        keeping = asyncio.create_task(chores[0]())
        try:
            yield server, classes
        finally:
            keeping.cancel()


def _asks(classes: FlowClasses, method: str, path: str, user: User = _ANN) -> dict[str, str]:
    return dict(classes.headers(request_info(method, path, {}, ""), user))


def _schema(name: str, level: str) -> dict[str, Any]:
    subjects = [{"kind": "User", "user": {"name": "ann"}}]
    rule = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "namespaces": ["a"]}
    return {
        "metadata": {"name": name},
        "spec": {
            "matchingPrecedence": 5,
            "priorityLevelConfiguration": {"name": level},
            "rules": [{"subjects": subjects, "resourceRules": [rule]}],
        },
    }


async def test_headers_carry_the_uids_of_schema_and_level() -> None:
    async with _classifying() as (server, classes):
        schema = (await server.get(f"{_SCHEMAS}/global-default")).body
        level = (await server.get(f"{_LEVELS}/global-default")).body
        assert _asks(classes, "GET", "/api/v1/namespaces/a/pods/p") == {
            SCHEMA_HEADER: schema["metadata"]["uid"],
            LEVEL_HEADER: level["metadata"]["uid"],
        }
        counted = classes.dispatched()
        assert counted["global-default", "global-default"] == 1
        assert counted["exempt", "exempt"] == 0
        assert classes.nominal_seats()[("workload-low",)] == 245


async def test_what_lasts_and_what_nobody_follows_has_no_class() -> None:
    async with _classifying() as (_, classes):
        assert _asks(classes, "GET", "/api/v1/namespaces/a/pods/p/log") == {}
        assert _asks(classes, "GET", "/version", User("nobody")) == {}
        assert _asks(FlowClasses(600), "GET", "/version") == {}


async def test_long_paths_that_anybody_asks_for_are_not_remembered() -> None:
    async with _classifying() as (_, classes):
        _asks(classes, "GET", "/warm")
        tracemalloc.start()
        try:
            for number in range(200):
                for start in ("/", "/apis/"):
                    path = f"{start}{number}{'x' * 30_000}/v1/things"
                    assert SCHEMA_HEADER in _asks(classes, "GET", path)
            held, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert held < 2_000_000


async def test_a_new_schema_counts_from_the_answer_to_its_create_on() -> None:
    async with _classifying() as (server, classes):
        path = "/api/v1/namespaces/a/pods/p"
        before = _asks(classes, "GET", path)
        made = (await server.create(_SCHEMAS, _schema("pods-of-ann", "system"))).body
        assert _asks(classes, "GET", path)[SCHEMA_HEADER] == made["metadata"]["uid"]
        assert _asks(classes, "GET", "/api/v1/namespaces/b/pods/p") == before
        await server.delete(f"{_SCHEMAS}/pods-of-ann")
        assert _asks(classes, "GET", path) == before


async def test_a_level_limits_the_requests_that_fall_to_it_and_no_others() -> None:
    flow = FairFlow()
    async with _classifying(flow) as (server, classes):
        limited = {
            "nominalConcurrencyShares": 0,
            "borrowingLimitPercent": 0,
            "limitResponse": {"type": "Reject"},
        }
        spec = {"type": "Limited", "limited": limited}
        await server.create(_LEVELS, {"metadata": {"name": "none"}, "spec": spec})
        await server.create(_SCHEMAS, _schema("pods-of-ann", "none"))
        limit, other = (
            request_info("GET", f"/api/v1/namespaces/{name}/pods/p", {}, "") for name in "ab"
        )
        with pytest.raises(TooManyRequests):
            async with admitted(flow, limit, _ANN):
                raise AssertionError("its level has no seat")
        async with (
            admitted(flow, other, _ANN),
            admitted(flow, limit, User("bob", groups=_ANN.groups)),
        ):
            assert classes.of(limit, _ANN) is not classes.of(other, _ANN)


@pytest.mark.parametrize(
    ("method", "flow"),
    [({}, "s"), ({"type": "ByUser"}, "s/ann"), ({"type": "ByNamespace"}, "s/a")],
)
def test_flows_are_distinguished_as_their_schema_says(method: dict[str, str], flow: str) -> None:
    schema = _schema("s", "l")
    schema["metadata"]["uid"] = "1"
    schema["spec"]["distinguisherMethod"] = method
    info = request_info("GET", "/api/v1/namespaces/a/pods/p", {}, "")
    level = {"metadata": {"name": "l", "uid": "2"}}
    assert FlowClass(schema, level, None).flow(info, _ANN) == flow


async def _dangling(server: Server, name: str, status: str) -> dict[str, Any]:
    """Wait until the schema says so."""
    async with server.watch(
        f"{_SCHEMAS}?watch=1&resourceVersion=0&fieldSelector=metadata.name%3D{name}"
    ) as events:
        while True:
            event = await events.lines.get()
            for each in event["object"].get("status", {}).get("conditions", ()):
                if each["status"] == status:
                    return dict(each)


async def test_a_schema_says_whether_its_level_exists() -> None:
    async with _classifying() as (server, _):
        await server.create(_SCHEMAS, _schema("lost", "found-later"))
        assert (await _dangling(server, "lost", "True"))["reason"] == "NotFound"
        spec = {"type": "Limited", "limited": {"limitResponse": {"type": "Reject"}}}
        await server.create(_LEVELS, {"metadata": {"name": "found-later"}, "spec": spec})
        assert (await _dangling(server, "lost", "False"))["reason"] == "Found"


async def test_what_every_server_is_born_with_comes_back() -> None:
    async with _classifying() as (server, _):
        async with server.watch(f"{_LEVELS}?watch=1") as events:
            await server.delete(f"{_LEVELS}/workload-low")
            while (event := await events.lines.get())["type"] != "ADDED":
                pass
            while event["object"]["metadata"]["name"] != "workload-low":
                event = await events.lines.get()
        assert (await server.get(f"{_LEVELS}/workload-low")).status == 200
