"""Events about an edge: asked as the viewer, the newest first, in short lines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.kit.server.browser import Browser
from tests.kit.server.hub import running_hub

_EVENTS = "/api/v1/namespaces/default/events"


def event(name: str, about: str, minute: int, **members: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": "default"},
        "involvedObject": {"kind": "SyncTarget", "name": about},
        "type": "Warning",
        "reason": "Lost",
        "message": "the lease lapsed",
        "lastTimestamp": f"2030-01-01T00:{minute:02}:00Z",
        **members,
    }


async def test_events_about_an_edge_are_read_by_who_may_the_newest_first(tmp_path: Path) -> None:
    async with running_hub(tmp_path, console=True, edge_provider=True) as hub:
        cluster = await hub.workspace("root", "inventory", admin="alice")
        hostile = "<img src=x>\u202e\n" * 1_000
        for made in (
            event("first", "north", 1),
            event("second", "north", 2, count=7, message=hostile),
            event("other", "south", 3),
            event("pod", "north", 4, involvedObject={"kind": "Pod", "name": "north"}),
        ):
            await hub.create(cluster, _EVENTS, made)
        alice, bob = Browser(hub.running.console), Browser(hub.running.console)
        await alice.sign_in(hub, "alice")
        await bob.sign_in(hub, "bob")
        async with alice.tab() as mine, bob.tab() as theirs:
            asked = {"ws": "root:inventory", "name": "north"}
            newest, oldest = (await mine.ask(1, "events", **asked))["events"]
            assert (newest["time"], newest["count"]) == ("2030-01-01T00:02:00Z", 7)
            assert len(newest["message"].encode()) <= 256
            assert "\n" not in newest["message"]
            assert "\u202e" not in newest["message"]
            assert (oldest["reason"], oldest["message"]) == ("Lost", "the lease lapsed")
            assert (await theirs.ask(1, "events", **asked))["code"] == 403
            twisted = {**asked, "name": "north,metadata.name=other"}
            assert (await mine.ask(2, "events", **twisted))["code"] == 400
