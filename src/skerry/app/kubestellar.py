"""What ``kubestellar`` and ``kubectl kubestellar`` do: a provider, locations, workload workspaces.

Each function returns the lines to print, in kubectl's own words, and none when nothing had to be
done. Nothing sleeps: what takes time is awaited by its own event.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence

from skerry.api.errors import AlreadyExists, ApiError, NotFound
from skerry.api.kcp.resources import (
    API_BINDINGS,
    API_EXPORTS,
    API_RESOURCE_SCHEMAS,
    LOCATIONS,
    SYNC_TARGETS,
    WORKSPACES,
)
from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.app.edge_identity import HubAccess
from skerry.runtime.client import Client, Selection

_RBAC = "rbac.authorization.k8s.io"
_RESOURCES = {
    "APIExport": API_EXPORTS,
    "APIResourceSchema": API_RESOURCE_SCHEMAS,
    "ClusterRole": GroupVersionResource(_RBAC, "v1", "clusterroles"),
    "ClusterRoleBinding": GroupVersionResource(_RBAC, "v1", "clusterrolebindings"),
    "Workspace": WORKSPACES,
}
_TARGET = "synctarget.workload.kcp.io"
_LOCATION = "location.scheduling.kcp.io"
_NAME = re.compile(r"^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$")
_LABEL_KEY = re.compile(
    r"^([a-z0-9]([a-z0-9.-]*[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$"
)
_LABEL_VALUE = re.compile(r"^([A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?$")
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


class CommandFailed(Exception):
    """Why a command failed, and the exit code that says so."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


def checked_labels(words: Sequence[str]) -> dict[str, str]:
    """Return ``k=v`` words as labels; exit code 1 for what is none."""
    labels: dict[str, str] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or not _LABEL_KEY.match(key) or not _LABEL_VALUE.match(value):
            raise CommandFailed(1, f"{word!r} is not a valid label assignment, want key=value")
        if key == "id":
            raise CommandFailed(1, "label 'id' is reserved: it is set to the location's name")
        labels[key] = value
    if not labels:
        raise CommandFailed(1, "at least one label must be given, as key=value")
    return labels


def checked_name(name: str) -> str:
    """Return a location's name; exit code 1 for one that cannot be."""
    if not _NAME.match(name):
        raise CommandFailed(1, f"location name {name!r} must be a lower-case DNS name")
    if name == "default":
        raise CommandFailed(1, "location name 'default' is taken by the server's own Location")
    return name


async def ensure_location(
    hub: HubAccess, imw: str, name: str, labels: Mapping[str, str]
) -> list[str]:
    """Make sure of a SyncTarget and a Location of this name with these labels."""
    client = hub.at(imw)
    wanted = {"id": name, **labels}
    selector = {"resource": {"group": "workload.kcp.io", "version": "v1alpha1",
                             "resource": "synctargets"},
                "instanceSelector": {"matchLabels": {"id": name}}}  # fmt: skip
    target: Object = {
        "apiVersion": "workload.kcp.io/v1alpha1",
        "kind": "SyncTarget",
        "metadata": {"name": name, "labels": wanted},
        "spec": {},
    }
    location: Object = {
        "apiVersion": "scheduling.kcp.io/v1alpha1",
        "kind": "Location",
        "metadata": {"name": name, "labels": dict(labels)},
        "spec": selector,
    }
    lines = await _ensured(client, SYNC_TARGETS, target, _TARGET)
    lines += await _ensured(client, LOCATIONS, location, _LOCATION)
    lines += await _removed(client, LOCATIONS, "default", _LOCATION)
    return lines


async def _ensured(client: Client, gvr: GroupVersionResource, obj: Object, shown: str) -> list[str]:
    name, wanted = obj["metadata"]["name"], obj["metadata"]["labels"]
    try:
        found = await client.get(gvr, name)
    except NotFound:
        try:
            await client.create(gvr, obj)
        except AlreadyExists:
            found = await client.get(gvr, name)
        except ApiError as error:
            raise CommandFailed(3, f"failed to create {shown}/{name}: {error}") from error
        else:
            return [f"{shown}/{name} created"]
    present = found["metadata"].get("labels") or {}
    if all(present.get(key) == value for key, value in wanted.items()):
        return []
    try:
        await client.patch(gvr, name, {"metadata": {"labels": dict(wanted)}})
    except ApiError as error:
        raise CommandFailed(4, f"failed to label {shown}/{name}: {error}") from error
    return [f"{shown}/{name} labeled"]


async def remove_location(hub: HubAccess, imw: str, name: str) -> list[str]:
    """Remove the SyncTarget and the Location; what is absent needs no word."""
    client = hub.at(imw)
    lines = await _removed(client, LOCATIONS, name, _LOCATION)
    return lines + await _removed(client, SYNC_TARGETS, name, _TARGET)


async def _removed(client: Client, gvr: GroupVersionResource, name: str, shown: str) -> list[str]:
    try:
        await client.delete(gvr, name)
    except NotFound:
        return []
    return [f'{shown} "{name}" deleted']


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
            "apiVersion": "tenancy.kcp.io/v1alpha1",
            "kind": "Workspace",
            "metadata": {"name": name},
            "spec": {"type": {"name": "universal", "path": "root"}},
        }
        await home.create(WORKSPACES, body)
        lines.append(f"workspace.tenancy.kcp.io/{name} created")
    await ready_workspace(home, name)
    client = hub.at(path)
    lines += await _bound(client, "bind-espw", "root:espw", "edge.kcp.io")
    for export in _EXPORTS:
        if with_kube:
            lines += await _bound(client, f"bind-{export}", "root:compute", export)
        else:
            shown = "apibinding.apis.kcp.io"
            lines += await _removed(client, API_BINDINGS, f"bind-{export}", shown)
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
    return await _removed(hub.at(parent), WORKSPACES, name, "workspace.tenancy.kcp.io")


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
