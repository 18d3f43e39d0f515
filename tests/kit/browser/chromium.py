"""The distribution's Chromium, driven by playwright; one per process that runs tests."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, expect, sync_playwright

# Only a failing test waits this long.
PATIENCE_MS = 20_000
_DEBIAN = Path("/usr/lib/chromium/chromium-headless-shell")
# Nothing that a browser does by itself may look like something the page did.
_QUIET = (
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-domain-reliability",
    "--disable-sync",
    "--no-first-run",
    "--disable-dev-shm-usage",
)


def executable() -> str:
    """Return the browser to drive; raises with one sentence where there is none."""
    if _DEBIAN.exists():
        return str(_DEBIAN)
    found = shutil.which("chromium-headless-shell") or shutil.which("chromium")
    if found is None:
        raise RuntimeError(
            "the browser tests need Chromium: install chromium-headless-shell and fonts-dejavu-core"
        )
    return found


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start Chromium; root has no sandbox to offer it."""
    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=executable(), chromium_sandbox=os.getuid() != 0, args=list(_QUIET)
        )
        try:
            yield browser
        finally:
            browser.close()
