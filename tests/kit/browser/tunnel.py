"""A console whose hub reaches a pod at an edge, and terminals that a browser has of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Locator, Page, expect

from tests.kit.browser.console import Stack
from tests.kit.e2e.tunnel import Place, tunnel_place

INVENTORY = "root:imw"
EXEC = f"edges/{INVENTORY}/florin/exec?ns=shop&pod=web"


class TunnelConsole(Stack):
    """The console of a place that somebody else starts and stops."""

    def __init__(self, place: Place) -> None:
        super().__init__(place.folder)
        self.place = place


@contextmanager
def tunnel_console(folder: Path, *flags: str) -> Iterator[TunnelConsole]:
    """Run a hub with a console, an edge and a pod inside the context."""
    found = TunnelConsole(Place(folder))
    with tunnel_place(folder, "--console-port", str(found.port), *flags):
        yield found


def terminal(page: Page) -> Locator:
    """Return the rows of the terminal, as text."""
    return page.locator(".xterm-rows")


def started(page: Page) -> Locator:
    """Begin a session and wait until its prompt is there; return the terminal's rows."""
    page.get_by_role("button", name="Start", exact=True).click()
    expect(page.locator("[data-session]")).to_contain_text("Running in")
    rows = terminal(page)
    expect(rows).to_contain_text("#")
    return rows
