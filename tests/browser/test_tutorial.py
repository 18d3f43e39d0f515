"""The tutorial of the browser, played by keyboard alone as its page says."""

from __future__ import annotations

import re
from pathlib import Path

from playwright.sync_api import Page, expect

from tests.kit.browser.console import Tab

PAGE = Path(__file__).parents[2] / "docs" / "tutorial" / "in-the-browser.md"
_ROW = re.compile(r"^\| (.+?) \| (.+?) \|$", re.M)
_STEP = re.compile(r"type `(?P<text>[^`]+)`|Tab to \*(?P<to>[^*]+)\*|`(?P<key>[^`]+)`")
_NAME = "document.activeElement.textContent.trim()"
# More than any view has to tab through.
_MAX_TABS = 80


def steps() -> list[tuple[str, str]]:
    """Return what the page says to press, and what is seen then."""
    rows = _ROW.findall(PAGE.read_text())
    return [(press, see) for press, see in rows if "`" in press or "Tab to" in press]


def press(page: Page, words: str) -> None:
    for found in _STEP.finditer(words):
        if found["text"]:
            page.keyboard.type(found["text"])
        elif found["to"]:
            tab_to(page, found["to"])
        else:
            page.keyboard.press(found["key"])


def tab_to(page: Page, name: str) -> None:
    """Press Tab until what is called *name* has the focus."""
    expect(page.get_by_text(name, exact=True).first).to_be_visible()
    for _ in range(_MAX_TABS):
        if page.evaluate(_NAME) == name:
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"{name} is not reached by Tab")


def test_the_tutorial_can_be_played_by_keyboard_alone(signed_in: Tab) -> None:
    page = signed_in.open("workspaces")
    signed_in.is_live()
    played = steps()
    assert len(played) > 10
    for words, seen in played:
        press(page, words)
        expect(page.locator("body")).to_contain_text(seen)
