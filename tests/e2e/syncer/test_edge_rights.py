"""A syncer with exactly the rights of its manifest: enough for what is placed, and no more."""

from __future__ import annotations

import asyncio
from pathlib import Path

import yaml

from skerry.api.kinds import GroupVersionResource
from skerry.app.edge_identity import apply_object, manifest
from skerry.logic.fleet.syncing.manifest import hub_kubeconfig, syncer_id
from skerry.runtime.discovery import Mapper
from skerry.runtime.kubeconfig import load
from tests.kit.e2e.edges import ForeignEdge
from tests.kit.e2e.hubs import Hub
from tests.kit.e2e.places import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    SPEC,
    Places,
    SyncerProcess,
    deployment,
)

ACCOUNTS = GroupVersionResource("", "v1", "serviceaccounts")
SECRETS = GroupVersionResource("", "v1", "secrets")


async def granted(places: Places) -> None:
    """Apply at the edge what ``skerry edge manifest`` prints now."""
    text = await manifest(
        places.access, places.name, places.mailbox, image="i", kubeconfig={"kind": "Config"}
    )
    mapper = Mapper(places.at_edge)
    for document in yaml.safe_load_all(text):
        await apply_object(places.at_edge, mapper, document)


async def as_granted(places: Places, directory: Path) -> SyncerProcess:
    """Return a syncer that goes to the edge as the manifest's own account."""
    name = syncer_id(places.name, places.mailbox)
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    answer = await places.at_edge.create(ACCOUNTS, request, name, name=name, subresource="token")
    admin = load([places.edge.kubeconfig])
    config = hub_kubeconfig(admin.server, admin.ca, "syncer", answer["status"]["token"])
    path = directory / "edge-syncer.kubeconfig"
    path.write_text(yaml.safe_dump(config))
    return SyncerProcess(directory, places.hub_kubeconfig, path, "--lock-namespace", name)


async def test_the_printed_rights_suffice_and_what_is_missing_is_named(
    tmp_path: Path, hub: Hub, edge: ForeignEdge
) -> None:
    async with Places(tmp_path, hub, edge).running() as places:
        await places.configure()
        await granted(places)
        places.syncer = await as_granted(places, tmp_path)
        await places.put(CONFIG_MAPS, "page", {"data": {"index.html": "hello"}})
        await places.put(DEPLOYMENTS, "web", deployment())
        await asyncio.to_thread(places.syncer.start)
        await places.arrives(CONFIG_MAPS, "page")
        await places.arrives(DEPLOYMENTS, "web")
        scope = SPEC["namespaceScope"]
        secrets = {"group": "", "resource": "secrets", "apiVersion": "v1"}
        wider = {"namespaceScope": {**scope, "resources": [*scope["resources"], secrets]}}
        await places.configure(wider)
        await places.put(SECRETS, "key", {"data": {}})
        reported = await places.condition("EdgeForbidden", "True")
        assert "secrets" in reported["message"]
        assert "shop" in reported["message"]
        await granted(places)
        await places.arrives(SECRETS, "key")
        await places.condition("EdgeForbidden", "False")
