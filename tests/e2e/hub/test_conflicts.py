"""Two tenants and one name, as they meet it with kubectl, skerry and real processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.kit.e2e.hubs import Hub, Shell
from tests.kit.e2e.two_tenants import World, eventually, placement, two_tenants, workload

SHOP, BANK = "root:shop", "root:bank"


@pytest.fixture
def world(hub: Hub, shell_at: Callable[[Hub], Shell], tmp_path: Path) -> Iterator[World]:
    with two_tenants(hub, shell_at(hub), tmp_path) as world:
        yield world


def placed(world: World, workspace: str, text: str) -> None:
    world.apply(workspace, *workload("shop", text))
    world.apply(workspace, placement("shop"))


def taken(world: World, workspace: str) -> tuple[str, str]:
    found = world.condition(workspace, "ConflictFree")
    return found.get("status", ""), found.get("message", "")


def test_the_first_tenant_keeps_its_page_and_the_rival_hears_whose_it_is(world: World) -> None:
    placed(world, SHOP, "first")
    eventually(lambda: world.page("shop"), "first")
    uid = (world.config_map("shop") or {})["metadata"]["uid"]

    # A second workspace places namespace shop with ConfigMap page: production stays as it is.
    placed(world, BANK, "rival")
    message = "configmaps shop/page is withheld: the name belongs to workspace root:shop there"
    eventually(lambda: taken(world, BANK), ("False", message))
    assert world.page("shop") == "first"
    eventually(lambda: taken(world, SHOP)[0], "True")

    def announced() -> bool:
        events = world.at(BANK, "kubectl get events -A")
        return "NameTaken" in events and message in events

    eventually(announced, wanted=True)
    eventually(lambda: world.condition(BANK, "Ready").get("status"), "False")

    # The owner's changes arrive, also after its controllers were away and the rival changed too.
    world.stop_controllers()
    world.apply(BANK, *workload("shop", "rival again"))
    world.apply(SHOP, *workload("shop", "second"))
    world.start_controllers()
    eventually(lambda: world.page("shop"), "second")

    # Explain and what-if say it, by path, and nothing of what is in it.
    which = "jsonpath='{.metadata.annotations.kcp\\.io/cluster}'"
    clusters = [
        world.at(path, f"kubectl get logicalcluster cluster -o {which}")
        for path in (SHOP, BANK, "root:imw")
    ]
    explained = world.at(BANK, "skerry explain placement everywhere --object configmap/shop/page")
    assert "copy: NameTaken" in explained
    assert "root:shop" in explained
    assert "second" not in explained
    problems = world.at(BANK, "skerry explain --problems --exit-code", code=3)
    assert "NameTaken" in problems
    assert not any(cluster in explained + problems for cluster in clusters)

    # Handed over it is the rival's, and the same object at the edge.
    world.at(SHOP, f"kubectl annotate configmap page -n shop edge.kcp.io/hand-over-to={BANK}")
    eventually(lambda: world.page("shop"), "rival again")
    eventually(lambda: taken(world, BANK)[0], "True")
    eventually(lambda: "root:bank" in taken(world, SHOP)[1], wanted=True)

    # When the rival's object goes, the first has its name again; the object is still the same.
    world.at(BANK, "kubectl delete configmap page -n shop")
    eventually(lambda: world.page("shop"), "second")
    found = world.config_map("shop") or {}
    assert found["metadata"]["uid"] == uid
    assert not [key for key in found["metadata"].get("annotations", {}) if "kcp.io" in key]
