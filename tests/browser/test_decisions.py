"""Rollouts, histories and queries: shown as the hub has them, and steered by people."""

from __future__ import annotations

import json

import pytest
from playwright.sync_api import expect

from tests.kit.browser.console import Console, Tab
from tests.kit.browser.looks import problems
from tests.kit.browser.shop import INVENTORY, SHOP


@pytest.fixture(scope="module")
def rollout(console: Console) -> str:
    """A Rollout that paces a placement of its own."""
    canary = {"name": "canary", "until": 1, "soak": "10m"}
    console.apply(
        SHOP,
        {
            "apiVersion": "edge.kcp.io/v1alpha1",
            "kind": "Rollout",
            "metadata": {"name": "web"},
            "spec": {"waves": [canary]},
        },
    )
    return "web"


def test_what_was_decided_about_a_placement_is_on_its_timeline(signed_in: Tab) -> None:
    page = signed_in.open("timeline")
    page.get_by_role("link", name="web", exact=True).click()
    row = page.get_by_role("region", name="Events").get_by_role("row").filter(has_text="Joined")
    expect(row.first).to_be_visible()


def test_a_moment_of_the_timeline_is_replayed_and_new_decisions_come_by_themselves(
    signed_in: Tab, console: Console
) -> None:
    console.apply(
        SHOP,
        {
            "apiVersion": "edge.kcp.io/v1alpha1",
            "kind": "EdgePlacement",
            "metadata": {"name": "replayed"},
            "spec": {"locationSelectors": [{"matchLabels": {"env": "prod"}}]},
        },
    )
    page = signed_in.open(f"timeline?about={SHOP}/replayed")
    joined = page.get_by_role("region", name="Events").get_by_role("row").filter(has_text="Joined")
    expect(joined).to_have_count(1)
    wider = [{"matchLabels": {"env": each}} for each in ("prod", "stage")]
    patch = json.dumps({"spec": {"locationSelectors": wider}})
    console.kubectl(SHOP, "patch", "edgeplacement", "replayed", "--type=merge", "-p", patch)
    expect(joined).to_have_count(2)
    joined.last.get_by_role("button", name="replay").click()
    then = page.locator("[data-then]")
    expect(then).to_contain_text("2 then and now")
    expect(then).to_contain_text("1 only now")
    page.reload()
    expect(then).to_contain_text("1 only now")
    assert not problems(page)
    page.get_by_role("link", name="the whole fleet then").click()
    the_past = page.get_by_role("region", name="The past")
    expect(the_past).to_contain_text("As it was at")
    expect(page.locator(".item", has_text="oslo")).to_contain_text("replayed: placed")
    address = page.url
    assert "at=" in address
    page.reload()
    expect(page.locator(".item", has_text="oslo")).to_contain_text("replayed: placed")
    assert not problems(page)
    # Before anything was decided no placement led anywhere; later on it is the present again.
    page.keyboard.press("[")
    expect(page).not_to_have_url(address)
    expect(page.locator(".item", has_text="replayed")).to_have_count(0)
    the_past.get_by_role("button", name="Live").click()
    expect(the_past).to_have_count(0)
    page.go_back()
    expect(the_past).to_be_visible()
    console.kubectl(SHOP, "delete", "edgeplacement", "replayed")


def test_a_query_is_built_tried_applied_and_watched(signed_in: Tab, console: Console) -> None:
    page = signed_in.open("queries")
    expect(page.get_by_role("heading", name="No queries yet")).to_be_visible()
    expect(page.locator(".command")).to_contain_text("skerry query")
    page.get_by_label("Workspace").fill(SHOP)
    page.get_by_label("Name").fill("web-by-region")
    page.get_by_label("By label").fill("region")
    page.get_by_role("button", name="Try it").click()
    page.get_by_role("button", name="Apply to").click()
    page.get_by_role("dialog").get_by_role("button", name="Apply", exact=True).click()
    expect(page.get_by_role("status").filter(has_text="applied")).to_be_visible()
    page.keyboard.press("g")
    page.keyboard.press("q")
    page.get_by_role("link", name="web-by-region").click()
    rows = page.get_by_role("region", name="Rows")
    expect(rows).to_contain_text("north")
    expect(page.locator(".plot canvas")).to_be_visible()
    label = ("label", "--overwrite", "location", "oslo")
    console.kubectl(INVENTORY, *label, "region=far-north")
    expect(rows).to_contain_text("far-north")
    console.kubectl(INVENTORY, *label, "region=north")
    assert not problems(page)
    console.kubectl(SHOP, "delete", "statusquery", "web-by-region")


def test_the_waves_of_a_rollout_are_bars_as_the_hub_has_them(signed_in: Tab, rollout: str) -> None:
    page = signed_in.open(f"rollouts/{SHOP}/{rollout}")
    waves = page.get_by_role("region", name="Waves").get_by_role("listitem")
    expect(waves).to_have_count(2)
    expect(waves.first).to_contain_text("canary")
    expect(waves.first).to_contain_text("until 1")
    expect(waves.first).to_contain_text("quiet for 10m")
    expect(waves.last).to_contain_text("everybody")
    assert not problems(page)


def test_a_rollout_is_paused_only_after_it_was_confirmed(
    signed_in: Tab, console: Console, rollout: str
) -> None:
    page = signed_in.open("rollouts")
    page.get_by_role("link", name=rollout, exact=True).click()
    page.get_by_role("button", name="Pause…").click()
    dialog = page.get_by_role("dialog", name=f"Pause {rollout}?")
    dialog.get_by_role("button", name="Cancel").click()
    assert not paused(console, rollout)
    page.get_by_role("button", name="Pause…").click()
    dialog.get_by_role("button", name="Pause", exact=True).click()
    expect(page.get_by_role("status").filter(has_text="paused")).to_be_visible()
    assert paused(console, rollout)


def paused(console: Console, rollout: str) -> bool:
    found = json.loads(console.kubectl(SHOP, "get", "rollout", rollout, "-o", "json"))
    return bool(found["spec"].get("paused"))


def test_the_tree_of_workspaces_opens_along_a_link(signed_in: Tab) -> None:
    page = signed_in.open(f"workspaces/{SHOP}")
    expect(page.get_by_role("heading", level=2, name=SHOP)).to_be_visible()
    tree = page.get_by_role("navigation", name="Tree of workspaces")
    expect(tree.get_by_role("link", name="shop", exact=True)).to_have_attribute(
        "aria-current", "true"
    )
    tree.get_by_role("link", name="inventory", exact=True).click()
    expect(page.locator(".command")).to_have_text("kubectl ws root:inventory")
