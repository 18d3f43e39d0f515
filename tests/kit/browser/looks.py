"""The looks in which every view must work, and what is wrong with one."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import Page

from tests.kit.browser.axe import violations

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
