"""Requests that end at a node: logs, exec, attach, port-forward and proxies.

The server itself runs nothing. A node agent that can answer for its node makes itself known to
``NodeConnections``; without one, the client learns who was missing rather than that the path is
unknown. What must hold before anybody connects (the pod is there, has a node, has the container)
is checked here, so that an agent may rely on it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from skerry.api.errors import BadRequest, NotFound, ServiceUnavailable
from skerry.api.keys import ObjectKey, type_prefix
from skerry.api.objects import Object, labels_of
from skerry.kit.text import whole_number
from skerry.server.codec import decode
from skerry.server.http.message import Answer
from skerry.server.request.call import Call, member
from skerry.store.base import Store

_CONTAINER_GROUPS = ("initContainers", "containers", "ephemeralContainers")
_SERVICE = "kubernetes.io/service-name"
# These speak to one container; port-forward and proxy to the pod.
_OF_CONTAINERS = frozenset({"log", "exec", "attach"})


class NodeAgent(Protocol):
    """What answers for a node."""

    async def connect(self, call: Call, pod: Object | None, part: str) -> Answer:
        """Answer a log, exec, attach, portforward or proxy request.

        *pod* is the pod it is about, None for the node itself; *part* is the one of its containers
        that is meant, or for a proxy its port; empty where neither is.
        """


class NodeConnections:
    """Finds the agent a request must go to."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._agents: dict[tuple[str, str], NodeAgent] = {}

    def register(self, cluster: str, node: str, agent: NodeAgent) -> None:
        """Send requests for *node* to *agent* from now on."""
        self._agents[cluster, node] = agent

    def unregister(self, cluster: str, node: str) -> None:
        """Forget the agent of *node*; harmless when there is none."""
        self._agents.pop((cluster, node), None)

    async def pod(self, call: Call) -> Answer:
        """Answer a request to a subresource of a pod that lives where the pod runs."""
        if call.info.subresource == "proxy":
            name, port = _named_port(call.info.name)
            pod = await self._find(call, "pods", name)
            return await self._proxied(call, pod, port or _first_port(pod))
        pod = await self._find(call, "pods", call.info.name)
        container = ""
        if call.info.subresource in _OF_CONTAINERS:
            container = _container(call, pod)
        return await self._at_pod(call, pod, container)

    async def _proxied(self, call: Call, pod: Object, port: str) -> Answer:
        if not 0 < (whole_number(port) or 0) < 65536:
            raise BadRequest(f'invalid pod port "{port}": want a number from 1 to 65535')
        return await self._at_pod(call, pod, port)

    async def _at_pod(self, call: Call, pod: Object, part: str) -> Answer:
        node = member(pod, "spec", "nodeName")
        if not node:
            raise BadRequest(f"pod {pod['metadata']['name']} does not have a host assigned")
        return await self._agent(call, node).connect(call, pod, part)

    async def node(self, call: Call) -> Answer:
        """Answer a request to a node's proxy."""
        await self._find(call, "nodes", call.info.name)
        return await self._agent(call, call.info.name).connect(call, None, "")

    async def service(self, call: Call) -> Answer:
        """Answer a request to a service's proxy by one of its pods that is ready."""
        name, wanted = _named_port(call.info.name)
        service = await self._find(call, "services", name)
        ports: list[Object] = list(member(service, "spec", "ports") or ())
        named = [p for p in ports if wanted in (p.get("name") or "", str(p["port"]))]
        port = next(iter(named or (ports if not wanted and len(ports) == 1 else ())), None)
        if port is None:
            raise ServiceUnavailable(f'no service port "{wanted}" found for service "{name}"')
        found = await self._endpoint(call, name, port.get("name") or "")
        if found is None:
            raise ServiceUnavailable(f'no endpoints available for service "{name}"')
        pod, own_port = found
        return await self._proxied(call, pod, own_port)

    async def _endpoint(self, call: Call, service: str, port: str) -> tuple[Object, str] | None:
        """Return a pod that is ready to serve a port of a service, and its own port."""
        prefix = type_prefix(
            "discovery.k8s.io", "endpointslices", call.info.cluster, call.namespace, scoped=True
        )
        for entry in (await self._store.range(prefix)).entries:
            piece = decode(entry.value, entry.revision)
            if labels_of(piece).get(_SERVICE) == service:
                for pod, number in _ready(piece, port):
                    return await self._find(call, "pods", pod), number
        return None

    def _agent(self, call: Call, node: str) -> NodeAgent:
        agent = self._agents.get((call.info.cluster, node))
        if agent is None:
            raise ServiceUnavailable(
                f'error trying to reach node "{node}": no node agent is connected'
            )
        return agent

    async def _find(self, call: Call, resource: str, name: str) -> Object:
        key = ObjectKey("", resource, call.info.cluster, call.namespace, name)
        entry = await self._store.get(key.path())
        if entry is None:
            raise NotFound.of("", resource, name)
        return decode(entry.value, entry.revision)


def _named_port(text: str) -> tuple[str, str]:
    """Return name and port of ``[https:]name[:port]``; either may be without the other."""
    parts = text.split(":")
    if len(parts) == 3:
        return parts[1], parts[2]
    if len(parts) == 2 and parts[0] in ("http", "https"):
        return parts[1], ""
    return parts[0], parts[1] if len(parts) == 2 else ""


def _first_port(pod: Object) -> str:
    """Return the port a pod is asked at by who names none: its first one, as in Kubernetes."""
    containers = (pod.get("spec") or {}).get("containers") or ()
    ports = [port for each in containers for port in each.get("ports") or ()]
    return str(ports[0]["containerPort"]) if ports else "80"


def _ready(piece: Object, port_name: str) -> Iterator[tuple[str, str]]:
    """Yield the pods of an EndpointSlice that serve the port of that name, with its number."""
    for port in piece.get("ports") or ():
        if (port.get("name") or "") == port_name and port.get("port"):
            for endpoint in piece.get("endpoints") or ():
                target = endpoint.get("targetRef") or {}
                ready = (endpoint.get("conditions") or {}).get("ready")
                if ready is not False and target.get("kind") == "Pod":
                    yield str(target.get("name")), str(port["port"])


def _container(call: Call, pod: Object) -> str:
    """Return the container a request is about: the one it names, else the only one."""
    name, spec = call.info.name, pod.get("spec") or {}
    wanted = call.request.query.get("container", "")
    if wanted:
        if any(wanted in _names(spec.get(group)) for group in _CONTAINER_GROUPS):
            return wanted
        raise BadRequest(f"container {wanted} is not valid for pod {name}")
    containers = _names(spec.get("containers"))
    if len(containers) == 1:
        return containers[0]
    text = f"a container name must be specified for pod {name}, choose one of: "
    text += f"[{' '.join(containers)}]"
    if early := _names(spec.get("initContainers")):
        text += f" or one of the init containers: [{' '.join(early)}]"
    raise BadRequest(text)


def _names(containers: Sequence[Any] | None) -> list[str]:
    return [str(container.get("name", "")) for container in containers or ()]
