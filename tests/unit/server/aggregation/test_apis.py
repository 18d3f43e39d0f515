"""What is passed on, and what is answered here; a recorder notes who is asked."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.api.kinds import GroupVersion
from skerry.logic.machinery.aggregation import AggregatedVersion
from skerry.server.aggregation.apis import AggregatedApis, Asked
from skerry.server.http.message import Answer, Response
from tests.kit.server.harness import Server, serving

SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"


class Recorder:
    def __init__(self) -> None:
        self.asked: list[Asked] = []

    async def pass_on(self, version: AggregatedVersion, asked: Asked) -> Answer:
        self.asked.append(asked)
        return Response(body=b"{}")


def api_service(group: str = "zoo.example.com", version: str = "v1") -> Any:
    service = {"name": "zoo", "namespace": "default"}
    spec = {"group": group, "version": version, "service": service, "insecureSkipTLSVerify": True}
    spec |= {"groupPriorityMinimum": 1, "versionPriority": 1}
    return {"metadata": {"name": f"{version}.{group}"}, "spec": spec}


async def register(server: Server, *, available: bool, **more: Any) -> None:
    made = (await server.create(SERVICES, api_service(**more))).body
    status = "True" if available else "False"
    made["status"] = {"conditions": [{"type": "Available", "status": status}]}
    reply = await server.put(f"{SERVICES}/{made['metadata']['name']}/status", made)
    assert reply.status == 200, reply.body


async def test_a_path_is_passed_on_escaped_as_it_came() -> None:
    recorder = Recorder()
    async with serving(aggregated=AggregatedApis(recorder)) as server:
        await register(server, available=True)
        path = "/apis/zoo.example.com/v1/pandas/a b%"
        await server.request("PATCH", f"{path}?x=1&y=%20", b"[]", content_type="a/b")
        (asked,) = recorder.asked
        assert (asked.method, asked.body, asked.query) == ("PATCH", b"[]", "x=1&y=%20")
        assert asked.path == "/apis/zoo.example.com/v1/pandas/a%20b%25"
        assert ("content-type", "a/b") in asked.lines


async def test_a_server_that_is_not_available_is_not_asked() -> None:
    recorder = Recorder()
    async with serving(aggregated=AggregatedApis(recorder)) as server:
        await register(server, available=False)
        answer = await server.answer("GET", "/apis/zoo.example.com/v1/pandas")
        assert isinstance(answer, Response)
        assert (answer.status, answer.body) == (503, b"service unavailable\n")
        assert recorder.asked == []
        assert "apis/zoo.example.com/v1" not in (await server.get("/openapi/v3")).body["paths"]


async def test_what_is_served_here_stays_here() -> None:
    recorder = Recorder()
    async with serving(aggregated=AggregatedApis(recorder)) as server:
        await register(server, available=True, group="apps")
        assert (await server.get("/apis/apps/v1/deployments")).body["kind"] == "DeploymentList"
        assert recorder.asked == []


async def test_documents_are_tagged_and_not_sent_again() -> None:
    async with serving(aggregated=AggregatedApis(Recorder())) as server:
        await register(server, available=True)
        first = await server.get("/apis")
        tag = dict(first.headers)["ETag"]
        again = await server.get("/apis", headers={"if-none-match": tag})
        assert (first.status, again.status) == (200, 304)
        assert (await server.request("POST", "/apis", {})).status == 405


async def test_without_aggregation_an_api_service_is_data() -> None:
    async with serving() as server:
        await register(server, available=True)
        assert (await server.get("/apis/zoo.example.com/v1/pandas")).status == 404
        names = {each["name"] for each in (await server.get("/apis")).body["groups"]}
        assert "zoo.example.com" not in names


@pytest.mark.parametrize(
    "swagger",
    [
        {},
        {"paths": [], "definitions": {}},
        {"paths": {"/apis/zoo.example.com/v1/a": 1}, "definitions": {}},
        {"paths": {"/apis/zoo.example.com/v1/a": {"get": {"responses": []}}}, "definitions": {}},
        {
            "paths": {"/apis/zoo.example.com/v1/a": {"x": {"$ref": "#/definitions/D"}}},
            "definitions": {"D": {"properties": [1], "$ref": 5}},
        },
    ],
)
def test_a_description_that_is_none_counts_as_nothing(swagger: dict[str, Any]) -> None:
    apis = AggregatedApis(Recorder())
    place = GroupVersion("zoo.example.com", "v1")
    apis.describe(place, swagger)
    assert set(apis.described[place]) == {"paths", "definitions"}
