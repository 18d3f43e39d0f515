"""Roles, bindings and subjects of RBAC, in as few words as possible."""

from __future__ import annotations

from typing import Any

from skerry.api.objects import Object


def role(name: str, *rules: Object, namespace: str = "", **more: Any) -> Object:
    labels = more.pop("labels", {})
    metadata: Object = {"name": name, "labels": labels}
    if namespace:
        metadata["namespace"] = namespace
    kind = "Role" if namespace else "ClusterRole"
    return {"kind": kind, "metadata": metadata, "rules": list(rules), **more}


def binding(
    name: str, role_kind: str, role_name: str, *subjects: Object, namespace: str = ""
) -> Object:
    metadata: Object = {"name": name}
    if namespace:
        metadata["namespace"] = namespace
    return {
        "kind": "RoleBinding" if namespace else "ClusterRoleBinding",
        "metadata": metadata,
        "roleRef": {"kind": role_kind, "name": role_name},
        "subjects": list(subjects),
    }


def user(name: str) -> Object:
    return {"kind": "User", "name": name}


def group(name: str) -> Object:
    return {"kind": "Group", "name": name}


READ_PODS = {"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods"]}
