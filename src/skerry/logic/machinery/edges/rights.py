"""What an edge may do in its mailbox, and nowhere else.

RBAC cannot say "only the projected copies", so the rights of an edge are a function of the
SyncerConfigs in its mailbox (a ``Scope``) and of the objects themselves:

* **Copies** (label ``edge.kcp.io/projected=yes``) of the kinds that the scope names: the edge reads
  them, writes their status and its own marks on them, and changes nothing else.
* **Reports** (annotation ``edge.kcp.io/upsynced: "true"``) of the kinds that an upsync rule names:
  the edge creates, changes and deletes them. Kinds that give rights or act on the hub are never
  reports, whatever a rule says.
* The Namespaces that reports need, its SyncerConfigs (read, status), its heartbeat Lease, and its
  own requests for certificates.

``may`` answers the authorizer, which knows names only. ``refusal`` answers admission, which knows
the objects. Both must agree to a write.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from skerry.api import edge
from skerry.api.edge import (
    APPLIED,
    CAUSE,
    HEARTBEAT_LEASE,
    HEARTBEAT_NAMESPACE,
    MAX_CAUSE_BYTES,
    SYNC_ERROR,
    UPSYNCED,
    is_projected,
    is_report,
)
from skerry.api.edge_categories import category_of
from skerry.api.edge_identity import BOOTSTRAP_TYPE
from skerry.api.kcp import resources
from skerry.api.kinds import GroupResource
from skerry.api.objects import Object
from skerry.api.refs import ObjectRef
from skerry.logic.machinery.edges.scope import DEFINITIONS, NAMESPACES, Scope, UpsyncRule

SYNCER_CONFIGS = edge.SYNCER_CONFIGS.group_resource
LEASES = GroupResource("coordination.k8s.io", "leases")
REQUESTS = GroupResource("certificates.k8s.io", "certificatesigningrequests")
SECRETS = GroupResource("", "secrets")
LOGICAL_CLUSTERS = resources.LOGICAL_CLUSTERS.group_resource
# What brings types into a mailbox; syncers of earlier versions watch it.
MAKE_TYPES = frozenset((DEFINITIONS, resources.API_BINDINGS.group_resource))

READ = frozenset(("get", "list", "watch"))
CHANGE = frozenset(("update", "patch"))
# The syncer's marks on a copy, and how many bytes of UTF-8 each may have. It cuts an error at 512
# characters and a cause at its bound; nobody may keep a document in a mark.
MAX_MARK_BYTES = {APPLIED: 1024, SYNC_ERROR: 2048, CAUSE: MAX_CAUSE_BYTES}
MARKS = frozenset(MAX_MARK_BYTES)

# Objects of these groups give rights, define types, or act on the hub itself.
_HUB_GROUPS = frozenset(
    (
        "admissionregistration.k8s.io",
        "apiextensions.k8s.io",
        "apiregistration.k8s.io",
        "authentication.k8s.io",
        "authorization.k8s.io",
        "certificates.k8s.io",
        "flowcontrol.apiserver.k8s.io",
        "rbac.authorization.k8s.io",
    )
)
_HUB_KINDS = frozenset((GroupResource("", "serviceaccounts"),))
_TOKEN_TYPES = frozenset(
    ("kubernetes.io/service-account-token", "bootstrap.kubernetes.io/token", BOOTSTRAP_TYPE)
)
# Written by the server on every change.
_SERVER_METADATA = frozenset(("managedFields", "resourceVersion", "generation"))

NAMESPACE_LABEL = "kubernetes.io/metadata.name"

Verb = Literal["CREATE", "UPDATE", "DELETE"]


class Write(NamedTuple):
    """A write about to happen: ``old`` is None for a create, ``new`` for a delete."""

    verb: Verb
    ref: ObjectRef
    subresource: str
    old: Mapping[str, Any] | None
    new: Mapping[str, Any] | None


# -- what objects are ------------------------------------------------------------------------


def can_come_up(kind: GroupResource) -> bool:
    """Tell whether objects of *kind* may be reports at all."""
    group = kind.group
    if group in _HUB_GROUPS or group == "kcp.io" or group.endswith(".kcp.io"):
        return False
    return kind not in _HUB_KINDS


def is_heartbeat(kind: GroupResource, namespace: str, name: str) -> bool:
    """Tell whether this is the Lease by which an edge shows that it lives."""
    return kind == LEASES and (namespace, name) == (HEARTBEAT_NAMESPACE, HEARTBEAT_LEASE)


# -- by name ---------------------------------------------------------------------------------


def may(
    scope: Scope, verb: str, kind: GroupResource, subresource: str, namespace: str, name: str
) -> bool:
    """Tell whether an edge with *scope* may do *verb* here, as far as names can tell."""
    if kind == SYNCER_CONFIGS:
        return verb in READ or (verb in CHANGE and subresource == "status")
    if kind == REQUESTS:
        return not subresource and (verb == "create" or (verb in ("get", "watch") and bool(name)))
    if subresource not in ("", "status"):
        return False
    if is_heartbeat(kind, namespace, name) and not subresource:
        return verb == "get" or verb in CHANGE
    if kind == NAMESPACES:
        namespace = ""  # a Namespace is not in itself
    if _is_placed(scope, kind, namespace) and (verb in READ or verb in CHANGE):
        return True
    return can_come_up(kind) and _may_report(
        scope, verb, ObjectRef("", kind.group, kind.resource, namespace, name), subresource
    )


def _is_placed(scope: Scope, kind: GroupResource, namespace: str) -> bool:
    """Tell whether copies of *kind* go down from *namespace*; from any, where that is empty."""
    if not category_of(kind).to_edge:
        return False
    if kind in scope.clustered or (kind == NAMESPACES and scope.namespaces):
        return True
    if kind not in scope.namespaced:
        return False
    return namespace in scope.namespaces if namespace else bool(scope.namespaces)


def _may_report(scope: Scope, verb: str, ref: ObjectRef, subresource: str) -> bool:
    if verb == "delete":
        # A report outlives the rule that asked for it; admission sees whether it is one.
        return not subresource and bool(ref.name)
    if verb == "create" and subresource:
        return False
    if verb not in READ and verb not in CHANGE and verb != "create":
        return False
    if verb == "create" and (ref.group_resource, ref.namespace) == (LEASES, HEARTBEAT_NAMESPACE):
        return True  # admission sees whether it is the heartbeat
    if any(_reaches(rule, ref) for rule in scope.upsync):
        return True
    if ref.group_resource != NAMESPACES or verb in ("list", "watch") or subresource:
        return False
    return needs_namespace(scope, ref.name) if ref.name else any(map(_is_effective, scope.upsync))


def _reaches(rule: UpsyncRule, ref: ObjectRef) -> bool:
    """Tell whether *rule* covers *ref*; an empty name or namespace stands for any."""
    if not rule.covers_type(ref.group_resource):
        return False
    if ref.name and rule.names is not None and ref.name not in rule.names:
        return False
    return not ref.namespace or rule.namespaces is None or ref.namespace in rule.namespaces


def needs_namespace(scope: Scope, name: str) -> bool:
    """Tell whether reports may come up into the Namespace *name*."""
    return any(
        _is_effective(rule) and (rule.namespaces is None or name in rule.namespaces)
        for rule in scope.upsync
    )


def _is_effective(rule: UpsyncRule) -> bool:
    """Tell whether *rule* names any kind that comes up."""
    named = rule.resources if rule.resources is not None else ("*",)
    return any(can_come_up(GroupResource(rule.group, resource)) for resource in named)


# -- by object -------------------------------------------------------------------------------


def refusal(scope: Scope, write: Write) -> str:
    """Return why an edge with *scope* may not make *write*; empty when it may.

    Its Lease, its SyncerConfigs and its requests have rules of their own and are not asked about.
    """
    if write.old is None:
        return _refused_create(scope, write.ref, write.new or {})
    if write.new is None:
        return _refused_delete(scope, write.ref, write.old)
    if is_projected(write.old):
        return _refused_mark(write.old, write.new, write.subresource)
    if is_report(write.old):
        return _refused_report(scope, write.ref, write.new)
    return "it is neither a projected copy nor a report of this edge"


def _refused_create(scope: Scope, ref: ObjectRef, new: Mapping[str, Any]) -> str:
    if is_report(new):
        return _refused_report(scope, ref, new)
    if ref.group_resource != NAMESPACES or not needs_namespace(scope, ref.name):
        return f'an edge creates reports only: want the annotation {UPSYNCED}: "true"'
    metadata = new["metadata"]
    own_label = {NAMESPACE_LABEL: ref.name}  # every server adds it
    if (metadata.get("labels") or own_label) != own_label or any(
        metadata.get(name) for name in ("annotations", "finalizers", "ownerReferences")
    ):
        return "an edge creates a Namespace for its reports with a name and nothing else"
    return ""


def _refused_report(scope: Scope, ref: ObjectRef, new: Mapping[str, Any]) -> str:
    metadata = new["metadata"]
    if not can_come_up(ref.group_resource):
        return f"objects of type {ref.group_resource} do not come up from an edge"
    if not scope.brings_up(ref):
        return "no upsync rule of the SyncerConfig covers it"
    if not is_report(new):
        return f'a report keeps the annotation {UPSYNCED}: "true" and is no projected copy'
    if metadata.get("finalizers") or metadata.get("ownerReferences"):
        return "a report has no finalizers and no ownerReferences"
    if ref.group_resource == SECRETS and new.get("type") in _TOKEN_TYPES:
        return f"Secrets of type {new.get('type')} do not come up from an edge"
    return ""


def _refused_delete(scope: Scope, ref: ObjectRef, old: Mapping[str, Any]) -> str:
    if not is_report(old):
        return "an edge deletes its reports only"
    if not can_come_up(ref.group_resource):
        return f"objects of type {ref.group_resource} are not the edge's to delete"
    if ref.group_resource == NAMESPACES and ref.name in scope.namespaces:
        return "copies are projected into this Namespace"
    return ""


def _refused_mark(old: Mapping[str, Any], new: Mapping[str, Any], subresource: str) -> str:
    notes = new["metadata"].get("annotations") or {}
    for mark, limit in MAX_MARK_BYTES.items():
        if len(str(notes.get(mark) or "").encode(errors="replace")) > limit:
            return f"the mark {mark} has more than {limit} bytes"
    if not _same(old, new):
        return "an edge changes only the status and its own marks of a projected copy"
    return ""


def _same(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Tell whether two states of a copy differ in status, marks and what the server writes only."""
    names = (old.keys() | new.keys()) - {"metadata", "status"}
    if any(old.get(name) != new.get(name) for name in names):
        return False
    return _compared(old["metadata"]) == _compared(new["metadata"])


def _compared(metadata: Mapping[str, Any]) -> Object:
    kept = {k: v for k, v in metadata.items() if v and k not in _SERVER_METADATA}
    notes = kept.pop("annotations", {})
    if rest := {k: v for k, v in notes.items() if k not in MARKS}:
        kept["annotations"] = rest
    return kept
