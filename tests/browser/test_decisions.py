"""Rollouts, histories and queries: shown as the hub has them, and steered by people."""

from __future__ import annotations

import json

import pytest
from playwright.sync_api import expect

from tests.kit.browser.console import Console, Tab
from tests.kit.browser.shop import SHOP


@pytest.fixture(scope="module")
def rollout(console: Console) -> str:
    """A Rollout that paces a placement of its own."""
    console.apply(
        SHOP,
        {
            "apiVersion": "edge.kcp.io/v1alpha1",
            "kind": "Rollout",
            "metadata": {"name": "web"},
            "spec": {},
        },
    )
    return "web"


def test_what_was_decided_about_a_placement_is_on_its_timeline(signed_in: Tab) -> None:
    page = signed_in.open("timeline")
    page.get_by_role("link", name="web", exact=True).click()
    row = page.get_by_role("region", name="Events").get_by_role("row").filter(has_text="Joined")
    expect(row.first).to_be_visible()


def test_an_empty_kind_says_what_it_is_for(signed_in: Tab) -> None:
    page = signed_in.open("queries")
    expect(page.get_by_role("heading", name="No queries yet")).to_be_visible()
    expect(page.locator(".command")).to_contain_text("skerry query")


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
