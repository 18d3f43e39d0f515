"""A hub, an edge and a syncer between them as processes, reached over TLS only."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from skerry.api.edge import SYNCER_CONFIGS
from skerry.api.edge_identity import EdgeName, account_name
from skerry.api.errors import AlreadyExists, ApiError, NotFound
from skerry.api.kcp.resources import API_BINDINGS, SYNC_TARGETS, WORKSPACES
from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.app.edge_identity import (
    CredentialTerms,
    HubAccess,
    apply_object,
    edge_of,
    issue,
    open_hub,
)
from skerry.app.edge_join import join
from skerry.app.hub_credential import IDENTITY_FILE
from skerry.logic.fleet.syncing.certificates import decode_identity
from skerry.logic.fleet.syncing.manifest import hub_kubeconfig, mailbox_objects
from skerry.runtime.client import Client, Selection, WriteOptions
from skerry.runtime.discovery import Mapper
from skerry.runtime.kubeconfig import ClientConfig, connect, load
from skerry.runtime.transport import TransportError
from tests.kit.e2e.edges import Edge, ForeignEdge, new_edge
from tests.kit.e2e.hubs import Hub

ACCOUNTS = GroupVersionResource("", "v1", "serviceaccounts")
NAMESPACES = GroupVersionResource("", "v1", "namespaces")
CONFIG_MAPS = GroupVersionResource("", "v1", "configmaps")
DEPLOYMENTS = GroupVersionResource("apps", "v1", "deployments")
IMW, ESPW = "root:imw", "root:espw"
# A user of the shared hub without any right.
ALICE_TOKEN = "alice-secret"
SPEC: Object = {
    "namespaceScope": {
        "namespaces": ["shop"],
        "resources": [
            {"group": "", "resource": "configmaps", "apiVersion": "v1"},
            {"group": "apps", "resource": "deployments", "apiVersion": "v1"},
        ],
    }
}
_SKERRY = Path(sys.executable).with_name("skerry")
_TRANSLATOR = WriteOptions(field_manager="placement-translator")
# Only a failing test waits this long; a hub that was away is asked again within a minute.
_PATIENCE_SECONDS = 90.0
_KINDS = {"configmaps": "ConfigMap", "deployments": "Deployment", "secrets": "Secret"}


class SyncerProcess:
    """One ``skerry syncer``; *program* is what is run instead of ``skerry``."""

    def __init__(
        self,
        directory: Path,
        hub: Path,
        edge: Path,
        *flags: str,
        program: Sequence[str] = (str(_SKERRY),),
        sync_target: str = "florin",
    ) -> None:
        self.data_dir = directory / "syncer"
        self.log_file = directory / "syncer.log"
        self.command = [
            *program, "syncer", "--from-kubeconfig", str(hub), "--to-kubeconfig", str(edge),
            "--sync-target-name", sync_target, "--data-dir", str(self.data_dir), *flags,
        ]  # fmt: skip
        self.process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        with self.log_file.open("a") as log:
            self.process = subprocess.Popen(
                self.command, stdout=subprocess.PIPE, stderr=log, text=True
            )
        assert self.process.stdout is not None
        assert "ready" in self.process.stdout.readline(), self.log_file.read_text()

    def stop(self, how: signal.Signals = signal.SIGTERM) -> int:
        if self.process is None:
            return 0
        self.process.send_signal(how)
        code = self.process.wait(timeout=60)
        assert self.process.stdout is not None
        self.process.stdout.close()
        self.process = None
        return code


class Places:
    """Everything of one test."""

    def __init__(self, directory: Path, hub: Hub | None = None, edge: Edge | None = None) -> None:
        """A *hub* that runs already is shared with others, and not to be harmed."""
        self.directory = directory
        self._shared = hub is not None and bool(hub.url)
        self.name = f"florin-{directory.name[-20:].lower().replace('_', '-').strip('-')}"
        self.hub = hub or Hub(directory / "hub", "--init")
        self.edge: Edge = edge or new_edge(directory / "edge")
        self.hub_kubeconfig = directory / "florin-hub.kubeconfig"
        self.mailbox = ""
        self.uid = ""
        self.access: HubAccess
        self.at_edge: Client

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Places]:
        """Have hub, edge, mailbox and identity; the syncer is the test's to start."""
        try:
            if not self._shared:
                await asyncio.to_thread(self.hub.start)
            await asyncio.to_thread(self.edge.start)
            self.access = open_hub([self.hub.kubeconfig])
            self.at_edge = Client(connect(load([self.edge.kubeconfig])))
            await self.join()
            self.syncer = self.new_syncer()
            yield self
        finally:
            if hasattr(self, "syncer"):
                self.syncer.stop(signal.SIGKILL)
                await self.access.client.transport.close()
                await self.at_edge.transport.close()
            if not self._shared:
                self.hub.stop(signal.SIGKILL)
            if isinstance(self.edge, ForeignEdge):
                await self.edge.clean()
            else:
                self.edge.kill()

    @property
    def in_mailbox(self) -> Client:
        return self.access.at(self.mailbox)

    def new_syncer(self, *flags: str, **others: Any) -> SyncerProcess:
        """Return this edge's syncer, to be started."""
        return SyncerProcess(
            self.directory, self.hub_kubeconfig, self.edge.kubeconfig, *flags, **others
        )

    async def join(self) -> None:
        """Have a SyncTarget, a mailbox and an identity at the hub there is now."""
        await self._make_mailbox()
        await self.bootstrap()

    async def _make_mailbox(self) -> None:
        """Do what the mailbox controller does."""
        root = self.access.at("root")
        with suppress(AlreadyExists):
            await root.create(WORKSPACES, workspace("imw"))
        await until(root, WORKSPACES, "imw", "", _is_ready)
        target = await self.access.at(IMW).create(
            SYNC_TARGETS,
            {
                "apiVersion": "workload.kcp.io/v1alpha1",
                "kind": "SyncTarget",
                "metadata": {"name": self.name},
                "spec": {},
            },
        )
        metadata = target["metadata"]
        name = f"{metadata['annotations']['kcp.io/cluster']}-mb-{metadata['uid']}"
        await self.access.at(ESPW).create(WORKSPACES, workspace(name))
        self.mailbox, self.uid = await edge_of(self.access, self.name, IMW, ESPW)

    @property
    def edge_name(self) -> EdgeName:
        return EdgeName(self.mailbox, self.uid)

    async def bootstrap(self, terms: CredentialTerms = CredentialTerms()) -> None:  # noqa: B008
        made = await issue(self.access, self.name, self.edge_name, terms)
        self.hub_kubeconfig.write_text(yaml.safe_dump(made))

    async def joined(self) -> ClientConfig:
        """Return the way to the mailbox with the edge's certificate, which is had now."""
        folder = self.directory / "syncer"
        await join(self.name, self.hub_kubeconfig, folder, wait_seconds=30, waiting=lambda _: None)
        kept = decode_identity((folder / IDENTITY_FILE).read_bytes())
        return replace(
            load([self.hub_kubeconfig]),
            token="",
            certificate=kept.certificate.encode(),
            key=kept.key.encode(),
        )

    async def bootstrap_account(self) -> str:
        """Give the edge what the previous version gave it; return the token."""
        mailbox = self.in_mailbox
        mapper = Mapper(mailbox)
        for obj in mailbox_objects(self.name):
            await apply_object(mailbox, mapper, obj)
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        made = await mailbox.create(
            ACCOUNTS, body, "default", name=account_name(self.name), subresource="token"
        )
        token = str(made["status"]["token"])
        config = load([self.hub_kubeconfig])
        old = hub_kubeconfig(config.server, config.ca, self.name, token)
        self.hub_kubeconfig.write_text(yaml.safe_dump(old))
        return token

    async def configure(self, spec: Object | None = None) -> None:
        """Do what the translator does before it places anything."""
        client = self.in_mailbox
        for name, path, export in (
            ("bind-edge", ESPW, "edge.kcp.io"),
            ("bind-kubernetes", "root:compute", "kubernetes"),
        ):
            body = {
                "apiVersion": "apis.kcp.io/v1alpha1",
                "kind": "APIBinding",
                "metadata": {"name": name},
                "spec": {"reference": {"export": {"path": path, "name": export}}},
            }
            await client.patch(API_BINDINGS, name, body, kind="apply", options=_TRANSLATOR)
        config = {
            "apiVersion": "edge.kcp.io/v1alpha1",
            "kind": "SyncerConfig",
            "metadata": {"name": "the-one"},
            "spec": SPEC if spec is None else spec,
        }
        await client.patch(
            SYNCER_CONFIGS, "the-one", config, kind="apply", force=True, options=_TRANSLATOR
        )

    async def put(self, gvr: GroupVersionResource, name: str, content: Object) -> None:
        client = self.in_mailbox
        labels = {"edge.kcp.io/projected": "yes"}
        metadata = {"name": "shop", "labels": labels}
        place = {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
        await client.patch(NAMESPACES, "shop", place, kind="apply", options=_TRANSLATOR)
        body = {
            "apiVersion": f"{gvr.group}/{gvr.version}".lstrip("/"),
            "kind": _KINDS[gvr.resource],
            "metadata": {
                "name": name,
                "namespace": "shop",
                "labels": {"edge.kcp.io/projected": "yes"},
            },
            **content,
        }
        await client.patch(gvr, name, body, "shop", kind="apply", force=True, options=_TRANSLATOR)

    async def arrives(
        self, gvr: GroupVersionResource, name: str, holds: Callable[[Object], bool] | None = None
    ) -> Object:
        """Wait until an object is at the edge (as *holds* wants it)."""
        found = await until(
            self.at_edge, gvr, name, "shop", lambda o: o is not None and (not holds or holds(o))
        )
        assert found is not None
        return found

    async def goes(self, gvr: GroupVersionResource, name: str) -> None:
        await until(self.at_edge, gvr, name, "shop", lambda o: o is None)

    async def condition(self, kind: str, status: str) -> Object:
        """Wait until the SyncerConfig says so."""

        def reported(config: Object | None) -> bool:
            return any(
                c["type"] == kind and c["status"] == status for c in _conditions(config or {})
            )

        config = await until(self.in_mailbox, SYNCER_CONFIGS, "the-one", "", reported)
        return next(c for c in _conditions(config or {}) if c["type"] == kind)

    async def names_at_edge(self, gvr: GroupVersionResource) -> set[str]:
        found = await self.at_edge.list(gvr, Selection(namespace="shop"))
        names = {item["metadata"]["name"] for item in found.items}
        return names - {"kube-root-ca.crt"}


async def until(
    client: Client,
    gvr: GroupVersionResource,
    name: str,
    namespace: str,
    holds: Callable[[Object | None], bool],
) -> Object | None:
    """Follow one object until *holds* is true of it (None: it is absent); servers may restart."""
    async with asyncio.timeout(_PATIENCE_SECONDS):
        while True:
            try:
                return await _followed(client, gvr, name, namespace, holds)
            except (TransportError, ApiError):
                await asyncio.sleep(0.1)  # the server is away, or the type is not there yet


async def _followed(
    client: Client,
    gvr: GroupVersionResource,
    name: str,
    namespace: str,
    holds: Callable[[Object | None], bool],
) -> Object | None:
    selection = Selection(namespace=namespace, fields=f"metadata.name={name}")
    found = await client.list(gvr, selection)
    now = found.items[0] if found.items else None
    if holds(now):
        return now
    version = found.resource_version
    async with client.watch(gvr, selection, resource_version=version) as events:
        async for event in events:
            if event.kind == "BOOKMARK":
                continue
            now = None if event.kind == "DELETED" else event.object
            if holds(now):
                return now
    raise NotFound("the watch ended")


def workspace(name: str) -> Object:
    return {
        "apiVersion": "tenancy.kcp.io/v1alpha1",
        "kind": "Workspace",
        "metadata": {"name": name},
        "spec": {"type": {"name": "universal", "path": "root"}},
    }


def _is_ready(workspace: Object | None) -> bool:
    return bool(workspace) and (workspace or {}).get("status", {}).get("phase") == "Ready"


def _conditions(config: Object) -> list[Object]:
    return list((config.get("status") or {}).get("conditions") or [])


def deployment(image: str = "httpd") -> Object:
    labels = {"app": "web"}
    pod = {"containers": [{"name": "web", "image": image}]}
    return {
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        }
    }


def page(text: str) -> dict[str, dict[str, str]]:
    return {"data": {"index.html": text}}


async def begun(places: Places) -> None:
    """Have a page and a Deployment at the edge."""
    await places.configure()
    await places.put(CONFIG_MAPS, "page", page("hello"))
    await places.put(DEPLOYMENTS, "web", deployment())
    await asyncio.to_thread(places.syncer.start)
    await places.arrives(CONFIG_MAPS, "page")
    await places.arrives(DEPLOYMENTS, "web")


async def says(places: Places, text: str) -> None:
    await places.arrives(CONFIG_MAPS, "page", lambda o: o["data"] == {"index.html": text})
