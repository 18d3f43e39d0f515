"""Why not, what if, and then doing it: the answers of the commands, and nothing by accident."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml
from playwright.sync_api import Page, expect

from skerry.api.edge import Mailbox
from skerry.runtime.client import cluster_of
from tests.kit.browser.console import Console, Tab
from tests.kit.browser.shop import INVENTORY, SHOP, deployment

_WHY = f"placements/{SHOP}/web?explain=yes&edge={INVENTORY}/bari&object=deployments.apps/shop/web"


def shown(page: Page, kind: str) -> Any:
    """Return the answer that the page shows, as it has it."""
    return json.loads(page.locator(f"[data-json={kind}]").text_content() or "")


class _Plain(yaml.SafeDumper):
    """Writes as people do: in their order, and what is there twice written twice."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def preview(page: Page, workspace: str, *documents: Any) -> Any:
    """Preview an edit; return the answer."""
    page.get_by_label("Workspace", exact=True).fill(workspace)
    page.get_by_label("Objects, as YAML or JSON").fill(
        yaml.dump_all(documents, Dumper=_Plain, sort_keys=False)
    )
    page.get_by_role("button", name="Preview").click()
    expect(page.locator("[data-answer=whatif]")).to_be_visible()
    return shown(page, "whatif")


def labelled(name: str, **labels: str | None) -> dict[str, Any]:
    metadata = {"name": name, "labels": labels}
    return {"apiVersion": "scheduling.kcp.io/v1alpha1", "kind": "Location", "metadata": metadata}


def test_explain_in_the_browser_equals_the_command(signed_in: Tab, console: Console) -> None:
    page = signed_in.open(_WHY)
    expect(page.locator("[data-answer=explain]")).to_contain_text("LocationNotSelected")
    words = ("explain", "placement", "web", "--location", f"{INVENTORY}/bari")
    assert shown(page, "explain") == console.skerry(
        SHOP, *words, "--object", "deployments.apps/shop/web"
    )


def mailbox(console: Console, name: str) -> str:
    """Return the name of the workspace that holds what is for an edge."""
    target = json.loads(console.kubectl(INVENTORY, "get", "synctarget", name, "-o", "json"))
    return Mailbox(cluster_of(target), target["metadata"]["uid"]).workspace


def test_the_smallest_edit_tried_and_applied_makes_the_object_appear(
    signed_in: Tab, console: Console
) -> None:
    page = signed_in.open(_WHY)
    page.get_by_role("link", name="Try it").first.click()
    expect(page.locator("[data-totals]")).to_contain_text("1 edge gained")
    expect(page.get_by_label("Workspace", exact=True)).to_have_value(INVENTORY)
    try:
        page.get_by_role("button", name="Apply to").click()
        page.get_by_role("dialog").get_by_role("button", name="Apply", exact=True).click()
        expect(page.get_by_role("status").filter(has_text="applied")).to_be_visible()
        # The scheduler and the translator do the rest.
        words = ("-n", "shop", "--for=create", "deployment/web", "--timeout=60s")
        console.kubectl(f"root:espw:{mailbox(console, 'bari')}", "wait", *words)
        signed_in.open(f"edges/{INVENTORY}/bari?diff=deployments.apps/shop/web&from={SHOP}")
        compared = page.get_by_role("region", name="Delivered and wanted")
        expect(compared).to_contain_text("The mailbox has it as it is wanted")
    finally:
        console.kubectl(INVENTORY, "label", "--overwrite", "location", "bari", "env=stage")
    signed_in.open(_WHY)
    expect(page.locator("[data-answer=explain]")).to_contain_text("LocationNotSelected")


def test_what_if_equals_the_command_and_writes_nothing(signed_in: Tab, console: Console) -> None:
    edit = labelled("bari", env="prod")
    before = console.kubectl(INVENTORY, "get", "locations,synctargets", "-o", "json")
    page = signed_in.open("whatif")
    answer = preview(page, INVENTORY, edit)
    del answer["revision"], answer["edges"]
    assert answer == console.skerry(INVENTORY, "whatif", "-f", "-", stdin=[edit])
    assert console.kubectl(INVENTORY, "get", "locations,synctargets", "-o", "json") == before


def test_a_content_edit_counts_all_its_destinations(signed_in: Tab) -> None:
    page = signed_in.open("whatif")
    preview(page, SHOP, deployment("web", "web:1.5"))
    expect(page.locator("[data-totals]")).to_contain_text("2 edges changed")
    expect(page.locator(".fields")).to_contain_text("web:1.5")


def test_a_new_object_counts_every_edge_that_it_would_reach(signed_in: Tab) -> None:
    page = signed_in.open("whatif")
    preview(page, SHOP, deployment("brand-new", "web:1.5"))
    expect(page.locator("[data-totals]")).to_contain_text("2 edges changed")
    expect(page.get_by_role("button", name="Apply to 2 edges…")).to_be_enabled()


def test_apply_is_refused_when_the_objects_moved_after_the_preview(
    signed_in: Tab, console: Console
) -> None:
    page = signed_in.open("whatif")
    preview(page, INVENTORY, labelled("bari", moved="by-us"))
    console.kubectl(INVENTORY, "label", "--overwrite", "location", "bari", "moved=by-others")
    page.get_by_role("button", name="Apply to").click()
    page.get_by_role("dialog").get_by_role("button", name="Apply", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("changed since it was previewed")
    labels = console.kubectl(INVENTORY, "get", "location", "bari", "-o", "json")
    assert json.loads(labels)["metadata"]["labels"]["moved"] == "by-others"


def test_an_edit_that_is_applied_is_written(signed_in: Tab, console: Console) -> None:
    page = signed_in.open("whatif")
    preview(page, INVENTORY, labelled("bari", tier="gold"))
    page.get_by_role("button", name="Apply to").click()
    page.get_by_role("dialog").get_by_role("button", name="Apply", exact=True).click()
    expect(page.get_by_role("status").filter(has_text="applied")).to_be_visible()
    found = console.kubectl(INVENTORY, "get", "location", "bari", "-o", "json")
    assert json.loads(found)["metadata"]["labels"]["tier"] == "gold"


def test_a_manifest_that_is_no_object_is_refused_in_a_sentence(signed_in: Tab) -> None:
    page = signed_in.open("whatif")
    page.get_by_label("Workspace", exact=True).fill(SHOP)
    page.get_by_label("Objects, as YAML or JSON").fill("[1, 2")
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_role("alert")).to_contain_text("manifest: yaml")


def test_why_not_and_what_if_are_worth_pictures(signed_in: Tab, pictures: Path) -> None:
    page = signed_in.page
    page.set_viewport_size({"width": 1280, "height": 640})
    signed_in.open(_WHY)
    expect(page.locator("[data-answer=explain]")).to_contain_text("LocationNotSelected")
    page.screenshot(path=pictures / "why-not.png")
    signed_in.open("whatif")
    preview(page, SHOP, deployment("web", "web:1.5"))
    expect(page.locator(".fields")).to_contain_text("web:1.5")
    taken = page.screenshot(path=pictures / "what-if.png")
    assert len(taken) > 10_000
