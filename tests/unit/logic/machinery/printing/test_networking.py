"""Columns of what carries traffic: addresses, ports, hosts."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from skerry.api.objects import Object
from skerry.logic.machinery.printing.networking import NETWORKING_COLUMNS

NOW = datetime(2024, 1, 1, tzinfo=UTC)


def cell(group: str, kind: str, column: str, obj: Object) -> Any:
    (found,) = (each for each in NETWORKING_COLUMNS[group, kind] if each.name == column)
    return found.cell(obj, NOW)


def service(column: str, status: Object | None = None, **spec: Any) -> Any:
    return cell("", "Service", column, {"spec": spec, "status": status or {}})


@pytest.mark.parametrize(
    ("spec", "points", "text"),
    [
        ({"type": "ClusterIP"}, [], "<none>"),
        ({"type": "NodePort", "externalIPs": ["1.1.1.1", "2.2.2.2"]}, [], "1.1.1.1,2.2.2.2"),
        ({"type": "LoadBalancer"}, [], "<pending>"),
        (
            {"type": "LoadBalancer", "externalIPs": ["9.9.9.9"]},
            [{"hostname": "b"}, {"ip": "a"}, {"ip": "a"}],
            "a,b,9.9.9.9",
        ),
        ({"type": "ExternalName", "externalName": "a.example"}, [], "a.example"),
        ({}, [], "<unknown>"),
    ],
)
def test_addresses_outside_the_cluster(spec: Object, points: list[Object], text: str) -> None:
    assert service("External-IP", {"loadBalancer": {"ingress": points}}, **spec) == text


def test_addresses_and_ports_inside_it() -> None:
    assert service("Cluster-IP", clusterIPs=["10.0.0.1", "fd00::1"]) == "10.0.0.1"
    assert service("Cluster-IP", clusterIP="10.0.0.2") == "10.0.0.2"
    assert service("Cluster-IP") == "<none>"
    ports = [{"port": 80, "protocol": "TCP"}, {"port": 53, "nodePort": 30053, "protocol": "UDP"}]
    assert service("Port(s)", ports=ports) == "80/TCP,53:30053/UDP"
    assert service("Port(s)") == "<none>"
    assert service("Selector", selector={"a": "b", "c": "d"}) == "a=b,c=d"


@pytest.mark.parametrize(
    ("subsets", "text"),
    [
        ([], "<none>"),
        ([{"addresses": [{"ip": "10.0.0.1"}]}], "10.0.0.1"),
        ([{"addresses": [{"ip": "fd00::1"}], "ports": [{"port": 80}]}], "[fd00::1]:80"),
        (
            [{"addresses": [{"ip": f"10.0.0.{n}"} for n in range(1, 6)], "ports": [{"port": 1}]}],
            "10.0.0.1:1,10.0.0.2:1,10.0.0.3:1 + 2 more...",
        ),
    ],
)
def test_endpoints(subsets: list[Object], text: str) -> None:
    assert cell("", "Endpoints", "Endpoints", {"subsets": subsets}) == text


def test_slices_show_numbers_names_or_any_port() -> None:
    group, kind = "discovery.k8s.io", "EndpointSlice"
    ports = [{"port": 80}, {"name": "web"}, {}]
    assert cell(group, kind, "Ports", {"ports": ports}) == "80,web,*"
    assert cell(group, kind, "Ports", {}) == "<unset>"
    endpoints = [{"addresses": ["10.0.0.1"]}, {"addresses": ["10.0.0.2"]}]
    assert cell(group, kind, "Endpoints", {"endpoints": endpoints}) == "10.0.0.1,10.0.0.2"
    assert cell(group, kind, "Endpoints", {}) == "<unset>"


@pytest.mark.parametrize(
    ("hosts", "text"),
    [
        ([], "*"),
        ([None], "*"),
        (["a", None, "b"], "a,b"),
        (["a", "b", "c"], "a,b,c"),
        (["a", "b", "c", "d", "e"], "a,b,c + 2 more..."),
    ],
)
def test_hosts_of_an_ingress(hosts: list[str | None], text: str) -> None:
    rules = [{} if host is None else {"host": host} for host in hosts]
    obj = {"spec": {"rules": rules}}
    assert cell("networking.k8s.io", "Ingress", "Hosts", obj) == text


def test_the_rest_of_an_ingress() -> None:
    obj: Object = {"spec": {"tls": [{}]}, "status": {"loadBalancer": {"ingress": [{"ip": "x"}]}}}
    assert cell("networking.k8s.io", "Ingress", "Ports", obj) == "80, 443"
    assert cell("networking.k8s.io", "Ingress", "Ports", {}) == "80"
    assert cell("networking.k8s.io", "Ingress", "Address", obj) == "x"


@pytest.mark.parametrize(
    ("parameters", "text"),
    [
        (None, "<none>"),
        ({"kind": "Config", "name": "a"}, "Config/a"),
        ({"kind": "Config", "name": "a", "apiGroup": "x.io"}, "Config.x.io/a"),
    ],
)
def test_parameters_of_a_class(parameters: Object | None, text: str) -> None:
    obj = {"spec": {"parameters": parameters}}
    assert cell("networking.k8s.io", "IngressClass", "Parameters", obj) == text


def test_parents_of_an_address() -> None:
    parent = {"group": "apps", "resource": "Things", "namespace": "n", "name": "a"}
    obj: Object = {"spec": {"parentRef": parent}}
    assert cell("networking.k8s.io", "IPAddress", "ParentRef", obj) == "things.apps/n/a"
    core: Object = {"spec": {"parentRef": {"resource": "services", "name": "a"}}}
    assert cell("networking.k8s.io", "IPAddress", "ParentRef", core) == "services/a"
    assert cell("networking.k8s.io", "IPAddress", "ParentRef", {}) == "<none>"


@pytest.mark.parametrize("place", list(NETWORKING_COLUMNS))
def test_an_empty_object_breaks_no_column(place: tuple[str, str]) -> None:
    assert [column.cell({}, NOW) for column in NETWORKING_COLUMNS[place]]
