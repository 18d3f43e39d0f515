"""What ``kubestellar`` and ``kubectl kubestellar`` do: a provider, locations, workload workspaces.

Each function returns the lines to print, in kubectl's own words, and none when nothing had to be
done. Nothing sleeps: what takes time is awaited by its own event.
"""

from __future__ import annotations

import asyncio

from skerry.api.edge import EXPORT, USUAL_PROVIDER
from skerry.api.errors import AlreadyExists, ApiError, NotFound
from skerry.api.kcp.resources import (
    API_BINDINGS,
    API_EXPORTS,
    API_RESOURCE_SCHEMAS,
    WORKSPACES,
)
from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.app.edge_identity import HubAccess
from skerry.app.inventory import CommandFailed, removed
from skerry.runtime.client import Client, Selection

_RBAC = "rbac.authorization.k8s.io"
_RESOURCES = {
    "APIExport": API_EXPORTS,
    "APIResourceSchema": API_RESOURCE_SCHEMAS,
    "ClusterRole": GroupVersionResource(_RBAC, "v1", "clusterroles"),
    "ClusterRoleBinding": GroupVersionResource(_RBAC, "v1", "clusterrolebindings"),
    "Workspace": WORKSPACES,
}
_EXPORTS = (
    "kubernetes",
    "apps",
    "autoscaling",
    "batch",
    "core.k8s.io",
    "discovery.k8s.io",
    "networking.k8s.io",
    "policy",
    "storage.k8s.io",
)
_READY_SECONDS = 60.0


async def namesake_warning(hub: HubAccess, parent: str, name: str) -> str:
    """Return a warning where the workspace is to be made one level below one of the same name.

    That is how it looks when the command is given in the wrong place, most often one too deep.
    """
    above = parent.rpartition(":")[0]
    if not above:
        return ""
    try:
        await hub.at(above).get(WORKSPACES, name)
    except ApiError:
        return ""  # there is none, or none we may know of
    return (
        f"{above} has a workspace {name!r} too: if that is the one you mean, "
        f"first: kubectl ws {above}"
    )


async def ensure_wmw(hub: HubAccess, parent: str, name: str, *, with_kube: bool) -> list[str]:
    """Make sure of a workload workspace below *parent*, with its bindings."""
    lines: list[str] = []
    home = hub.at(parent)
    path = f"{parent}:{name}"
    try:
        await home.get(WORKSPACES, name)
    except NotFound:
        body = {
            "apiVersion": str(WORKSPACES.group_version),
            "kind": "Workspace",
            "metadata": {"name": name},
            "spec": {"type": {"name": "universal", "path": "root"}},
        }
        await home.create(WORKSPACES, body)
        lines.append(f"workspace.tenancy.kcp.io/{name} created")
    await ready_workspace(home, name)
    client = hub.at(path)
    lines += await _bound(client, "bind-espw", USUAL_PROVIDER, EXPORT)
    for export in _EXPORTS:
        if with_kube:
            lines += await _bound(client, f"bind-{export}", "root:compute", export)
        else:
            shown = "apibinding.apis.kcp.io"
            lines += await removed(client, API_BINDINGS, f"bind-{export}", shown)
    return lines


async def _bound(client: Client, name: str, path: str, export: str) -> list[str]:
    body = {
        "apiVersion": "apis.kcp.io/v1alpha1",
        "kind": "APIBinding",
        "metadata": {"name": name},
        "spec": {"reference": {"export": {"path": path, "name": export}}},
    }
    try:
        await client.create(API_BINDINGS, body)
    except AlreadyExists:
        return []
    return [f"apibinding.apis.kcp.io/{name} created"]


async def ready_workspace(client: Client, name: str) -> None:
    """Wait until a child workspace is ready."""
    selection = Selection(fields=f"metadata.name={name}")
    async with asyncio.timeout(_READY_SECONDS):
        found = await client.list(WORKSPACES, selection)
        if any(_is_ready(item, name) for item in found.items):
            return
        version = found.resource_version
        async with client.watch(WORKSPACES, selection, resource_version=version) as events:
            async for event in events:
                if event.kind != "BOOKMARK" and _is_ready(event.object, name):
                    return
    raise CommandFailed(1, f"workspace {name} did not become ready")


def _is_ready(workspace: Object, name: str) -> bool:
    named = workspace["metadata"]["name"] == name
    return named and (workspace.get("status") or {}).get("phase") == "Ready"


async def remove_wmw(hub: HubAccess, parent: str, name: str) -> list[str]:
    """Remove a workload workspace, if there is one."""
    return await removed(hub.at(parent), WORKSPACES, name, "workspace.tenancy.kcp.io")


async def populate(hub: HubAccess) -> None:
    """Make sure of the provider workspace, its exports, and the finer ones of Kubernetes' kinds."""
    # Only here: the schemas of every kind take a while to load, which other commands can spare.
    from skerry.app.hub_content import edge_provider_objects, upgraded

    root = hub.at("root")
    for cluster, obj in edge_provider_objects():
        client, resource = hub.at(cluster), _RESOURCES[obj["kind"]]
        try:
            await client.create(resource, obj)
        except AlreadyExists:
            live = await client.get(resource, obj["metadata"]["name"])
            changed = upgraded(live, obj)
            if changed is not None:
                await client.update(resource, changed)
        if obj["kind"] == "Workspace":
            await ready_workspace(root, obj["metadata"]["name"])


async def check_provider(hub: HubAccess, espw: str) -> None:
    """Exit code 2 unless *espw* is a workspace that can have mailboxes."""
    try:
        await hub.at(espw).list_page(WORKSPACES, limit=1)
    except ApiError as error:
        raise CommandFailed(
            2,
            f"{espw} is no edge service provider workspace: {error}; kubestellar init makes "
            "root:espw, --espw names another",
        ) from error
