"""kubectl delete: grace, finalizers, cascades and namespaces."""

from __future__ import annotations

from typing import Any

from tests.kit.e2e.manifests import config_map, deployment, pod
from tests.kit.e2e.processes import Kubectl


def owned(kubectl: Kubectl, owner: str, name: str) -> dict[str, Any]:
    """A ConfigMap that belongs to the ConfigMap *owner*."""
    uid = kubectl("get", "cm", owner, "-o", "jsonpath={.metadata.uid}").out
    manifest = config_map(name)
    manifest["metadata"]["ownerReferences"] = [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "name": owner,
            "uid": uid,
            "blockOwnerDeletion": True,
        }
    ]
    return manifest


def family(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=config_map("parent"))
    kubectl("create", "-f", "-", stdin=owned(kubectl, "parent", "child"))


def test_deleting_by_name_label_file_and_all(kubectl: Kubectl) -> None:
    maps = [config_map(name) for name in "abcd"]
    maps[1]["metadata"]["labels"] = {"x": "z"}
    kubectl("create", "-f", "-", stdin=maps)
    assert kubectl("delete", "cm", "a").out == 'configmap "a" deleted\n'
    assert kubectl("delete", "cm", "-l", "x=z").out == 'configmap "b" deleted\n'
    assert kubectl("delete", "-f", "-", stdin=maps[2]).out == 'configmap "c" deleted\n'
    assert 'configmap "d" deleted' in kubectl("delete", "cm", "--all").out
    assert "NotFound" in kubectl("delete", "cm", "a", fails=1).err
    assert kubectl("delete", "cm", "a", "--ignore-not-found").out == ""


def test_background_deletion_takes_the_dependents_with_it(kubectl: Kubectl) -> None:
    family(kubectl)
    kubectl("delete", "cm", "parent", "--cascade=background")
    kubectl("wait", "--for=delete", "cm/child", "--timeout=60s")


def test_foreground_deletion_waits_for_the_dependents(kubectl: Kubectl) -> None:
    family(kubectl)
    holding = '{"metadata":{"finalizers":["example.org/hold"]}}'
    kubectl("patch", "cm", "child", "--type=merge", "-p", holding)
    kubectl("delete", "cm", "parent", "--cascade=foreground", "--wait=false")
    kubectl.until("Z", "get", "cm", "child", "-o", "jsonpath={.metadata.deletionTimestamp}")
    parent = kubectl.json("get", "cm", "parent")["metadata"]
    assert parent["finalizers"] == ["foregroundDeletion"]
    letting_go = '{"metadata":{"finalizers":null}}'
    kubectl("patch", "cm", "child", "--type=merge", "-p", letting_go)
    kubectl("wait", "--for=delete", "cm/parent", "--timeout=60s")


def test_orphaning_deletion_leaves_the_dependents_alone(kubectl: Kubectl) -> None:
    family(kubectl)
    kubectl("delete", "cm", "parent", "--cascade=orphan")
    assert "ownerReferences" not in kubectl.json("get", "cm", "child")["metadata"]


def test_a_finalizer_holds_the_object_until_it_goes(kubectl: Kubectl) -> None:
    manifest = config_map("c")
    manifest["metadata"]["finalizers"] = ["example.org/hold"]
    kubectl("create", "-f", "-", stdin=manifest)
    kubectl("delete", "cm", "c", "--wait=false")
    assert "deletionTimestamp" in kubectl.json("get", "cm", "c")["metadata"]
    letting_go = '[{"op":"remove","path":"/metadata/finalizers"}]'
    kubectl("patch", "cm", "c", "--type=json", "-p", letting_go)
    assert kubectl("get", "cm", "c", "--ignore-not-found").out == ""


def test_a_pod_on_a_node_gets_its_grace_and_force_ends_it(kubectl: Kubectl) -> None:
    manifest = pod("solo")
    manifest["spec"]["nodeName"] = "somewhere"
    kubectl("create", "-f", "-", stdin=manifest)
    kubectl("delete", "pod", "solo", "--wait=false")
    metadata = kubectl.json("get", "pod", "solo")["metadata"]
    assert metadata["deletionGracePeriodSeconds"] == 30
    assert kubectl.rows("get", "pod", "solo")[1][2] == "Terminating"
    result = kubectl("delete", "pod", "solo", "--grace-period=0", "--force")
    assert "Immediate deletion does not wait" in result.err
    assert kubectl("get", "pod", "solo", "--ignore-not-found").out == ""


def test_a_namespace_goes_with_everything_in_it(admin: Kubectl, namespace: str) -> None:
    admin("create", "namespace", namespace)
    inside = admin.within(namespace)
    inside("create", "-f", "-", stdin=[deployment("web"), config_map("c"), pod("solo")])
    admin("delete", "namespace", namespace, "--timeout=60s")
    assert admin("get", "namespace", namespace, "--ignore-not-found").out == ""
    assert "No resources found" in inside("get", "deployments,pods,cm").err


def test_a_namespace_says_what_it_is_waiting_for(admin: Kubectl, namespace: str) -> None:
    admin("create", "namespace", namespace)
    inside = admin.within(namespace)
    manifest = config_map("held")
    manifest["metadata"]["finalizers"] = ["example.org/hold"]
    inside("create", "-f", "-", stdin=manifest)
    admin("delete", "namespace", namespace, "--wait=false")
    path = "jsonpath={.status.conditions[?(@.type=='NamespaceFinalizersRemaining')].message}"
    admin.until("example.org/hold in 1 resource instances", "get", "ns", namespace, "-o", path)
    refused = inside("create", "configmap", "late", fails=1).err
    assert "because it is being terminated" in refused
    inside("patch", "cm", "held", "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
    admin("wait", "--for=delete", f"namespace/{namespace}", "--timeout=60s")


def test_the_namespaces_of_the_system_cannot_be_deleted(admin: Kubectl) -> None:
    result = admin("delete", "namespace", "kube-system", fails=1).err
    assert '(Forbidden): namespaces "kube-system" is forbidden: this namespace may not be' in result


def test_drain_evicts_and_respects_budgets(kubectl: Kubectl, admin: Kubectl) -> None:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": kubectl.namespace}}
    admin("create", "-f", "-", stdin=node)
    manifest = pod("solo", app="x")
    manifest["spec"]["nodeName"] = kubectl.namespace
    kubectl("create", "-f", "-", stdin=manifest)
    running = '{"status":{"phase":"Running"}}'
    kubectl("patch", "pod", "solo", "--subresource=status", "--type=merge", "-p", running)
    kubectl("create", "pdb", "keep", "--selector=app=x", "--min-available=1")
    seen = '{"status":{"observedGeneration":1,"desiredHealthy":1,"currentHealthy":0}}'
    kubectl("patch", "pdb", "keep", "--subresource=status", "--type=merge", "-p", seen)
    result = admin("drain", kubectl.namespace, "--force", "--timeout=1s", fails=1)
    assert "Cannot evict pod as it would violate the pod's disruption budget" in result.err
    kubectl("delete", "pdb", "keep")
    admin("drain", kubectl.namespace, "--force", "--grace-period=0", "--timeout=60s")
    assert kubectl("get", "pod", "solo", "--ignore-not-found").out == ""
    assert admin.json("get", "node", kubectl.namespace)["spec"]["unschedulable"] is True
    admin("uncordon", kubectl.namespace)
