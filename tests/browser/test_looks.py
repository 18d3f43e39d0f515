"""Every view, in every look: by the rules of WCAG 2.2 AA, within 320 pixels, with no complaint."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.kit.browser.axe import violations
from tests.kit.browser.console import Tab

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
_WIDE = {"width": 1280, "height": 800}
# Twice as large on a screen of 1280 by 800 is a page half as wide.
LOOKS: dict[str, tuple[dict[str, int], dict[str, Any]]] = {
    "light": (_WIDE, {"color_scheme": "light"}),
    "dark": (_WIDE, {"color_scheme": "dark"}),
    "narrow": ({"width": 320, "height": 640}, {"color_scheme": "light"}),
    "zoomed": ({"width": 640, "height": 400}, {"color_scheme": "light"}),
    "forced": (_WIDE, {"forced_colors": "active", "reduced_motion": "reduce"}),
}


def problems(page: Page) -> dict[str, Any]:
    """Return what is wrong with the view that is shown, by look."""
    found: dict[str, Any] = {}
    for look, (size, media) in LOOKS.items():
        page.set_viewport_size(size)  # type: ignore[arg-type]
        page.emulate_media(**media)
        wider = page.evaluate("document.documentElement.scrollWidth - innerWidth")
        if wrong := [*violations(page), *([f"{wider} pixels too wide"] if wider > 0 else ())]:
            found[look] = wrong
    return found


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
