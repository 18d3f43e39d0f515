"""The scale of anything: replicas in one form, read and written."""

from __future__ import annotations

from tests.kit.server.harness import serving
from tests.kit.server.objects import deployment
from tests.kit.sim.loop import virtual

DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"


@virtual
async def test_replicas_are_read_and_written_as_a_scale_and_nothing_else_changes() -> None:
    async with serving() as server:
        made = (await server.create(DEPLOYMENTS, deployment("web", 2))).body
        scale = (await server.get(f"{DEPLOYMENTS}/web/scale")).body
        assert (scale["kind"], scale["spec"]) == ("Scale", {"replicas": 2})
        assert scale["status"]["selector"] == "app=web"
        scale["spec"]["replicas"] = 5
        answer = await server.put(f"{DEPLOYMENTS}/web/scale", scale)
        assert (answer.status, answer.body["spec"]) == (200, {"replicas": 5})
        after = (await server.get(f"{DEPLOYMENTS}/web")).body
        assert after["spec"] == {**made["spec"], "replicas": 5}
        assert after["metadata"]["generation"] == 2


@virtual
async def test_a_scale_of_an_earlier_version_is_refused() -> None:
    async with serving() as server:
        await server.create(DEPLOYMENTS, deployment("web", 2))
        scale = (await server.get(f"{DEPLOYMENTS}/web/scale")).body
        await server.patch(f"{DEPLOYMENTS}/web", {"metadata": {"labels": {"a": "b"}}})
        assert (await server.put(f"{DEPLOYMENTS}/web/scale", scale)).status == 409


@virtual
async def test_the_scale_of_nothing_is_not_found_and_said_as_kubernetes_does() -> None:
    async with serving() as server:
        answer = await server.get(f"{DEPLOYMENTS}/gone/scale")
        assert answer.status == 404
        assert answer.body["message"] == 'deployments/scale.apps "gone" not found'
        refused = await server.request("DELETE", f"{DEPLOYMENTS}/gone/scale")
        assert refused.status == 405
        none = await server.get("/api/v1/namespaces/default/configmaps/a/scale")
        assert none.status == 404


@virtual
async def test_a_number_below_none_is_refused_by_its_field() -> None:
    async with serving() as server:
        await server.create(DEPLOYMENTS, deployment("web", 2))
        answer = await server.patch(f"{DEPLOYMENTS}/web/scale", {"spec": {"replicas": -1}})
        assert answer.status == 422
        assert (await server.get(f"{DEPLOYMENTS}/web")).body["spec"]["replicas"] == 2
