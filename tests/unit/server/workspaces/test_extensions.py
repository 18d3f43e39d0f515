"""Shared streams and batches keep to one workspace, and to what their user may do there."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import orjson
import pytest

from skerry.server.http.message import Request, Stream
from tests.kit.server.harness import MemorySender
from tests.kit.server.hub import (
    BINDERS,
    BINDINGS,
    CONFIG_MAPS,
    ROLES,
    WIDGETS,
    Hub,
    HubPlace,
    binding,
    config_map,
    grants,
    in_hub,
    role,
    widget,
)
from tests.kit.server.tenants import home, shop

WATCH, BATCH = "/extensions/v1/watch", "/extensions/v1/batch"
ATOMIC_BATCH = "/extensions/v1/atomic-batch"
MAPS: dict[str, Any] = {"id": "maps", "version": "v1", "resource": "configmaps"}
SECRETS: dict[str, Any] = {"id": "secrets", "version": "v1", "resource": "secrets"}
PATHS = {"nonResourceURLs": ["/extensions", "/extensions/v1/*"], "verbs": ["get", "post"]}


@pytest.fixture
def hub_place(tmp_path: Path) -> HubPlace:
    return HubPlace(tmp_path)


async def streamed(hub: Hub, user: str, path: str, body: Any, count: int) -> list[Any]:
    """Return the first lines of a stream."""
    headers = {
        "authorization": f"Bearer {hub.tokens[user]}",
        "content-type": "application/json",
    }
    request = Request("POST", path, "", headers, orjson.dumps(body))
    answer = await hub.running.api.engine.handle(request)
    assert isinstance(answer, Stream), answer
    sender = MemorySender()

    async def run() -> None:
        await answer.run(sender)

    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(run())
        async with asyncio.timeout(60):
            lines = [await sender.lines.get() for _ in range(count)]
        running.cancel()
    return lines


@in_hub
async def test_a_stream_shows_one_workspace_and_only_what_its_user_may_read(hub: Hub) -> None:
    mine = await hub.workspace("root", "mine", "universal")
    other = await hub.workspace("root", "other", "universal")
    reading = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list", "watch"]}
    entering = {"nonResourceURLs": ["/"], "verbs": ["access"]}
    await hub.create(mine, ROLES, role("reader", reading, entering, PATHS))
    await hub.create(mine, BINDERS, grants("alice", "reader", "alice"))
    for where in (mine, other):
        await hub.create(where, CONFIG_MAPS, config_map("same", of=where))
    body = {"watches": [{**MAPS, "namespace": "default"}, SECRETS]}
    lines = await streamed(hub, "alice", f"/clusters/{mine}{WATCH}", body, 4)
    shown = [line["object"]["data"] for line in lines if line["type"] == "ADDED"]
    assert {"of": mine} in shown
    assert {"of": other} not in shown
    refused = [line for line in lines if line["type"] == "ERROR"]
    assert [(line["watch"], line["object"]["code"]) for line in refused] == [("secrets", 403)]
    for where in (other, "root", "*"):
        for path in ("/extensions", WATCH, BATCH):
            method = "GET" if path == "/extensions" else "POST"
            reply = await hub.ask("alice", method, f"/clusters/{where}{path}", body)
            assert reply.status == 403, (where, path)


@in_hub
async def test_a_batch_writes_only_where_it_was_sent_and_only_what_its_user_may(hub: Hub) -> None:
    mine = await hub.workspace("root", "mine", "universal", admin="alice")
    other = await hub.workspace("root", "other", "universal")
    part = {"method": "POST", "path": CONFIG_MAPS, "body": config_map("new", of="x")}
    lines = await streamed(hub, "alice", f"/clusters/{mine}{BATCH}", {"requests": [part]}, 1)
    assert [answer["code"] for answer in lines[0]["answers"]] == [201]
    await hub.get(mine, f"{CONFIG_MAPS}/new")
    for path in (f"/clusters/{other}{CONFIG_MAPS}", f"/api/../clusters/{other}{CONFIG_MAPS}"):
        body = {"requests": [{**part, "path": path}]}
        token = {"authorization": f"Bearer {hub.tokens['alice']}"}
        request = Request("POST", f"/clusters/{mine}{BATCH}", "", token, orjson.dumps(body))
        answer = await hub.running.api.engine.handle(request)
        if isinstance(answer, Stream):
            sender = MemorySender()
            await answer.run(sender)
            assert sender.lines.get_nowait()["answers"][0]["code"] in (403, 404, 405)
    missing = await hub.ask("kcp-admin", "GET", f"/clusters/{other}{CONFIG_MAPS}/new")
    assert missing.status == 404


@in_hub
async def test_across_all_workspaces_there_are_no_extensions(hub: Hub) -> None:
    for path in ("/extensions", WATCH, BATCH):
        method = "GET" if path == "/extensions" else "POST"
        body = {"watches": [MAPS]}
        reply = await hub.ask("shard-admin", method, f"/clusters/*{path}", body)
        assert reply.status == 404, path


@in_hub
async def test_an_exporter_writes_together_what_its_view_lets_it_write(hub: Hub) -> None:
    where = await shop(hub)
    mine = await home(hub, "alice")
    await hub.create(mine, BINDINGS, binding("w", "root:org:shop", "widgets"))
    view = f"/services/apiexport/{where}/widgets/clusters"
    secret = {"method": "POST", "path": "/api/v1/namespaces/default/secrets"}
    widgets = [{"method": "POST", "path": WIDGETS, "body": widget(name)} for name in "ab"]

    async def sent(user: str, target: str, *requests: Any) -> Any:
        body = {"requests": list(requests)}
        return await hub.ask(user, "POST", f"{view}/{target}{ATOMIC_BATCH}", body)

    reply = await sent("kcp-admin", mine, widgets[0], secret)
    assert reply.status == 200, reply.body["message"]
    assert [each["code"] for each in reply.body["answers"]] == [424, 404]
    reply = await sent("kcp-admin", mine, *widgets)
    assert [each["code"] for each in reply.body["answers"]] == [201, 201]
    assert (await sent("alice", mine, *widgets)).status == 403
    assert (await sent("kcp-admin", "*", *widgets)).status == 404
    offered = await hub.ask("kcp-admin", "GET", f"{view}/{mine}/extensions")
    assert "atomic-batch" in [each["name"] for each in offered.body["extensions"]]
    for path in (WATCH, BATCH):
        reply = await hub.ask("kcp-admin", "POST", f"{view}/{mine}{path}", {"requests": []})
        assert reply.status == 404
