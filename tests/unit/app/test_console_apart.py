"""A console in a process of its own: the same address, the same sessions, the same rights."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

from tests.kit.server.browser import Browser
from tests.kit.server.console import (
    a_session_is_listed_and_ends_when_it_is_revoked,
    an_edge_appears_and_a_right_taken_away_empties_the_view,
    nobody_in_particular_gets_no_code,
    requests_of_other_sites_and_under_other_names_are_refused,
)
from tests.kit.server.hub import Hub, running_hub

BEHAVIOURS = (
    a_session_is_listed_and_ends_when_it_is_revoked,
    nobody_in_particular_gets_no_code,
    requests_of_other_sites_and_under_other_names_are_refused,
    an_edge_appears_and_a_right_taken_away_empties_the_view,
)


def console_pid() -> int:
    """Return the process of the console that this process started."""
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    (found,) = (
        int(pid)
        for pid in children
        if b"skerry.app.console_process" in Path(f"/proc/{pid}/cmdline").read_bytes()
    )
    return found


async def a_process_that_is_killed_is_followed_by_another_with_the_same_sessions(hub: Hub) -> None:
    mine = Browser(hub.running.console)
    await mine.sign_in(hub, "alice")
    before = console_pid()
    async with mine.tab() as tab:
        await tab.frame()
        os.kill(before, signal.SIGKILL)
        assert (await tab.reader.read()) == b""
    # Nobody is refused meanwhile: the hub listens, and the next process takes who waits.
    page = await mine.fetch("GET", "/console/session")
    assert (page.status, page.json["user"]) == (200, "alice")
    assert console_pid() != before


async def test_a_console_apart_is_met_as_one_inside_the_hub(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    async with running_hub(
        tmp_path, console=True, console_process=True, edge_provider=True, audit_log=log
    ) as hub:
        for behaves in BEHAVIOURS:
            await behaves(hub)
        await a_process_that_is_killed_is_followed_by_another_with_the_same_sessions(hub)
        last = console_pid()
        # Whatever was answered is audited, also just before the end.
        await Browser(hub.running.console).fetch("GET", "/console/session", user_agent="the-last")
    async with asyncio.timeout(60):
        while Path(f"/proc/{last}").exists():
            await asyncio.sleep(0.01)
    events = log.read_text()
    assert '"userAgent":"the-last"' in events
    for path in (
        "/skerry/console/codes",
        "/console/session",
        "/console/subscriptions/fleet",
        "/console/questions/children",
        "/clusters/root:inventory/apis/tenancy.kcp.io/v1alpha1/workspaces",
    ):
        assert f'"requestURI":"{path}' in events
