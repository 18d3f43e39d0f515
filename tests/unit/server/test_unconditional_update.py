from tests.kit.server.harness import serving
from tests.kit.server.objects import definition, thing

_PATH = "/api/v1/namespaces/default/configmaps"


async def test_an_update_that_names_no_version_replaces_whichever_is_live() -> None:
    async with serving() as server:
        await server.create(_PATH, {"metadata": {"name": "a"}, "data": {"k": "1"}})
        reply = await server.put(f"{_PATH}/a", {"metadata": {"name": "a"}, "data": {"k": "2"}})
        assert (reply.status, reply.body["data"]) == (200, {"k": "2"})


async def test_a_custom_object_is_replaced_by_version_and_missing_whatever_is_named() -> None:
    path = "/apis/example.org/v1/namespaces/default/things"
    async with serving() as server:
        definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        assert (await server.create(definitions, definition())).status == 201
        missing = await server.put(f"{path}/t", thing("t"))
        assert (missing.status, missing.body["reason"]) == (404, "NotFound")
        await server.create(path, thing("t"))
        assert (await server.put(f"{path}/t", thing("t"))).status == 422
