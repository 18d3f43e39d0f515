"""Every view, in every look: by the rules of WCAG 2.2 AA, within 320 pixels, with no complaint."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.kit.browser.console import Tab
from tests.kit.browser.looks import problems

VIEWS = (
    "fleet",
    "placements",
    "placements/root:nowhere/web",
    "edges/root:nowhere/oslo",
    "whatif",
    "rollouts",
    "timeline",
    "queries",
    "workspaces",
    "nowhere",
)


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_passes_axe_and_needs_no_sideways_scrolling(signed_in: Tab, view: str) -> None:
    page = signed_in.open(view)
    signed_in.is_live()
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    assert not problems(page)


def test_the_page_to_sign_in_passes_axe(stranger: Tab) -> None:
    page = stranger.open("login")
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    assert not problems(page)
