"""The fleet: what the API has, as a sentence, counts, a map and a list, as it changes."""

from __future__ import annotations

import json
import re
import signal
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.kit.browser.console import Console, Tab, run, tab
from tests.kit.browser.shop import INVENTORY, SHOP, edge
from tests.kit.e2e.places import SyncerProcess
from tests.kit.e2e.processes import SKERRY, ServerProcess

HOSTILE = "<img src=x onerror=alert(1)>"


def test_with_no_edges_to_see_the_fleet_says_how_to_join_one(
    browser: Browser, console: Console
) -> None:
    account = {"apiVersion": "v1", "kind": "ServiceAccount"}
    console.apply("root", {**account, "metadata": {"name": "guest", "namespace": "default"}})
    token = console.kubectl("root", "create", "token", "guest", "-n", "default").strip()
    with tab(browser, console) as somebody:
        page = somebody.open("login")
        page.get_by_label("Or paste a token of a ServiceAccount").fill(token)
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("heading", name="No edges yet")).to_be_visible()
        expect(page.locator(".command")).to_contain_text("skerry edge bootstrap")
        # The hub has edges; of other people's workspaces nothing is seen anywhere.
        somebody.open("placements")
        expect(page.get_by_role("heading", name="No placements yet")).to_be_visible()
        for view, title in (("rollouts", "No rollouts yet"), ("queries", "No queries yet")):
            somebody.open(view)
            expect(page.get_by_role("heading", name=title)).to_be_visible()
        somebody.open("timeline")
        somebody.is_live()
        expect(page.get_by_role("link", name="web", exact=True)).to_have_count(0)
        for address in (
            f"placements/{SHOP}/web",
            f"edges/{INVENTORY}/oslo",
            f"rollouts/{SHOP}/web",
        ):
            somebody.open(address)
            expect(page.get_by_role("heading", name="You may not see this")).to_be_visible()
        page.keyboard.press("Control+k")
        expect(page.get_by_role("combobox", name="Search")).to_be_focused()
        page.keyboard.type("oslo")
        expect(page.get_by_text("Nothing that you may see")).to_be_visible()
        assert not somebody.complaints


def test_a_revoked_right_empties_the_view_at_once(browser: Browser, console: Console) -> None:
    names = ("viewer", "-n", "default")
    console.kubectl(INVENTORY, "create", "serviceaccount", *names)
    rule = ("--verb=get,list,watch", "--resource=synctargets.workload.kcp.io")
    console.kubectl(INVENTORY, "create", "clusterrole", "see-edges", *rule)
    given = ("--clusterrole=see-edges", "--serviceaccount=default:viewer")
    console.kubectl(INVENTORY, "create", "clusterrolebinding", "see-edges", *given)
    token = console.kubectl(INVENTORY, "create", "token", *names).strip()
    with tab(browser, console) as somebody:
        page = somebody.open("login")
        page.get_by_label("Or paste a token of a ServiceAccount").fill(token)
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("link", name="oslo")).to_be_visible()
        console.kubectl(INVENTORY, "delete", "clusterrolebinding", "see-edges")
        expect(page.get_by_role("heading", name="No edges yet")).to_be_visible()


def test_an_edge_created_by_kubectl_appears_without_a_reload(
    signed_in: Tab, console: Console
) -> None:
    page = signed_in.open("fleet?q=lund")
    expect(page.get_by_role("heading", name="Nothing matches the filter")).to_be_visible()
    console.apply(INVENTORY, *edge("lund", {"env": "test"}))
    expect(page.get_by_role("link", name="lund")).to_be_visible()
    console.kubectl(INVENTORY, "delete", "synctarget,location", "lund")
    expect(page.get_by_role("heading", name="Nothing matches the filter")).to_be_visible()


def test_counts_equal_those_computed_from_the_api(signed_in: Tab, console: Console) -> None:
    found = json.loads(console.kubectl(INVENTORY, "get", "synctargets", "-o", "json"))["items"]
    page = signed_in.open("fleet")
    expect(page.locator(".item")).to_have_count(len(found))
    buttons = page.get_by_role("list", name="Edges by state").get_by_role("button")
    shown = [int(each.split()[0].replace(",", "")) for each in _words(buttons.all_inner_texts())]
    assert sum(shown) == len(found)


def _words(texts: list[str]) -> list[str]:
    """Return what buttons say without their shapes."""
    return [each.lstrip("●↻▲■◌? \n") for each in texts]


def test_a_view_restores_from_its_address_and_after_back(signed_in: Tab) -> None:
    page = signed_in.open("fleet?by=region&q=env%3Dprod")
    expect(page.get_by_role("combobox", name="group by")).to_have_value("region")
    expect(page.get_by_role("searchbox", name="Filter")).to_have_value("env=prod")
    expect(page.locator(".item")).to_have_count(2)
    expect(page.get_by_role("rowheader")).to_have_text(["north 1", "south 1"])
    page.get_by_role("link", name="oslo").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("oslo")
    page.go_back()
    expect(page.get_by_role("rowheader")).to_have_text(["north 1", "south 1"])
    page.reload()
    expect(page.locator(".item")).to_have_count(2)


VIEWS = {
    "fleet?by=env&q=region": "[aria-label='Map of edges']",
    "fleet?at=2020-01-01T03:00:00Z&by=env": "section.past",
    "placements?q=web": "main a[href$='/web']",
    f"placements/{SHOP}/web?by=region&q=oslo": "[role=table]",
    f"placements/{SHOP}/web?explain=yes&edge={INVENTORY}/bari&object=deployments.apps/shop/web": (
        "[data-answer=explain]"
    ),
    f"placements/{SHOP}/web/objects/deployments.apps/shop/web?edge={INVENTORY}/bari": (
        "[data-answer=explain]"
    ),
    f"edges/{INVENTORY}/oslo": "main h2",
    f"edges/{INVENTORY}/oslo/events": "#events",
    f"edges/{INVENTORY}/oslo/logs": "#logs",
    f"edges/{INVENTORY}/oslo/exec": "main form",
    "whatif": "textarea",
    "rollouts": "main h1",
    "timeline": "main a",
    f"timeline?about={SHOP}/web&span=24h&to=2026-01-01T00:00:00Z": "main .scrubber",
    "queries": "main h1",
    f"workspaces/{SHOP}": "main h2",
}


def _seen(page: Page, address: str) -> list[str]:
    """Return what tells one view from another: its address, title, headings and words given.

    Of the view as it is when all it asked for was answered: what a view has before that depends on
    how busy the hub is.
    """
    expect(page.locator(VIEWS[address]).first).to_be_visible()
    expect(page.locator("[data-loading]")).to_have_count(0)
    return page.evaluate(  # type: ignore[no-any-return]
        """() => [location.pathname + location.search, document.title,
          ...[...document.querySelectorAll("h1, h2")].map((each) => each.textContent),
          ...[...document.querySelectorAll("input, select, textarea")].map((each) => each.value)]"""
    )


@pytest.mark.parametrize("address", VIEWS)
def test_every_view_restores_from_its_address_and_after_back(signed_in: Tab, address: str) -> None:
    page = signed_in.open(address)
    seen = _seen(page, address)
    elsewhere = "Workspaces" if address.startswith("queries") else "Queries"
    page.get_by_role("navigation", name="Views").get_by_role("link", name=elsewhere).click()
    expect(page).to_have_title(f"{elsewhere} · skerry")
    page.go_back()
    assert _seen(page, address) == seen
    page.reload()
    assert _seen(page, address) == seen


# After every change of the page, before anything is painted or another task runs.
_NOTE_NAMES = """() => {
  window.names = [];
  new MutationObserver(() => window.names.push([location.pathname, document.title,
    document.querySelector("h1")?.textContent])).observe(
    document.body, { childList: true, subtree: true, characterData: true });
}"""


def test_address_title_and_heading_change_in_one_moment(signed_in: Tab) -> None:
    page = signed_in.open("whatif")
    heading = page.get_by_role("heading", level=1)
    expect(heading).to_have_text("What if")
    signed_in.is_live()
    page.evaluate(_NOTE_NAMES)
    page.get_by_role("navigation", name="Views").get_by_role("link", name="Queries").click()
    expect(heading).to_have_text("Queries")
    page.go_back()
    expect(heading).to_have_text("What if")
    assert {tuple(each) for each in page.evaluate("window.names")} == {
        ("/console/queries", "Queries · skerry", "Queries"),
        ("/console/whatif", "What if · skerry", "What if"),
    }


def test_a_filter_that_cannot_be_read_keeps_what_is_shown(signed_in: Tab) -> None:
    page = signed_in.open("fleet?q=env%3Dprod")
    expect(page.locator(".item")).to_have_count(2)
    page.get_by_role("searchbox", name="Filter").fill("env=prod status:nonsense")
    expect(page.get_by_role("alert")).to_contain_text("nonsense")
    expect(page.locator(".item")).to_have_count(2)


def test_the_map_is_walked_by_arrow_keys_and_entered_by_enter(signed_in: Tab) -> None:
    page = signed_in.open("fleet?by=region&q=env")
    cursor = page.get_by_role("grid").get_by_role("button")
    cursor.focus()
    expect(cursor).to_have_accessible_name("oslo, unknown")
    page.keyboard.press("ArrowRight")
    expect(cursor).to_have_accessible_name("bari, unknown")
    expect(cursor).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_contain_text("bari")


def test_a_stopped_syncer_turns_away_when_its_lease_ends(
    signed_in: Tab, console: Console, tmp_path: Path
) -> None:
    console.apply(INVENTORY, *edge("tromso", {"env": "test"}))
    joining = tmp_path / "tromso.kubeconfig"
    at = ("--imw", INVENTORY, "--kubeconfig", str(console.kubeconfig))
    run([SKERRY, "edge", "bootstrap", "tromso", *at, "-o", str(joining)])
    cluster = ServerProcess(tmp_path / "edge")
    cluster.start()
    often = ("--heartbeat-seconds", "1")
    syncer = SyncerProcess(tmp_path, joining, cluster.kubeconfig, *often, sync_target="tromso")
    try:
        syncer.start()
        page = signed_in.open("fleet?q=tromso")
        row = page.locator(".item")
        expect(row).to_contain_text("healthy")
        syncer.stop(signal.SIGKILL)
        expect(row).to_contain_text("away")
    finally:
        syncer.stop(signal.SIGKILL)
        cluster.kill()
        console.kubectl(INVENTORY, "delete", "synctarget,location", "tromso")


def test_hostile_labels_are_text_and_nothing_else(signed_in: Tab, console: Console) -> None:
    target = {
        "apiVersion": "workload.kcp.io/v1alpha1",
        "kind": "SyncTarget",
        "metadata": {"name": "mallory", "annotations": {"note": HOSTILE}, "labels": {"id": "m"}},
    }
    console.apply(INVENTORY, target)
    page = signed_in.open("fleet?q=mallory%20%3Cimg%20src%3Dx%3E")
    signed_in.is_live()
    expect(page.get_by_role("searchbox", name="Filter")).to_have_value("mallory <img src=x>")
    assert page.locator("img").count() == 0
    console.kubectl(INVENTORY, "delete", "synctarget", "mallory")


def test_the_first_view_is_made_of_little(signed_in: Tab) -> None:
    sizes: list[Any] = []
    page = signed_in.page
    page.on("requestfinished", lambda request: sizes.append(request.sizes()["responseBodySize"]))
    signed_in.open("fleet")
    expect(page.locator(".item").first).to_be_visible()
    assert sum(sizes) < 150_000


def test_keys_that_somebody_else_left_in_the_browser_do_not_stop_the_page(signed_in: Tab) -> None:
    page = signed_in.open("fleet")
    for left in ("null", "7", "{"):
        page.evaluate("text => localStorage.setItem('skerry.keys', text)", left)
        page.reload()
        signed_in.is_live()
        page.keyboard.press("g")
        page.keyboard.press("p")
        expect(page).to_have_url(re.compile("/console/placements$"))
        signed_in.open("fleet")
