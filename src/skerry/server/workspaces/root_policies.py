"""Maximal permission policies of root's own exports, and the RBAC objects they are made of.

Every workspace binds these exports, and its administrators may do everything in it. What the
server and its controllers say in the status of workspaces, types, Locations and Placements is not
theirs to write: others read it and believe it. SyncTargets are the exception, whose status comes
from syncers in the workspace. The policies are ordinary RBAC in root, named as in kcp.
"""

from __future__ import annotations

from collections.abc import Sequence

from skerry.api.kcp import compute, tenancy
from skerry.api.objects import Object
from skerry.logic.machinery.workspaces.names import ADMIN_GROUP
from skerry.logic.machinery.workspaces.principals import BOUND_PREFIX, SCOPED

_RBAC = "rbac.authorization.k8s.io"
_READ = ("get", "list", "watch")
# Exports with a policy, and the verbs on status that it allows.
POLICIES: dict[str, tuple[str, ...]] = {
    tenancy.TENANCY: _READ,
    compute.SCHEDULING: _READ,
    compute.WORKLOAD: ("*",),
    compute.API_RESOURCE: _READ,
}
# Principals of single workspaces are in no group of root's; what they may do in their workspace
# is that workspace's decision.
_EVERYBODY = (f"{BOUND_PREFIX}system:authenticated", f"{BOUND_PREFIX}{SCOPED}")


def policy_objects(export: str, plurals: Sequence[str]) -> list[Object]:
    """Return the role that bounds what users of *export* may do, and its binding."""
    status = [f"{plural}/status" for plural in plurals]
    rules = [rule(export, list(plurals), "*"), rule(export, status, *POLICIES[export])]
    return _policy(export.partition(".")[0], rules, *_EVERYBODY)


def administrators_policy_objects() -> list[Object]:
    """Return the role by which the policies bound no administrator of the hub."""
    rules = [rule(export, ["*"], "*") for export in POLICIES]
    return _policy("kcp-admin", rules, f"{BOUND_PREFIX}{ADMIN_GROUP}")


def _policy(name: str, rules: list[Object], *groups: str) -> list[Object]:
    role = f"system:kcp:apiexport:{name}:maximal-permission-policy"
    binding = f"system:kcp:authenticated:apiexport:{name}:maximal-permission-policy"
    return [cluster_role(role, rules), group_binding(binding, role, *groups)]


def rule(group: str, resources: list[str], *verbs: str, names: Sequence[str] = ()) -> Object:
    """Return a rule about resources."""
    found: Object = {"apiGroups": [group], "resources": resources, "verbs": list(verbs)}
    if names:
        found["resourceNames"] = list(names)
    return found


def paths(paths: list[str], *verbs: str) -> Object:
    """Return a rule about paths that are no resources."""
    return {"nonResourceURLs": paths, "verbs": list(verbs)}


def cluster_role(name: str, rules: list[Object]) -> Object:
    """Return a ClusterRole."""
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "ClusterRole",
        "metadata": {"name": name},
        "rules": rules,
    }


def group_binding(name: str, role: str, *groups: str) -> Object:
    """Return a ClusterRoleBinding to groups."""
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": _RBAC, "kind": "Group", "name": group} for group in groups],
    }
