"""A terminal in the page onto a pod at an edge: typed into, resized, refused, ended."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from tests.kit.browser.console import Tab, sign_in, tab
from tests.kit.browser.tunnel import EXEC, TunnelConsole, started, terminal, tunnel_console


@pytest.fixture(scope="module")
def reaching(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TunnelConsole]:
    with tunnel_console(tmp_path_factory.mktemp("exec")) as found:
        yield found


@pytest.fixture(scope="module")
def own_cookies(browser: Browser, reaching: TunnelConsole) -> list[Any]:
    return sign_in(browser, reaching)


@pytest.fixture
def operator(browser: Browser, reaching: TunnelConsole, own_cookies: list[Any]) -> Iterator[Tab]:
    """A tab of the administrator; it may neither complain nor ask anybody else."""
    with tab(browser, reaching, own_cookies) as opened:
        yield opened
        assert not opened.complaints
        assert not opened.foreign()


def test_a_command_is_typed_its_output_seen_and_its_exit_code_said(operator: Tab) -> None:
    page = operator.open(EXEC)
    rows = started(page)
    page.keyboard.type("echo $((6 * 7))-here\n")
    expect(rows).to_contain_text("42-here")
    page.keyboard.type("exit 3\n")
    expect(page.locator("[data-session]")).to_have_text("The command has ended with exit code 3.")
