"""Watches of objects that a webhook converts."""

from __future__ import annotations

from typing import Any

from tests.kit.server.conversions import DEFINITIONS, V1, V2, car, cars, converting
from tests.kit.server.harness import serving
from tests.kit.server.webhooks import webhook_server


async def test_a_watch_shows_what_is_there_and_what_changes_in_order() -> None:
    async with webhook_server() as hooks, serving() as server:
        await server.create(DEFINITIONS, cars(hooks.on("/c", converting())))
        await server.create(V1, car("v1", "a", host="h:80"))
        async with server.watch(f"{V2}?watch=1&resourceVersion=0") as watch:
            there = await watch.lines.get()
            assert there["object"]["spec"] == {"name": "h", "port": "80"}
            for number in range(5):
                await server.patch(f"{V1}/a", {"spec": {"host": f"h{number}:80"}})
            await server.delete(f"{V1}/a")
            seen = [await watch.lines.get() for _ in range(6)]
        assert [event["type"] for event in seen] == ["MODIFIED"] * 5 + ["DELETED"]
        names = [event["object"]["spec"]["name"] for event in seen]
        assert names == ["h0", "h1", "h2", "h3", "h4", "h4"]


async def test_a_watch_whose_webhook_fails_ends_with_the_reason() -> None:
    broken: list[bool] = []

    def spoil(response: dict[str, Any], _: list[Any]) -> None:
        if broken:
            response["result"] = {"status": "Failed", "message": "no"}

    async with webhook_server() as hooks, serving() as server:
        await server.create(DEFINITIONS, cars(hooks.on("/c", converting(spoil))))
        async with server.watch(f"{V2}?watch=1&resourceVersion=0") as watch:
            broken.append(True)
            await server.create(V1, car("v1", "a", host="h:80"))
            event = await watch.lines.get()
        assert event["type"] == "ERROR"
        assert event["object"]["message"].endswith("Kind=Car failed: no")


async def test_other_watches_go_on_while_one_waits_for_its_webhook() -> None:
    async with webhook_server() as hooks, serving() as server:
        await server.create(DEFINITIONS, cars(hooks.on("/c", converting())))
        hooks.dripping = True
        async with (
            server.watch(f"{V2}?watch=1&resourceVersion=0") as waiting,
            server.watch(f"{V1}?watch=1&resourceVersion=0") as other,
        ):
            await server.create(V1, car("v1", "a", host="h:80"))
            assert (await other.lines.get())["object"]["spec"] == {"host": "h:80"}
            assert waiting.lines.empty()
