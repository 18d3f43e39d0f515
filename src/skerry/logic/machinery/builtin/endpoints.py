"""Where a service's traffic goes: Endpoints and EndpointSlices."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from skerry.api.errors import FieldError
from skerry.api.kinds import GroupResource
from skerry.api.objects import Object
from skerry.logic.machinery.builtin.containers import PROTOCOLS
from skerry.logic.machinery.builtin.paths import address, address_errors, special_errors
from skerry.logic.machinery.builtin.rules import (
    Errors,
    Rules,
    RuleTable,
    absent,
    child,
    each,
    immutable,
    one_of,
)
from skerry.logic.machinery.names import (
    dns1123_label,
    dns1123_subdomain,
    label_value,
    port_number,
    qualified_name,
)
from skerry.logic.machinery.selectors import label_errors

_ADDRESS_TYPES = ("FQDN", "IPv4", "IPv6")
_MAX_ENDPOINTS = 1000
_MAX_ADDRESSES = 100
_MAX_PORTS = 20000
_MAX_ZONES = 8
_MAX_TOPOLOGY = 16


def _default_endpoints(endpoints: Object) -> None:
    for subset in endpoints.get("subsets") or ():
        for port in subset.get("ports") or ():
            if not port.get("protocol"):
                port["protocol"] = "TCP"


def _validate_endpoints(endpoints: Object) -> Errors:
    errors: Errors = []
    for index, subset in enumerate(endpoints.get("subsets") or ()):
        where = f"subsets[{index}]"
        if not subset.get("addresses") and not subset.get("notReadyAddresses"):
            text = "must specify `addresses` or `notReadyAddresses`"
            errors.append(FieldError.required(where, text))
        for field in ("addresses", "notReadyAddresses"):
            for position, item in enumerate(subset.get(field) or ()):
                errors += _address_errors(item, f"{where}.{field}[{position}]")
        ports = subset.get("ports") or ()
        for position, port in enumerate(ports):
            errors += _port_errors(port, f"{where}.ports[{position}]", len(ports) > 1)
    return errors


def _address_errors(item: Object, path: str) -> Errors:
    text, host, node = item.get("ip") or "", item.get("hostname"), item.get("nodeName")
    errors = address_errors(text, f"{path}.ip")
    if host:
        errors += each(f"{path}.hostname", host, dns1123_label(host))
    if node is not None:
        errors += each(f"{path}.nodeName", node, dns1123_subdomain(node))
    return errors + special_errors(text, f"{path}.ip")


def _port_errors(port: Object, path: str, require_name: bool) -> Errors:
    name, number = port.get("name") or "", port.get("port") or 0
    errors: Errors = []
    if require_name and not name:
        errors.append(FieldError.required(f"{path}.name"))
    elif name:
        errors += each(f"{path}.name", name, dns1123_label(name))
    errors += each(f"{path}.port", number, port_number(number))
    errors += one_of(port.get("protocol"), f"{path}.protocol", PROTOCOLS)
    return errors + _protocol_errors(port.get("appProtocol"), f"{path}.appProtocol")


def _protocol_errors(protocol: str | None, path: str) -> Errors:
    return [] if protocol is None else each(path, protocol, qualified_name(protocol))


def _default_slice(endpoint_slice: Object) -> None:
    for endpoint in endpoint_slice.get("endpoints") or ():
        child(endpoint, "conditions")
    for port in endpoint_slice.get("ports") or ():
        absent(port, "name", "")
        absent(port, "protocol", "TCP")


def _validate_slice(endpoint_slice: Object) -> Errors:
    kind = endpoint_slice.get("addressType") or ""
    errors = one_of(kind, "addressType", _ADDRESS_TYPES)
    endpoints, ports = endpoint_slice.get("endpoints") or (), endpoint_slice.get("ports") or ()
    if len(endpoints) > _MAX_ENDPOINTS:
        errors.append(FieldError.too_many("endpoints", len(endpoints), _MAX_ENDPOINTS))
    else:
        for index, endpoint in enumerate(endpoints):
            errors += _endpoint_errors(endpoint, f"endpoints[{index}]", kind)
    if len(ports) > _MAX_PORTS:
        return [*errors, FieldError.too_many("ports", len(ports), _MAX_PORTS)]
    return errors + _slice_port_errors(ports)


def _slice_port_errors(ports: Sequence[Object]) -> Errors:
    errors: Errors = []
    taken: set[str] = set()
    for index, port in enumerate(ports):
        where, name = f"ports[{index}]", port.get("name") or ""
        if name:
            errors += each(f"{where}.name", name, dns1123_label(name))
        if name in taken:
            errors.append(FieldError.duplicate(f"{where}.name", name))
        taken.add(name)
        errors += one_of(port.get("protocol"), f"{where}.protocol", PROTOCOLS)
        errors += _protocol_errors(port.get("appProtocol"), f"{where}.appProtocol")
    return errors


def _endpoint_errors(endpoint: Object, path: str, kind: str) -> Errors:
    errors: Errors = []
    addresses, where = endpoint.get("addresses") or (), f"{path}.addresses"
    if not addresses:
        errors.append(FieldError.required(where, "must contain at least 1 address"))
    elif len(addresses) > _MAX_ADDRESSES:
        errors.append(FieldError.too_many(where, len(addresses), _MAX_ADDRESSES))
    check = _BY_TYPE.get(kind)
    if check is not None:
        for index, text in enumerate(addresses):
            errors += check(text, f"{where}[{index}]")
    node, host = endpoint.get("nodeName"), endpoint.get("hostname")
    if node is not None:
        errors += each(f"{path}.nodeName", node, dns1123_subdomain(node))
    topology = endpoint.get("deprecatedTopology") or {}
    if len(topology) > _MAX_TOPOLOGY:
        field = f"{path}.deprecatedTopology"
        errors.append(FieldError.too_many(field, len(topology), _MAX_TOPOLOGY))
    errors += label_errors(topology, f"{path}.deprecatedTopology")
    if host is not None:
        errors += each(f"{path}.hostname", host, dns1123_label(host))
    return errors + _hint_errors(endpoint.get("hints") or {}, f"{path}.hints.forZones")


def _hint_errors(hints: Object, path: str) -> Errors:
    zones = hints.get("forZones") or ()
    if len(zones) > _MAX_ZONES:
        return [FieldError.too_many(path, len(zones), _MAX_ZONES)]
    errors: Errors = []
    taken: set[str] = set()
    for index, zone in enumerate(zones):
        name, where = zone.get("name") or "", f"{path}[{index}].name"
        if name in taken:
            errors.append(FieldError.duplicate(where, name))
        taken.add(name)
        errors += each(where, name, label_value(name))
    return errors


def _of_version(version: int) -> Callable[[str, str], Errors]:
    def check(text: str, path: str) -> Errors:
        known = address(text)
        errors: Errors = []
        if known is None or known.version != version:
            wanted = f"must be a valid IPv{version} address"
            errors.append(FieldError.invalid(path, text, wanted))
        return errors + special_errors(text, path)

    return check


def _domain_errors(text: str, path: str) -> Errors:
    name = text.removesuffix(".")
    wrong = dns1123_subdomain(name)
    if wrong:
        return [FieldError.invalid(path, name, ",".join(wrong))]
    if "." not in name:
        wanted = "should be a domain with at least two segments separated by dots"
        return [FieldError.invalid(path, name, wanted)]
    return []


_BY_TYPE: dict[str, Callable[[str, str], Errors]] = {
    "IPv4": _of_version(4),
    "IPv6": _of_version(6),
    "FQDN": _domain_errors,
}


def _validate_slice_update(new: Object, old: Object) -> Errors:
    kind, former = new.get("addressType"), old.get("addressType")
    return _validate_slice(new) + immutable(kind, former, "addressType")


RULES: RuleTable = {
    GroupResource("", "endpoints"): Rules(
        default=_default_endpoints,
        validate_create=_validate_endpoints,
        validate_update=lambda new, _: _validate_endpoints(new),
        counts_generation=False,
    ),
    GroupResource("discovery.k8s.io", "endpointslices"): Rules(
        default=_default_slice,
        validate_create=_validate_slice,
        validate_update=_validate_slice_update,
    ),
}
