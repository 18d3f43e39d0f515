"""Consent as its people meet it: an inventory, two tenants, an edge, kubectl and real processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.kit.e2e.hubs import Hub, Shell
from tests.kit.e2e.two_tenants import TENANTS, World, eventually, placement, two_tenants, workload

Raw = dict[str, Any]


def grant(mode: str, **spec: Any) -> Raw:
    """Let root:shop place ConfigMaps everywhere."""
    return {
        "apiVersion": "edge.kcp.io/v1alpha1",
        "kind": "LocationGrant",
        "metadata": {"name": "only-shop"},
        "spec": {
            "mode": mode,
            "workspaces": {"paths": ["root:shop"]},
            "locations": {"selector": {}},
            "rules": [{"apiGroups": [""], "resources": ["configmaps"]}],
            **spec,
        },
    }


@pytest.fixture
def world(hub: Hub, shell_at: Callable[[Hub], Shell], tmp_path: Path) -> Iterator[World]:
    with two_tenants(hub, shell_at(hub), tmp_path) as world:
        for tenant in TENANTS:
            world.apply(f"root:{tenant}", *workload(tenant, "first"))
            world.apply(f"root:{tenant}", placement(tenant))
        yield world


def test_the_owner_of_an_inventory_observes_enforces_confirms_and_opens(world: World) -> None:
    eventually(lambda: (world.page("shop"), world.page("bank")), ("first", "first"))

    # A grant that is malformed says where.
    wrong = grant("Enforce", workspaces={"paths": ["shop"]})
    assert "spec.workspaces.paths[0]" in world.apply("root:imw", wrong, code=1)
    assert "spec.mode" in world.apply("root:imw", grant("Forbid"), code=1)

    # Observe: both sides are informed, nothing changes.
    result = world.apply("root:imw", grant("Observe"))
    assert "Warning: spec.mode: Observe refuses nothing" in result
    eventually(lambda: "destinations" in world.record(), wanted=True)
    report = world.at("root:imw", "skerry grants status")
    assert "WOULD BE REFUSED\n  root:bank: 1 EdgePlacements" in report
    listed = world.at("root:imw", "kubectl get locationgrants")
    columns = "NAME MODE LOCATIONS WORKSPACES ENFORCED AGE"
    assert listed.partition("\n")[0].split() == columns.split()
    assert world.page("bank") == "first"
    (tmp := world.shell.kubeconfig.with_name("grant.yaml")).write_text(
        yaml.safe_dump(grant("Enforce"))
    )
    planned = world.at("root:imw", f"skerry whatif -f {tmp}")
    assert "EdgePlacement everywhere in root:bank" in planned
    assert "! held destination florin by florin" in planned

    # Enforce: the granted workspace goes on, the other stays as it is.
    world.apply("root:imw", grant("Enforce"))
    wait = "kubectl wait --for=condition=Enforced locationgrant/only-shop --timeout=60s"
    world.at("root:imw", wait)
    eventually(lambda: world.record().get("held", 0) > 0, wanted=True)
    for tenant in ("shop", "bank"):
        world.apply(f"root:{tenant}", *workload(tenant, "second"))
    eventually(lambda: world.page("shop"), "second")
    assert world.page("bank") == "first"
    explained = world.at("root:bank", "skerry explain placement everywhere --location florin")
    assert "not granted by root:imw/only-shop" in explained
    refused = "not granted by root:imw/only-shop"
    eventually(
        lambda: refused in world.condition("root:bank", "Granted").get("message", ""), wanted=True
    )
    eventually(lambda: "Held" in world.at("root:bank", "kubectl get events"), wanted=True)

    # What is confirmed goes, and nothing else.
    assert "nothing that is held" in world.at(
        "root:imw", "skerry grants confirm d-000000000000 --yes", code=1
    )
    confirmed = world.at("root:imw", "skerry grants confirm root:bank --yes")
    assert "root:bank: 1 EdgePlacements" in confirmed
    eventually(lambda: world.page("bank"), None)
    assert world.page("shop") == "second"

    # Without its grant the inventory stays closed until that is confirmed, too.
    world.at("root:imw", "kubectl delete locationgrant only-shop")
    eventually(lambda: "opening" in world.record(), wanted=True)
    assert world.page("bank") is None
    assert world.page("shop") == "second"
    assert "confirmed" in world.at("root:imw", "skerry grants confirm --open --yes")
    eventually(lambda: world.page("bank"), "second")
    assert "is open" in world.at("root:imw", "skerry grants status")
