"""Cluster addresses and node ports for Services.

An allocation is a key of its own, written with the Service or not at all, so that two servers
over one store can never hand out the same address, and a crash leaves nothing behind.
"""

from __future__ import annotations

import ipaddress
import zlib
from collections.abc import Iterator
from typing import ClassVar

from skerry.api.errors import FieldError, Invalid
from skerry.api.objects import Object
from skerry.server.admission.operation import Operation
from skerry.store.base import Store, Write

_FIRST_PORT, _LAST_PORT = 30000, 32767
# How many addresses are left to who asks for one, as Kubernetes counts them.
_MIN_LEFT, _MAX_LEFT = 16, 256
_PORT_TYPES = frozenset({"NodePort", "LoadBalancer"})


class ServiceAllocation:
    """Gives a Service its cluster IP and node ports, and takes them back."""

    TYPES: ClassVar = frozenset({("", "services")})

    def __init__(self, store: Store, network: str = "10.96.0.0/16") -> None:
        self._store = store
        self._network = ipaddress.ip_network(network)

    async def admit(self, operation: Operation) -> None:
        if operation.type != ("", "services") or operation.subresource:
            return
        cluster = operation.call.info.cluster
        old = operation.old or {"spec": {}}
        held = set() if operation.verb == "CREATE" else _held(old)
        metadata = operation.obj["metadata"]
        if operation.verb == "DELETE" and metadata.get("finalizers"):
            return
        if operation.verb == "DELETE" or (
            "deletionTimestamp" in metadata and not metadata.get("finalizers")
        ):
            wanted: set[str] = set()
        else:
            await self._fill(operation, cluster, held)
            wanted = _held(operation.obj)
        for claim in sorted(wanted - held - _moved(operation.obj, old)):
            await self._claim(operation, cluster, claim)
        for claim in sorted(held - wanted):
            operation.writes.append(Write(_key(cluster, claim), None))

    async def _fill(self, operation: Operation, cluster: str, held: set[str]) -> None:
        spec = operation.obj.setdefault("spec", {})
        if spec.get("type") == "ExternalName":
            for name in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"):
                spec.pop(name, None)
            return
        if not spec.get("clusterIP"):
            spec["clusterIP"] = await self._free_address(operation, cluster)
        spec["clusterIPs"] = [spec["clusterIP"], *(spec.get("clusterIPs") or [])[1:]]
        spec.setdefault("ipFamilies", ["IPv4"])
        spec.setdefault("ipFamilyPolicy", "SingleStack")
        if spec.get("type") in _PORT_TYPES:
            taken = {int(claim.split("/")[1]) for claim in held if claim.startswith("port/")}
            for port in spec.get("ports") or []:
                if not port.get("nodePort"):
                    port["nodePort"] = await self._free_port(operation, cluster, taken)
                taken.add(port["nodePort"])

    async def _free_address(self, operation: Operation, cluster: str) -> str:
        for candidate in self._addresses(operation.obj):
            if await self._store.get(_key(cluster, f"ip/{candidate}")) is None:
                return candidate
        raise self._full(operation, "spec.clusterIPs", "range is full")

    def _addresses(self, obj: Object) -> Iterator[str]:
        """Yield every usable address, from a place that differs between Services.

        The first addresses of the range are left to Services that ask for theirs by number, as
        long as there are others: a sixteenth of them, at least 16 and at most 256.
        """
        size = self._network.num_addresses - 2
        first = min(max(_MIN_LEFT, size // 16), _MAX_LEFT)
        first = first if first < size else 0
        start = zlib.crc32(obj["metadata"]["uid"].encode())
        for step in range(size - first):
            yield str(self._network[first + (start + step) % (size - first) + 1])
        for number in range(first):
            yield str(self._network[number + 1])

    async def _free_port(self, operation: Operation, cluster: str, taken: set[int]) -> int:
        span = _LAST_PORT - _FIRST_PORT + 1
        start = zlib.crc32(operation.obj["metadata"]["uid"].encode())
        for step in range(span):
            port = _FIRST_PORT + (start + step) % span
            if port not in taken and await self._store.get(_key(cluster, f"port/{port}")) is None:
                return port
        raise self._full(operation, "spec.ports[0].nodePort", "range is full")

    async def _claim(self, operation: Operation, cluster: str, claim: str) -> None:
        kind, number = claim.split("/", 1)
        key = _key(cluster, claim)
        if kind == "ip" and ipaddress.ip_address(number) not in self._network:
            detail = f"failed to allocate IP {number}: the provided IP ({number}) is not in the "
            detail += f"valid range. The range of valid IPs is {self._network}"
            raise self._unallocated(operation, detail)
        if kind == "port" and not _FIRST_PORT <= int(number) <= _LAST_PORT:
            detail = "provided port is not in the valid range. The range of valid ports is "
            detail += f"{_FIRST_PORT}-{_LAST_PORT}"
            raise self._invalid(operation, "spec.ports[0].nodePort", int(number), detail)
        if await self._store.get(key) is not None:
            if kind == "ip":
                detail = f"failed to allocate IP {number}: provided IP is already allocated"
                raise self._unallocated(operation, detail)
            detail = "provided port is already allocated"
            raise self._invalid(operation, "spec.ports[0].nodePort", int(number), detail)
        operation.writes.append(Write(key, b"1", expected=0))

    def _full(self, operation: Operation, field: str, detail: str) -> Invalid:
        return self._invalid(operation, field, "", f"failed to allocate: {detail}")

    def _unallocated(self, operation: Operation, detail: str) -> Invalid:
        return self._invalid(
            operation, "spec.clusterIPs", operation.obj["spec"]["clusterIPs"], detail
        )

    def _invalid(self, operation: Operation, field: str, value: object, detail: str) -> Invalid:
        name = operation.obj["metadata"].get("name", "")
        return Invalid.of("", "Service", name, [FieldError.invalid(field, value, detail)])


def _key(cluster: str, claim: str) -> str:
    return f"/allocations/services/{cluster}/{claim}"


def _held(obj: Object) -> set[str]:
    """Return the allocations a Service holds."""
    spec = obj.get("spec") or {}
    claims = {f"ip/{ip}" for ip in spec.get("clusterIPs") or [] if _is_address(ip)}
    if spec.get("type") in _PORT_TYPES:
        claims |= {f"port/{p['nodePort']}" for p in spec.get("ports") or [] if p.get("nodePort")}
    return claims


def _moved(obj: Object, old: Object) -> set[str]:
    """Return the claim on a first address that replaces another one.

    It is not allocated: validation refuses the change, whether or not the address is free.
    """
    spec, former = obj.get("spec") or {}, old.get("spec") or {}
    addresses, before = spec.get("clusterIPs") or [], former.get("clusterIPs") or []
    external = "ExternalName" in (spec.get("type"), former.get("type"))
    if external or not before or not addresses or addresses[0] == before[0]:
        return set()
    return {f"ip/{addresses[0]}"}


def _is_address(text: object) -> bool:
    """Whether *text* can be held; what is no address is left to validation, which comes later."""
    try:
        ipaddress.ip_address(str(text))
    except ValueError:
        return False
    return True
