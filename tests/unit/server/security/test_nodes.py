"""What kubelets may do; the reasons are those that kube-apiserver 1.32 gave."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.api.keys import ObjectKey
from skerry.server.access import Attributes, Decision
from skerry.server.security.nodes import NodeAuthorizer, NodeGraph, node_of
from skerry.server.user import User

NODE = User("system:node:n1", groups=("system:nodes", "system:authenticated"))
UNRELATED = "no relationship found between node 'n1' and this object"


class Nobody:
    def authorize(self, user: User, attributes: Attributes) -> Decision:
        return Decision(False, "RBAC")


def pod(name: str, node: str = "n1", **more: Any) -> Any:
    volumes = [
        {"name": "a", "secret": {"secretName": "used"}},
        {"name": "b", "persistentVolumeClaim": {"claimName": "claim"}},
    ]
    spec = {"nodeName": node, "serviceAccountName": "account", "volumes": volumes}
    return {"metadata": {"name": name, **more}, "spec": {**spec, "containers": []}}


def key(name: str, resource: str = "pods", namespace: str = "ns") -> ObjectKey:
    return ObjectKey("", resource, "", namespace, name)


@pytest.fixture
def graph() -> NodeGraph:
    made = NodeGraph()
    made.pod(key("p"), pod("p"))
    source = {"driver": "d", "nodeStageSecretRef": {"namespace": "csi", "name": "staged"}}
    claim = {"namespace": "ns", "name": "claim"}
    volume = {"metadata": {"name": "v"}, "spec": {"claimRef": claim, "csi": source}}
    made.volume(key("v", "persistentvolumes", ""), volume)
    made.attachment(key("a", "volumeattachments", ""), {"spec": {"nodeName": "n1"}})
    return made


def asked(graph: NodeGraph, verb: str, what: str, where: str = "ns", **more: str) -> Decision:
    group, _, path = what.rpartition(":")
    resource, _, rest = path.partition("/")
    name, _, subresource = rest.partition("/")
    attributes = Attributes(
        "", verb, group, "v1", resource, subresource, where, name, selected_node=more.get("on", "")
    )
    return NodeAuthorizer(graph, Nobody()).authorize(NODE, attributes)


@pytest.mark.parametrize(
    ("verb", "what", "where"),
    [
        ("get", "secrets/used", "ns"),
        ("watch", "secrets/used", "ns"),
        ("get", "secrets/staged", "csi"),
        ("get", "persistentvolumeclaims/claim", "ns"),
        ("patch", "persistentvolumeclaims/claim/status", "ns"),
        ("get", "persistentvolumes/v", ""),
        ("get", "storage.k8s.io:volumeattachments/a", ""),
        ("create", "serviceaccounts/account/token", "ns"),
        ("get", "pods/p", "ns"),
        ("update", "pods/p/status", "ns"),
        ("create", "pods/p/eviction", "ns"),
        ("get", "nodes/n1", ""),
        ("patch", "nodes/n1/status", ""),
        ("create", "coordination.k8s.io:leases", "kube-node-lease"),
        ("update", "coordination.k8s.io:leases/n1", "kube-node-lease"),
        ("get", "storage.k8s.io:csinodes/n1", ""),
        ("list", "services", ""),
        ("create", "events", "ns"),
        ("create", "certificates.k8s.io:certificatesigningrequests", ""),
    ],
)
def test_what_its_pods_need_is_allowed(graph: NodeGraph, verb: str, what: str, where: str) -> None:
    assert asked(graph, verb, what, where).allowed


@pytest.mark.parametrize(
    ("verb", "what", "where", "reason"),
    [
        ("get", "secrets/unused", "ns", UNRELATED),
        ("get", "secrets/used", "other", UNRELATED),
        ("list", "secrets", "ns", "No Object name found"),
        ("list", "secrets", "", "can only read namespaced object of this type"),
        ("update", "secrets/used", "ns", "can only read resources of this type"),
        ("list", "persistentvolumes", "", "can only get individual resources of this type"),
        ("get", "persistentvolumes/w", "", UNRELATED),
        ("create", "serviceaccounts/default/token", "ns", UNRELATED),
        (
            "get",
            "serviceaccounts/account",
            "ns",
            "can only create tokens for individual service accounts",
        ),
        ("list", "nodes", "", "node 'n1' cannot read all nodes, only its own Node object"),
        ("get", "nodes/n2", "", "node 'n1' cannot read 'n2', only its own Node object"),
        ("delete", "nodes/n1", "", "RBAC"),
        ("list", "pods", "", "can only list/watch pods with spec.nodeName field selector"),
        ("get", "pods/q", "ns", UNRELATED),
        (
            "get",
            "coordination.k8s.io:leases/n2",
            "kube-node-lease",
            "can only access node lease with the same name as the requesting node",
        ),
        (
            "get",
            "coordination.k8s.io:leases/n1",
            "ns",
            'can only access leases in the "kube-node-lease" system namespace',
        ),
        ("list", "apps:deployments", "ns", "RBAC"),
    ],
)
def test_what_they_do_not_need_is_not(
    graph: NodeGraph, verb: str, what: str, where: str, reason: str
) -> None:
    assert asked(graph, verb, what, where) == Decision(False, reason)


def test_pods_are_listed_by_their_node(graph: NodeGraph) -> None:
    assert asked(graph, "list", "pods", "", on="n1").allowed
    assert not asked(graph, "watch", "pods", "", on="n2").allowed


def test_a_right_ends_with_the_last_pod_that_needs_it(graph: NodeGraph) -> None:
    graph.pod(key("q"), pod("q"))
    graph.pod(key("p"), None)
    assert asked(graph, "get", "secrets/used").allowed
    graph.pod(key("q"), pod("q", node="n2"))
    assert not asked(graph, "get", "secrets/used").allowed
    assert not asked(graph, "get", "persistentvolumes/v", "").allowed


def test_a_mirror_pod_gives_its_maker_no_rights() -> None:
    graph = NodeGraph()
    graph.pod(key("m"), pod("m", annotations={"kubernetes.io/config.mirror": "x"}))
    assert not asked(graph, "get", "secrets/used").allowed
    assert asked(graph, "get", "pods/m").allowed


def test_only_members_of_the_group_are_nodes() -> None:
    assert node_of(NODE) == "n1"
    assert node_of(User("system:node:n1")) is None
    assert node_of(User("jane", groups=("system:nodes",))) is None
