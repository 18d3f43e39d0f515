"""Pods of an edge, as a person reaches them through the hub and the edge's tunnel.

The hub's address for an edge is followed by the edge cluster's own paths; what is spoken there is
what kubectl speaks with any cluster.
"""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import quote, urlencode

from wsproto.utilities import generate_accept_token

from skerry.app.explain_names import Unanswered
from skerry.app.hub_settings import HubSettings
from skerry.kit.ids import IdSource, SystemIds
from skerry.logic.machinery.edges.pods import PodNameError, chosen_pod, pod_named
from skerry.logic.machinery.edges.tunnel import EDGES_PATH
from skerry.runtime.answers import answer_failure, decoded
from skerry.runtime.kubeconfig import Overrides, connect, load
from skerry.runtime.transport import (
    Answer,
    AnswerStream,
    Transport,
    TransportError,
    UpgradedLine,
    UpgradingTransport,
    whole,
)

_JSON = {"accept": "application/json"}
_SWITCHING = 101

Query = Sequence[tuple[str, str]]


@asynccontextmanager
async def edge_pods(
    settings: HubSettings, edge: str, namespace: str = ""
) -> AsyncIterator[EdgePods]:
    """Open the way to the pods of *edge*, as the current workspace calls it."""
    config = load(settings.paths(), Overrides(context=settings.context, namespace=namespace))
    if "/clusters/" not in config.server:
        raise Unanswered("the current context names no workspace; choose one with kubectl ws")
    transport = connect(config)
    try:
        yield EdgePods(transport, edge, config.namespace, SystemIds())
    finally:
        await transport.close()


class PodLogs:
    """Logs of the pods of one namespace at one edge."""

    def __init__(self, hub: Transport, edge: str, namespace: str, workspace: str = "") -> None:
        """*workspace* is the base of the workspace that asks, where *hub* does not lead there."""
        self._transport = hub
        self.namespace = namespace
        within = f"{quote(edge, safe=':')}/api/v1/namespaces/{quote(namespace)}"
        self._base = f"{workspace}{EDGES_PATH}/{within}"

    async def pod(self, word: str) -> str:
        """Return the name of the pod that a word such as ``web-1`` or ``deploy/web`` means."""
        try:
            kind, name = pod_named(word)
            if kind == "Pod":
                return name
            return chosen_pod(kind, name, (await self.all())["items"])
        except PodNameError as error:
            raise Unanswered(str(error)) from error

    async def all(self) -> Any:
        """Return the list of the namespace's pods."""
        answer = await self._transport.request("GET", f"{self._base}/pods", headers=_JSON)
        if answer.status != 200:
            raise answer_failure(answer)
        return decoded(answer.body)

    async def log(self, pod: str, query: Query) -> AsyncIterator[bytes]:
        """Yield a log as it comes; raises what keeps it from being read, or from going on."""
        try:
            async with self._opened(pod, query) as answer:
                async for chunk in answer:
                    yield chunk
        except TransportError as error:
            await self.explain_loss(pod, error)
            raise

    async def beginning(self, pod: str, query: Query, limit: int) -> bytes:
        """Return a log up to *limit* bytes; what comes after them is not waited for."""
        found = bytearray()
        async with self._opened(pod, query) as answer:
            async for chunk in answer:
                found += chunk
                if len(found) >= limit:
                    break
        return bytes(found[:limit])

    @asynccontextmanager
    async def _opened(self, pod: str, query: Query) -> AsyncIterator[AnswerStream]:
        path = f"{self._base}/pods/{quote(pod)}/log"
        async with self._transport.stream("GET", path, urlencode(query), _JSON) as answer:
            if answer.status != 200:
                body = await whole(answer)
                raise answer_failure(Answer(answer.status, answer.headers, body))
            yield answer

    async def explain_loss(self, pod: str, error: TransportError | None = None) -> None:
        """Raise what the hub says of an edge whose connection was lost; nothing, if all is well."""
        answer = await self._transport.request(
            "GET", f"{self._base}/pods/{quote(pod)}", headers=_JSON
        )
        if answer.status >= 400:
            raise answer_failure(answer) from error


class EdgePods(PodLogs):
    """Pods of one namespace at one edge, and connections to them."""

    def __init__(
        self,
        hub: UpgradingTransport,
        edge: str,
        namespace: str,
        ids: IdSource,
        workspace: str = "",
    ) -> None:
        super().__init__(hub, edge, namespace, workspace)
        self._hub = hub
        self._ids = ids

    @asynccontextmanager
    async def websocket(
        self, pod: str, action: str, query: Query, protocols: Sequence[str]
    ) -> AsyncIterator[UpgradedLine]:
        """Hand a connection over to WebSocket messages of one of *protocols*."""
        key = base64.b64encode(self._ids.bytes(16))
        headers = {
            "sec-websocket-key": key.decode(),
            "sec-websocket-version": "13",
            "sec-websocket-protocol": ", ".join(protocols),
        }
        async with self.upgraded(pod, action, query, "websocket", headers, "GET") as line:
            if line.headers.get("sec-websocket-accept") != generate_accept_token(key).decode():
                raise TransportError("the answer to the WebSocket's key is not right")
            yield line

    @asynccontextmanager
    async def upgraded(
        self,
        pod: str,
        action: str,
        query: Query,
        protocol: str,
        headers: Mapping[str, str],
        method: str = "POST",
    ) -> AsyncIterator[UpgradedLine]:
        """Hand a connection over to a pod's exec, attach or portforward."""
        path = f"{self._base}/pods/{quote(pod)}/{action}"
        async with self._hub.upgraded(protocol, path, urlencode(query), headers, method) as line:
            if line.status != _SWITCHING:
                raise answer_failure(Answer(line.status, line.headers, await line.refusal()))
            yield line
