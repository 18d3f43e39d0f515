"""What kubelets may write, and what taints a new node; sentences of kube-apiserver 1.32."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import orjson
import pytest

from skerry.server.http.message import Peer, Request, Response
from skerry.server.user import User
from tests.kit.server.harness import Server, serving

NODE = Peer(user=User("system:node:n1", groups=("system:nodes", "system:authenticated")))
NODES, PODS = "/api/v1/nodes", "/api/v1/namespaces/default/pods"
MIRROR = {"kubernetes.io/config.mirror": "x"}


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    async with serving(runs_pods=True) as made:
        account = {"metadata": {"name": "default"}}
        await made.create("/api/v1/namespaces/default/serviceaccounts", account)
        for name, node in (("mine", "n1"), ("other", "n2")):
            await made.create(PODS, pod(name, node))
        yield made


def pod(name: str, node: str = "n1", annotations: Any = None, **spec: Any) -> Any:
    containers = [{"name": "c", "image": "i"}]
    metadata = {"name": name, **({"annotations": annotations} if annotations else {})}
    return {"metadata": metadata, "spec": {"nodeName": node, "containers": containers, **spec}}


def node(name: str, *taints: Any) -> Any:
    return {"metadata": {"name": name}, "spec": {"taints": list(taints)}}


async def asked(
    server: Server, method: str, path: str, body: Any = None, kind: str = "application/json"
) -> tuple[int, str]:
    """Ask as the kubelet of n1; return the code and, of a refusal, the sentence."""
    raw = b"" if body is None else orjson.dumps(body)
    request = Request(method, path, "", {"content-type": kind}, raw, NODE)
    answer = await server.api.engine.handle(request)
    assert isinstance(answer, Response)
    assert isinstance(answer.body, bytes)
    return answer.status, orjson.loads(answer.body).get("message", "")


async def patched(server: Server, path: str, body: Any) -> tuple[int, str]:
    return await asked(server, "PATCH", path, body, "application/merge-patch+json")


async def test_a_kubelet_writes_its_own_node_without_what_others_decide(server: Server) -> None:
    labels = {"kubernetes.io/hostname": "n1", "x": "y", "node.kubernetes.io/kind": "a"}
    made = await asked(server, "POST", NODES, {"metadata": {"name": "n1", "labels": labels}})
    assert made == (201, "")
    text = 'nodes "n2" is forbidden: node "n1" is not allowed to modify node "n2"'
    assert await asked(server, "POST", NODES, {"metadata": {"name": "n2"}}) == (403, text)
    wrong = {"node-restriction.kubernetes.io/a": "b", "foo.kubernetes.io/x": "y"}
    text = "is not allowed to modify labels: foo.kubernetes.io/x, node-restriction.kubernetes.io/a"
    answer = await patched(server, f"{NODES}/n1", {"metadata": {"labels": wrong}})
    assert answer == (403, f'nodes "n1" is forbidden: {text}')
    assert await patched(server, f"{NODES}/n1", {"metadata": {"labels": {"mine": "1"}}}) == (
        200,
        "",
    )
    taints = {"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}}
    text = 'nodes "n1" is forbidden: node "n1" is not allowed to modify taints'
    assert await patched(server, f"{NODES}/n1", taints) == (403, text)


async def test_a_kubelet_makes_mirror_pods_of_its_node_only(server: Server) -> None:
    only = 'node "n1" can only create mirror pods'
    why = f'pod does not have "kubernetes.io/config.mirror" annotation, {only}'
    answer = await asked(server, "POST", PODS, pod("a"))
    assert answer == (403, f'pods "a" is forbidden: {why}')
    with_node = 'pods "a" is forbidden: node "n1" can only create pods with'
    assert await asked(server, "POST", PODS, pod("a", "n2", MIRROR)) == (
        403,
        f"{with_node} spec.nodeName set to itself",
    )
    assert await asked(server, "POST", PODS, pod("a", "n1", MIRROR)) == (
        403,
        f"{with_node} an owner reference set to itself",
    )
    made = (await server.create(NODES, {"metadata": {"name": "n1"}})).body
    owner = {"apiVersion": "v1", "kind": "Node", "name": "n1", "controller": True}
    owner["uid"] = made["metadata"]["uid"]
    volume = {"name": "v", "secret": {"secretName": "s"}}
    greedy = pod("a", "n1", MIRROR, volumes=[volume])
    greedy["metadata"]["ownerReferences"] = [owner]
    text = 'pods "a" is forbidden: node "n1" can not create pods that reference secrets'
    assert await asked(server, "POST", PODS, greedy) == (403, text)
    fine = pod("a", "n1", MIRROR)
    fine["metadata"]["ownerReferences"] = [owner]
    assert (await asked(server, "POST", PODS, fine))[0] == 201
    fine["metadata"] |= {"name": "b", "ownerReferences": [{**owner, "uid": "other"}]}
    assert "UID mismatch" in (await asked(server, "POST", PODS, fine))[1]


async def test_a_kubelet_ends_and_reports_pods_of_its_node_only(server: Server) -> None:
    only = 'pods "other" is forbidden: node "n1" can only'
    assert await asked(server, "DELETE", f"{PODS}/other") == (
        403,
        f"{only} delete pods with spec.nodeName set to itself",
    )
    status = {"status": {"phase": "Running"}}
    assert await patched(server, f"{PODS}/other/status", status) == (
        403,
        f"{only} update pod status for pods with spec.nodeName set to itself",
    )
    assert (await patched(server, f"{PODS}/mine/status", status))[0] == 200
    labels = {"metadata": {"labels": {"a": "b"}}}
    text = 'pods "mine" is forbidden: node "n1" cannot update labels through pod status'
    assert await patched(server, f"{PODS}/mine/status", labels) == (403, text)
    assert (await patched(server, f"{PODS}/mine", labels))[0] == 403
    assert (await asked(server, "DELETE", f"{PODS}/mine"))[0] == 200


async def test_a_kubelet_writes_sizes_of_claims_and_its_own_lease(server: Server) -> None:
    claims = "/api/v1/namespaces/default/persistentvolumeclaims"
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    await server.create(claims, {"metadata": {"name": "c"}, "spec": spec})
    size = {"status": {"capacity": {"storage": "2Gi"}}}
    assert (await patched(server, f"{claims}/c/status", size))[0] == 200
    answer = await patched(server, f"{claims}/c/status", {"status": {"phase": "Lost"}})
    assert "is not allowed to update fields other than status.quantity" in answer[1]
    leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
    assert (await asked(server, "POST", leases, {"metadata": {"name": "n1"}}))[0] == 201
    text = "can only access node lease with the same name as the requesting node"
    answer = await asked(server, "POST", leases, {"metadata": {"name": "n2"}})
    assert answer == (403, f'leases.coordination.k8s.io "n2" is forbidden: {text}')


async def test_a_new_node_is_tainted_once_until_somebody_finds_it_ready(server: Server) -> None:
    own = {"key": "gpu", "effect": "NoSchedule"}
    taint = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
    made = (await server.create(NODES, node("a", own))).body
    assert made["spec"]["taints"] == [own, taint]
    dated = {**taint, "timeAdded": "2026-01-01T00:00:00Z"}
    made = (await server.create(NODES, node("b", dated))).body
    assert made["spec"]["taints"] == [dated]
    del made["spec"]["taints"]
    reply = await server.put(f"{NODES}/b", made)
    assert "taints" not in reply.body["spec"]
