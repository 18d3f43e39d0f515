"""A hub with an inventory, one placement of all of it and a PlacementGuard, asked by people."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.kit.server.harness import Reply
from tests.kit.server.hub import BINDINGS, LOCATIONS, SYNC_TARGETS, Hub, running_hub

EDGE = "/apis/edge.kcp.io/v1alpha1"
PLACEMENTS, GUARDS = f"{EDGE}/edgeplacements", f"{EDGE}/placementguards"
NAMESPACES = "/api/v1/namespaces"
_COMMANDER = (
    'carol-token,carol,carol,"incident-commanders,system:kcp:admin"\n'
    'dora-token,dora,dora,"system:authenticated"\n'
)
CONFIRM = "edge.kcp.io/confirm"


def guard(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "edge.kcp.io/v1alpha1",
        "kind": "PlacementGuard",
        "metadata": {"name": "fleet"},
        "spec": {"bypass": [{"group": "incident-commanders"}], **spec},
    }


@asynccontextmanager
async def furnished(folder: Path, **spec: Any) -> AsyncIterator[Hub]:
    """A hub with six Locations, one placement at all of them, and a guard in the provider."""
    async with running_hub(folder, edge_provider=True, users=_COMMANDER) as hub:
        reference = {"export": {"path": "root:espw", "name": "edge.kcp.io"}}
        binding = {
            "apiVersion": "apis.kcp.io/v1alpha1",
            "kind": "APIBinding",
            "metadata": {"name": "edge"},
            "spec": {"reference": reference},
        }
        for name in ("imw", "shop"):
            await hub.workspace("root", name)
            await hub.create(f"root:{name}", BINDINGS, binding)
        await hub.create("root:espw", BINDINGS, binding)
        for number in range(6):
            await locate(hub, number)
        await hub.create("root:shop", PLACEMENTS, placement())
        if spec:
            await hub.create("root:espw", GUARDS, guard(**spec))
        yield hub


def placement(env: str = "prod") -> dict[str, Any]:
    return {
        "apiVersion": "edge.kcp.io/v1alpha1",
        "kind": "EdgePlacement",
        "metadata": {"name": "web"},
        "spec": {
            "locationSelectors": [{"matchLabels": {"env": env}}],
            "namespaceSelector": {"matchLabels": {"app": "web"}},
        },
    }


async def locate(hub: Hub, number: int) -> None:
    instances = {"matchLabels": {"n": str(number)}}
    location = {
        "apiVersion": "scheduling.kcp.io/v1alpha1",
        "kind": "Location",
        "metadata": {"name": f"l{number}", "labels": {"env": "prod"}},
        "spec": {
            "resource": {
                "group": "workload.kcp.io",
                "version": "v1alpha1",
                "resource": "synctargets",
            },
            "instanceSelector": instances,
        },
    }
    target = {
        "apiVersion": "workload.kcp.io/v1alpha1",
        "kind": "SyncTarget",
        "metadata": {"name": f"t{number}", "labels": {"n": str(number)}},
        "spec": {},
    }
    await hub.create("root:imw", SYNC_TARGETS, target)
    await hub.create("root:imw", LOCATIONS, location)


async def patch(
    hub: Hub, where: str, path: str, metadata: Any, user: str = "kcp-admin", **more: Any
) -> Reply:
    body = {"metadata": metadata, **more}
    return await asked(hub, user, "PATCH", f"/clusters/{where}{path}", body)


async def asked(hub: Hub, user: str, method: str, path: str, body: Any = None) -> Reply:
    """Ask, and as often as the hub says that it still reads."""
    while True:
        headers = {"content-type": "application/merge-patch+json"} if method == "PATCH" else {}
        reply = await hub.ask(user, method, path, body, **headers)
        if reply.status != 503:
            return reply
        await hub.settled()


async def relabel(hub: Hub, number: int, env: str = "test", user: str = "kcp-admin") -> Reply:
    path = f"{LOCATIONS}/l{number}"
    return await patch(hub, "root:imw", path, {"labels": {"env": env}}, user)


async def book(hub: Hub) -> list[dict[str, Any]]:
    obj = await hub.get("root:shop", f"{PLACEMENTS}/web")
    return list(((obj.get("status") or {}).get("removals") or {}).get("charges") or ())
