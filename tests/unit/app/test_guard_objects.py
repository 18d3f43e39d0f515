"""A hub counts the objects that a request takes from placements, and who gets new content."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.kit.server.guarded import (
    CONFIRM,
    EDGE,
    NAMESPACES,
    PLACEMENTS,
    asked,
    furnished,
    patch,
)
from tests.kit.server.harness import Reply
from tests.kit.server.hub import Hub

SHOP = "root:shop"
MAPS = f"{NAMESPACES}/a/configmaps"
_REMOVED = {"of": "ObjectsRemoved", "max": 2, "window": "10m"}


@asynccontextmanager
async def stocked(folder: Path, **spec: Any) -> AsyncIterator[Hub]:
    """A guarded hub whose placement sends a Namespace with four ConfigMaps; another is not sent."""
    async with furnished(folder, **spec) as hub:
        for name, labels in (("a", {"app": "web"}), ("b", {})):
            metadata = {"name": name, "labels": labels}
            space = {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
            await hub.create(SHOP, NAMESPACES, space)
            for number in range(4):
                body = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"k": "1"}}
                path = f"{NAMESPACES}/{name}/configmaps"
                await hub.create(SHOP, path, {**body, "metadata": {"name": f"x{number}"}})
        yield hub


async def delete(hub: Hub, path: str, user: str = "kcp-admin") -> Reply:
    return await asked(hub, user, "DELETE", f"/clusters/{SHOP}{path}")


async def charges(hub: Hub) -> list[dict[str, Any]]:
    obj = await hub.get(SHOP, f"{PLACEMENTS}/web")
    return list(((obj.get("status") or {}).get("removals") or {}).get("objectCharges") or ())


def token(reply: Reply) -> str:
    return str(re.findall(f"{CONFIRM}=([0-9a-f]+)", reply.body["message"])[0])


async def test_objects_that_are_deleted_one_by_one_count_within_the_window(tmp_path: Path) -> None:
    async with stocked(tmp_path, budgets=[_REMOVED]) as hub:
        assert (await delete(hub, f"{MAPS}/x0")).status == 200
        assert (await delete(hub, f"{MAPS}/x1")).status == 200
        assert len(await charges(hub)) == 2
        refused = await delete(hub, f"{MAPS}/x2")
        assert refused.status == 409
        assert (
            "removals of placement root:shop|web to 3 objects within 10m (budget 2)"
            in refused.body["message"]
        )
        assert "annotate the ConfigMap with" in refused.body["message"]
        note = {"annotations": {CONFIRM: token(refused)}}
        assert (await patch(hub, SHOP, f"{MAPS}/x2", note)).status == 200
        assert (await delete(hub, f"{MAPS}/x2")).status == 200
        assert [each.get("by") for each in await charges(hub)] == [None, None, "Confirm"]
        # What is not placed is nobody's concern.
        for number in range(4):
            assert (await delete(hub, f"{NAMESPACES}/b/configmaps/x{number}")).status == 200


async def test_a_namespace_counts_with_everything_in_it(tmp_path: Path) -> None:
    async with stocked(tmp_path, budgets=[_REMOVED]) as hub:
        path = f"{NAMESPACES}/a"
        assert (await patch(hub, SHOP, path, {"labels": {"more": "x"}})).status == 200
        for reply in (
            await patch(hub, SHOP, path, {"labels": {"app": "other"}}),
            await delete(hub, path),
        ):
            assert reply.status == 409, reply.body
            number = int(re.findall(r"to (\d+) of \d+ objects", reply.body["message"])[0])
            assert number >= 5
        assert (await delete(hub, f"{NAMESPACES}/b")).status == 200


async def test_a_share_of_all_objects_is_left_to_who_knows_how_many_there_are(
    tmp_path: Path,
) -> None:
    async with stocked(tmp_path, budgets=[{**_REMOVED, "max": 0, "percent": 50}]) as hub:
        assert (await delete(hub, f"{MAPS}/x0")).status == 200


async def test_content_that_changes_everywhere_at_once_warns_and_with_a_rollout_does_not(
    tmp_path: Path,
) -> None:
    budget = {"of": "ContentChanged", "percent": 100, "action": "Warn"}
    async with stocked(tmp_path, budgets=[budget]) as hub:

        async def change(value: str) -> list[str]:
            reply = await patch(hub, SHOP, f"{MAPS}/x0", {}, data={"k": value})
            assert reply.status == 200, reply.body
            return [text for name, text in reply.headers if name.lower() == "warning"]

        [warning] = await change("2")
        assert "bring changes of placement root:shop|web to 6 of 6 destinations at once" in warning
        assert await change("2") == [], "nothing changed"
        rollout = {"apiVersion": "edge.kcp.io/v1alpha1", "kind": "Rollout", "spec": {}}
        await hub.create(SHOP, f"{EDGE}/rollouts", {**rollout, "metadata": {"name": "web"}})
        await hub.settled()
        assert await change("3") == []


async def test_content_is_confirmed_for_exactly_the_change_that_was_shown(tmp_path: Path) -> None:
    async with stocked(tmp_path, budgets=[{"of": "ContentChanged", "max": 5}]) as hub:
        path = f"{MAPS}/x0"
        refused = await patch(hub, SHOP, path, {}, data={"k": "2"})
        assert refused.status == 409
        note = {"annotations": {CONFIRM: token(refused)}}
        assert (await patch(hub, SHOP, path, note, data={"k": "3"})).status == 409
        assert (await patch(hub, SHOP, path, note, data={"k": "2"})).status == 200
