"""An eviction asks the budget of its pod, and charges it with the delete."""

from __future__ import annotations

from typing import Any

import pytest

from tests.kit.server.harness import Reply, Server, serving
from tests.kit.server.objects import CORE, pod
from tests.kit.sim.loop import virtual

BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
READY = [{"type": "Ready", "status": "True"}]


async def prepared(server: Server, *names: str, ready: bool = True, phase: str = "Running") -> None:
    await server.create(f"{CORE}/serviceaccounts", {"metadata": {"name": "default"}})
    for name in names:
        assert (await server.create(f"{CORE}/pods", pod(name))).status == 201
        status = {"phase": phase, "conditions": READY if ready else []}
        answer = await server.patch(f"{CORE}/pods/{name}/status", {"status": status})
        assert answer.status == 200


async def budget(server: Server, name: str = "b", app: str = "x", **status: Any) -> None:
    policy = status.pop("policy", None)
    spec: dict[str, Any] = {"minAvailable": 1, "selector": {"matchLabels": {"app": app}}}
    if policy:
        spec["unhealthyPodEvictionPolicy"] = policy
    assert (await server.create(BUDGETS, {"metadata": {"name": name}, "spec": spec})).status == 201
    seen = {"observedGeneration": 1, "currentHealthy": 1, "desiredHealthy": 1,
            "expectedPods": 1, "disruptionsAllowed": 0, **status}  # fmt: skip
    assert (await server.patch(f"{BUDGETS}/{name}/status", {"status": seen})).status == 200


async def evict(server: Server, name: str, query: str = "", **more: Any) -> Reply:
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}, **more}
    return await server.create(f"{CORE}/pods/{name}/eviction{query}", body)


async def is_being_deleted(server: Server, name: str) -> bool:
    answer = await server.get(f"{CORE}/pods/{name}")
    return answer.status == 404 or "deletionTimestamp" in answer.body["metadata"]


@virtual
async def test_without_a_budget_an_eviction_is_a_delete() -> None:
    async with serving() as server:
        await prepared(server, "a")
        await budget(server, app="other")
        answer = await evict(server, "a")
        assert (answer.status, answer.body["status"]) == (201, "Success")
        assert await is_being_deleted(server, "a")
        assert (await evict(server, "gone")).status == 404


@virtual
async def test_the_last_allowed_disruption_is_had_once() -> None:
    async with serving() as server:
        await prepared(server, "a", "b")
        await budget(server, disruptionsAllowed=1)
        assert (await evict(server, "a")).status == 201
        status = (await server.get(f"{BUDGETS}/b")).body["status"]
        assert (status["disruptionsAllowed"], list(status["disruptedPods"])) == (0, ["a"])
        refused = await evict(server, "b")
        assert (refused.status, refused.body["reason"]) == (429, "TooManyRequests")
        assert refused.body["details"]["causes"][0]["reason"] == "DisruptionBudget"
        assert not await is_being_deleted(server, "b")


@virtual
async def test_a_rehearsal_deletes_and_charges_nothing() -> None:
    async with serving() as server:
        await prepared(server, "a")
        await budget(server, disruptionsAllowed=1)
        for query, more in (("?dryRun=All", {}), ("", {"deleteOptions": {"dryRun": ["All"]}})):
            assert (await evict(server, "a", query, **more)).status == 201
            assert not await is_being_deleted(server, "a")
            assert (await server.get(f"{BUDGETS}/b")).body["status"]["disruptionsAllowed"] == 1


@virtual
async def test_a_budget_that_nobody_has_looked_at_yet_says_when_to_come_back() -> None:
    async with serving() as server:
        await prepared(server, "a")
        await budget(server, observedGeneration=0, disruptionsAllowed=1)
        refused = await evict(server, "a")
        assert refused.status == 429
        assert ("Retry-After", "10") in refused.headers


@virtual
async def test_two_budgets_of_one_pod_cannot_be_asked() -> None:
    async with serving() as server:
        await prepared(server, "a")
        for name in ("b", "c"):
            await budget(server, name, disruptionsAllowed=1)
        assert (await evict(server, "a")).status == 500
        assert not await is_being_deleted(server, "a")


@pytest.mark.parametrize(
    ("ready", "phase", "status", "goes"),
    [
        (False, "Pending", {}, True),
        (True, "Succeeded", {}, True),
        # What is not ready protects nobody, where enough others do.
        (False, "Running", {}, True),
        (False, "Running", {"currentHealthy": 0}, False),
        (False, "Running", {"currentHealthy": 0, "policy": "AlwaysAllow"}, True),
        (True, "Running", {"policy": "AlwaysAllow"}, False),
    ],
)
def test_a_pod_that_protects_nobody_goes_without_charge(
    ready: bool, phase: str, status: dict[str, Any], goes: bool
) -> None:
    @virtual
    async def tried() -> None:
        async with serving() as server:
            await prepared(server, "a", ready=ready, phase=phase)
            await budget(server, **status)
            assert (await evict(server, "a")).status == (201 if goes else 429)
            assert await is_being_deleted(server, "a") is goes

    tried()


@virtual
async def test_the_name_in_the_eviction_is_that_of_the_path() -> None:
    async with serving() as server:
        await prepared(server, "a", "b")
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "b"}}
        assert (await server.create(f"{CORE}/pods/a/eviction", body)).status == 400
        assert not await is_being_deleted(server, "a")
        assert not await is_being_deleted(server, "b")
