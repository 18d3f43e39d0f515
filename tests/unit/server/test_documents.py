"""Discovery and OpenAPI as clients fetch and cache them."""

from __future__ import annotations

from datetime import timedelta
from email.utils import parsedate_to_datetime

from skerry.kit.clock import LoopClock
from skerry.logic.machinery import openapi
from tests.kit.server.harness import Server, serving
from tests.kit.server.objects import definition
from tests.kit.sim.loop import virtual

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


def header(headers: list[tuple[str, str]], name: str) -> str:
    return next((value for key, value in headers if key == name), "")


@virtual
async def test_the_old_discovery_lists_groups_and_resources() -> None:
    async with serving() as server:
        assert (await server.get("/api")).body["versions"] == ["v1"]
        groups = {g["name"] for g in (await server.get("/apis")).body["groups"]}
        assert {"apps", "batch", "events.k8s.io", "rbac.authorization.k8s.io"} <= groups
        apps = (await server.get("/apis/apps")).body
        assert apps["preferredVersion"]["groupVersion"] == "apps/v1"
        core = {r["name"] for r in (await server.get("/api/v1")).body["resources"]}
        assert {"pods", "pods/log", "pods/eviction", "namespaces/finalize"} <= core
        assert (await server.get("/apis/nothing.example")).status == 404
        assert (await server.get("/apis/apps/v9")).status == 404


@virtual
async def test_aggregated_discovery_is_one_answer_with_an_etag() -> None:
    async with serving() as server:
        accept = {"accept": f"{AGGREGATED},application/json"}
        answer = await server.answer("GET", "/apis", headers=accept)
        assert answer.content_type == AGGREGATED
        first = await server.get("/apis", headers=accept)
        assert first.body["kind"] == "APIGroupDiscoveryList"
        etag = header(first.headers, "ETag")
        again = await server.get("/apis", headers={**accept, "if-none-match": etag})
        assert (again.status, again.raw) == (304, b"")
        await server.create(DEFINITIONS, definition())
        changed = await server.get("/apis", headers={**accept, "if-none-match": etag})
        assert changed.status == 200
        names = {item["metadata"]["name"] for item in changed.body["items"]}
        assert "example.org" in names


@virtual
async def test_openapi_v3_is_found_by_its_fingerprint_and_kept_for_ever() -> None:
    async with serving() as server:
        index = (await server.get("/openapi/v3")).body["paths"]
        address = index["apis/apps/v1"]["serverRelativeURL"]
        assert address.startswith("/openapi/v3/apis/apps/v1?hash=")
        digest = address.split("=")[1]
        found = await server.get(address)
        assert found.body["openapi"].startswith("3.")
        assert header(found.headers, "ETag") == f'"{digest}"'
        assert header(found.headers, "Cache-Control") == "public, immutable"
        expires = parsedate_to_datetime(header(found.headers, "Expires"))
        assert timedelta(days=364) < expires - LoopClock().now() < timedelta(days=366)
        plain = await server.get("/openapi/v3/apis/apps/v1")
        assert header(plain.headers, "Cache-Control") == ""
        assert header(plain.headers, "ETag") == f'"{digest}"'


@virtual
async def test_an_old_fingerprint_leads_to_the_new_one() -> None:
    async with serving() as server:
        moved = await server.get("/openapi/v3/apis/apps/v1?hash=OLD")
        assert moved.status == 301
        location = header(moved.headers, "Location")
        assert (await server.get(location)).status == 200
        assert (await server.get("/openapi/v3/apis/nothing/v1")).status == 404
        assert (await server.get("/openapi/v3/nonsense")).status == 404


@virtual
async def test_openapi_v2_is_json_or_protobuf_under_a_name_go_can_read() -> None:
    async with serving() as server:
        swagger = (await server.get("/openapi/v2", headers={"accept": "application/json"})).body
        assert swagger["swagger"] == "2.0"
        assert "io.k8s.api.apps.v1.Deployment" in swagger["definitions"]
        for name in openapi.SWAGGER_PROTOBUF_TYPES:
            answer = await server.answer("GET", "/openapi/v2", headers={"accept": name})
            assert answer.status == 200
            assert answer.content_type == openapi.SWAGGER_PROTOBUF_TYPES[0]
        for accept, code in (("*/*", 200), ("", 200), ("text/html", 406), ("image/png", 406)):
            assert (await server.get("/openapi/v2", headers={"accept": accept})).status == code


@virtual
async def test_custom_kinds_are_in_every_document_at_once() -> None:
    async with serving() as server:
        await server.create(DEFINITIONS, definition())
        swagger = (await server.get("/openapi/v2")).body
        assert "org.example.v1.Thing" in swagger["definitions"]
        document = (await server.get("/openapi/v3/apis/example.org/v1")).body
        assert "org.example.v1.Thing" in document["components"]["schemas"]
        await gone(server)
        assert "org.example.v1.Thing" not in (await server.get("/openapi/v2")).body["definitions"]


async def gone(server: Server) -> None:
    await server.delete(f"{DEFINITIONS}/things.example.org")
    await server.sleep(1)


@virtual
async def test_the_root_lists_the_paths_there_are() -> None:
    async with serving() as server:
        paths = (await server.get("/")).body["paths"]
        assert {"/api/v1", "/apis/apps/v1", "/openapi/v3"} <= set(paths)
