"""Tenants that try to get at what is not theirs: homes, accounts, and a provider to get at."""

from __future__ import annotations

from typing import Any

from tests.kit.server.hub import BINDERS, ROLES, Hub, provider, role

RBAC = "rbac.authorization.k8s.io"
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
HOME = "/clusters/root/apis/tenancy.kcp.io/v1alpha1/workspaces/~"
TYPES = "/apis/tenancy.kcp.io/v1alpha1/workspacetypes"
BIND: dict[str, Any] = {"apiGroups": ["apis.kcp.io"], "resources": ["apiexports"],
                        "verbs": ["bind"]}  # fmt: skip
USE: dict[str, Any] = {"apiGroups": ["tenancy.kcp.io"], "resources": ["workspacetypes"],
                       "verbs": ["use"]}  # fmt: skip
ENTER: dict[str, Any] = {"nonResourceURLs": ["/"], "verbs": ["access"]}
ALL: dict[str, Any] = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}


def user(name: str) -> dict[str, str]:
    return {"apiGroup": RBAC, "kind": "User", "name": name}


def group(name: str) -> dict[str, str]:
    return {"apiGroup": RBAC, "kind": "Group", "name": name}


def account(name: str, namespace: str = "default") -> dict[str, str]:
    return {"kind": "ServiceAccount", "name": name, "namespace": namespace}


def granted(name: str, role_name: str, *subjects: dict[str, str]) -> dict[str, Any]:
    """Return a ClusterRoleBinding to *subjects*."""
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": role_name},
        "subjects": list(subjects),
    }


async def allow(
    hub: Hub, where: str, name: str, rules: list[dict[str, Any]], *subjects: dict[str, str]
) -> None:
    """Grant *rules* to *subjects* in the workspace *where*."""
    await hub.create(where, ROLES, role(name, *rules))
    await hub.create(where, BINDERS, granted(name, name, *subjects))


async def home(hub: Hub, name: str) -> str:
    """Return the cluster of somebody's home workspace."""
    reply = await hub.ask(name, "GET", HOME)
    assert reply.status == 200, reply.body
    return str(reply.body["spec"]["cluster"])


async def robot(hub: Hub, where: str, owner: str, name: str = "robot") -> str:
    """Make a ServiceAccount that is administrator of *where*; return a token of it."""
    body = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}}
    await hub.create(where, ACCOUNTS, body, owner)
    await hub.create(where, BINDERS, granted(name, "cluster-admin", account(name)), owner)
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
             "spec": {"expirationSeconds": 3600}}  # fmt: skip
    issued = await hub.create(where, f"{ACCOUNTS}/{name}/token", asked, owner)
    return str(issued["status"]["token"])


async def shop(hub: Hub, *subjects: dict[str, str], **spec: Any) -> str:
    """Offer widgets from ``root:org:shop``, to be entered and bound by *subjects*."""
    await hub.workspace("root", "org")
    cluster = await hub.workspace("root:org", "shop")
    await provider(hub, cluster, **spec)
    if subjects:
        await allow(hub, cluster, "binders", [BIND, ENTER], *subjects)
    return cluster
