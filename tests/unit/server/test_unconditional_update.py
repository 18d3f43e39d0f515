from tests.kit.server.harness import serving

_PATH = "/api/v1/namespaces/default/configmaps"


async def test_an_update_that_names_no_version_replaces_whichever_is_live() -> None:
    async with serving() as server:
        await server.create(_PATH, {"metadata": {"name": "a"}, "data": {"k": "1"}})
        reply = await server.put(f"{_PATH}/a", {"metadata": {"name": "a"}, "data": {"k": "2"}})
        assert (reply.status, reply.body["data"]) == (200, {"k": "2"})
