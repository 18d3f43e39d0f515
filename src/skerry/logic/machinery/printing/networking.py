"""Columns of the kinds that carry traffic: services, endpoints, ingresses, policies, addresses."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from skerry.api.objects import Object
from skerry.logic.machinery.printing.cells import (
    AGE,
    NAME,
    NONE,
    UNSET,
    computed,
    field,
    items,
    labels_text,
    number,
    read,
    selector_text,
    shortened,
    text,
)
from skerry.logic.machinery.resource import Column


def _load_balancer_addresses(obj: Object) -> list[str]:
    entries = items(obj, "status", "loadBalancer", "ingress")
    return sorted({text(entry, "ip") or text(entry, "hostname") for entry in entries} - {""})


def _external_ip(service: Object) -> str:
    kind = text(service, "spec", "type")
    external = list(items(service, "spec", "externalIPs"))
    if kind in ("ClusterIP", "NodePort"):
        return ",".join(external) or NONE
    if kind == "LoadBalancer":
        return ",".join(_load_balancer_addresses(service) + external) or "<pending>"
    if kind == "ExternalName":
        return text(service, "spec", "externalName")
    return "<unknown>"


def _service_port(port: Any) -> str:
    exposed = number(port, "nodePort")
    shown = f"{number(port, 'port')}:{exposed}" if exposed > 0 else str(number(port, "port"))
    return f"{shown}/{text(port, 'protocol')}"


def _cluster_ip(service: Object) -> str:
    addresses = items(service, "spec", "clusterIPs")
    if addresses:
        return str(addresses[0])
    # Older data has the single field only; the server fills in the list on the next write.
    return text(service, "spec", "clusterIP") or NONE


SERVICE_COLUMNS: tuple[Column, ...] = (
    NAME,
    field("Type", "spec", "type"),
    computed("Cluster-IP", _cluster_ip, "The service's first address within the cluster."),
    computed("External-IP", _external_ip, "Addresses the service has outside the cluster."),
    computed(
        "Port(s)",
        lambda obj: ",".join(map(_service_port, items(obj, "spec", "ports"))) or NONE,
        "Ports, with the nodes' port where there is one.",
    ),
    AGE,
    computed(
        "Selector",
        lambda obj: labels_text(read(obj, "spec", "selector")),
        "Labels of the pods behind the service.",
        priority=1,
    ),
)


def _joined(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _subset_addresses(subset: Any) -> Iterable[str]:
    hosts = [text(address, "ip") for address in items(subset, "addresses")]
    ports = items(subset, "ports")
    if not ports:
        # A headless service may have no ports at all.
        return hosts
    return [_joined(host, number(port, "port")) for port in ports for host in hosts]


def _endpoints(obj: Object) -> str:
    subsets = items(obj, "subsets")
    if not subsets:
        return NONE
    addresses = [address for subset in subsets for address in _subset_addresses(subset)]
    return shortened(addresses, len(addresses))


ENDPOINTS_COLUMNS: tuple[Column, ...] = (
    NAME,
    computed("Endpoints", _endpoints, "Addresses that answer for the service."),
    AGE,
)


def _slice_port(port: Any) -> str:
    found = read(port, "port")
    if found is not None:
        return str(found)
    name = read(port, "name")
    return "*" if name is None else str(name)


def _slice_ports(obj: Object) -> str:
    ports = [_slice_port(port) for port in items(obj, "ports")]
    return shortened(ports, len(ports)) or UNSET


def _slice_endpoints(obj: Object) -> str:
    addresses = [
        address for endpoint in items(obj, "endpoints") for address in items(endpoint, "addresses")
    ]
    return shortened(addresses, len(addresses)) or UNSET


ENDPOINT_SLICE_COLUMNS: tuple[Column, ...] = (
    NAME,
    field("AddressType", "addressType"),
    computed("Ports", _slice_ports, "Ports every endpoint of the slice answers on."),
    computed("Endpoints", _slice_endpoints, "Addresses in the slice."),
    AGE,
)


def _hosts(ingress: Object) -> str:
    rules = items(ingress, "spec", "rules")
    hosts: list[str] = []
    for rule in rules:
        if len(hosts) == 3:
            # The rest is counted by rules, those without a host too.
            return f"{','.join(hosts)} + {len(rules) - 3} more..."
        if host := text(rule, "host"):
            hosts.append(host)
    return ",".join(hosts) or "*"


INGRESS_COLUMNS: tuple[Column, ...] = (
    NAME,
    field("Class", "spec", "ingressClassName", default=NONE),
    computed("Hosts", _hosts, "Host names the rules match."),
    computed(
        "Address",
        lambda obj: ",".join(_load_balancer_addresses(obj)),
        "Where the load balancer is reached.",
    ),
    computed(
        "Ports",
        lambda obj: "80, 443" if items(obj, "spec", "tls") else "80",
        "Ports that are open: 443 too when there is a TLS configuration.",
    ),
    AGE,
)


def _class_parameters(obj: Object) -> str:
    parameters = read(obj, "spec", "parameters")
    if parameters is None:
        return NONE
    group = read(parameters, "apiGroup")
    kind = text(parameters, "kind") + ("" if group is None else f".{group}")
    return f"{kind}/{text(parameters, 'name')}"


INGRESS_CLASS_COLUMNS: tuple[Column, ...] = (
    NAME,
    field("Controller", "spec", "controller"),
    computed("Parameters", _class_parameters, "An object with further settings."),
    AGE,
)

NETWORK_POLICY_COLUMNS: tuple[Column, ...] = (
    NAME,
    computed(
        "Pod-Selector",
        lambda obj: selector_text(read(obj, "spec", "podSelector")),
        "Which pods the policy is about.",
    ),
    AGE,
)


def _parent(obj: Object) -> str:
    parent = read(obj, "spec", "parentRef")
    if parent is None:
        return NONE
    group = text(parent, "group")
    resource = text(parent, "resource") + (f".{group}" if group else "")
    steps = [resource.lower(), text(parent, "namespace"), text(parent, "name")]
    return "/".join(step for step in steps if step)


NETWORKING_COLUMNS: dict[tuple[str, str], tuple[Column, ...]] = {
    ("", "Endpoints"): ENDPOINTS_COLUMNS,
    ("", "Service"): SERVICE_COLUMNS,
    ("discovery.k8s.io", "EndpointSlice"): ENDPOINT_SLICE_COLUMNS,
    ("networking.k8s.io", "IPAddress"): (
        NAME,
        computed("ParentRef", _parent, "The object that has the address."),
        AGE,
    ),
    ("networking.k8s.io", "Ingress"): INGRESS_COLUMNS,
    ("networking.k8s.io", "IngressClass"): INGRESS_CLASS_COLUMNS,
    ("networking.k8s.io", "NetworkPolicy"): NETWORK_POLICY_COLUMNS,
    ("networking.k8s.io", "ServiceCIDR"): (
        NAME,
        computed("CIDRs", lambda obj: ",".join(items(obj, "spec", "cidrs")), "Address ranges."),
        AGE,
    ),
}
