"""Claims get a class, and claims and volumes their protection, where pods run."""

from __future__ import annotations

from typing import Any

from tests.kit.server.harness import Server, serving

CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
CLASSES = "/apis/storage.k8s.io/v1/storageclasses"


def claim(name: str, **spec: Any) -> Any:
    wanted = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return {"metadata": {"name": name}, "spec": {**wanted, **spec}}


async def made(server: Server, path: str, body: Any) -> Any:
    reply = await server.request("POST", path, body)
    assert reply.status == 201, reply.body
    return reply.body


async def test_a_new_claim_without_a_class_gets_the_default_at_once() -> None:
    async with serving(runs_pods=True) as server:
        assert "storageClassName" not in (await made(server, CLAIMS, claim("before")))["spec"]
        marks = {"storageclass.kubernetes.io/is-default-class": "true"}
        body = {"metadata": {"name": "fast", "annotations": marks}, "provisioner": "p.example"}
        await made(server, CLASSES, body)
        assert (await made(server, CLAIMS, claim("a")))["spec"]["storageClassName"] == "fast"
        none = await made(server, CLAIMS, claim("none", storageClassName=""))
        assert none["spec"]["storageClassName"] == ""


async def test_claims_and_volumes_are_protected_once() -> None:
    async with serving(runs_pods=True) as server:
        first = claim("a")
        first["metadata"]["finalizers"] = ["example.com/mine", "kubernetes.io/pvc-protection"]
        assert (await made(server, CLAIMS, first))["metadata"]["finalizers"] == [
            "example.com/mine",
            "kubernetes.io/pvc-protection",
        ]
        spec = {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "hostPath": {"path": "/x"},
        }
        body = {"metadata": {"name": "v"}, "spec": spec}
        volume = await made(server, "/api/v1/persistentvolumes", body)
        assert volume["metadata"]["finalizers"] == ["kubernetes.io/pv-protection"]


async def test_where_no_pods_run_nothing_is_added() -> None:
    async with serving() as server:
        assert "finalizers" not in (await made(server, CLAIMS, claim("a")))["metadata"]
