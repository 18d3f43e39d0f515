"""No copy takes the place of what a mailbox has for its edge: its heartbeat, its credentials."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.api.edge import CUSTOMIZERS
from skerry.api.kcp.resources import API_BINDINGS
from skerry.logic.fleet.placement.heartbeat import LEASES
from tests.kit.chain.translator_hub import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    NAMESPACES,
    SECRETS,
    Hub,
    config_map,
    customizer,
    deployment,
)
from tests.kit.sim.loop import virtual

CUSTOMIZED = {"annotations": {"edge.kcp.io/customizer": "c"}}


def lease(name: str, holder: str = "tenant") -> dict[str, Any]:
    spec = {"holderIdentity": holder, "renewTime": "2099-01-01T00:00:00.000000Z"}
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name},
        "spec": spec,
    }


def secret(name: str, **metadata: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, **metadata}}


async def placed_default(hub: Hub) -> None:
    chosen = {"metadata": {"labels": {"go": "yes"}}}
    await hub.at("root:wmw").patch(NAMESPACES, "default", chosen)
    await hub.put(CONFIG_MAPS, config_map("page", {"k": "v"}), "default")
    await hub.place("p", "florin")
    await hub.settle()


@virtual
async def test_nobody_places_a_heartbeat() -> None:
    hub = Hub()
    async with hub.running(), hub.translating():
        own = hub.at(hub.clusters["florin"])
        await own.create(LEASES, lease("syncer-heartbeat", "edge"), "default")
        await hub.put(LEASES, lease("syncer-heartbeat"), "default")
        await hub.put(LEASES, lease("another"), "default")
        await placed_default(hub)
        live = await own.get(LEASES, "syncer-heartbeat", "default")
        assert live["spec"]["holderIdentity"] == "edge"
        assert "labels" not in live["metadata"]
        names = {item.name for item in await hub.copies("florin")}
        assert {"another", "page"} <= names
        assert "syncer-heartbeat" not in names
        await hub.assert_as_expected("florin")


@pytest.mark.parametrize(
    "kind",
    [
        "edge.kcp.io/bootstrap-token",
        "bootstrap.kubernetes.io/token",
        "kubernetes.io/service-account-token",
    ],
)
@virtual
async def test_no_customizer_makes_a_credential(kind: str) -> None:
    hub = Hub()
    async with hub.running(), hub.translating():
        name = "bootstrap-token-abc123"
        await hub.put(SECRETS, secret(name, **CUSTOMIZED), "default")
        await hub.put(CUSTOMIZERS, customizer("c", "$.type", f'"{kind}"'), "default")
        await placed_default(hub)
        assert name not in {item.name for item in await hub.copies("florin")}
        (reported,) = await hub.problems("p", "wmw")
        assert reported["reason"] == "NeverCopied"
        assert reported["message"].startswith(f"secrets default/{name} is withheld: ")
        await hub.put(CUSTOMIZERS, customizer("c", "$.type", '"Opaque"'), "default")
        await hub.settle()
        assert name in {item.name for item in await hub.copies("florin")}
        await hub.assert_as_expected("florin")


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("$.spec.reference.export.path", '"root:private"'),
        ("$.spec.reference.export.name", '"private"'),
        ("$.spec.reference", '{"export": {"path": "root:private", "name": "private"}}'),
        ("$.spec", '{"reference": {"export": {"path": "root:espw", "name": "edge.kcp.io"}}}'),
    ],
)
@virtual
async def test_no_customizer_binds_what_its_author_may_not_bind(path: str, value: str) -> None:
    hub = Hub()
    async with hub.running(), hub.translating():
        owner = hub.at("root:wmw")
        named = {"metadata": {"annotations": {"edge.kcp.io/customizer": "default/c"}}}
        await owner.patch(API_BINDINGS, "bind-kube", named)
        await hub.put(DEPLOYMENTS, deployment("web"), "default")
        await hub.put(CUSTOMIZERS, customizer("c", path, value), "default")
        await placed_default(hub)
        assert "bind-kube" not in {item.name for item in await hub.copies("florin")}
        (reported,) = await hub.problems("p", "wmw")
        assert reported["reason"] in ("IdentityReplaced", "NeverCopied")
