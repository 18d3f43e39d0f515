"""Ten thousand edges: a list of any length has few elements, and any filter finds its matches.

How long that takes is ``bench console``'s; here it has to be right.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.kit.browser.aside import Aside, hub_aside
from tests.kit.browser.chromium import PATIENCE_MS
from tests.kit.server.hub import SYNC_TARGETS, Hub

NUMBER = 10_000
_AT_ONCE, _PART = 64, 1000
_STORES = "root:stores"
_ADMIN = "kcp-admin"


async def _made(hub: Hub, numbers: Iterable[int]) -> None:
    """Make edges: SyncTargets that were never heard of."""
    room = asyncio.Semaphore(_AT_ONCE)

    async def make(number: int) -> None:
        labels = {"region": f"r{number % 20}", "env": "prod" if number % 3 else "stage"}
        target = {
            "apiVersion": "workload.kcp.io/v1alpha1",
            "kind": "SyncTarget",
            "metadata": {"name": f"store-{number:05}", "labels": labels},
        }
        async with room:
            await hub.create(_STORES, SYNC_TARGETS, target)

    async with asyncio.TaskGroup() as tasks:
        for number in numbers:
            tasks.create_task(make(number))


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Aside]:
    with hub_aside(tmp_path_factory.mktemp("stores")) as aside:
        aside.run(aside.hub.workspace("root", "stores"))
        for first in range(0, NUMBER, _PART):
            aside.run(_made(aside.hub, range(first, first + _PART)))
        yield aside


@pytest.fixture(scope="module")
def page(browser: Browser, stores: Aside) -> Iterator[Page]:
    """A tab of somebody who may see all of them."""
    context = browser.new_context(ignore_https_errors=True, viewport={"width": 1280, "height": 800})
    page = context.new_page()
    page.set_default_timeout(PATIENCE_MS)
    page.goto(f"{stores.url}/console/login#code={stores.code(_ADMIN)}")
    expect(page.get_by_role("table")).to_have_attribute("aria-rowcount", f"{NUMBER + 1}")
    yield page
    context.close()


def test_scrolling_all_rows_keeps_under_a_hundred_row_elements(page: Page) -> None:
    scroll = page.locator(".scroll")
    for part in (0.25, 0.5, 0.75, 1.0):
        scroll.evaluate("(box, part) => { box.scrollTop = box.scrollHeight * part; }", part)
        expect(page.locator(".item.pending")).to_have_count(0)
        assert 0 < page.get_by_role("row").count() < 100
    expect(page.get_by_role("link", name=f"store-{NUMBER - 1:05}")).to_be_visible()
    # Every element of the page: what is not shown is not there.
    assert page.locator("*").count() < 1500


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ("env=stage", [n for n in range(NUMBER) if n % 3 == 0]),
        ("region=r3", list(range(3, NUMBER, 20))),
        ("region=r3 env!=stage", [n for n in range(3, NUMBER, 20) if n % 3]),
        ("store-0123", list(range(1230, 1240))),
        ("status:unknown", list(range(NUMBER))),
    ],
)
def test_filters_show_their_matches_and_nothing_else(
    page: Page, words: str, wanted: list[int]
) -> None:
    page.get_by_role("searchbox", name="Filter").fill(words)
    expect(page.get_by_role("table")).to_have_attribute("aria-rowcount", str(len(wanted) + 1))
    page.locator(".scroll").evaluate("(box) => { box.scrollTop = 0; }")
    names = page.locator(".item .name")
    # Rows are scrolled to in the next frame, and filled when the hub has answered.
    expect(names.first).to_have_text(f"store-{wanted[0]:05}")
    expect(names).to_have_text([f"store-{number:05}" for number in wanted[: names.count()]])


def test_an_edge_that_is_made_among_ten_thousand_appears(page: Page, stores: Aside) -> None:
    page.get_by_role("searchbox", name="Filter").fill("late-comer")
    expect(page.get_by_role("heading", name="Nothing matches the filter")).to_be_visible()
    target = {
        "apiVersion": "workload.kcp.io/v1alpha1",
        "kind": "SyncTarget",
        "metadata": {"name": "late-comer"},
    }
    stores.run(stores.hub.create(_STORES, SYNC_TARGETS, target))
    expect(page.get_by_role("link", name="late-comer")).to_be_visible()
