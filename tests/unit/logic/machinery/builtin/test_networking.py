"""Services, endpoints, ingresses and network policies."""

from __future__ import annotations

import pytest

from skerry.api.objects import Object
from tests.kit.machinery.objects import (
    created,
    errors_of,
    merged,
    named,
    resource,
    update_errors,
)

SERVICES = resource("services")
INGRESSES = resource("ingresses", "networking.k8s.io")
POLICIES = resource("networkpolicies", "networking.k8s.io")
CLASSES = resource("ingressclasses", "networking.k8s.io")
ENDPOINTS = resource("endpoints")
SLICES = resource("endpointslices", "discovery.k8s.io")


def service(spec: Object | None = None) -> Object:
    return named(SERVICES, spec=merged({"ports": [{"port": 80}], "selector": {"a": "b"}}, spec))


def test_a_service_is_filled_in() -> None:
    new = created(SERVICES, service())
    assert new["status"] == {"loadBalancer": {}}
    assert new["spec"] == {
        "internalTrafficPolicy": "Cluster",
        "ipFamilies": ["IPv4"],
        "ipFamilyPolicy": "SingleStack",
        "ports": [{"port": 80, "protocol": "TCP", "targetPort": 80}],
        "selector": {"a": "b"},
        "sessionAffinity": "None",
        "type": "ClusterIP",
    }
    balanced = created(SERVICES, service({"type": "LoadBalancer", "sessionAffinity": "ClientIP"}))
    assert balanced["spec"]["allocateLoadBalancerNodePorts"] is True
    assert balanced["spec"]["externalTrafficPolicy"] == "Cluster"
    assert balanced["spec"]["sessionAffinityConfig"] == {"clientIP": {"timeoutSeconds": 10800}}


def test_headless_services() -> None:
    new = created(SERVICES, service({"clusterIP": "None", "ports": None}))
    assert new["spec"]["clusterIPs"] == ["None"]
    boundless = created(SERVICES, service({"clusterIP": "None", "selector": None}))
    assert boundless["spec"]["ipFamilyPolicy"] == "RequireDualStack"
    assert boundless["spec"]["ipFamilies"] == ["IPv4", "IPv6"]


@pytest.mark.parametrize(
    ("spec", "error"),
    [
        ({"ports": None}, "spec.ports: Required value"),
        ({"ports": [{"port": 0}]}, "spec.ports[0].port: Invalid value: 0: must be between 1"),
        ({"ports": [{"port": 1}, {"port": 2}]}, "spec.ports[0].name: Required value"),
        (
            {"ports": [{"port": 1, "name": "a"}, {"port": 1, "name": "b"}]},
            'spec.ports[1]: Duplicate value: {"port":1,"protocol":"TCP"}',
        ),
        ({"type": "Odd"}, 'spec.type: Unsupported value: "Odd": supported values: "ClusterIP", "E'),
        ({"type": "ExternalName"}, "spec.externalName: Required value"),
        (
            {"type": "NodePort", "clusterIP": "None"},
            "spec.clusterIPs[0]: Invalid value: \"None\": may not be set to 'None' for NodePort",
        ),
        ({"clusterIP": "x"}, 'spec.clusterIPs[0]: Invalid value: "x": must be a valid IP address'),
        (
            {"ports": [{"port": 1, "nodePort": 30000}]},
            "spec.ports[0].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'",
        ),
        ({"sessionAffinity": "Odd"}, 'spec.sessionAffinity: Unsupported value: "Odd"'),
        (
            {"externalIPs": ["127.0.0.1"]},
            'spec.externalIPs[0]: Invalid value: "127.0.0.1": may not be in the loopback range',
        ),
        (
            {"loadBalancerSourceRanges": ["10.0.0.0/8"]},
            "spec.LoadBalancerSourceRanges: Forbidden: may only be used when `type` is 'LoadBal",
        ),
        ({"loadBalancerClass": "a/b"}, "spec.loadBalancerClass: Forbidden: may only be used"),
        ({"externalTrafficPolicy": "Local"}, "spec.externalTrafficPolicy: Invalid value"),
        ({"internalTrafficPolicy": "Odd"}, 'spec.internalTrafficPolicy: Unsupported value: "Odd"'),
        ({"trafficDistribution": "Odd"}, 'spec.trafficDistribution: Unsupported value: "Odd"'),
        ({"ipFamilies": ["IPv5"]}, 'spec.ipFamilies[0]: Unsupported value: "IPv5"'),
        (
            {"clusterIP": "10.0.0.1", "ipFamilies": ["IPv6"]},
            'spec.clusterIPs[0]: Invalid value: "10.0.0.1": expected an IPv6 value as indicated',
        ),
    ],
)
def test_bad_services_are_refused(spec: Object, error: str) -> None:
    errors = errors_of(SERVICES, service(spec))
    assert any(found.startswith(error) for found in errors), errors


def test_service_names_begin_with_a_letter() -> None:
    assert (
        "a DNS-1035 label" in errors_of(SERVICES, merged(service(), {"metadata": {"name": "1"}}))[0]
    )


def test_addresses_stay_once_given() -> None:
    old = service({"clusterIP": "10.0.0.1"})
    assert update_errors(SERVICES, old, {"spec": {"clusterIP": None, "clusterIPs": None}}) == []
    (error,) = update_errors(SERVICES, old, {"spec": {"clusterIP": "10.0.0.2"}})
    assert error.startswith("spec.clusterIPs[0]: Invalid value")
    assert error.endswith("may not change once set")
    external = {"spec": {"type": "ExternalName", "externalName": "a.b"}}
    assert update_errors(SERVICES, old, external) == []


def test_node_ports_are_kept_and_dropped_with_the_type() -> None:
    old = created(
        SERVICES, service({"type": "NodePort", "ports": [{"port": 80, "nodePort": 30001}]})
    )
    new = merged(old, {"spec": {"ports": [{"port": 80}]}})
    SERVICES.default(new)
    SERVICES.prepare_update(new, old)
    assert new["spec"]["ports"][0]["nodePort"] == 30001
    new = merged(old, {"spec": {"type": "ClusterIP"}})
    SERVICES.prepare_update(new, old)
    assert "nodePort" not in new["spec"]["ports"][0]
    assert "externalTrafficPolicy" not in new["spec"]


def test_only_load_balancers_report_addresses() -> None:
    status = {"loadBalancer": {"ingress": [{"hostname": "10.0.0.1"}]}}
    assert "may only be used when `spec.type`" in str(
        SERVICES.validate_status({"status": status}, {})[0]
    )
    balanced = {"spec": {"type": "LoadBalancer"}, "status": status}
    assert "must be a DNS name, not an IP address" in str(
        SERVICES.validate_status(balanced, {})[-1]
    )


def test_endpoints() -> None:
    good = {"addresses": [{"ip": "10.0.0.1"}], "ports": [{"port": 80}]}
    new = created(ENDPOINTS, named(ENDPOINTS, subsets=[good]))
    assert new["subsets"][0]["ports"][0]["protocol"] == "TCP"
    bad = [{}, {"addresses": [{"ip": "169.254.0.1"}], "ports": [{"port": 1}, {"port": 2}]}]
    assert errors_of(ENDPOINTS, named(ENDPOINTS, subsets=bad)) == [
        "subsets[0]: Required value: must specify `addresses` or `notReadyAddresses`",
        (
            'subsets[1].addresses[0].ip: Invalid value: "169.254.0.1": may not be in the '
            "link-local "
            "range (169.254.0.0/16, fe80::/10)"
        ),
        "subsets[1].ports[0].name: Required value",
        "subsets[1].ports[1].name: Required value",
    ]


def test_endpoint_slices() -> None:
    good = named(
        SLICES, addressType="IPv4", endpoints=[{"addresses": ["10.0.0.1"]}], ports=[{"port": 80}]
    )
    assert created(SLICES, good)["ports"] == [{"port": 80, "name": "", "protocol": "TCP"}]
    bad = merged(good, {"addressType": "IPv6", "endpoints": [{"addresses": ["10.0.0.1"]}, {}]})
    assert errors_of(SLICES, bad) == [
        'endpoints[0].addresses[0]: Invalid value: "10.0.0.1": must be a valid IPv6 address',
        "endpoints[1].addresses: Required value: must contain at least 1 address",
    ]
    assert update_errors(SLICES, good, {"addressType": "FQDN", "endpoints": []}) == [
        'addressType: Invalid value: "FQDN": field is immutable'
    ]
    many = merged(good, {"endpoints": [{"addresses": ["10.0.0.1"]}] * 1001})
    assert errors_of(SLICES, many) == ["endpoints: Too many: 1001: must have at most 1000 items"]


def path(**fields: object) -> Object:
    backend = {"service": {"name": "s", "port": {"number": 80}}}
    return {"path": "/", "pathType": "Prefix", "backend": backend, **fields}


def ingress(*paths: Object, host: str = "example.com") -> Object:
    return named(INGRESSES, spec={"rules": [{"host": host, "http": {"paths": list(paths)}}]})


def test_ingresses() -> None:
    assert created(INGRESSES, ingress(path()))["status"] == {"loadBalancer": {}}
    assert errors_of(INGRESSES, named(INGRESSES, spec={})) == [
        "spec: Invalid value: []: either `defaultBackend` or `rules` must be specified"
    ]
    assert errors_of(INGRESSES, ingress(path(), host="*.example.com")) == []


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"pathType": None}, "pathType: Required value: pathType must be specified"),
        ({"pathType": "Odd"}, 'pathType: Unsupported value: "Odd"'),
        ({"path": "x"}, 'path: Invalid value: "x": must be an absolute path'),
        ({"path": "/a//b"}, "path: Invalid value: \"/a//b\": must not contain '//'"),
        ({"path": "/a/.."}, "path: Invalid value: \"/a/..\": cannot end with '/..'"),
        ({"backend": {}}, 'backend: Invalid value: "": resource or service backend is required'),
        (
            {"backend": {"service": {"name": "s"}}},
            "backend: Required value: port name or number is required",
        ),
        (
            {"backend": {"service": {"name": "S", "port": {"number": 1}}}},
            'backend.service.name: Invalid value: "S": a DNS-1035 label',
        ),
    ],
)
def test_bad_ingress_paths_are_refused(fields: Object, error: str) -> None:
    errors = errors_of(INGRESSES, ingress(path(**fields)))
    assert any(e.startswith(f"spec.rules[0].http.paths[0].{error}") for e in errors), errors


def test_ingress_classes_name_a_controller() -> None:
    good = named(
        CLASSES, spec={"controller": "example.com/x", "parameters": {"kind": "k", "name": "n"}}
    )
    assert created(CLASSES, good)["spec"]["parameters"]["scope"] == "Cluster"
    assert errors_of(CLASSES, named(CLASSES, spec={"controller": "x"}))[0].endswith(
        'must be a domain-prefixed path (such as "acme.io/foo")'
    )
    assert update_errors(CLASSES, good, {"spec": {"controller": "example.com/y"}})


def policy(spec: Object) -> Object:
    return named(POLICIES, spec=spec)


def test_network_policies() -> None:
    new = created(POLICIES, policy({"egress": [{"ports": [{"port": 53}]}]}))
    assert new["spec"]["policyTypes"] == ["Ingress", "Egress"]
    assert new["spec"]["egress"][0]["ports"][0]["protocol"] == "TCP"


@pytest.mark.parametrize(
    ("rule", "error"),
    [
        ({"from": [{}]}, "from[0]: Required value: must specify a peer"),
        (
            {"from": [{"ipBlock": {"cidr": "10.0.0.0/8", "except": ["11.0.0.0/16"]}}]},
            'from[0].ipBlock.except[0]: Invalid value: "11.0.0.0/16": must be a strict subset of',
        ),
        ({"from": [{"ipBlock": {"cidr": "x"}}]}, 'from[0].ipBlock.cidr: Invalid value: "x"'),
        (
            {"from": [{"ipBlock": {"cidr": "10.0.0.0/8"}, "podSelector": {}}]},
            "from[0]: Forbidden: may not specify both ipBlock and another peer",
        ),
        ({"ports": [{"port": 80, "endPort": 70}]}, "ports[0].endPort: Invalid value: 80: must be"),
        ({"ports": [{"endPort": 70}]}, "ports[0].endPort: Invalid value: 70: may not be specified"),
        (
            {"ports": [{"port": "a", "endPort": 7}]},
            "ports[0].endPort: Invalid value: 7: may not be",
        ),
    ],
)
def test_bad_network_policies_are_refused(rule: Object, error: str) -> None:
    errors = errors_of(POLICIES, policy({"ingress": [rule]}))
    assert any(found.startswith(f"spec.ingress[0].{error}") for found in errors), errors
