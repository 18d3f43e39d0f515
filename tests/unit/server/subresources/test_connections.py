"""Requests that end at a node: who answers them, and what must hold before anybody connects."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.api.errors import ApiError, BadRequest, NotFound, ServiceUnavailable
from skerry.api.keys import ObjectKey
from skerry.api.objects import Object
from skerry.server.codec import encode
from skerry.server.http.message import Answer, Request, Response
from skerry.server.request.call import Call
from skerry.server.subresources.connections import NodeConnections
from skerry.store.base import Write
from skerry.store.memory import MemoryStore
from tests.kit.machinery.objects import resource
from tests.kit.server.calls import call_of


class Agent:
    """Remembers what it was asked to connect to."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []

    async def connect(self, call: Call, pod: Object | None, part: str) -> Answer:
        self.asked.append(("" if pod is None else str(pod["metadata"]["name"]), part))
        return Response()


def pod(name: str, *containers: str, node: str = "n", **spec: Any) -> tuple[str, Object]:
    listed = [{"name": each, "ports": [{"containerPort": 8080}]} for each in containers]
    whole = {"nodeName": node, "containers": listed, **spec}
    return "pods", {"metadata": {"name": name}, "spec": whole}


def endpoints(service: str, *pods: str, ready: bool | None = None) -> tuple[str, Object]:
    return "endpointslices", {
        "metadata": {"name": service, "labels": {"kubernetes.io/service-name": service}},
        "ports": [{"name": "http", "port": 9090}],
        "endpoints": [
            {"targetRef": {"kind": "Pod", "name": each}, "conditions": {"ready": ready}}
            for each in pods
        ],
    }


def service(name: str, *ports: Object) -> tuple[str, Object]:
    return "services", {"metadata": {"name": name}, "spec": {"ports": list(ports)}}


async def connected(
    kind: str, name: str, subresource: str, *objects: tuple[str, Object], query: str = ""
) -> tuple[str, str]:
    """Return the pod and the part that the agent of node n was asked for."""
    store, agent = MemoryStore("test"), Agent()
    for plural, obj in objects:
        group = "discovery.k8s.io" if plural == "endpointslices" else ""
        key = ObjectKey(group, plural, "root", "shop", obj["metadata"]["name"])
        value = encode({"apiVersion": "v1", "kind": "X", **obj})
        await store.commit([Write(key.path(), value)])
    connections = NodeConnections(store)
    connections.register("root", "n", agent)
    call = call_of(
        resource(kind), request=Request("GET", "/", query), cluster="root", namespace="shop",
        name=name, subresource=subresource,
    )  # fmt: skip
    try:
        await getattr(connections, {"pods": "pod", "services": "service"}[kind])(call)
    finally:
        await store.close()
    (asked,) = agent.asked
    return asked


async def refused(*args: Any, **options: Any) -> ApiError:
    with pytest.raises(ApiError) as caught:
        await connected(*args, **options)
    return caught.value


async def test_the_only_container_is_meant_and_others_are_named() -> None:
    assert await connected("pods", "p", "log", pod("p", "c")) == ("p", "c")
    two = pod("p", "c", "d", initContainers=[{"name": "i"}])
    assert await connected("pods", "p", "exec", two, query="container=i") == ("p", "i")
    error = await refused("pods", "p", "exec", two)
    assert "choose one of: [c d] or one of the init containers: [i]" in str(error)
    assert "container x is not valid" in str(
        await refused("pods", "p", "log", two, query="container=x")
    )


async def test_a_pod_must_be_there_and_have_a_node_that_answers() -> None:
    assert isinstance(await refused("pods", "p", "log"), NotFound)
    assert "does not have a host" in str(await refused("pods", "p", "log", pod("p", "c", node="")))
    away = await refused("pods", "p", "log", pod("p", "c", node="elsewhere"))
    assert isinstance(away, ServiceUnavailable)
    assert 'node "elsewhere": no node agent is connected' in str(away)


@pytest.mark.parametrize(
    ("name", "port"),
    [("p", "8080"), ("p:81", "81"), ("http:p", "8080"), ("https:p:82", "82")],
)
async def test_a_proxy_names_a_port_or_means_the_first(name: str, port: str) -> None:
    assert await connected("pods", name, "proxy", pod("p", "c")) == ("p", port)


@pytest.mark.parametrize("port", ["0", "65536", "web", "²", "٣", "9" * 5000])
async def test_a_port_is_a_number_that_there_can_be(port: str) -> None:
    error = await refused("pods", f"p:{port}", "proxy", pod("p", "c"))
    assert isinstance(error, BadRequest)


async def test_a_service_is_answered_by_a_pod_that_is_ready() -> None:
    http = {"name": "http", "port": 80}
    ready = (service("web", http), endpoints("web", "p"), pod("p", "c"))
    for name in ("web", "web:http", "web:80"):
        assert await connected("services", name, "proxy", *ready) == ("p", "9090")
    unready = (service("web", http), endpoints("web", "p", ready=False), pod("p", "c"))
    assert "no endpoints available" in str(await refused("services", "web", "proxy", *unready))
    assert "no service port" in str(await refused("services", "web:x", "proxy", *ready))
    two = (service("web", http, {"name": "b", "port": 81}), *ready[1:])
    assert "no service port" in str(await refused("services", "web", "proxy", *two))


async def test_an_agent_that_left_answers_no_more() -> None:
    store = MemoryStore("test")
    connections = NodeConnections(store)
    connections.register("root", "n", Agent())
    connections.unregister("root", "n")
    connections.unregister("root", "n")
    key = ObjectKey("", "nodes", "root", "", "n").path()
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}
    await store.commit([Write(key, encode(node))])
    with pytest.raises(ServiceUnavailable):
        await connections.node(call_of(resource("nodes"), cluster="root", name="n"))
    await store.close()
