"""Requests that end at a node: logs, exec, attach, port-forward and proxies.

The server itself runs nothing. A node agent that can answer for its node makes itself known to
``NodeConnections``; without one, the client learns who was missing rather than that the path is
unknown. What must hold before anybody connects (the pod is there, has a node, has the container)
is checked here, so that an agent may rely on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from skerry.api.errors import BadRequest, NotFound, ServiceUnavailable
from skerry.api.keys import ObjectKey
from skerry.api.objects import Object
from skerry.server.codec import decode
from skerry.server.http.message import Answer
from skerry.server.request.call import Call, member
from skerry.store.base import Store

_CONTAINER_GROUPS = ("initContainers", "containers", "ephemeralContainers")
# These speak to one container; port-forward and proxy to the pod.
_OF_CONTAINERS = frozenset({"log", "exec", "attach"})


class NodeAgent(Protocol):
    """What answers for a node."""

    async def connect(self, call: Call, pod: Object | None, container: str) -> Answer:
        """Answer a log, exec, attach, portforward or proxy request.

        *pod* is the pod it is about, None for the node itself; *container* is one of its
        containers, empty where none is meant.
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
        pod = await self._find(call, "pods", call.info.name)
        container = ""
        if call.info.subresource in _OF_CONTAINERS:
            container = _container(call, pod)
        node = member(pod, "spec", "nodeName")
        if not node:
            raise BadRequest(f"pod {call.info.name} does not have a host assigned")
        return await self._agent(call, node).connect(call, pod, container)

    async def node(self, call: Call) -> Answer:
        """Answer a request to a node's proxy."""
        await self._find(call, "nodes", call.info.name)
        return await self._agent(call, call.info.name).connect(call, None, "")

    async def service(self, call: Call) -> Answer:
        """Refuse a request to a service's proxy: nothing here routes to endpoints."""
        # The name may carry a scheme and a port around it: [https:]name[:port].
        parts = call.info.name.split(":")
        name = parts[1] if len(parts) == 3 else parts[0]
        await self._find(call, "services", name)
        raise ServiceUnavailable(f'no endpoints available for service "{name}"')

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
