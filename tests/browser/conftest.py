from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from tests.kit.browser.chromium import chromium
from tests.kit.browser.console import Console, Stack, Tab, sign_in, tab
from tests.kit.browser.shop import furnish


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """One Chromium for all tests here of a worker.

    No longer: playwright keeps a loop running, beside which no other test could run its own.
    """
    with chromium() as started:
        yield started


@pytest.fixture(scope="package")
def console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """One hub with console and controllers, and a shop on it, for all tests of a worker."""
    started = Stack(tmp_path_factory.mktemp("console"))
    try:
        started.start()
        furnish(started)
        yield started
    finally:
        started.stop()


@pytest.fixture(scope="package")
def cookies(browser: Browser, console: Console) -> list[Any]:
    """What the administrator's browser has once they signed in."""
    return sign_in(browser, console)


@pytest.fixture
def signed_in(browser: Browser, console: Console, cookies: list[Any]) -> Iterator[Tab]:
    """A tab of the administrator; it may neither complain nor ask anybody else."""
    with tab(browser, console, cookies) as opened:
        yield opened
        assert not opened.complaints
        assert not opened.foreign()


@pytest.fixture
def stranger(browser: Browser, console: Console) -> Iterator[Tab]:
    """A tab of somebody who has not signed in."""
    with tab(browser, console) as opened:
        yield opened


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    """Where ``make pictures`` wants them; a test run makes them too, and throws them away."""
    folder = Path(os.environ.get("SKERRY_PICTURES") or tmp_path)
    folder.mkdir(parents=True, exist_ok=True)
    return folder
