"""Who an edge is: finding its mailbox, giving it a credential, taking it back.

All of it may be repeated: what exists is brought to the wanted form, nothing is added.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import yaml

from skerry.api.edge import SYNCER_CONFIGS, Mailbox
from skerry.api.edge_identity import (
    BOOTSTRAP_LIFETIME,
    EXTENSION,
    MAILBOX_NAMESPACE,
    REVOKED,
    BootstrapToken,
    EdgeName,
    account_name,
    bootstrap_secret,
)
from skerry.api.errors import Forbidden, NotFound
from skerry.api.kcp.resources import LOGICAL_CLUSTERS, SYNC_TARGETS, WORKSPACES
from skerry.api.kinds import GroupVersion, GroupVersionKind, GroupVersionResource
from skerry.api.objects import Object
from skerry.api.refs import CLUSTER_ANNOTATION
from skerry.app.missing_workspace import missing_workspace
from skerry.kit.ids import SystemIds
from skerry.kit.timestamps import parse_rfc3339, rfc3339
from skerry.logic.fleet.syncing.access import edge_access
from skerry.logic.fleet.syncing.manifest import (
    ManifestTerms,
    edge_manifest,
    helm_values,
    hub_kubeconfig,
    mailbox_objects,
)
from skerry.logic.machinery.edges.scope import scope_of, united
from skerry.runtime.client import Client, Selection, WriteOptions
from skerry.runtime.discovery import Mapper
from skerry.runtime.kubeconfig import ClientConfig, Overrides, connect, load

_SECRETS = GroupVersionResource("", "v1", "secrets")
_ACCOUNTS = GroupVersionResource("", "v1", "serviceaccounts")
_ROLES = GroupVersionResource("rbac.authorization.k8s.io", "v1", "clusterroles")
_BINDINGS = GroupVersionResource("rbac.authorization.k8s.io", "v1", "clusterrolebindings")
_OPTIONS = WriteOptions(field_manager="skerry-bootstrap")

# Long enough for an edge that is away over a holiday; the syncer renews it from the second day on.
TOKEN_LIFETIME = timedelta(days=7)
# 256 bits: nobody guesses them in any number of tries.
_SECRET_BYTES = 32
_ID_LENGTH = 10
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


async def edge_of(
    hub: HubAccess, sync_target: str, imw: str, espw: str, *, wait_seconds: float = 30.0
) -> EdgeName:
    """Return an edge by its SyncTarget; waits for a mailbox that is being made."""
    mailbox = await mailbox_for(hub, sync_target, imw)
    try:
        async with asyncio.timeout(wait_seconds):
            cluster = await _ready_workspace(hub.at(espw), mailbox.workspace)
    except TimeoutError as error:
        raise NoMailbox(
            f"workspace {espw} has no ready mailbox {mailbox} for {sync_target!r}: is the mailbox "
            "controller running? It is one of skerry controllers, and of skerry up --init"
        ) from error
    return EdgeName(cluster, mailbox.uid)


async def mailbox_for(hub: HubAccess, sync_target: str, imw: str) -> Mailbox:
    """Return the mailbox that belongs to a SyncTarget; it may be still to be made."""
    try:
        return mailbox_of(await hub.at(imw).get(SYNC_TARGETS, sync_target))
    except Forbidden:
        if missing := await missing_workspace(hub.client, imw):
            raise NoMailbox(f'workspace "{missing}" not found') from None
        raise
    except NotFound as error:
        raise NoMailbox(
            f"workspace {imw} has no SyncTarget {sync_target!r}: make it with kubectl kubestellar "
            f"ensure location {sync_target} KEY=VALUE, or name its workspace with --imw"
        ) from error


def mailbox_path(espw: str, mailbox: Mailbox) -> str:
    """Return where a mailbox is; whoever lets edges in need not read the provider workspace."""
    return f"{espw}:{mailbox.workspace}"


def mailbox_of(sync_target: Object) -> Mailbox:
    """Return the mailbox that belongs to a SyncTarget."""
    metadata = sync_target["metadata"]
    return Mailbox((metadata.get("annotations") or {}).get(CLUSTER_ANNOTATION, ""), metadata["uid"])


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


async def issues_certificates(hub: HubAccess, mailbox: str) -> bool:
    """Tell whether the hub gives edges certificates; one that is not ours does not."""
    return EXTENSION in await hub.at(mailbox).extensions()


@dataclass(frozen=True, slots=True)
class CredentialTerms:
    """What the credential is like that an edge begins with."""

    lifetime: timedelta | None = None
    """How long it can be used; None: an hour, or a week for a token that is all there is."""

    approved: bool = True
    """Whether the first key that redeems it needs no approval by a person."""

    server: str = ""
    """Where the edge finds the hub; empty: where we do."""


_USUAL = CredentialTerms()


async def issue(
    hub: HubAccess, sync_target: str, edge: EdgeName, terms: CredentialTerms = _USUAL
) -> Object:
    """Return a kubeconfig with a fresh credential by which an edge begins.

    On our hub that is a bootstrap credential, which buys a certificate for one key and nothing
    else. Elsewhere it is a token of a ServiceAccount in the mailbox.
    """
    if await issues_certificates(hub, edge.mailbox):
        token, uid = await _bootstrap_token(hub.at(edge.mailbox), sync_target, terms), edge.uid
    else:
        token, uid = await _account_token(hub.at(edge.mailbox), sync_target, terms), ""
    where = f"{(terms.server or hub.base).rstrip('/')}{_CLUSTERS}{edge.mailbox}"
    return hub_kubeconfig(where, hub.config.ca, sync_target, token, uid)


async def _bootstrap_token(client: Client, sync_target: str, terms: CredentialTerms) -> str:
    ids = SystemIds()
    secret = base64.urlsafe_b64encode(ids.bytes(_SECRET_BYTES)).decode().rstrip("=")
    token = BootstrapToken(ids.suffix(_ID_LENGTH), secret)
    now = await _hub_time(client)
    made = bootstrap_secret(
        token,
        sync_target=sync_target,
        expiration=rfc3339(now + (terms.lifetime or BOOTSTRAP_LIFETIME)),
        approved=terms.approved,
    )
    await client.create(_SECRETS, made, MAILBOX_NAMESPACE, options=_OPTIONS)
    return token.bearer


async def _hub_time(client: Client) -> datetime:
    """Return the time by the clock that will judge the credential; ours may be another."""
    tried = {"metadata": {"generateName": "time-"}}
    options = WriteOptions(dry_run=True)
    made = await client.create(_SECRETS, tried, MAILBOX_NAMESPACE, options=options)
    return parse_rfc3339(made["metadata"]["creationTimestamp"])


async def _account_token(client: Client, sync_target: str, terms: CredentialTerms) -> str:
    mapper = Mapper(client)
    for obj in mailbox_objects(sync_target):
        await apply_object(client, mapper, obj)
    lifetime = terms.lifetime or TOKEN_LIFETIME
    request = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": int(lifetime.total_seconds())},
    }
    answer = await client.create(
        _ACCOUNTS,
        request,
        MAILBOX_NAMESPACE,
        name=account_name(sync_target),
        subresource="token",
    )
    return str(answer["status"]["token"])


async def revoke(hub: HubAccess, sync_target: str, mailbox: str) -> None:
    """Shut an edge out: whatever it has, and whatever was made in its mailbox, opens nothing more.

    A hub that is not ours cannot close a mailbox: there the account goes, and its tokens with it.
    """
    client = hub.at(mailbox)
    if await issues_certificates(hub, mailbox):
        # The hub writes the time itself, by the clock that dated the certificates.
        patch = {"metadata": {"annotations": {REVOKED: "now"}}}
        await client.patch(LOGICAL_CLUSTERS, "cluster", patch, options=_OPTIONS)
        return
    name = account_name(sync_target)
    for gvr, namespace in ((_BINDINGS, ""), (_ROLES, ""), (_ACCOUNTS, MAILBOX_NAMESPACE)):
        with contextlib.suppress(NotFound):
            await client.delete(gvr, name, namespace)


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
    storage_class: str = "",
    tunnel: bool = False,
    for_helm: bool = False,
) -> str:
    """Return the YAML to apply at the edge, with rights for what is placed there now.

    *for_helm* returns the chart's values for the same objects instead.
    """
    try:
        configs = (await hub.at(mailbox).list(SYNCER_CONFIGS)).items
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
        makes_key=await issues_certificates(hub, mailbox),
        replicas=replicas,
        admin=admin,
        storage_class=storage_class,
        tunnel=tunnel,
    )
    if for_helm:
        return yaml.safe_dump(helm_values(terms), sort_keys=False)
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
