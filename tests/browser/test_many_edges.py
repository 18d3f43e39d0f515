"""Hundreds of edges, in a console that is a process of its own: counts, filters, a killed hub."""

from __future__ import annotations

import json
import os
import re
import signal
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.kit.browser.console import Console, Tab, sign_in, tab
from tests.kit.browser.fleet import Simulated, populate
from tests.kit.browser.shop import make_workspace

WORKSPACE = "root:stores"
# More than any window, and few enough to be made in seconds; pictures show more.
NUMBER = 600 if os.environ.get("SKERRY_PICTURES") else 240
_REGIONS = ("eu-north", "eu-south", "us-east", "us-west", "ap-south")
_WELL = {"wanted": 20, "applied": 20, "unhealthy": 0}


def edges(number: int) -> list[Simulated]:
    """Return a fleet in which most edges are well."""
    long_ago = datetime.now(UTC) - timedelta(minutes=12)
    found = []
    for index in range(number):
        labels = {
            "region": _REGIONS[(index * 7 + index // 11) % 5],
            "env": "stage" if index % 9 == 0 else "prod",
        }
        objects, ready, heard = dict(_WELL), True, None
        if index % 97 == 13:
            objects["unhealthy"] = 1 + index % 3
        elif index % 61 == 7:
            objects["applied"] = 17
        elif index % 83 == 29:
            ready, heard = False, long_ago
        found.append(Simulated(f"store-{index:04}", labels, objects, ready, heard))
    return found


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    """A hub with many edges, and its console in a process of its own."""
    started = Console(tmp_path_factory.mktemp("stores"), "--console-process")
    try:
        started.start()
        make_workspace(started, WORKSPACE)
        populate(started.kubeconfig, WORKSPACE, edges(NUMBER))
        yield started
    finally:
        started.stop()


@pytest.fixture(scope="module")
def shopper(browser: Browser, stores: Console) -> list[Any]:
    return sign_in(browser, stores)


@pytest.fixture
def looking(browser: Browser, stores: Console, shopper: list[Any]) -> Iterator[Tab]:
    with tab(browser, stores, shopper, viewport={"width": 1280, "height": 800}) as opened:
        yield opened
        assert not opened.complaints
        assert not opened.foreign()


def _state(target: Any) -> str:
    """Return how an edge stands by what the API says of it."""
    status = target["status"]
    objects = status["objects"]
    if any(each["type"] == "Ready" and each["status"] == "False" for each in status["conditions"]):
        return "away"
    if objects["unhealthy"]:
        return "unhealthy"
    return "healthy" if objects["applied"] == objects["wanted"] else "progressing"


def test_every_count_equals_the_one_computed_from_the_api(looking: Tab, stores: Console) -> None:
    found = json.loads(stores.kubectl(WORKSPACE, "get", "synctargets", "-o", "json"))["items"]
    wanted = Counter(map(_state, found))
    assert len(wanted) == 4
    page = looking.open("fleet")
    counts = page.get_by_role("list", name="Edges by state")
    for state in ("healthy", "progressing", "degraded", "unhealthy", "away", "unknown"):
        button = counts.locator(f".mark-{state} strong")
        expect(button).to_have_text(str(wanted[state]))


# How many cells of the map are in their middle of a colour.
_CELLS = """(colour) => {
  const canvas = document.querySelector(".map canvas");
  const copy = new OffscreenCanvas(canvas.width, canvas.height);
  const context = copy.getContext("2d", {willReadFrequently: true});
  context.drawImage(canvas, 0, 0);
  const pitch = 18, columns = Math.floor((canvas.width - 2) / pitch);
  let found = 0;
  for (let index = 0; index < columns * Math.floor((canvas.height - 2) / pitch); index++) {
    const x = 2 + (index % columns) * pitch + 8, y = 2 + Math.floor(index / columns) * pitch + 8;
    found += String([...context.getImageData(x, y, 1, 1).data]) === colour ? 1 : 0;
  }
  return found;
}"""
_HEALTHY, _UNHEALTHY = "0,158,115,255", "213,94,0,255"


def test_cells_are_drawn_in_the_colour_of_their_state_and_drawn_again_when_it_changes(
    looking: Tab, stores: Console
) -> None:
    page = looking.open("fleet")
    shown = {
        state: page.locator(f".count.mark-{state} strong") for state in ("healthy", "unhealthy")
    }
    expect(page.locator(".map canvas")).to_be_visible()
    before = int(shown["unhealthy"].inner_text())
    assert page.evaluate(_CELLS, _HEALTHY) == int(shown["healthy"].inner_text())
    assert page.evaluate(_CELLS, _UNHEALTHY) == before
    ill = (f'{{"status": {{"objects": {{"unhealthy": {number}}}}}}}' for number in (1, 0))
    words = ("patch", "synctarget", "store-0000", "--subresource=status", "--type=merge", "-p")
    stores.kubectl(WORKSPACE, *words, next(ill))
    expect(shown["unhealthy"]).to_have_text(str(before + 1))
    assert page.evaluate(_CELLS, _UNHEALTHY) == before + 1
    stores.kubectl(WORKSPACE, *words, next(ill))
    expect(shown["unhealthy"]).to_have_text(str(before))
    assert page.evaluate(_CELLS, _UNHEALTHY) == before


def test_a_state_is_filtered_by_its_count(looking: Tab) -> None:
    page = looking.open("fleet")
    away = page.get_by_role("list", name="Edges by state").get_by_role("button", name="away")
    away.click()
    expect(page.locator(".item").first).to_contain_text("away")
    expect(page).to_have_url(re.compile(r"/console/fleet\?status=away$"))
    away.click()
    expect(page.locator(".item").first).to_contain_text("unhealthy")


def test_a_killed_hub_shows_a_banner_and_its_return_resumes_without_a_reload(
    looking: Tab, stores: Console
) -> None:
    page = looking.open("fleet?q=store-0013")
    row = page.locator(".item")
    expect(row).to_have_count(1)
    page.evaluate("window.sameDocument = true")
    stores.hub.stop(signal.SIGKILL)
    banner = page.get_by_role("alert").filter(has_text="Disconnected from the hub.")
    expect(banner).to_contain_text("nothing can be changed")
    # What is known stays, in grey.
    expect(row).to_have_count(1)
    expect(page.locator("main.offline")).to_have_count(1)
    stores.start()
    looking.is_live()
    expect(banner).to_have_count(0)
    stores.kubectl(WORKSPACE, "label", "synctarget", "store-0013", "after=all")
    page.get_by_role("searchbox", name="Filter").fill("after=all")
    expect(row).to_contain_text("store-0013")
    stores.kubectl(WORKSPACE, "label", "synctarget", "store-0013", "after-")
    expect(page.get_by_role("heading", name="Nothing matches the filter")).to_be_visible()
    assert page.evaluate("window.sameDocument")
    # A browser says so by itself where nobody answers.
    assert all(
        "ERR_CONNECTION_REFUSED" in each or "WebSocket" in each for each in looking.complaints
    )
    looking.complaints.clear()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_fleet_is_worth_a_picture(looking: Tab, pictures: Path, scheme: Any) -> None:
    page: Page = looking.page
    page.emulate_media(color_scheme=scheme)
    looking.open("fleet?by=region")
    expect(page.get_by_role("rowheader")).to_have_count(len(_REGIONS))
    expect(page.locator(".item.pending")).to_have_count(0)
    taken = page.screenshot(path=pictures / f"fleet-{scheme}.png")
    assert len(taken) > 10_000
