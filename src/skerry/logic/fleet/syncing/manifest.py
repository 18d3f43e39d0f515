"""The objects of a syncer's identity: at the hub, in its mailbox; at the edge, around its pod.

Everything is named after the edge, nothing is random, so making it again adds nothing.

Three secrets must be kept apart. The *kubeconfig* comes from the hub and is replaced when it is
printed again. The *key* of an edge that makes its own never leaves the edge: its Secret is applied
without content, so applying the manifest again does not wipe it. The *journal* is no secret but as
precious: it says what the syncer may delete, and it is on a volume because a pod that moves to
another node must find it. For the same reason the Deployment is recreated and never rolled: the old
pod is gone before the new one opens the journal.

Rights come in two parts. What is needed at the edge as a whole is bound there; what is done to
namespaced objects is bound in each namespace that something is placed in, and nowhere else. The
chart is given the same lists as values, so an installation by ``helm`` and one by ``kubectl apply``
cannot differ in what the syncer may do.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from skerry.api.edge import DOMAIN
from skerry.api.edge_identity import MAILBOX_NAMESPACE, account_name
from skerry.api.objects import Object
from skerry.logic.fleet.syncing.access import EdgeAccess

_RBAC = "rbac.authorization.k8s.io"
_RBAC_VERSION = f"{_RBAC}/v1"
MANAGED = {"app.kubernetes.io/managed-by": "skerry"}
# Neither update nor deletecollection: it applies, and removes one by one.
_SYNCER_VERBS = ("get", "list", "watch", "create", "patch", "delete")
# Kubeconfigs have extensions for what only some programs read; the others leave them alone.
_EDGE_EXTENSION = f"{DOMAIN}edge"
_UID = "syncTargetUID"
_ANYTHING: Object = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}
# The strictest of the Pod Security Standards; the pod that ``_deployment`` makes keeps to it.
_RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted"}
# The user of the image; a volume is given to its group.
_USER = 65532
# The journal of ten thousand objects is a tenth of this.
_JOURNAL_SIZE = "64Mi"
_RESOURCES: Object = {
    "requests": {"cpu": "10m", "memory": "64Mi"},
    "limits": {"memory": "512Mi"},
}


def syncer_id(sync_target: str, mailbox_cluster: str) -> str:
    """Return the name of everything a syncer has at its edge.

    Two SyncTargets of one name, in two workspaces, may stand for one cluster. Their mailboxes are
    two, so their syncers are called differently.
    """
    text = hashlib.sha256(mailbox_cluster.encode()).hexdigest()[:8]
    return f"kubestellar-syncer-{sync_target}-{text}"


def mailbox_objects(sync_target: str) -> list[Object]:
    """Return account and rights in the mailbox: what a syncer does there, and only there.

    What an edge brings up may be of any type, and RBAC cannot say "all but these", so no type is
    left out. The verbs are a syncer's: it reads, applies, and removes what it brought up, by name.
    It replaces nothing, deletes no collections, acts as nobody else, and can give nobody, itself
    included, a right it lacks. A token of this account holds in no other workspace.
    """
    name = account_name(sync_target)
    return [
        {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": name, "namespace": MAILBOX_NAMESPACE, "labels": dict(MANAGED)},
        },
        {
            "apiVersion": _RBAC_VERSION,
            "kind": "ClusterRole",
            "metadata": {"name": name, "labels": dict(MANAGED)},
            "rules": [
                {"apiGroups": ["*"], "resources": ["*"], "verbs": list(_SYNCER_VERBS)},
                {"nonResourceURLs": ["/"], "verbs": ["access"]},
                {"nonResourceURLs": ["/extensions", "/extensions/v1/*"], "verbs": ["get", "post"]},
            ],
        },
        _binding("ClusterRoleBinding", name, "", name, MAILBOX_NAMESPACE, "ClusterRole", name),
    ]


def hub_kubeconfig(server: str, ca: bytes, sync_target: str, token: str, uid: str = "") -> Object:
    """Return the kubeconfig by which a syncer reaches its mailbox.

    With *uid* it says which SyncTarget the edge is: that is part of its name at the hub. Without
    *ca* the edge verifies the hub by the authorities that its own machine trusts. No path of a
    file is in it, so it is whole wherever it is copied to.
    """
    cluster: Object = {"server": server}
    if ca:
        cluster["certificate-authority-data"] = base64.b64encode(ca).decode()
    user: Object = {"token": token}
    if uid:
        user["extensions"] = [{"name": _EDGE_EXTENSION, "extension": {_UID: uid}}]
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "mailbox", "cluster": cluster}],
        "users": [{"name": sync_target, "user": user}],
        "contexts": [
            {
                "name": "mailbox",
                "context": {
                    "cluster": "mailbox",
                    "user": sync_target,
                    "namespace": MAILBOX_NAMESPACE,
                },
            }
        ],
        "current-context": "mailbox",
    }


def sync_target_uid(user_extensions: Mapping[str, Any]) -> str:
    """Return the UID that a kubeconfig of ``hub_kubeconfig`` has; empty when it has none."""
    found = user_extensions.get(_EDGE_EXTENSION)
    return str(found.get(_UID, "")) if isinstance(found, Mapping) else ""


# What sessions through a tunnel do with pods. They are opened by GET as WebSockets and by POST as
# SPDY, which RBAC knows as two verbs.
_TUNNEL_RULES: tuple[Object, ...] = (
    {"apiGroups": [""], "resources": ["pods", "pods/log"], "verbs": ["get", "list"]},
    {
        "apiGroups": [""],
        "resources": ["pods/attach", "pods/exec", "pods/portforward"],
        "verbs": ["create", "get"],
    },
)


@dataclass(frozen=True, slots=True)
class ManifestTerms:
    """What the manifest for an edge is made with."""

    sync_target: str
    mailbox_cluster: str
    image: str
    access: EdgeAccess
    # None leaves the Secret as it is at the edge: only the rights are printed anew.
    kubeconfig: str | None
    # Whether the syncer makes a key, which it keeps in a Secret of its own.
    makes_key: bool = False
    # Empty: one of its own, called as everything else (``syncer_id``).
    namespace: str = ""
    # One is elected and works; the others stand by.
    replicas: int = 1
    # Everything is allowed at the edge, so that nothing has to be printed anew for other kinds.
    admin: bool = False
    # Of the journal's volume; empty is the edge's default.
    storage_class: str = ""
    # Whether the hub may ask for logs, commands and ports of the pods that are placed.
    tunnel: bool = False


def edge_manifest(terms: ManifestTerms) -> list[Object]:
    """Return everything to be applied at an edge for a syncer to run there as a pod.

    In an order in which it can be applied one by one: a Namespace before what is in it, a role
    before its binding, and the pod last.
    """
    name = syncer_id(terms.sync_target, terms.mailbox_cluster)
    namespace = terms.namespace or name
    made: list[Object] = [
        _namespace(namespace, own=not terms.namespace),
        {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": name, "namespace": namespace},
        },
        *_rights(name, namespace, terms),
    ]
    if terms.makes_key:
        made.append(_identity_secret(name, namespace))
    if terms.kubeconfig is not None:
        made.append(_secret(name, namespace, terms.kubeconfig))
        made.append(_claim(name, namespace, terms.storage_class))
        made.append(_deployment(name, namespace, terms))
    return made


def helm_values(terms: ManifestTerms) -> Object:
    """Return the values by which the chart makes the same objects as ``edge_manifest``.

    Without a kubeconfig they are the rights alone, for an upgrade that reuses the other values.
    """
    access = terms.access
    everywhere = _everywhere(terms)
    within = [] if terms.admin else _within(terms)
    rights = {
        "everywhere": everywhere,
        "within": within,
        "namespaces": list(access.namespaces) if within else [],
    }
    if terms.kubeconfig is None:
        return {"syncer": {"rights": rights}}
    repository, tag = _image_parts(terms.image)
    return {
        "image": {"syncer": repository, "tag": tag},
        "hub": {"enabled": False},
        "controllers": {"enabled": False},
        "syncer": {
            "enabled": True,
            "name": syncer_id(terms.sync_target, terms.mailbox_cluster),
            "syncTarget": terms.sync_target,
            "kubeconfig": terms.kubeconfig,
            "identitySecret": terms.makes_key,
            "storage": {"className": terms.storage_class},
            "tunnel": terms.tunnel,
            "rights": rights,
        },
    }


def _image_parts(image: str) -> tuple[str, str]:
    """Return an image without its tag, and the tag; a registry's port is none."""
    path, colon, tag = image.rpartition(":")
    return (path, tag) if colon and "/" not in tag else (image, "latest")


def _namespace(name: str, *, own: bool) -> Object:
    """Return the syncer's namespace; one that is others' too is not held to a policy of ours."""
    metadata: Object = {"name": name}
    if own:
        metadata["labels"] = dict(_RESTRICTED)
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}


def _everywhere(terms: ManifestTerms) -> list[Object]:
    """Return what the syncer may do at the edge as a whole."""
    if not terms.admin:
        return list(terms.access.everywhere)
    return [dict(_ANYTHING), {"nonResourceURLs": ["*"], "verbs": ["*"]}]


def _within(terms: ManifestTerms) -> list[Object]:
    """Return what the syncer may do in the namespaces of what is placed."""
    placed = list(terms.access.within)
    if not placed or not terms.tunnel:
        return placed
    return [*placed, *(dict(rule) for rule in _TUNNEL_RULES)]


def _rights(name: str, namespace: str, terms: ManifestTerms) -> list[Object]:
    """Return roles and bindings: for the whole edge, the syncer's own namespace, and the placed.

    What is allowed in namespaces of placed objects is one ClusterRole with a RoleBinding in each,
    so it is written once and holds nowhere else. These Namespaces are made here as well, bare: the
    syncer would come too late with them, since it cannot write there before it is bound.
    """
    everywhere = _everywhere(terms)
    lease = {
        "apiGroups": ["coordination.k8s.io"],
        "resources": ["leases"],
        "verbs": ["create", "get", "update"],
    }
    own = [lease]
    if terms.makes_key:
        # Not ``create``, which no name limits: it would do for every Secret of the namespace.
        own.append(
            {
                "apiGroups": [""],
                "resources": ["secrets"],
                "resourceNames": [identity_secret_name(name)],
                "verbs": ["get", "patch"],
            }
        )
    made = [
        _role("ClusterRole", name, "", everywhere),
        _binding("ClusterRoleBinding", name, "", name, namespace, "ClusterRole", name),
        _role("Role", name, namespace, own),
        _binding("RoleBinding", name, namespace, name, namespace, "Role", name),
    ]
    if terms.admin or not terms.access.within:
        return made
    inner = f"{name}-placed"
    made.append(_role("ClusterRole", inner, "", _within(terms)))
    for place in terms.access.namespaces:
        made.append({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": place}})
        binding = _binding("RoleBinding", inner, place, name, namespace, "ClusterRole", inner)
        # By this the syncer knows its own rights from a stranger's when the namespace is to go.
        binding["metadata"]["labels"] = dict(MANAGED)
        made.append(binding)
    return made


def _role(kind: str, name: str, namespace: str, rules: Sequence[Object]) -> Object:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {
        "apiVersion": _RBAC_VERSION,
        "kind": kind,
        "metadata": metadata,
        "rules": list(rules),
    }


def _binding(
    kind: str,
    name: str,
    namespace: str,
    account: str,
    account_namespace: str,
    role_kind: str,
    role: str,
) -> Object:
    """Return a binding of an account, which may be of another namespace than the binding."""
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    subject = {"kind": "ServiceAccount", "name": account, "namespace": account_namespace}
    return {
        "apiVersion": _RBAC_VERSION,
        "kind": kind,
        "metadata": metadata,
        "roleRef": {"apiGroup": _RBAC, "kind": role_kind, "name": role},
        "subjects": [subject],
    }


def identity_secret_name(name: str) -> str:
    """Return the name of the Secret in which the syncer *name* keeps its key and certificate."""
    return f"{name}-identity"


def _identity_secret(name: str, namespace: str) -> Object:
    """Return the Secret without its content, which applying it again leaves as it is.

    A Secret and not the data directory: a pod that comes up on another node is the same edge.
    """
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": identity_secret_name(name), "namespace": namespace},
        "type": "Opaque",
    }


def _secret(name: str, namespace: str, kubeconfig: str) -> Object:
    """Return the Secret that holds the way to the hub; printing it again replaces it."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": namespace},
        "type": "Opaque",
        "stringData": {"kubeconfig": kubeconfig},
    }


def _claim(name: str, namespace: str, storage_class: str) -> Object:
    """Return the claim of the journal's volume.

    The journal must outlive the pod: it says what may be deleted and what must be restored. A claim
    and not a path of the node, which no policy for pods allows and no user but root may write.
    """
    spec: Object = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": _JOURNAL_SIZE}},
    }
    if storage_class:
        spec["storageClassName"] = storage_class
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
    }


def _deployment(name: str, namespace: str, terms: ManifestTerms) -> Object:
    """Return the Deployment: no root, nothing that the restricted standard forbids.

    ``fsGroup`` lets the image's user write the volume. Service links are off because each Service
    of the namespace would come as variables in the environment, which nobody reads.
    """
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "replicas": terms.replicas,
            "strategy": {"type": "Recreate"},
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "serviceAccountName": name,
                    "enableServiceLinks": False,
                    "securityContext": {
                        "runAsNonRoot": True,
                        "runAsUser": _USER,
                        "runAsGroup": _USER,
                        "fsGroup": _USER,
                        "seccompProfile": {"type": "RuntimeDefault"},
                    },
                    "containers": [_container(name, namespace, terms)],
                    "volumes": [
                        {
                            "name": "kubeconfig",
                            "secret": {"secretName": name, "defaultMode": 0o440},
                        },
                        {"name": "data", "persistentVolumeClaim": {"claimName": name}},
                        {"name": "tmp", "emptyDir": {}},
                    ],
                },
            },
        },
    }


def _container(name: str, namespace: str, terms: ManifestTerms) -> Object:
    """Return the only container; whatever it writes is on a volume, as its root is read-only."""
    arguments = [
        "syncer",
        "--from-kubeconfig=/etc/skerry/kubeconfig",
        f"--sync-target-name={terms.sync_target}",
        "--data-dir=/var/lib/skerry",
        f"--lock-namespace={namespace}",
    ]
    if terms.makes_key:
        arguments.append(f"--identity-secret={identity_secret_name(name)}")
    if terms.tunnel:
        arguments.append("--tunnel")
    return {
        "name": "kcp-syncer",
        "image": terms.image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["skerry"],
        "args": arguments,
        "resources": _RESOURCES,
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [
            {"name": "kubeconfig", "mountPath": "/etc/skerry", "readOnly": True},
            {"name": "data", "mountPath": "/var/lib/skerry"},
            {"name": "tmp", "mountPath": "/tmp"},  # noqa: S108 - the pod's own
        ],
    }
