"""What the names of a cluster stand for, as its DNS specification says.

Below ``cluster.local``: ``SERVICE.NAMESPACE.svc`` is a Service's address, or its ready endpoints
when it is headless, or another name; ``HOST.SERVICE.NAMESPACE.svc`` one endpoint;
``_PORT._PROTOCOL.SERVICE.NAMESPACE.svc`` the places of a port; ``1-2-3-4.NAMESPACE.pod`` a pod.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterable, Sequence

from skerry.api.objects import Object
from skerry.wire.dns import CNAME, SRV, A, Record

DOMAIN = "cluster.local"

FindService = Callable[[str, str], Object | None]
"""Returns the Service of a namespace and name."""
SlicesOf = Callable[[str, str], Iterable[Object]]
"""Returns the EndpointSlices of a Service."""


class ServiceNames:
    """Looks names up; nothing is kept."""

    def __init__(self, service: FindService, slices: SlicesOf) -> None:
        self._service = service
        self._slices = slices

    def records(self, name: str) -> Sequence[Record] | None:
        """Return every record of a name; None when nobody has it."""
        if name == DOMAIN:
            return ()
        if not name.endswith(f".{DOMAIN}"):
            return None
        labels = name.removesuffix(f".{DOMAIN}").split(".")
        if labels[-1] == "pod":
            return _pod(labels[:-1])
        if labels[-1] != "svc" or not 3 <= len(labels) <= 5:
            return () if labels == ["svc"] else None
        *before, service_name, namespace = labels[:-1]
        service = self._service(namespace, service_name)
        if service is None:
            return None
        if not before:
            return self._of_service(service, namespace, service_name)
        if len(before) == 1:
            return self._of_host(before[0], namespace, service_name)
        return self._of_port(service, before, name)

    def _of_service(self, service: Object, namespace: str, name: str) -> Sequence[Record]:
        spec = service["spec"]
        if spec.get("type") == "ExternalName":
            return (Record(CNAME, spec["externalName"]),)
        if spec.get("clusterIP") not in (None, "", "None"):
            return (Record(A, spec["clusterIP"]),)
        unready = bool(spec.get("publishNotReadyAddresses"))
        return [
            Record(A, address)
            for _, address in _endpoints(self._slices(namespace, name), unready=unready)
        ]

    def _of_host(self, host: str, namespace: str, name: str) -> Sequence[Record] | None:
        # A host keeps its name while it is not ready: its peers may have to find it first.
        found = [
            Record(A, address)
            for known, address in _endpoints(self._slices(namespace, name), unready=True)
            if host in (known, address.replace(".", "-"))
        ]
        return found or None

    def _of_port(
        self, service: Object, labels: Sequence[str], name: str
    ) -> Sequence[Record] | None:
        port, protocol = (label.removeprefix("_") for label in labels)
        target = name.split(".", 2)[2]
        found = [
            Record(SRV, target, int(item["port"]))
            for item in service["spec"].get("ports") or ()
            if item.get("name") == port and item.get("protocol", "TCP").lower() == protocol
        ]
        return found or None


def _pod(labels: Sequence[str]) -> Sequence[Record] | None:
    if len(labels) != 2:
        return None
    try:
        return (Record(A, str(ipaddress.IPv4Address(labels[0].replace("-", ".")))),)
    except ValueError:
        return None


def _endpoints(slices: Iterable[Object], *, unready: bool) -> list[tuple[str, str]]:
    """Return host name and address of every endpoint, of ready ones only unless asked."""
    return sorted(
        {
            (str(endpoint.get("hostname") or ""), str(address))
            for item in slices
            for endpoint in item.get("endpoints") or ()
            if unready or (endpoint.get("conditions") or {}).get("ready", True)
            for address in endpoint.get("addresses") or ()
        }
    )
