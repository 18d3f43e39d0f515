"""Aggregated roles show what they gather."""

from __future__ import annotations

import asyncio
from typing import Any

from skerry.api.keys import PLAIN
from skerry.server.role_aggregation import RoleAggregation
from skerry.server.security.authorization import RbacAuthorizer
from tests.kit.server.harness import serving

_PATH = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
_RULE = {"verbs": ["get"], "apiGroups": ["example.org"], "resources": ["lamps"]}


def _role(name: str, **members: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, **members.pop("metadata", {})}, **members}


async def test_a_role_that_aggregates_holds_the_rules_of_those_it_selects() -> None:
    async with serving() as server:
        rbac = RbacAuthorizer()
        aggregation = RoleAggregation(server.api.store, server.api.dispatcher, rbac)
        selector = {"matchLabels": {"part-of": "keeper"}}
        gathering = _role("keeper", aggregationRule={"clusterRoleSelectors": [selector]}, rules=[])
        part = _role("lamps", rules=[_RULE], metadata={"labels": {"part-of": "keeper"}})
        for role in (gathering, part):
            made = (await server.create(_PATH, role)).body
            rbac.put(PLAIN, "ClusterRole", made)
        async with (
            server.watch(f"{_PATH}?watch=1&fieldSelector=metadata.name%3Dkeeper") as events,
            asyncio.TaskGroup() as tasks,
        ):
            running = tasks.create_task(aggregation.run())
            while True:
                event = await events.lines.get()
                if event["object"].get("rules"):
                    break
            running.cancel()
        assert event["object"]["rules"] == [_RULE]
