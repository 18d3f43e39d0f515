"""The Service by which a plain server is found."""

from __future__ import annotations

import pytest

from skerry.app.core_controllers import embedded_transport
from skerry.app.kubernetes_service import NAME, KubernetesService, endpoints
from skerry.controllers.workload.kinds import SERVICES
from skerry.kit.clock import LoopClock
from skerry.runtime.client import Client
from tests.kit.server.harness import Server, serving

SERVICE = "/api/v1/namespaces/default/services/kubernetes"
SLICE = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes"


@pytest.mark.parametrize(
    ("urls", "addresses"),
    [
        (["https://127.0.0.1:6443"], None),
        (["https://hub.example:6443"], None),
        (["https://10.1.2.4:6443", "https://10.1.2.3:6443"], ["10.1.2.3", "10.1.2.4"]),
        (["https://10.1.2.3:6443", "https://127.0.0.1:6443"], ["10.1.2.3"]),
        (["https://10.1.2.3:6443", "https://10.1.2.4:7443"], ["10.1.2.3"]),
    ],
)
def test_endpoints_are_the_servers_that_others_can_reach(
    urls: list[str], addresses: list[str] | None
) -> None:
    made = endpoints(urls)
    if addresses is None:
        assert made is None
    else:
        assert made is not None
        listed, sliced = made
        assert [each["ip"] for each in listed["subsets"][0]["addresses"]] == addresses
        assert [each["addresses"] for each in sliced["endpoints"]] == [[ip] for ip in addresses]


def keeper(server: Server, urls: list[str]) -> KubernetesService:
    client = Client(embedded_transport(server.api), clock=LoopClock())
    return KubernetesService(client, "10.96.0.0/16", 6443, lambda: urls)


async def test_the_service_has_the_first_address_and_comes_back_when_deleted() -> None:
    async with serving() as server:
        service = keeper(server, ["https://10.1.2.3:6443"])
        await service.ensure()
        assert (await server.get(SERVICE)).body["spec"]["clusterIP"] == "10.96.0.1"
        await server.delete(SERVICE)
        await service.ensure()
        assert (await server.get(SERVICE)).body["metadata"]["labels"] == {
            "component": "apiserver",
            "provider": "kubernetes",
        }


async def test_endpoints_follow_the_servers_that_live() -> None:
    urls = ["https://10.1.2.3:6443"]
    async with serving() as server:
        service = keeper(server, urls)
        await service.ensure()
        before = (await server.get(SLICE)).body
        await service.ensure()
        assert (await server.get(SLICE)).body == before
        urls.append("https://10.1.2.4:6443")
        await service.ensure()
        after = (await server.get(SLICE)).body
        assert [each["addresses"][0] for each in after["endpoints"]] == ["10.1.2.3", "10.1.2.4"]


async def test_what_somebody_added_to_the_service_stays() -> None:
    async with serving() as server:
        service = keeper(server, [])
        await service.ensure()
        await server.patch(SERVICE, {"metadata": {"annotations": {"mine": "yes"}}})
        await service.ensure()
        found = await Client(embedded_transport(server.api)).get(SERVICES, NAME, "default")
        assert found["metadata"]["annotations"]["mine"] == "yes"
