"""axe-core, run in a page by the debugger's door: the page's own policy would not let it in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from playwright.sync_api import Page

_SOURCE = Path(__file__).resolve().parents[2] / "browser" / "vendor" / "axe.min.js"
_RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
_RUN = """axe.run(document, {runOnly: %s, resultTypes: ["violations"]}).then((found) =>
  JSON.stringify(found.violations.map(({id, help, nodes}) =>
    `${id}: ${help}: ${nodes.slice(0, 3).map(({failureSummary, html}) =>
      html.slice(0, 200) + " " + failureSummary).join("; ")}`)))"""


def violations(page: Page) -> list[str]:
    """Return what of *page* breaks WCAG 2.2 AA or good practice."""
    session = page.context.new_cdp_session(page)
    try:
        session.send("Runtime.evaluate", {"expression": _SOURCE.read_text()})
        answer: dict[str, Any] = session.send(
            "Runtime.evaluate",
            {"expression": _RUN % json.dumps(_RULES), "awaitPromise": True, "returnByValue": True},
        )
    finally:
        session.detach()
    result = answer["result"]
    assert "value" in result, answer
    found: list[str] = json.loads(result["value"])
    return found
