"""Names of a cluster, as its DNS specification says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from skerry.edge.agent.service_names import ServiceNames
from skerry.wire.dns import CNAME, SRV, A, Record

SERVICES: dict[tuple[str, str], Any] = {
    ("shop", "web"): {
        "clusterIP": "10.0.0.1",
        "ports": [{"name": "http", "port": 80}, {"name": "dns", "port": 53, "protocol": "UDP"}],
    },
    ("shop", "db"): {"clusterIP": "None"},
    ("shop", "all"): {"clusterIP": "None", "publishNotReadyAddresses": True},
    ("shop", "out"): {"type": "ExternalName", "externalName": "a.example"},
}
ENDPOINTS = [
    {"hostname": "db-0", "addresses": ["10.1.0.1"]},
    {"addresses": ["10.1.0.2"], "conditions": {"ready": False}},
]


def records(name: str) -> Sequence[Record] | None:
    def service(namespace: str, found: str) -> Any:
        spec = SERVICES.get((namespace, found))
        return None if spec is None else {"spec": spec}

    names = ServiceNames(service, lambda *_: [{"endpoints": ENDPOINTS}, {"endpoints": None}])
    return names.records(name)


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("web.shop.svc.cluster.local", [Record(A, "10.0.0.1")]),
        ("db.shop.svc.cluster.local", [Record(A, "10.1.0.1")]),
        ("all.shop.svc.cluster.local", [Record(A, "10.1.0.2"), Record(A, "10.1.0.1")]),
        ("out.shop.svc.cluster.local", [Record(CNAME, "a.example")]),
        ("db-0.db.shop.svc.cluster.local", [Record(A, "10.1.0.1")]),
        # A host keeps its name while it is not ready.
        ("10-1-0-2.db.shop.svc.cluster.local", [Record(A, "10.1.0.2")]),
        ("_http._tcp.web.shop.svc.cluster.local",
         [Record(SRV, "web.shop.svc.cluster.local", 80)]),
        ("_dns._udp.web.shop.svc.cluster.local",
         [Record(SRV, "web.shop.svc.cluster.local", 53)]),
        ("10-1-0-9.shop.pod.cluster.local", [Record(A, "10.1.0.9")]),
        ("cluster.local", []),
        ("svc.cluster.local", []),
    ],
)  # fmt: skip
def test_what_a_name_stands_for(name: str, found: list[Record]) -> None:
    assert list(records(name) or []) == found
    assert records(name) is not None


@pytest.mark.parametrize(
    "name",
    [
        "a.example",
        "notcluster.local",
        "nobody.shop.svc.cluster.local",
        "web.other.svc.cluster.local",
        "db-9.db.shop.svc.cluster.local",
        "_http._udp.web.shop.svc.cluster.local",
        "_x._tcp.web.shop.svc.cluster.local",
        "a.b.c.d.e.svc.cluster.local",
        "10-1-0.shop.pod.cluster.local",
        "shop.pod.cluster.local",
        "web.shop.node.cluster.local",
    ],
)
def test_nobody_has_these(name: str) -> None:
    assert records(name) is None
