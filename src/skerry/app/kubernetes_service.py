"""The Service ``default/kubernetes`` of a plain server, kept up as kube-apiserver keeps its own.

Programs look for it before anything else: in a pod it is where the API is, and a test suite takes
its absence for a server that is not ready. The Service has the first address of the service
network; its Endpoints and EndpointSlice list the servers of the store that live. Addresses of the
loopback interface are left out, because nobody but the machine itself could use them.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Sequence
from typing import Final
from urllib.parse import urlsplit

from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.app.kept_objects import keep_up, put
from skerry.controllers.workload.kinds import ENDPOINTS, SERVICES, SLICES
from skerry.kit.clock import Clock
from skerry.runtime.client import Client

NAME: Final = "kubernetes"
NAMESPACE: Final = "default"
# As often as kube-apiserver looks.
_INTERVAL_SECONDS: Final = 10.0


def kubernetes_service(network: str, port: int) -> Object:
    """Return the Service as it is created; the server listens on *port*."""
    address = ipaddress.ip_network(network)[1]
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": NAME,
            "namespace": NAMESPACE,
            "labels": {"component": "apiserver", "provider": "kubernetes"},
        },
        "spec": {
            "type": "ClusterIP",
            "clusterIP": str(address),
            "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": port}],
        },
    }


def endpoints(urls: Sequence[str]) -> tuple[Object, Object] | None:
    """Return Endpoints and EndpointSlice of servers at *urls*; None when none can be named.

    All servers of a store listen on one port; those that do not are left out.
    """
    found = sorted({address for url in urls if (address := _address(url)) is not None})
    if not found:
        return None
    port = found[0][1]
    addresses = [str(ip) for ip, its_port in found if its_port == port]
    version = ipaddress.ip_address(addresses[0]).version
    ports = [{"name": "https", "port": port, "protocol": "TCP"}]
    labels = {"endpointslice.kubernetes.io/skip-mirror": "true"}
    return (
        {
            "apiVersion": "v1",
            "kind": "Endpoints",
            "metadata": {"name": NAME, "namespace": NAMESPACE, "labels": labels},
            "subsets": [{"addresses": [{"ip": each} for each in addresses], "ports": ports}],
        },
        {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {
                "name": NAME,
                "namespace": NAMESPACE,
                "labels": {"kubernetes.io/service-name": NAME},
            },
            "addressType": f"IPv{version}",
            "endpoints": [
                {"addresses": [each], "conditions": {"ready": True}} for each in addresses
            ],
            "ports": ports,
        },
    )


def _address(url: str) -> tuple[ipaddress.IPv4Address | ipaddress.IPv6Address, int] | None:
    parts = urlsplit(url)
    try:
        address = ipaddress.ip_address(parts.hostname or "")
    except ValueError:
        # A name: whoever runs the server under one knows how to reach it.
        return None
    if address.is_loopback or address.is_unspecified or address.version != 4:
        return None
    return address, parts.port or 443


class KubernetesService:
    """Keeps the Service and its endpoints; *urls* returns those of the servers that live."""

    def __init__(
        self, client: Client, network: str, port: int, urls: Callable[[], Sequence[str]]
    ) -> None:
        self._client = client
        self._service = kubernetes_service(network, port)
        self._urls = urls

    async def run(self, clock: Clock) -> None:
        """Work until cancelled."""
        await keep_up("service", self.ensure, clock, _INTERVAL_SECONDS)

    async def ensure(self) -> None:
        """Create what is missing; say in the endpoints who lives now."""
        await self._put(SERVICES, self._service, ())
        wanted = endpoints(self._urls())
        if wanted is not None:
            await self._put(ENDPOINTS, wanted[0], ("subsets",))
            await self._put(SLICES, wanted[1], ("endpoints", "ports"))

    async def _put(self, kind: GroupVersionResource, wanted: Object, fields: Sequence[str]) -> None:
        """Create *wanted* or correct *fields* of it; what others added stays."""

        def corrected(live: Object | None) -> Object | None:
            if live is None:
                return wanted
            if all(live.get(field) == wanted[field] for field in fields):
                return None
            return {**live, **{field: wanted[field] for field in fields}}

        await put(self._client, kind, NAME, NAMESPACE, corrected)
