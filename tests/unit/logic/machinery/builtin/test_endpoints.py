"""Endpoints and EndpointSlices: addresses, ports and hints that are refused."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.api.objects import Object
from tests.kit.machinery.objects import created, errors_of, named, resource, update_errors

ENDPOINTS = resource("endpoints")
SLICES = resource("endpointslices", "discovery.k8s.io")


def subset(**fields: Any) -> list[str]:
    obj = named(ENDPOINTS, subsets=[{"addresses": [{"ip": "192.0.2.1"}], **fields}])
    return [text.split(": ")[0] for text in errors_of(ENDPOINTS, obj)]


def endpoint_slice(kind: str = "IPv4", **fields: Any) -> Object:
    return named(SLICES, addressType=kind, **{"endpoints": [], **fields})


def of_endpoint(kind: str = "IPv4", **endpoint: Any) -> list[str]:
    obj = endpoint_slice(kind, endpoints=[{"addresses": ["192.0.2.1"], **endpoint}])
    return [text.split(": ")[0] for text in errors_of(SLICES, obj)]


def test_ports_are_tcp_unless_they_say() -> None:
    obj = named(ENDPOINTS, subsets=[{"addresses": [{"ip": "192.0.2.1"}], "ports": [{"port": 80}]}])
    assert created(ENDPOINTS, obj)["subsets"][0]["ports"] == [{"port": 80, "protocol": "TCP"}]
    made = created(SLICES, endpoint_slice(ports=[{"port": 80}]))
    assert made["ports"] == [{"port": 80, "name": "", "protocol": "TCP"}]


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        ({}, []),
        ({"addresses": []}, [""]),
        ({"addresses": [], "notReadyAddresses": [{"ip": "192.0.2.1"}]}, []),
        ({"addresses": [{"ip": "x"}]}, [".addresses[0].ip"] * 2),
        ({"addresses": [{"ip": "127.0.0.1"}]}, [".addresses[0].ip"]),
        ({"addresses": [{"ip": "192.0.2.1", "hostname": "a.b"}]}, [".addresses[0].hostname"]),
        ({"addresses": [{"ip": "192.0.2.1", "nodeName": "a b"}]}, [".addresses[0].nodeName"]),
        ({"ports": [{"port": 0}]}, [".ports[0].port"]),
        ({"ports": [{"port": 1}, {"port": 2, "name": "b"}]}, [".ports[0].name"]),
        ({"ports": [{"port": 1, "name": "UP"}]}, [".ports[0].name"]),
        ({"ports": [{"port": 1, "protocol": "x"}]}, [".ports[0].protocol"]),
        ({"ports": [{"port": 1, "appProtocol": "a b"}]}, [".ports[0].appProtocol"]),
    ],
)
def test_a_subset_leads_somewhere(fields: Object, found: list[str]) -> None:
    assert subset(**fields) == [f"subsets[0]{field}" for field in found]


@pytest.mark.parametrize(
    ("kind", "address", "good"),
    [
        ("IPv4", "192.0.2.1", True),
        ("IPv4", "fd00::1", False),
        ("IPv4", "169.254.0.1", False),
        ("IPv6", "fd00::1", True),
        ("IPv6", "192.0.2.1", False),
        ("FQDN", "a.example", True),
        ("FQDN", "a.example.", True),
        ("FQDN", "single", False),
        ("FQDN", "a_b.example", False),
    ],
)
def test_addresses_are_of_the_kind_the_slice_says(kind: str, address: str, good: bool) -> None:
    found = of_endpoint(kind, addresses=[address])
    assert found == ([] if good else ["endpoints[0].addresses[0]"])


def test_the_kind_of_addresses_is_known_and_stays() -> None:
    assert errors_of(SLICES, endpoint_slice("MAC"))[0].startswith("addressType: Unsupported value")
    (text,) = update_errors(SLICES, endpoint_slice(), {"addressType": "IPv6"})
    assert text.endswith("field is immutable")


@pytest.mark.parametrize(
    ("endpoint", "found"),
    [
        ({"addresses": []}, "addresses"),
        ({"addresses": ["192.0.2.1"] * 101}, "addresses"),
        ({"nodeName": "a b"}, "nodeName"),
        ({"hostname": "a.b"}, "hostname"),
        ({"deprecatedTopology": {f"k{n}": "v" for n in range(17)}}, "deprecatedTopology"),
        ({"deprecatedTopology": {"a b": "v"}}, "deprecatedTopology"),
        ({"hints": {"forZones": [{"name": f"z{n}"} for n in range(9)]}}, "hints.forZones"),
        ({"hints": {"forZones": [{"name": "z"}, {"name": "z"}]}}, "hints.forZones[1].name"),
        ({"hints": {"forZones": [{"name": "a b"}]}}, "hints.forZones[0].name"),
    ],
)
def test_an_endpoint_is_well_formed(endpoint: Object, found: str) -> None:
    assert of_endpoint(**endpoint) == [f"endpoints[0].{found}"]


def test_a_slice_holds_a_thousand_endpoints() -> None:
    endpoint = {"addresses": ["192.0.2.1"]}
    assert errors_of(SLICES, endpoint_slice(endpoints=[endpoint] * 1000)) == []
    # Of more than that none is looked at: one refusal says it.
    assert errors_of(SLICES, endpoint_slice(endpoints=[{}] * 1001)) == [
        "endpoints: Too many: 1001: must have at most 1000 items"
    ]


def test_ports_of_a_slice_differ_by_name() -> None:
    ports = [
        {"name": "a"},
        {"name": "a", "protocol": "x"},
        {},
        {"name": "UP", "appProtocol": "a b"},
    ]
    found = [t.split(": ")[0] for t in errors_of(SLICES, endpoint_slice(ports=ports))]
    assert found == ["ports[1].name", "ports[1].protocol", "ports[3].name", "ports[3].appProtocol"]
    assert errors_of(SLICES, endpoint_slice(ports=[{}, {}])) == [
        'ports[1].name: Duplicate value: ""'
    ]
