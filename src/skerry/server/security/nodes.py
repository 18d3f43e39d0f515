"""What kubelets may do: what the pods on their node need, and what is about the node itself.

A kubelet comes as ``system:node:NAME`` in the group ``system:nodes``. Which Secrets, ConfigMaps,
claims, volumes and accounts it may read follows from the pods that are bound to its node, which
``NodeGraph`` keeps as the dispatcher tells of them. What it may write of its own is bounded by
admission (``server.admission.nodes``). Whatever is not allowed here may still be by RBAC.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from skerry.api.keys import ObjectKey, type_prefix
from skerry.api.objects import Object
from skerry.logic.machinery.pod_references import MIRROR, Reference, references
from skerry.logic.machinery.rbac.bootstrap import NODE_RULES
from skerry.server.access import Attributes, Authorizer, Decision
from skerry.server.change import Change
from skerry.server.codec import decode
from skerry.server.user import User
from skerry.server.watch.dispatcher import Dispatcher
from skerry.store.base import Store

GROUP = "system:nodes"
_PREFIX = "system:node:"
_LEASES = "kube-node-lease"
_ALLOWED = Decision(allowed=True)
_OWN_VERBS = frozenset(("get", "create", "update", "patch", "delete"))
# Nearly all pods that are just made have no node yet, and need no look.
_ON_NODE = b'"nodeName":"'
_CLAIM = "persistentvolumeclaims"
# Where volumes name Secrets, and in which namespace they look for them.
_VOLUME_SECRETS = ("azureFile", "cephfs", "flexVolume", "iscsi", "rbd", "scaleIO", "storageos")
_CSI_SECRETS = (
    "controllerExpandSecretRef",
    "controllerPublishSecretRef",
    "nodeExpandSecretRef",
    "nodePublishSecretRef",
    "nodeStageSecretRef",
)
_Place = tuple[str, str]


def node_of(user: User) -> str | None:
    """Return the node whose kubelet a user is; None for anybody else."""
    if not user.name.startswith(_PREFIX) or GROUP not in user.groups:
        return None
    return user.name[len(_PREFIX) :]


class NodeGraph:
    """Which objects the pods of each node lead to."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget everything."""
        self._pods: dict[_Place, tuple[str, frozenset[Reference]]] = {}
        self._needed: dict[str, Counter[tuple[str, str, str]]] = {}
        self._volumes: dict[str, tuple[_Place, frozenset[_Place]]] = {}
        self._attached: dict[str, str] = {}

    async def follow(self, store: Store, dispatcher: Dispatcher) -> None:
        """Read what is there and keep it up; call before the dispatcher runs."""
        feeds: tuple[tuple[str, str, Callable[[ObjectKey, Object | None], None]], ...] = (
            ("", "pods", self.pod),
            ("", "persistentvolumes", self.volume),
            ("storage.k8s.io", "volumeattachments", self.attachment),
        )
        for group, resource, feed in feeds:
            prefix = type_prefix(group, resource)
            for entry in (await store.range(prefix)).entries:
                feed(ObjectKey.parse(entry.key), decode(entry.value, entry.revision))
            reset = self.reset if resource == "pods" else None
            dispatcher.observe(prefix, _observing(feed, is_pod=resource == "pods"), reset)

    def pod(self, key: ObjectKey, obj: Object | None) -> None:
        """Take in a pod as it is now; None when it is gone."""
        place = key.namespace, key.name
        known = self._pods.pop(place, None)
        if known is not None:
            needed = self._needed[known[0]]
            for resource, name in known[1]:
                needed[resource, key.namespace, name] -= 1
                if not needed[resource, key.namespace, name]:
                    del needed[resource, key.namespace, name]
            if not needed:
                del self._needed[known[0]]
        node = ((obj or {}).get("spec") or {}).get("nodeName")
        if obj is None or not node:
            return
        # A kubelet makes its mirror pods itself: they give it no right to anything.
        mirrored = MIRROR in (obj["metadata"].get("annotations") or {})
        found = frozenset[Reference]() if mirrored else references(obj)
        found |= {Reference("pods", key.name)}
        self._pods[place] = node, found
        counter = self._needed.setdefault(node, Counter())
        for resource, name in found:
            counter[resource, key.namespace, name] += 1

    def volume(self, key: ObjectKey, obj: Object | None) -> None:
        """Take in a PersistentVolume."""
        self._volumes.pop(key.name, None)
        spec = (obj or {}).get("spec") or {}
        claim = spec.get("claimRef")
        if claim:
            place = claim.get("namespace") or "", claim.get("name") or ""
            self._volumes[key.name] = place, frozenset(_volume_secrets(spec, place[0]))

    def attachment(self, key: ObjectKey, obj: Object | None) -> None:
        """Take in a VolumeAttachment."""
        self._attached.pop(key.name, None)
        if obj is not None:
            self._attached[key.name] = (obj.get("spec") or {}).get("nodeName") or ""

    def leads_to(self, node: str, resource: str, namespace: str, name: str) -> bool:
        """Tell whether something on *node* leads to an object."""
        if resource == "volumeattachments":
            return self._attached.get(name) == node
        needed = self._needed.get(node)
        if needed is None:
            return False
        if resource == "persistentvolumes":
            volume = self._volumes.get(name)
            return volume is not None and (_CLAIM, *volume[0]) in needed
        if (resource, namespace, name) in needed:
            return True
        return resource == "secrets" and any(
            (namespace, name) in secrets and (_CLAIM, *claim) in needed
            for claim, secrets in self._volumes.values()
            if secrets
        )


def _observing(
    feed: Callable[[ObjectKey, Object | None], None], *, is_pod: bool
) -> Callable[[Change], None]:
    def observe(change: Change) -> None:
        event = change.event
        value = event.value
        if is_pod and value is not None and _ON_NODE not in value:
            return
        obj = None if value is None else decode(value, event.revision)
        feed(ObjectKey.parse(event.key), obj)

    return observe


def _volume_secrets(spec: dict[str, Any], namespace: str) -> list[_Place]:
    """Return the Secrets that a volume names; *namespace* is that of its claim."""
    found = []
    for kind in _VOLUME_SECRETS:
        source = spec.get(kind) or {}
        reference = source.get("secretRef") or {}
        name = reference.get("name") or source.get("secretName")
        if name:
            place = reference.get("namespace") or source.get("secretNamespace") or namespace
            found.append((place, name))
    for field in _CSI_SECRETS:
        reference = (spec.get("csi") or {}).get(field) or {}
        if reference.get("name"):
            found.append((reference.get("namespace") or "", reference["name"]))
    return found


class NodeAuthorizer:
    """Allows kubelets what their nodes need, beside what *below* allows anybody.

    Below is asked first: nearly everybody who asks is no kubelet, and need not be looked at.
    """

    def __init__(self, graph: NodeGraph, below: Authorizer) -> None:
        self._graph = graph
        self._below = below

    def authorize(self, user: User, attributes: Attributes) -> Decision:
        """Decide; see the protocol."""
        decision = self._below.authorize(user, attributes)
        if decision.allowed:
            return decision
        node = node_of(user)
        if not node:
            return decision
        why = self._refusal(node, attributes)
        if why is None:
            return _ALLOWED
        return Decision(False, why) if why else decision

    def _refusal(self, node: str, asked: Attributes) -> str | None:
        """Return why the node's kubelet may not, None if it may; empty is no opinion."""
        if not asked.path:
            special = _SPECIAL.get((asked.group, asked.resource))
            if special is not None:
                return special(self._graph, node, asked)
        allowed = any(
            rule.allows_path(asked.verb, asked.path)
            if asked.path
            else rule.allows_resource(
                asked.verb, asked.group, asked.resource, asked.subresource, asked.name
            )
            for rule in NODE_RULES
        )
        return None if allowed else ""


def _related(graph: NodeGraph, node: str, asked: Attributes) -> str | None:
    if not asked.name:
        return "No Object name found"
    if graph.leads_to(node, asked.resource, asked.namespace, asked.name):
        return None
    return f"no relationship found between node '{node}' and this object"


def _reading(graph: NodeGraph, node: str, asked: Attributes) -> str | None:
    if asked.verb not in ("get", "list", "watch"):
        return "can only read resources of this type"
    if asked.subresource:
        return "cannot read subresource"
    if not asked.namespace:
        return "can only read namespaced object of this type"
    return _related(graph, node, asked)


def _getting(graph: NodeGraph, node: str, asked: Attributes) -> str | None:
    if asked.verb != "get":
        return "can only get individual resources of this type"
    return "cannot get subresource" if asked.subresource else _related(graph, node, asked)


def _claim(graph: NodeGraph, node: str, asked: Attributes) -> str | None:
    if asked.subresource != "status":
        return _getting(graph, node, asked)
    if asked.verb not in ("update", "patch"):
        return "can only get/update/patch this type"
    return _related(graph, node, asked)


def _token(graph: NodeGraph, node: str, asked: Attributes) -> str | None:
    if asked.verb != "create" or not asked.name:
        return "can only create tokens for individual service accounts"
    if asked.subresource != "token":
        return "can only create token subresource of serviceaccount"
    return _related(graph, node, asked)


def _lease(_: NodeGraph, node: str, asked: Attributes) -> str | None:
    if asked.verb not in _OWN_VERBS:
        return "can only get, create, update, patch, or delete a node lease"
    if asked.namespace != _LEASES:
        return f'can only access leases in the "{_LEASES}" system namespace'
    if asked.verb != "create" and asked.name != node:
        return "can only access node lease with the same name as the requesting node"
    return None


def _csi_node(_: NodeGraph, node: str, asked: Attributes) -> str | None:
    if asked.verb not in _OWN_VERBS:
        return "can only get, create, update, patch, or delete a CSINode"
    if asked.subresource:
        return "cannot authorize CSINode subresources"
    if asked.verb != "create" and asked.name != node:
        return "can only access CSINode with the same name as the requesting node"
    return None


def _node(_: NodeGraph, node: str, asked: Attributes) -> str | None:
    if asked.subresource == "status":
        return None if asked.verb in ("update", "patch") else ""
    if asked.subresource:
        return ""
    if asked.verb in ("create", "update", "patch"):
        return None
    if asked.verb not in ("get", "list", "watch"):
        return ""
    if not asked.name:
        return f"node '{node}' cannot read all nodes, only its own Node object"
    if asked.name != node:
        return f"node '{node}' cannot read '{asked.name}', only its own Node object"
    return None


def _pod(graph: NodeGraph, node: str, asked: Attributes) -> str | None:
    if asked.subresource:
        allowed = {"status": ("update", "patch"), "eviction": ("create",)}
        return None if asked.verb in allowed.get(asked.subresource, ()) else ""
    if asked.verb == "get":
        return _getting(graph, node, asked)
    if asked.verb in ("list", "watch"):
        if asked.selected_node == node:
            return None
        if asked.name:
            return _related(graph, node, asked)
        return "can only list/watch pods with spec.nodeName field selector"
    return None if asked.verb in ("create", "delete") else ""


_SPECIAL: dict[_Place, Callable[[NodeGraph, str, Attributes], str | None]] = {
    ("", "secrets"): _reading,
    ("", "configmaps"): _reading,
    ("", _CLAIM): _claim,
    ("", "persistentvolumes"): _getting,
    ("", "serviceaccounts"): _token,
    ("", "nodes"): _node,
    ("", "pods"): _pod,
    ("storage.k8s.io", "volumeattachments"): _getting,
    ("storage.k8s.io", "csinodes"): _csi_node,
    ("coordination.k8s.io", "leases"): _lease,
}
