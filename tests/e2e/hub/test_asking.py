"""Explain and what-if as people meet them, through the real commands."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.kit.e2e.hubs import Hub, Shell
from tests.kit.e2e.summaries import manifests
from tests.kit.e2e.two_tenants import World, eventually, placement, two_tenants, workload

Raw = dict[str, Any]
SHOP = "root:shop"


@pytest.fixture
def world(hub: Hub, shell_at: Callable[[Hub], Shell], tmp_path: Path) -> Iterator[World]:
    with two_tenants(hub, shell_at(hub), tmp_path) as world:
        yield world


def whatif(world: World, workspace: str, *documents: Raw, code: int = 0) -> str:
    text = yaml.safe_dump_all(documents)
    return world.at(workspace, f"skerry whatif -f - <<'EOF'\n{text}EOF", code=code)


def test_explain_and_whatif_do_not_mislead(world: World) -> None:
    world.apply(SHOP, *workload("shop", "first"))
    world.apply(SHOP, placement("shop"))
    eventually(lambda: world.page("shop"), "first")

    # A Location that a number passes over is asked for, not taken out of the selection.
    world.apply(SHOP, placement("shop", strategy={"numberOfLocations": 1}))
    explain = "skerry explain placement everywhere"
    passed = "no: PassedOver"
    eventually(lambda: passed in world.at(SHOP, explain), wanted=True)
    printed = world.at(SHOP, explain)
    edit = "set in spec.strategy of EdgePlacement everywhere: numberOfLocations: 2"
    assert f"to change that: {edit}" in printed
    assert "label Location" not in printed
    world.apply(SHOP, placement("shop", strategy={"numberOfLocations": 2}))
    eventually(lambda: passed in world.at(SHOP, explain), wanted=False)

    # A thing that does not exist is an error.
    location = {"apiVersion": "scheduling.kcp.io/v1alpha1", "kind": "Location"}
    relabelled = {**location, "metadata": {"name": "nowhere", "labels": {"env": "prod"}}}
    refused = whatif(world, "root:imw", relabelled, code=1)
    assert refused == (
        "skerry whatif: there is no Location 'nowhere' in root:imw, "
        "and metadata alone does not make one\n"
    )

    # Edits of content are seen, at every destination.
    found = whatif(world, SHOP, *workload("shop", "second"))
    assert "~ object configmaps shop/page at 2 destinations: default, florin" in found
    assert "      data.text: first → second" in found
    parsed = world.at(
        SHOP, f"skerry whatif -o json -f - <<'EOF'\n{yaml.safe_dump(workload('shop', 'x')[1])}EOF"
    )
    [changed] = json.loads(parsed)["placements"][0]["objects"]["changed"]
    assert changed["destinations"][0]["workspace"] == "root:imw"

    # A parameter that a Location lacks is called that.
    customizer = {
        "apiVersion": "edge.kcp.io/v1alpha1",
        "kind": "Customizer",
        "metadata": {
            "name": "greeting",
            "namespace": "shop",
            "annotations": {"edge.kcp.io/expand-parameters": "true"},
        },
        "replacements": [{"path": "$.data.text", "value": "%(greeting)"}],
    }
    page = workload("shop", "first")[1]
    page["metadata"]["annotations"] = {"edge.kcp.io/customizer": "greeting"}
    foreseen = whatif(world, SHOP, customizer, page)
    assert "! withheld: object configmaps shop/page" in foreseen
    world.at(SHOP, manifests(customizer, page))
    why = "skerry explain placement everywhere --location florin --object configmap/shop/page"
    said = world.at(SHOP, why)
    assert "customization: MissingParameter" in said
    assert "the Location has neither a label nor an annotation 'greeting'" in said
    assert "not JSON" not in said
