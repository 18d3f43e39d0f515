"""One socket per tab: it comes back by itself, and stops where the session has ended."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import Browser, expect

from tests.kit.browser.console import Console, Tab, opened, sign_in, tab

_TABS = 20
_SIGN_OUT = """() => fetch("/console/session",
  {method: "DELETE", headers: {"X-Skerry-Console": "1"}})"""


def test_twenty_tabs_are_all_live(browser: Browser, console: Console, cookies: list[Any]) -> None:
    with tab(browser, console, cookies) as first:
        context = first.page.context
        tabs = [first, *(opened(console, context) for _ in range(_TABS - 1))]
        for each in tabs:
            each.page.goto(f"{console.url}/console/workspaces", wait_until="commit")
        for each in tabs:
            each.is_live()


def test_an_ended_session_stops_retries_with_one_banner(browser: Browser, console: Console) -> None:
    with tab(browser, console, sign_in(browser, console)) as somebody:
        page = somebody.page
        page.clock.install()
        somebody.open("workspaces")
        somebody.is_live()
        page.evaluate(_SIGN_OUT)
        banner = page.get_by_role("alert").filter(has_text="Your session has ended.")
        expect(banner).to_have_count(1)
        before = len(somebody.requests)
        page.clock.run_for(60_000)
        expect(banner).to_have_count(1)
        assert len(somebody.requests) - before < 5


def test_an_address_that_leads_nowhere_says_so(signed_in: Tab) -> None:
    page = signed_in.open("nowhere/at/all")
    expect(page.get_by_role("heading", level=1)).to_have_text("Not found")
