"""Plans of mirrored Endpoints: applying one reaches the goal, and a second plan is empty."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.api.objects import Object
from skerry.controllers.workload.endpointslice_mirroring import Observed, decide, is_mirrored
from tests.kit.workloads import Objects

PORTS = [{"name": "http", "port": 80, "protocol": "TCP"}]


def endpoints(*subsets: Object, **metadata: Any) -> Object:
    return {
        "metadata": {"name": "db", "namespace": "ns", "uid": "e", **metadata},
        "subsets": list(subsets),
    }


def mirrored(given: Object | None, objects: Objects) -> list[Object]:
    objects.apply(decide(Observed(given, tuple(objects.of("endpointslices")))))
    found = objects.of("endpointslices")
    assert not decide(Observed(given, tuple(found))), "nothing is left to do"
    return list(found)


def test_each_subset_and_family_has_a_slice() -> None:
    reference = {"kind": "Pod", "name": "p", "namespace": "ns"}
    given = endpoints(
        {
            "addresses": [{"ip": "10.1.2.3", "nodeName": "n", "targetRef": reference}],
            "notReadyAddresses": [{"ip": "10.1.2.4", "hostname": "h"}, {"ip": "fd00::1"}],
            "ports": PORTS,
        },
        {"addresses": [{"ip": "10.1.2.3"}], "ports": [{"port": 81, "protocol": "UDP"}]},
        labels={"app": "db"},
        annotations={"a": "b", "kubectl.kubernetes.io/last-applied-configuration": "{}"},
    )
    slices = mirrored(given, Objects())
    shown = sorted((each["addressType"], each["ports"][0]["port"]) for each in slices)
    assert shown == [("IPv4", 80), ("IPv4", 81), ("IPv6", 80)]
    (first,) = [each for each in slices if len(each["endpoints"]) == 2]
    assert first["endpoints"] == [
        {
            "addresses": ["10.1.2.3"],
            "conditions": {"ready": True},
            "nodeName": "n",
            "targetRef": reference,
        },
        {"addresses": ["10.1.2.4"], "conditions": {"ready": False}, "hostname": "h"},
    ]
    assert first["metadata"]["labels"] == {
        "app": "db",
        "kubernetes.io/service-name": "db",
        "endpointslice.kubernetes.io/managed-by": "endpointslicemirroring-controller.k8s.io",
    }
    assert first["metadata"]["annotations"] == {"a": "b"}
    assert first["metadata"]["ownerReferences"][0]["kind"] == "Endpoints"


def test_subsets_of_the_same_ports_are_shown_together() -> None:
    given = endpoints(
        {"addresses": [{"ip": "10.1.2.3"}], "ports": PORTS},
        {"addresses": [{"ip": "10.1.2.4"}], "ports": PORTS},
    )
    (found,) = mirrored(given, Objects())
    assert [each["addresses"] for each in found["endpoints"]] == [["10.1.2.3"], ["10.1.2.4"]]


def test_more_than_a_slice_may_hold_is_spread_over_several() -> None:
    subsets = [
        {"addresses": [{"ip": f"10.{n}.{k // 256}.{k % 256}"} for k in range(700)], "ports": PORTS}
        for n in range(2)
    ]
    found = mirrored(endpoints(*subsets), Objects())
    assert sorted(len(each["endpoints"]) for each in found) == [400, 1000]


def test_slices_follow_the_endpoints_and_go_with_them() -> None:
    objects = Objects()
    (before,) = mirrored(endpoints({"addresses": [{"ip": "10.1.2.3"}], "ports": PORTS}), objects)
    (after,) = mirrored(endpoints({"addresses": [{"ip": "10.2.3.4"}], "ports": PORTS}), objects)
    assert after["metadata"]["name"] == before["metadata"]["name"]
    assert after["endpoints"][0]["addresses"] == ["10.2.3.4"]
    assert mirrored(None, objects) == []


@pytest.mark.parametrize(
    ("metadata", "service", "wanted"),
    [
        ({}, {"spec": {}}, True),
        ({}, None, False),
        ({}, {"spec": {"selector": {"app": "db"}}}, False),
        ({"labels": {"endpointslice.kubernetes.io/skip-mirror": "true"}}, {"spec": {}}, False),
        ({"annotations": {"control-plane.alpha.kubernetes.io/leader": ""}}, {"spec": {}}, False),
    ],
)
def test_only_what_people_keep_for_a_service_is_mirrored(
    metadata: Object, service: Object | None, wanted: bool
) -> None:
    assert is_mirrored(endpoints(**metadata), service) is wanted
