"""What a new workspace contains from its first moment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from skerry.api.objects import Object
from skerry.api.refs import PATH_ANNOTATION
from skerry.logic.machinery.workspaces.names import (
    INITIALIZER_LABEL,
    initializer_label,
    shard_name_hash,
)

PHASE_LABEL = "tenancy.kcp.io/phase"
OWNER = "experimental.tenancy.kcp.io/owner"
TYPE_ANNOTATION = "internal.tenancy.kcp.io/type"
# Groups without which nobody gets into a workspace, nor into those below it.
REQUIRED_GROUPS = "authorization.kcp.io/required-groups"
WORKSPACE_FINALIZER = "core.kcp.io/logicalcluster"
CLUSTER_FINALIZER = "core.kcp.io/logicalcluster-deletion"
SHARD = "root"
# In the words of the controller that would otherwise add them a moment later.
_ROOT_CA = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal "
    "endpoints such as the internal service IP or kubernetes.default.svc. "
    "No other usage is guaranteed across distributions of Kubernetes clusters."
)


@dataclass(frozen=True, slots=True)
class NewWorkspace:
    """A workspace about to be."""

    cluster: str
    path: str
    url: str
    type_name: str
    now: str
    owner: str = ""
    initializers: Sequence[str] = ()
    # Initializers that are this server's own business and are done already.
    done: Sequence[str] = ()
    required_groups: str | None = None

    @property
    def phase(self) -> str:
        return "Initializing" if self.initializers else "Ready"

    def conditions(self) -> list[dict[str, Any]]:
        """Return the conditions of the workspace, sorted as kcp sorts them."""
        return [
            _initialized(self.initializers, self.now),
            {"lastTransitionTime": self.now, "status": "True", "type": "WorkspaceScheduled"},
        ]


def _initialized(initializers: Sequence[str], now: str) -> dict[str, Any]:
    condition: dict[str, Any] = {"lastTransitionTime": now, "status": "True"}
    if initializers:
        listed = " ".join(initializers)
        condition |= {
            "status": "False",
            "severity": "Info",
            "reason": "InitializerExists",
            "message": f"Initializers still exist: [{listed}]",
        }
    return {**condition, "type": "WorkspaceInitialized"}


def settle_initializers(obj: Object, left: Sequence[str], now: str) -> None:
    """Write into a Workspace or LogicalCluster that only the initializers *left* are awaited."""
    phase = "Initializing" if left else "Ready"
    labels = obj["metadata"].setdefault("labels", {})
    labels[PHASE_LABEL] = phase
    if obj["kind"] == "LogicalCluster":
        for label in [name for name in labels if name.startswith(INITIALIZER_LABEL)]:
            del labels[label]
        labels |= dict(initializer_label(name) for name in left)
    status = obj.setdefault("status", {})
    status["phase"] = phase
    status.pop("initializers", None)
    if left:
        status["initializers"] = list(left)
    status["conditions"] = [
        _initialized(left, now) if condition["type"] == "WorkspaceInitialized" else condition
        for condition in status.get("conditions") or []
    ]


def complete_workspace(workspace: Object, new: NewWorkspace) -> None:
    """Give a new Workspace everything only the server may set."""
    metadata = workspace["metadata"]
    annotations = metadata.setdefault("annotations", {})
    annotations["internal.tenancy.kcp.io/cluster"] = new.cluster
    annotations["internal.tenancy.kcp.io/shard"] = shard_name_hash(SHARD)
    if new.owner:
        annotations[OWNER] = owner_text(new.owner)
    annotations.pop(REQUIRED_GROUPS, None)
    if new.required_groups is not None:
        annotations[REQUIRED_GROUPS] = new.required_groups
    metadata.setdefault("labels", {})[PHASE_LABEL] = new.phase
    finalizers = metadata.setdefault("finalizers", [])
    if WORKSPACE_FINALIZER not in finalizers:
        finalizers.append(WORKSPACE_FINALIZER)
    workspace["spec"] |= {"cluster": new.cluster, "URL": new.url}
    status: Object = {"phase": new.phase, "conditions": new.conditions()}
    if new.initializers:
        status["initializers"] = list(new.initializers)
    workspace["status"] = status


def owner_text(user: str) -> str:
    """Return the annotation that names a workspace's owner."""
    return orjson.dumps({"username": user}).decode()


def owner_of(annotation: str) -> str:
    """Return the user an owner annotation names; empty when there is none."""
    try:
        found = orjson.loads(annotation) if annotation else {}
    except orjson.JSONDecodeError:
        return ""
    return str(found.get("username", "")) if isinstance(found, dict) else ""


def logical_cluster(new: NewWorkspace, owner: Object | None, *, deletable: bool = False) -> Object:
    """Return the LogicalCluster of a new workspace; *owner* refers to the Workspace."""
    annotations = {TYPE_ANNOTATION: new.type_name}
    if new.path:
        annotations[PATH_ANNOTATION] = new.path
    if new.owner:
        annotations[OWNER] = owner_text(new.owner)
    if new.required_groups is not None:
        annotations[REQUIRED_GROUPS] = new.required_groups
    labels = {PHASE_LABEL: new.phase}
    labels |= dict(initializer_label(name) for name in new.initializers)
    spec: Object = {"directlyDeletable": deletable}
    every = [*new.done, *new.initializers]
    if every:
        spec["initializers"] = every
    if owner is not None:
        spec["owner"] = owner
    status: Object = {
        "URL": new.url,
        "phase": new.phase,
        "conditions": new.conditions()[:1],
    }
    if new.initializers:
        status["initializers"] = list(new.initializers)
    return {
        "apiVersion": "core.kcp.io/v1alpha1",
        "kind": "LogicalCluster",
        "metadata": {
            "name": "cluster",
            "annotations": annotations,
            "labels": labels,
            "finalizers": [CLUSTER_FINALIZER],
        },
        "spec": spec,
        "status": status,
    }


def first_objects(owner: str, root_ca: str) -> list[Object]:
    """Return the Kubernetes objects every workspace begins with."""
    objects: list[Object] = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}},
        {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": "default", "namespace": "default"},
        },
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": "kube-root-ca.crt",
                "namespace": "default",
                "annotations": {"kubernetes.io/description": _ROOT_CA},
            },
            "data": {"ca.crt": root_ca},
        },
    ]
    if owner:
        objects.append(admin_binding(owner))
    return objects


def admin_binding(user: str) -> Object:
    """Return the binding that makes *user* the workspace's administrator."""
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "workspace-admin"},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": "cluster-admin",
        },
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
    }
