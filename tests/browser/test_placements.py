"""Placements and edges: where things run, and from one to the other by links."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Route, expect

from tests.kit.browser.console import Tab
from tests.kit.browser.looks import problems
from tests.kit.browser.shop import INVENTORY, SHOP


def test_a_placement_shows_its_destinations_and_leads_to_them(signed_in: Tab) -> None:
    page = signed_in.open("placements")
    page.get_by_role("link", name="web").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("web")
    rows = page.get_by_role("table", name="Destinations, worst first").locator(".item")
    expect(rows).to_have_count(2)
    page.get_by_role("link", name="oslo").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("oslo")
    expect(page.locator(".labels")).to_contain_text("env=prod")


def test_the_graph_of_a_placement_says_in_words_what_it_draws(signed_in: Tab) -> None:
    page = signed_in.open(f"placements/{SHOP}/web")
    page.get_by_role("button", name="Graph").click()
    drawn = page.get_by_role("region", name="Drawing").get_by_role("img")
    expect(drawn).to_have_accessible_name(
        re.compile(r"^web selects \d+ objects? for 2 edges: 2 \w+$")
    )
    expect(page).to_have_url(re.compile(r"\?show=graph$"))
    assert not problems(page)


def test_a_view_whose_program_is_still_fetched_has_its_heading(signed_in: Tab) -> None:
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    signed_in.page.route("**/views/placement.js", hold)
    page = signed_in.open(f"placements/{SHOP}/web?show=graph")
    heading = page.get_by_role("heading", level=1)
    expect(heading).to_have_text("web")
    held[0].continue_()
    expect(heading).to_contain_text("Placement web")


def test_a_placement_that_is_not_there_is_said_to_be_missing(signed_in: Tab) -> None:
    page = signed_in.open(f"placements/{SHOP}/nothing")
    expect(page.get_by_role("alert")).to_contain_text("nothing")


def test_an_edge_shows_what_its_mailbox_has_of_an_object_beside_what_is_wanted(
    signed_in: Tab,
) -> None:
    page = signed_in.open(f"edges/{INVENTORY}/oslo")
    page.get_by_role("link", name=re.compile("^diff of .*shop.web$")).click()
    shown = page.get_by_role("region", name="Delivered and wanted")
    expect(shown).to_contain_text("The mailbox has it as it is wanted")
    assert not problems(page)
    signed_in.open(f"edges/{INVENTORY}/bari?diff=deployments.apps/shop/web&from={SHOP}")
    expect(shown).to_contain_text("does not have it yet")
    expect(shown.locator(".line-added").first).to_be_visible()


def test_the_log_of_a_workload_is_asked_for_and_a_hub_without_tunnels_says_so(
    signed_in: Tab,
) -> None:
    page = signed_in.open(f"edges/{INVENTORY}/oslo")
    expect(page.get_by_role("link", name=re.compile("^log of .*shop.web$"))).to_be_visible()
    page.keyboard.press("l")
    shown = page.get_by_role("region", name="Log of shop/deployment/web")
    expect(shown.get_by_role("alert")).to_contain_text("--tunnel")
    assert not problems(page)
    shown.get_by_role("button", name="Close").click()
    expect(shown).to_have_count(0)


# In the moment in which the header is in the page, before anything else can run.
_AT_ONCE = """new MutationObserver((changes, observer) => {
  if (document.querySelector(".connection") === null) return;
  observer.disconnect();
  const key = { key: "k", ctrlKey: true, bubbles: true, cancelable: true };
  document.body.dispatchEvent(new KeyboardEvent("keydown", key));
}).observe(document, { childList: true, subtree: true });"""


def test_a_key_works_from_the_moment_in_which_the_page_can_be_seen(signed_in: Tab) -> None:
    signed_in.page.add_init_script(_AT_ONCE)
    page = signed_in.open("fleet")
    expect(page.get_by_role("combobox", name="Search")).to_be_focused()


def test_search_finds_edges_and_placements_by_keyboard(signed_in: Tab) -> None:
    page = signed_in.open("fleet")
    signed_in.is_live()
    page.keyboard.press("Control+k")
    expect(page.get_by_role("combobox", name="Search")).to_be_focused()
    page.keyboard.type("bar")
    expect(page.get_by_role("option", name="bari")).to_be_visible()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_contain_text("bari")


@pytest.mark.parametrize(
    "view",
    [
        "fleet?by=region",
        f"placements/{SHOP}/web?explain=yes&edge={INVENTORY}/bari",
        f"edges/{INVENTORY}/oslo",
        f"edges/{INVENTORY}/oslo/events",
        f"edges/{INVENTORY}/oslo/logs",
        f"edges/{INVENTORY}/oslo/exec",
        f"timeline?about={SHOP}/web",
        f"placements/{SHOP}/web?show=graph",
        f"workspaces/{SHOP}",
        "fleet?at=2020-01-01T03:00:00Z",
    ],
)
def test_a_view_with_something_in_it_passes_axe(signed_in: Tab, view: str) -> None:
    page = signed_in.open(view)
    signed_in.is_live()
    # Of the view: the header has a form, too, and that one is there before it.
    shown = page.get_by_role("main").locator(".item, .step, table, .lane, .listed, .notice, form")
    expect(shown.first).to_be_visible()
    assert not problems(page)


def test_an_edge_has_its_parts_and_a_key_opens_the_difference(signed_in: Tab) -> None:
    page = signed_in.open(f"edges/{INVENTORY}/oslo")
    parts = page.get_by_role("navigation", name="Parts of the edge")
    expect(parts.get_by_role("link", name="Objects")).to_have_attribute("aria-current", "page")
    expect(page.get_by_role("region", name="Table of objects")).to_be_visible()
    page.keyboard.press("d")
    expect(page.get_by_role("heading", name="Delivered and wanted")).to_be_visible()
    parts.get_by_role("link", name="Events").click()
    expect(page).to_have_url(re.compile(f"edges/{INVENTORY}/oslo/events$"))
    expect(page.get_by_role("heading", name="Events", exact=True)).to_be_visible()
    parts.get_by_role("link", name="Logs").click()
    page.get_by_role("main").get_by_role("link", name="Deployment shop/web").click()
    # Nobody answers for this edge, and that is said in a sentence.
    expect(page.get_by_role("alert")).to_contain_text("tunnel")
    page.get_by_role("button", name="Previous").click()
    expect(page).to_have_url(re.compile("previous=yes"))
    expect(page.get_by_role("heading", name="before it last started")).to_be_visible()
    page.get_by_role("button", name="Close").click()
    expect(page).to_have_url(re.compile(f"edges/{INVENTORY}/oslo$"))


def test_the_search_opens_what_it_finds_of_every_kind(signed_in: Tab) -> None:
    page = signed_in.open("fleet")
    signed_in.is_live()
    page.keyboard.press("Control+k")
    expect(page.get_by_role("combobox", name="Search")).to_be_focused()
    page.keyboard.type("inventory")
    page.get_by_role("option", name="workspace inventory").click()
    expect(page.get_by_role("heading", level=2, name=INVENTORY)).to_be_visible()
