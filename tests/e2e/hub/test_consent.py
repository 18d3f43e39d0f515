"""Consent as its people meet it: an inventory, two tenants, an edge, kubectl and real processes."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.kit.e2e.hubs import Hub, Shell
from tests.kit.e2e.processes import Kubectl, ServerProcess
from tests.kit.e2e.summaries import binding, edge, manifests

Raw = dict[str, Any]
SKERRY = str(Path(sys.executable).with_name("skerry"))
_PATIENCE_SECONDS = 60.0


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


def workload(tenant: str, text: str) -> list[Raw]:
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": tenant}},
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "page", "namespace": tenant},
            "data": {"text": text},
        },
    ]


def placement(tenant: str) -> Raw:
    name = {"kubernetes.io/metadata.name": tenant}
    return {
        "apiVersion": "edge.kcp.io/v1alpha1",
        "kind": "EdgePlacement",
        "metadata": {"name": "everywhere"},
        "spec": {"locationSelectors": [{}], "namespaceSelector": {"matchLabels": name}},
    }


class World:
    """A hub with controllers, one edge with its syncer, and a shell for everybody."""

    def __init__(self, shell: Shell, kubectl: Kubectl) -> None:
        self.shell = shell
        self._edge = kubectl

    def at(self, workspace: str, script: str, *, code: int = 0) -> str:
        """Run *script* in a workspace; return what it printed."""
        return self.shell(f"kubectl ws {workspace} >/dev/null\n{script}", code=code)

    def apply(self, workspace: str, *documents: Raw, code: int = 0) -> str:
        return self.at(workspace, manifests(*documents), code=code)

    def page(self, tenant: str) -> str | None:
        """Return a tenant's page as the edge has it; None when it has none."""
        found = self._edge("get", "configmap", "-A", "-o", "json")
        for each in json.loads(found.out)["items"]:
            if (each["metadata"]["namespace"], each["metadata"]["name"]) == (tenant, "page"):
                return str(each["data"]["text"])
        return None

    def record(self) -> Raw:
        """Return the inventory's LocationConsent; nothing while it has none."""
        listed = json.loads(self.at("root:imw", "kubectl get locationconsents -o json"))
        found: list[Raw] = listed["items"]
        return found[0] if found else {}


def eventually(found: Callable[[], Any], wanted: Any) -> None:
    """Ask until the answer is *wanted*; real processes tell us in no other way."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while (last := found()) != wanted:
        assert time.monotonic() < deadline, f"in the end: {last!r}"
        time.sleep(0.1)


@pytest.fixture
def world(hub: Hub, shell_at: Callable[[Hub], Shell], tmp_path: Path) -> Iterator[World]:
    shell = shell_at(hub)
    with ExitStack() as stack:
        cluster = ServerProcess(tmp_path / "edge")
        cluster.start()
        stack.callback(cluster.stop)

        def run(name: str, *words: str) -> None:
            log = stack.enter_context((tmp_path / f"{name}.log").open("w"))
            process = subprocess.Popen([SKERRY, *words], stdout=log, stderr=log)
            stack.callback(process.wait, timeout=60)
            stack.callback(process.terminate)

        run(
            "controllers",
            *("controllers", "--espw-path", "root:espw", "--kubeconfig", str(hub.kubeconfig)),
            *("--only", "mailbox", "--only", "edge-scheduler", "--only", "placement-translator"),
            *("--server-bind-address", "127.0.0.1:0"),
        )
        world = World(shell, Kubectl(cluster.kubeconfig, tmp_path))
        _furnish(world)
        joining = tmp_path / "florin.kubeconfig"
        world.at("root:imw", f"skerry edge bootstrap florin --imw root:imw -o {joining}")
        run(
            "syncer",
            *("syncer", "--from-kubeconfig", str(joining), "--sync-target-name", "florin"),
            *("--to-kubeconfig", str(cluster.kubeconfig), "--data-dir", str(tmp_path / "syncer")),
        )
        yield world


def _furnish(world: World) -> None:
    edge_api = binding("bind-espw", "root:espw", "edge.kcp.io")
    world.at("root", "kubectl ws create imw\nkubectl ws create shop\nkubectl ws create bank")
    world.apply("root:imw", edge_api, *edge("florin"))
    for tenant in ("shop", "bank"):
        world.apply(f"root:{tenant}", edge_api, *workload(tenant, "first"))
        world.apply(f"root:{tenant}", placement(tenant))


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
    granted = world.at(
        "root:bank",
        "kubectl get edgeplacement everywhere "
        "-o jsonpath='{.status.conditions[?(@.type==\"Granted\")].message}'",
    )
    assert "not granted by root:imw/only-shop" in granted
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
