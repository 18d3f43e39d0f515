"""What kubelets may write: their own node and its pods (Kubernetes' NodeRestriction).

And what a new node has of the server: a taint until it is known to be ready.

A node that was broken into must not be able to draw pods to itself, to pose as another, or to read
by way of a pod of its own making what none of its pods needs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from skerry.api.errors import Forbidden
from skerry.api.keys import ObjectKey
from skerry.api.objects import Object, labels_of
from skerry.logic.machinery.pod_references import MIRROR, references
from skerry.server.admission.operation import Operation
from skerry.server.codec import decode
from skerry.server.request.call import Call
from skerry.server.security.nodes import node_of
from skerry.store.base import Store

_OWN_LABELS = frozenset(
    (
        "beta.kubernetes.io/arch",
        "beta.kubernetes.io/instance-type",
        "beta.kubernetes.io/os",
        "failure-domain.beta.kubernetes.io/region",
        "failure-domain.beta.kubernetes.io/zone",
        "kubernetes.io/arch",
        "kubernetes.io/hostname",
        "kubernetes.io/os",
        "node.kubernetes.io/instance-type",
        "topology.kubernetes.io/region",
        "topology.kubernetes.io/zone",
    )
)
_OWN_PREFIXES = ("kubelet.kubernetes.io", "node.kubernetes.io")
_RESTRICTED = "node-restriction.kubernetes.io"
_REFERRED = (
    ("secrets", "secrets"),
    ("configmaps", "configmaps"),
    ("persistentvolumeclaims", "persistentvolumeclaims"),
)
_LEASES = "kube-node-lease"
_NODES = ("", "nodes")
_NOT_READY = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}


class TaintNewNodes:
    """Keeps pods off a new node until somebody has seen that it is ready, and takes the taint off.

    That somebody is the node lifecycle controller, or kube-controller-manager.
    """

    TYPES: ClassVar = frozenset({_NODES})

    async def admit(self, operation: Operation) -> None:
        if operation.verb != "CREATE" or operation.subresource:
            return
        spec = operation.obj.setdefault("spec", {})
        taints = spec.setdefault("taints", [])
        if not any(_NOT_READY.items() <= taint.items() for taint in taints):
            taints.append(dict(_NOT_READY))


class NodeRestriction:
    """Bounds what kubelets write."""

    TYPES: ClassVar = frozenset(
        {
            ("", "pods"),
            ("", "nodes"),
            ("", "persistentvolumeclaims"),
            ("coordination.k8s.io", "leases"),
            ("storage.k8s.io", "csinodes"),
        }
    )

    def __init__(self, store: Store) -> None:
        self._store = store

    async def admit(self, operation: Operation) -> None:
        node = node_of(operation.call.user)
        if node is None:
            return
        why: str | None
        if not node:
            why = f'could not determine node from user "{operation.call.user.name}"'
        elif operation.type == ("", "pods"):
            why = await self._pod(node, operation)
        else:
            why = _OF[operation.type](node, operation)
        if why is not None:
            group, resource = operation.type
            name = operation.name
            raise Forbidden.of(group, resource, name, why)

    async def _pod(self, node: str, operation: Operation) -> str | None:
        old = operation.old
        if operation.subresource == "status":
            on_node = ((old or {}).get("spec") or {}).get("nodeName")
            if on_node != node:
                only = "update pod status for pods with spec.nodeName set to itself"
                return f'node "{node}" can only {only}'
            if labels_of(old or {}) != labels_of(operation.obj):
                return f'node "{node}" cannot update labels through pod status'
            return None
        if operation.verb == "DELETE":
            if operation.obj["spec"].get("nodeName") == node:
                return None
            return f'node "{node}" can only delete pods with spec.nodeName set to itself'
        if operation.verb != "CREATE":
            only = f'node "{node}" can only create and delete mirror pods'
            return f'unexpected operation "{operation.verb}", {only}'
        return _mirror_problem(node, operation.obj) or await self._owner_problem(node, operation)

    async def _owner_problem(self, node: str, operation: Operation) -> str | None:
        (owner,) = operation.obj["metadata"]["ownerReferences"]
        key = ObjectKey("", "nodes", operation.call.info.cluster, "", node)
        entry = await self._store.get(key.path())
        uid = None if entry is None else decode(entry.value, entry.revision)["metadata"]["uid"]
        if owner.get("uid") != uid:
            return f"node {node} UID mismatch: expected {owner.get('uid')} got {uid}"
        return None


def _mirror_problem(node: str, pod: Object) -> str | None:
    """Return what is wrong with a pod that a kubelet makes."""
    metadata, spec, only = pod["metadata"], pod["spec"], f'node "{node}" can only create pods with'
    if MIRROR not in (metadata.get("annotations") or {}):
        made = f'node "{node}" can only create mirror pods'
        return f'pod does not have "{MIRROR}" annotation, {made}'
    if spec.get("nodeName") != node:
        return f"{only} spec.nodeName set to itself"
    owners = metadata.get("ownerReferences") or ()
    if len(owners) > 1:
        return f"{only} a single owner reference set to itself"
    owner: Mapping[str, Any] = owners[0] if owners else {}
    if (owner.get("apiVersion"), owner.get("kind"), owner.get("name")) != ("v1", "Node", node):
        return f"{only} an owner reference set to itself"
    if not owner.get("controller"):
        return f"{only} a controller owner reference set to itself"
    if owner.get("blockOwnerDeletion"):
        return f'node "{node}" must not set blockOwnerDeletion on an owner reference'
    if spec.get("serviceAccountName"):
        return f'node "{node}" can not create pods that reference a service account'
    named = {each.resource for each in references(pod)}
    for resource, text in _REFERRED:
        if resource in named:
            return f'node "{node}" can not create pods that reference {text}'
    return None


def _node(node: str, operation: Operation) -> str | None:
    name = operation.name
    if name != node:
        return f'node "{node}" is not allowed to modify node "{name}"'
    new, old = operation.obj, operation.old
    if operation.verb == "CREATE":
        forbidden = _forbidden(labels_of(new), {})
        listed = f"set the following labels: {', '.join(forbidden)}"
        return f'node "{node}" is not allowed to {listed}' if forbidden else None
    if operation.verb == "UPDATE" and old is not None:
        taints, known = ((each.get("spec") or {}).get("taints") or [] for each in (new, old))
        if taints != known:
            return f'node "{node}" is not allowed to modify taints'
        forbidden = _forbidden(labels_of(new), labels_of(old))
        if forbidden:
            return f"is not allowed to modify labels: {', '.join(forbidden)}"
    return None


def _forbidden(new: Mapping[str, str], old: Mapping[str, str]) -> list[str]:
    """Return the labels that changed and are not a kubelet's to say."""
    changed = {key for key in new.keys() | old.keys() if new.get(key) != old.get(key)}
    return sorted(key for key in changed if not _is_own(key))


def _is_own(label: str) -> bool:
    prefix = label.partition("/")[0] if "/" in label else ""

    def below(*domains: str) -> bool:
        return any(prefix == each or prefix.endswith(f".{each}") for each in domains)

    if below(_RESTRICTED):
        return False
    return not below("kubernetes.io", "k8s.io") or label in _OWN_LABELS or below(*_OWN_PREFIXES)


def _claim(node: str, operation: Operation) -> str | None:
    if operation.subresource != "status" or operation.old is None:
        return f'node "{node}" may only update PVC status'
    if _without_sizes(operation.obj) != _without_sizes(operation.old):
        only = "fields other than status.quantity and status.conditions"
        return f'node "{node}" is not allowed to update {only}'
    return None


def _without_sizes(claim: Object) -> Object:
    """Return a claim without what a kubelet that resizes its volume writes."""
    metadata = {
        key: value
        for key, value in claim["metadata"].items()
        if key not in ("resourceVersion", "managedFields")
    }
    sizes = ("capacity", "conditions", "allocatedResources", "allocatedResourceStatuses")
    status = {k: v for k, v in (claim.get("status") or {}).items() if k not in sizes}
    return {**claim, "metadata": metadata, "status": status}


def _lease(node: str, operation: Operation) -> str | None:
    if operation.call.namespace != _LEASES:
        return f'can only access leases in the "{_LEASES}" system namespace'
    if operation.obj["metadata"].get("name") != node:
        return "can only access node lease with the same name as the requesting node"
    return None


def _csi_node(node: str, operation: Operation) -> str | None:
    if operation.obj["metadata"].get("name") != node:
        return "can only access CSINode with the same name as the requesting node"
    return None


_OF: dict[tuple[str, str], Callable[[str, Operation], str | None]] = {
    ("", "nodes"): _node,
    ("", "persistentvolumeclaims"): _claim,
    ("coordination.k8s.io", "leases"): _lease,
    ("storage.k8s.io", "csinodes"): _csi_node,
}


def refuse_token(call: Call, spec: Mapping[str, Any], pod: Object | None) -> None:
    """Refuse a kubelet a token that is not for a pod of its own node; *pod* is what it names."""
    node = node_of(call.user)
    if node is None:
        return
    reference = spec.get("boundObjectRef") or {}
    why = ""
    if pod is None or reference.get("kind") != "Pod":
        why = "node requested token not bound to a pod"
    elif not reference.get("uid"):
        why = "node requested token with a pod binding without a uid"
    elif pod["spec"].get("nodeName") != node:
        why = "node requested token bound to a pod scheduled on a different node"
    if why:
        raise Forbidden.of("", "serviceaccounts", call.info.name, why)
