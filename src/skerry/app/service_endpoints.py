"""The endpoints that a Service leads to, read from the store: for servers that call others.

A server may run where no cluster address leads anywhere, so it goes to an endpoint directly.
"""

from __future__ import annotations

from collections.abc import Iterator

from skerry.api.keys import ObjectKey, type_prefix
from skerry.api.objects import Object, labels_of
from skerry.logic.machinery.webhook_clients import ServiceRef
from skerry.server.codec import decode
from skerry.store.base import Store

_SLICE_LABEL = "kubernetes.io/service-name"


class Unreachable(Exception):
    """There is no way to a server; the text says why."""


async def endpoint_of(store: Store, service: ServiceRef, cluster: str) -> tuple[str, int]:
    """Return address and port of an endpoint of *service* that is ready; ``Unreachable``."""
    namespace, name = service.namespace, service.name
    entry = await store.get(ObjectKey("", "services", cluster, namespace, name).path())
    if entry is None:
        raise Unreachable(f'service "{name}" not found')
    spec = decode(entry.value, entry.revision).get("spec") or {}
    if spec.get("type") == "ExternalName":
        return spec.get("externalName") or "", service.port
    ports = spec.get("ports") or ()
    port = next((each for each in ports if each.get("port") == service.port), None)
    if port is None:
        raise Unreachable(f'no service port {service.port} found for service "{name}"')
    prefix = type_prefix("discovery.k8s.io", "endpointslices", cluster, namespace, scoped=True)
    for found in (await store.range(prefix)).entries:
        piece = decode(found.value, found.revision)
        if labels_of(piece).get(_SLICE_LABEL) == name:
            for ready in _ready(piece, port.get("name") or ""):
                return ready
    raise Unreachable(f'no endpoints available for service "{name}"')


def _ready(piece: Object, port_name: str) -> Iterator[tuple[str, int]]:
    """Yield the endpoints of an EndpointSlice that serve the port of that name."""
    for port in piece.get("ports") or ():
        if (port.get("name") or "") == port_name and port.get("port"):
            for endpoint in piece.get("endpoints") or ():
                ready = (endpoint.get("conditions") or {}).get("ready")
                if ready is not False and endpoint.get("addresses"):
                    yield endpoint["addresses"][0], port["port"]
