"""Services: what is filled in, what an update keeps and drops, and what is refused."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from skerry.api.objects import Object
from skerry.logic.machinery.builtin.services import ingress_point_errors, is_headless
from tests.kit.machinery.objects import created, errors_of, merged, named, resource, update_errors

SERVICES = resource("services")


def service(**spec: Any) -> Object:
    return named(SERVICES, spec={"ports": [{"port": 80}], **spec})


def made(**spec: Any) -> Object:
    found: Object = created(SERVICES, service(**spec))["spec"]
    return found


def wrong(**spec: Any) -> list[str]:
    return errors_of(SERVICES, service(**spec))


def fields(**spec: Any) -> list[str]:
    return [text.split(": ")[0] for text in wrong(**spec)]


def updated(old: Object, change: Object) -> Object:
    """Return the spec of *old* once *change* has been laid over it and prepared."""
    before = created(SERVICES, old)
    after = merged(before, {"spec": change})
    SERVICES.default(after)
    SERVICES.prepare_update(after, before)
    spec: Object = after["spec"]
    return spec


def test_a_minimal_service_is_filled_in() -> None:
    assert made() == {
        "type": "ClusterIP",
        "sessionAffinity": "None",
        "internalTrafficPolicy": "Cluster",
        "ipFamilies": ["IPv4"],
        "ipFamilyPolicy": "SingleStack",
        "ports": [{"port": 80, "protocol": "TCP", "targetPort": 80}],
    }


def test_a_load_balancer_gets_node_ports_and_a_policy_for_traffic_from_outside() -> None:
    spec = made(type="LoadBalancer")
    assert spec["allocateLoadBalancerNodePorts"] is True
    assert spec["externalTrafficPolicy"] == "Cluster"
    assert "externalTrafficPolicy" not in made(type="ClusterIP")
    assert made(externalIPs=["192.0.2.1"])["externalTrafficPolicy"] == "Cluster"


def test_affinity_lasts_three_hours_unless_said() -> None:
    spec = made(sessionAffinity="ClientIP")
    assert spec["sessionAffinityConfig"] == {"clientIP": {"timeoutSeconds": 10800}}
    assert "sessionAffinityConfig" not in made(
        sessionAffinityConfig={"clientIP": {"timeoutSeconds": 1}}
    )


def test_families_follow_the_first_address() -> None:
    spec = made(clusterIP="fd00::1")
    assert (spec["clusterIPs"], spec["ipFamilies"]) == (["fd00::1"], ["IPv6"])


def test_a_headless_service_without_a_selector_speaks_both_families() -> None:
    spec = made(clusterIP="None")
    assert (spec["ipFamilies"], spec["ipFamilyPolicy"]) == (["IPv4", "IPv6"], "RequireDualStack")
    assert made(clusterIP="None", selector={"a": "b"})["ipFamilies"] == ["IPv4"]


@pytest.mark.parametrize(
    ("spec", "headless"),
    [
        ({"clusterIP": "None"}, True),
        ({"clusterIPs": ["None"]}, True),
        ({"clusterIP": "10.0.0.1"}, False),
        ({}, False),
    ],
)
def test_no_address_is_asked_for_by_its_name(spec: Object, headless: bool) -> None:
    assert is_headless({"spec": spec}) is headless


def test_the_status_a_client_claims_is_dropped() -> None:
    obj = service(type="LoadBalancer")
    obj["status"] = {"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}}
    assert created(SERVICES, obj)["status"] == {"loadBalancer": {}}


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"ports": []}, "spec.ports"),
        ({"type": "Magic"}, "spec.type"),
        ({"selector": {"a b": "c"}}, "spec.selector"),
        ({"sessionAffinity": "Strong"}, "spec.sessionAffinity"),
        ({"externalIPs": ["127.0.0.1"]}, "spec.externalIPs[0]"),
        ({"externalIPs": ["a.example"]}, "spec.externalIPs[0]"),
        ({"internalTrafficPolicy": "x"}, "spec.internalTrafficPolicy"),
        ({"externalTrafficPolicy": "Local"}, "spec.externalTrafficPolicy"),
        ({"type": "NodePort", "externalTrafficPolicy": "x"}, "spec.externalTrafficPolicy"),
        ({"healthCheckNodePort": 30000}, "spec.healthCheckNodePort"),
        ({"trafficDistribution": "PreferFar"}, "spec.trafficDistribution"),
        ({"allocateLoadBalancerNodePorts": True}, "spec.allocateLoadBalancerNodePorts"),
        ({"loadBalancerClass": "a.com/b"}, "spec.loadBalancerClass"),
        ({"type": "LoadBalancer", "loadBalancerClass": "a b"}, "spec.loadBalancerClass"),
        ({"loadBalancerSourceRanges": ["10.0.0.0/8"]}, "spec.LoadBalancerSourceRanges"),
        (
            {"type": "LoadBalancer", "loadBalancerSourceRanges": ["10.0.0.0"]},
            "spec.LoadBalancerSourceRanges[0]",
        ),
        ({"type": "NodePort", "clusterIP": "None"}, "spec.clusterIPs[0]"),
        ({"ipFamilyPolicy": "Triple"}, "spec.ipFamilyPolicy"),
        ({"ipFamilies": ["IPv5"]}, "spec.ipFamilies[0]"),
        ({"ipFamilies": ["IPv4", "IPv4"]}, "spec.ipFamilies[1]"),
        ({"clusterIPs": ["10.0.0.1"]}, "spec.clusterIPs"),
        ({"clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.2"]}, "spec.clusterIPs"),
        ({"clusterIP": "10.0.0.1", "ipFamilies": ["IPv6"]}, "spec.clusterIPs[0]"),
        ({"clusterIP": "ten", "ipFamilies": ["IPv4"]}, "spec.clusterIPs[0]"),
        ({"clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1", "10.0.0.2"]}, "spec.clusterIPs"),
        ({"clusterIP": "None", "clusterIPs": ["None", "10.0.0.1"]}, "spec.clusterIPs"),
    ],
)
def test_each_field_has_its_form_and_its_type(spec: Object, field: str) -> None:
    assert fields(**spec) == [field]


@pytest.mark.parametrize(
    "spec",
    [
        {"type": "LoadBalancer", "loadBalancerSourceRanges": [" 10.0.0.0/8 "]},
        {"clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1", "fd00::1"]},
        {"type": "LoadBalancer", "externalTrafficPolicy": "Local", "healthCheckNodePort": 30000},
        {"trafficDistribution": "PreferClose"},
        {"clusterIP": "None", "ports": []},
        {"type": "ExternalName", "externalName": "a.example.", "ports": []},
    ],
)
def test_what_is_in_form_passes(spec: Object) -> None:
    assert wrong(**spec) == []


def test_an_external_name_has_a_name_and_no_addresses() -> None:
    assert fields(type="ExternalName") == ["spec.externalName"]
    assert fields(type="ExternalName", externalName="a b") == ["spec.externalName"]
    assert fields(
        type="ExternalName", externalName="a.b", clusterIP="10.0.0.1", ipFamilyPolicy="SingleStack"
    ) == ["spec.clusterIPs", "spec.ipFamilyPolicy"]


@pytest.mark.parametrize(
    ("ports", "found"),
    [
        ([{"port": 80}, {"port": 81}], ["spec.ports[0].name", "spec.ports[1].name"]),
        ([{"port": 80, "name": "a"}, {"port": 81, "name": "a"}], ["spec.ports[1].name"]),
        ([{"port": 80, "name": "a"}, {"port": 80, "name": "b"}], ["spec.ports[1]"]),
        ([{"port": 80, "name": "a"}, {"port": 80, "name": "b", "protocol": "UDP"}], []),
        ([{"port": 80, "name": "UP"}], ["spec.ports[0].name"]),
        ([{"port": 65536, "targetPort": 1}], ["spec.ports[0].port"]),
        ([{"port": 80, "targetPort": "no good"}], ["spec.ports[0].targetPort"]),
        ([{"port": 80, "protocol": "ICMP"}], ["spec.ports[0].protocol"]),
        ([{"port": 80, "appProtocol": "a b"}], ["spec.ports[0].appProtocol"]),
        ([{"port": 80, "nodePort": 30000}], ["spec.ports[0].nodePort"]),
    ],
)
def test_ports_differ(ports: list[Object], found: list[str]) -> None:
    assert fields(ports=ports) == found


def test_a_port_of_the_node_is_taken_once() -> None:
    ports = [
        {"port": 80, "name": "a", "nodePort": 30000},
        {"port": 81, "name": "b", "nodePort": 30000},
        {"port": 82, "name": "c", "nodePort": 30000, "protocol": "UDP"},
    ]
    assert fields(type="NodePort", ports=ports) == ["spec.ports[1].nodePort"]


def test_the_kubelets_port_is_not_exposed_by_a_load_balancer() -> None:
    assert fields(type="LoadBalancer", ports=[{"port": 10250}]) == ["spec.ports[0]"]
    assert wrong(type="NodePort", ports=[{"port": 10250}]) == []


@pytest.mark.parametrize(
    ("seconds", "good"), [(0, False), (1, True), (86400, True), (86401, False)]
)
def test_affinity_lasts_at_most_a_day(seconds: int, good: bool) -> None:
    config = {"clientIP": {"timeoutSeconds": seconds}}
    assert (wrong(sessionAffinity="ClientIP", sessionAffinityConfig=config) == []) is good


def test_source_ranges_may_stand_in_an_annotation() -> None:
    key = "service.beta.kubernetes.io/load-balancer-source-ranges"

    def of(text: str, kind: str) -> list[str]:
        obj = service(type=kind)
        obj["metadata"]["annotations"] = {key: text}
        return errors_of(SERVICES, obj)

    assert of("10.0.0.0/8, 10.1.0.0/16", "LoadBalancer") == []
    assert len(of("10.0.0.0/8,ten", "LoadBalancer")) == 1
    (text,) = of("10.0.0.0/8", "ClusterIP")
    assert (
        text
        == f"metadata.annotations[{key}]: Forbidden: may only be used when `type` is 'LoadBalancer'"
    )


def test_an_update_that_leaves_addresses_out_keeps_them() -> None:
    spec = updated(service(clusterIP="10.0.0.1"), {"clusterIP": None, "clusterIPs": None})
    assert (spec["clusterIP"], spec["clusterIPs"]) == ("10.0.0.1", ["10.0.0.1"])
    families = updated(service(clusterIP="10.0.0.1"), {"ipFamilies": None, "ipFamilyPolicy": None})
    assert (families["ipFamilies"], families["ipFamilyPolicy"]) == (["IPv4"], "SingleStack")


def test_a_client_that_knows_one_address_speaks_for_the_list() -> None:
    spec = updated(service(clusterIP="None"), {"clusterIP": "10.0.0.1"})
    assert spec["clusterIPs"] == ["10.0.0.1"]


def test_an_update_keeps_node_ports_by_protocol_and_port() -> None:
    old = service(type="NodePort", ports=[{"port": 80, "nodePort": 30080}])
    assert updated(old, {"ports": [{"port": 80}]})["ports"][0]["nodePort"] == 30080
    assert "nodePort" not in updated(old, {"ports": [{"port": 81}]})["ports"][0]
    other = updated(old, {"ports": [{"port": 80, "nodePort": 30081}]})
    assert other["ports"][0]["nodePort"] == 30081


def test_a_change_of_type_forgets_what_belonged_to_the_former() -> None:
    old = service(
        type="LoadBalancer",
        loadBalancerClass="a.com/b",
        clusterIP="10.0.0.1",
        ports=[{"port": 80, "nodePort": 30080}],
    )
    spec = updated(old, {"type": "ClusterIP"})
    assert "nodePort" not in spec["ports"][0]
    for field in ("loadBalancerClass", "allocateLoadBalancerNodePorts", "externalTrafficPolicy"):
        assert field not in spec
    assert spec["clusterIP"] == "10.0.0.1"
    named_ = updated(old, {"type": "ExternalName", "externalName": "a.b"})
    for field in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"):
        assert field not in named_


def test_an_address_once_given_stays() -> None:
    old = service(clusterIP="10.0.0.1")
    (text,) = update_errors(
        SERVICES, old, {"spec": {"clusterIP": "10.0.0.2", "clusterIPs": ["10.0.0.2"]}}
    )
    assert text.endswith("may not change once set")
    assert update_errors(SERVICES, old, {"spec": {"type": "NodePort"}}) == []


def test_a_second_address_stays_or_is_released_by_policy() -> None:
    both = ["10.0.0.1", "fd00::1"]
    old = service(clusterIP="10.0.0.1", clusterIPs=both, ipFamilyPolicy="PreferDualStack")
    change: Object = {"clusterIPs": ["10.0.0.1", "fd00::2"]}
    assert any("spec.clusterIPs[1]" in t for t in update_errors(SERVICES, old, {"spec": change}))
    change = {"clusterIPs": ["10.0.0.1"], "ipFamilies": ["IPv4"]}
    (text,) = update_errors(SERVICES, old, {"spec": change})
    assert text.endswith("when releasing the secondary clusterIP")
    single = {**change, "ipFamilyPolicy": "SingleStack"}
    assert update_errors(SERVICES, old, {"spec": single}) == []


def test_the_class_of_a_load_balancer_and_its_health_port_stay() -> None:
    old = service(
        type="LoadBalancer",
        loadBalancerClass="a.com/b",
        externalTrafficPolicy="Local",
        healthCheckNodePort=30000,
    )
    texts = update_errors(
        SERVICES, old, {"spec": {"loadBalancerClass": "a.com/c", "healthCheckNodePort": 30001}}
    )
    assert [text.split(": ")[0] for text in texts] == [
        "spec.loadBalancerClass",
        "spec.healthCheckNodePort",
    ]


@pytest.mark.parametrize(
    ("point", "found"),
    [
        ({"ip": "192.0.2.1"}, []),
        ({"hostname": "lb.example"}, []),
        ({"ip": "lb"}, ["p[0].ip"]),
        ({"hostname": "192.0.2.1"}, ["p[0].hostname"]),
        ({"hostname": "a b"}, ["p[0].hostname"]),
    ],
)
def test_a_balancer_reports_addresses_and_names_apart(point: Object, found: list[str]) -> None:
    assert [error.field for error in ingress_point_errors([point], "p")] == found


def test_only_a_load_balancer_reports_where_it_is_reached() -> None:
    old = created(SERVICES, service())
    new = deepcopy(old)
    new["status"] = {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}
    (error,) = SERVICES.validate_status(new, old)
    assert error.message.endswith("may only be used when `spec.type` is 'LoadBalancer'")
    new["spec"]["type"] = "LoadBalancer"
    assert SERVICES.validate_status(new, old) == []
