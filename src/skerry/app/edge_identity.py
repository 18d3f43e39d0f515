"""Who an edge is: finding its mailbox, giving it a credential, taking it back.

All of it may be repeated: what exists is brought to the wanted form, nothing is added.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import yaml

from skerry.api.edge_identity import MAILBOX_NAMESPACE
from skerry.api.errors import NotFound
from skerry.api.kinds import GroupVersion, GroupVersionKind, GroupVersionResource
from skerry.edge.syncer.mailbox import CONFIGS
from skerry.logic.resource import Object
from skerry.logic.syncing.access import edge_access
from skerry.logic.syncing.manifest import (
    ManifestTerms,
    account_name,
    edge_manifest,
    hub_kubeconfig,
    mailbox_objects,
)
from skerry.logic.syncing.scope import scope_of, united
from skerry.runtime.client import Client, Selection, WriteOptions
from skerry.runtime.discovery import Mapper
from skerry.runtime.kubeconfig import ClientConfig, Overrides, connect, load

SYNC_TARGETS = GroupVersionResource("workload.kcp.io", "v1alpha1", "synctargets")
WORKSPACES = GroupVersionResource("tenancy.kcp.io", "v1alpha1", "workspaces")
_ACCOUNTS = GroupVersionResource("", "v1", "serviceaccounts")
_ROLES = GroupVersionResource("rbac.authorization.k8s.io", "v1", "clusterroles")
_BINDINGS = GroupVersionResource("rbac.authorization.k8s.io", "v1", "clusterrolebindings")
_OPTIONS = WriteOptions(field_manager="skerry-bootstrap")

# Long enough for an edge that is away over a holiday; the syncer renews it from the second day on.
TOKEN_SECONDS = 7 * 24 * 3600
_CLUSTERS = "/clusters/"


class NoMailbox(Exception):
    """There is no such SyncTarget, or no mailbox for it yet."""


class WrongProvider(Exception):
    """The workspace named as edge service provider is none."""


@dataclass(frozen=True, slots=True)
class HubAccess:
    """A way to a whole hub, as its administrator."""

    client: Client
    config: ClientConfig
    base: str
    current: str

    def at(self, workspace: str) -> Client:
        """Return the client for one workspace."""
        return self.client.for_cluster(workspace)


def open_hub(paths: Sequence[Path], context: str = "", server: str = "") -> HubAccess:
    """Return the way to the hub a kubeconfig's context leads to, whichever workspace it names."""
    config = load(paths, Overrides(context=context, server=server))
    base, _, rest = config.server.partition(_CLUSTERS)
    current = rest.partition("/")[0]
    bare = ClientConfig(
        server=base,
        ca=config.ca,
        insecure=config.insecure,
        tls_server_name=config.tls_server_name,
        certificate=config.certificate,
        key=config.key,
        token=config.token,
        token_file=config.token_file,
        username=config.username,
        password=config.password,
        exec_plugin=config.exec_plugin,
    )
    return HubAccess(Client(connect(bare), user_agent="skerry"), bare, base, current)


async def mailbox_of(
    hub: HubAccess, sync_target: str, imw: str, espw: str, *, wait_seconds: float = 30.0
) -> str:
    """Return the logical cluster of an edge's mailbox; waits for one that is being made."""
    try:
        target = await hub.at(imw).get(SYNC_TARGETS, sync_target)
    except NotFound as error:
        raise NoMailbox(
            f"workspace {imw} has no SyncTarget {sync_target!r}: make it with kubectl kubestellar "
            f"ensure location {sync_target} KEY=VALUE, or name its workspace with --imw"
        ) from error
    metadata = target["metadata"]
    cluster = (metadata.get("annotations") or {}).get("kcp.io/cluster", "")
    name = f"{cluster}-mb-{metadata['uid']}"
    try:
        async with asyncio.timeout(wait_seconds):
            return await _ready_workspace(hub.at(espw), name)
    except TimeoutError as error:
        raise NoMailbox(
            f"workspace {espw} has no ready mailbox {name} for {sync_target!r}: is the mailbox "
            "controller running? It is one of skerry controllers, and of skerry up --init"
        ) from error


async def _ready_workspace(client: Client, name: str) -> str:
    """Wait for a workspace to be ready; return its logical cluster."""
    selection = Selection(fields=f"metadata.name={name}")
    found = await client.list(WORKSPACES, selection)
    for item in found.items:
        if cluster := _cluster_if_ready(item, name):
            return cluster
    async with client.watch(
        WORKSPACES, selection, resource_version=found.resource_version
    ) as events:
        async for event in events:
            present = event.kind in ("ADDED", "MODIFIED")
            if present and (cluster := _cluster_if_ready(event.object, name)):
                return cluster
    raise NoMailbox(f"the watch for workspace {name} ended before it was ready")


def _cluster_if_ready(workspace: Object, name: str) -> str:
    if workspace["metadata"]["name"] != name:
        return ""
    ready = (workspace.get("status") or {}).get("phase") == "Ready"
    return str((workspace.get("spec") or {}).get("cluster") or "") if ready else ""


async def issue(
    hub: HubAccess,
    sync_target: str,
    mailbox: str,
    *,
    token_seconds: int = TOKEN_SECONDS,
    server: str = "",
) -> Object:
    """Make sure the identity exists and return a kubeconfig with a fresh token for it."""
    client = hub.at(mailbox)
    mapper = Mapper(client)
    for obj in mailbox_objects(sync_target):
        await apply_object(client, mapper, obj)
    request = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": token_seconds},
    }
    answer = await client.create(
        _ACCOUNTS,
        request,
        MAILBOX_NAMESPACE,
        name=account_name(sync_target),
        subresource="token",
    )
    where = f"{(server or hub.base).rstrip('/')}{_CLUSTERS}{mailbox}"
    return hub_kubeconfig(where, hub.config.ca, sync_target, answer["status"]["token"])


async def revoke(hub: HubAccess, sync_target: str, mailbox: str) -> None:
    """Take an edge's identity away: its account, and so every token of it, and its rights."""
    client, name = hub.at(mailbox), account_name(sync_target)
    for gvr, namespace in ((_BINDINGS, ""), (_ROLES, ""), (_ACCOUNTS, MAILBOX_NAMESPACE)):
        try:
            await client.delete(gvr, name, namespace)
        except NotFound:
            continue


async def manifest(
    hub: HubAccess,
    sync_target: str,
    mailbox: str,
    *,
    image: str,
    kubeconfig: Object | None,
    namespace: str = "",
    admin: bool = False,
    replicas: int = 1,
) -> str:
    """Return the YAML to apply at the edge, with rights for what is placed there now."""
    try:
        configs = (await hub.at(mailbox).list(CONFIGS)).items
    except NotFound:
        configs = []  # the mailbox has no such type yet: nothing is placed
    scope = united(scope_of(config.get("spec")) for config in configs)
    terms = ManifestTerms(
        sync_target=sync_target,
        mailbox_cluster=mailbox,
        image=image,
        access=edge_access(scope),
        kubeconfig=None if kubeconfig is None else yaml.safe_dump(kubeconfig, sort_keys=False),
        namespace=namespace,
        replicas=replicas,
        admin=admin,
    )
    return "---\n".join(yaml.safe_dump(doc, sort_keys=False) for doc in edge_manifest(terms))


async def apply_object(client: Client, mapper: Mapper, obj: Object) -> Object:
    """Apply one object of any type, in the name of bootstrap."""
    group, version = GroupVersion.parse(obj["apiVersion"])
    info = await mapper.resource_for(GroupVersionKind(group, version, obj["kind"]))
    metadata = obj["metadata"]
    return await client.patch(
        info.gvr,
        metadata["name"],
        obj,
        metadata.get("namespace", ""),
        kind="apply",
        force=True,
        options=_OPTIONS,
    )


def with_host(url: str, host: str) -> str:
    """Return *url* with another ``host[:port]``."""
    parts = urlsplit(url)
    port = f":{parts.port}" if parts.port and ":" not in host else ""
    return urlunsplit((parts.scheme, f"{host}{port}", parts.path, "", ""))
