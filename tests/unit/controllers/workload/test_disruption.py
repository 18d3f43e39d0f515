"""How many pods a budget lets go: the numbers, and the controller with real evictions."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skerry.api.errors import TooManyRequests
from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.controllers.workload import disruption, replicaset
from skerry.controllers.workload.disruption import Observed, Scale, decide
from skerry.controllers.workload.kinds import DISRUPTION_BUDGETS, PODS, REPLICA_SETS
from skerry.kit.timestamps import rfc3339
from skerry.logic.machinery.conditions import find_condition
from skerry.logic.machinery.plan import Update
from skerry.runtime.context import ControllerContext
from tests.kit.sim.engine import EngineWorld
from tests.kit.sim.faults import Rates
from tests.kit.sim.loop import virtual
from tests.kit.workload_objects import LABELS, NOW, owner

ACCOUNTS = GroupVersionResource("", "v1", "serviceaccounts")
NAMESPACES = GroupVersionResource("", "v1", "namespaces")


def pod(name: str, *, ready: bool = True, terminating: bool = False) -> Object:
    metadata: Object = {"name": name, "namespace": "ns", "labels": dict(LABELS)}
    if terminating:
        metadata["deletionTimestamp"] = rfc3339(NOW)
    status = {"conditions": [{"type": "Ready", "status": "True" if ready else "False"}]}
    return {"metadata": metadata, "status": status}


def budget(status: Object | None = None, **spec: Any) -> Object:
    metadata = {"name": "b", "namespace": "ns", "generation": 3}
    wanted = {"selector": {"matchLabels": LABELS}, **spec}
    return {"metadata": metadata, "spec": wanted, "status": status or {}}


def seen(
    found: Object, *pods: Object, replicas: int = 0, unknown: tuple[str, ...] = ()
) -> Observed:
    scales = {each["metadata"]["name"]: Scale("set", replicas) for each in pods} if replicas else {}
    return Observed(found, pods, scales, unknown)


def status_of(observed: Observed) -> Object:
    (update,) = decide(observed, NOW)
    assert isinstance(update, Update)
    status: Object = update.object["status"]
    return status


def numbers(status: Object) -> tuple[int, int, int, int]:
    names = ("expectedPods", "currentHealthy", "desiredHealthy", "disruptionsAllowed")
    expected, current, desired, allowed = (status[name] for name in names)
    return expected, current, desired, allowed


THREE = (pod("a"), pod("b"), pod("c"))


@pytest.mark.parametrize(
    ("spec", "wanted"),
    [
        ({"minAvailable": 2}, (3, 3, 2, 1)),
        ({"minAvailable": 5}, (3, 3, 5, 0)),
        ({"minAvailable": "50%"}, (4, 3, 2, 1)),
        ({"minAvailable": "51%"}, (4, 3, 3, 0)),
        ({"maxUnavailable": 1}, (4, 3, 3, 0)),
        ({"maxUnavailable": 2}, (4, 3, 2, 1)),
        ({"maxUnavailable": "30%"}, (4, 3, 2, 1)),
        ({"maxUnavailable": 9}, (4, 3, 0, 3)),
    ],
)
def test_a_number_counts_pods_and_a_share_counts_what_their_set_wants(
    spec: dict[str, Any], wanted: tuple[int, int, int, int]
) -> None:
    assert numbers(status_of(seen(budget(**spec), *THREE, replicas=4))) == wanted


def test_unready_and_terminating_pods_are_not_healthy() -> None:
    pods = (pod("a"), pod("b", ready=False), pod("c", terminating=True))
    assert numbers(status_of(seen(budget(minAvailable=1), *pods))) == (3, 1, 1, 0)


def test_a_budget_without_pods_allows_nothing_and_says_so_once() -> None:
    plan = decide(seen(budget(maxUnavailable=1)), NOW)
    assert [each.reason for each in plan.announcements] == ["NoPods"]
    status = status_of(seen(budget(maxUnavailable=1)))
    assert numbers(status) == (0, 0, 0, 0)
    again = seen(budget({**status, "disruptionsAllowed": 7}, maxUnavailable=1))
    assert not decide(again, NOW).announcements


def test_where_a_set_cannot_be_asked_nothing_may_be_disrupted() -> None:
    status = status_of(seen(budget(maxUnavailable=1), *THREE, unknown=("a",)))
    assert status["disruptionsAllowed"] == 0
    found = find_condition({"status": status}, disruption.ALLOWED)
    assert found is not None
    assert (found["status"], found["reason"]) == ("False", "SyncFailed")
    assert found["message"] == 'found no controllers for pod "a"'
    # Who asks for a number needs no set.
    assert (
        status_of(seen(budget(minAvailable=1), *THREE, unknown=("a",)))["disruptionsAllowed"] == 2
    )


def test_an_evicted_pod_is_not_healthy_until_it_is_given_up_on() -> None:
    since = rfc3339(NOW - timedelta(seconds=90))
    before = {"disruptedPods": {"a": since, "gone": since}}
    observed = seen(budget(before, minAvailable=2), *THREE)
    status = status_of(observed)
    assert numbers(status) == (3, 2, 2, 0)
    assert status["disruptedPods"] == {"a": since}
    assert decide(observed, NOW).requeue_after_seconds == 30
    late = decide(observed, NOW + timedelta(seconds=30))
    (update,) = late
    assert isinstance(update, Update)
    assert numbers(update.object["status"]) == (3, 3, 2, 1)
    assert "disruptedPods" not in update.object["status"]


@given(st.integers(0, 6), st.integers(0, 6), st.integers(0, 8), st.booleans(), st.integers(0, 100))
@settings(max_examples=100, deadline=None)
def test_what_is_allowed_never_brings_the_healthy_below_what_is_desired(
    ready: int, unready: int, replicas: int, least: bool, share: int
) -> None:
    pods = [
        *(pod(f"r{n}") for n in range(ready)),
        *(pod(f"u{n}", ready=False) for n in range(unready)),
    ]
    spec: dict[str, Any] = {"minAvailable" if least else "maxUnavailable": f"{share}%"}
    observed = seen(budget(**spec), *pods, replicas=replicas)
    status = status_of(observed)
    allowed = status["disruptionsAllowed"]
    assert allowed == 0 or ready - allowed >= status["desiredHealthy"]
    settled = decide(seen(budget(status, **spec), *pods, replicas=replicas), NOW)
    assert not settled, "a status that is right is not written again"


@virtual
async def test_evictions_are_let_through_up_to_the_budget_and_again_when_pods_are_back() -> None:
    world = EngineWorld(1, Rates(0.0, 0.0, 0.0, 0.0, 0.0))
    context = ControllerContext(world.client, world.factory, world.ids)
    budgets, sets = disruption.build(context), replicaset.build(context)

    async def make_ready() -> None:
        for found in (await world.direct.list(PODS)).items:
            conditions = [{"type": "Ready", "status": "True"}]
            found["status"] = {"phase": "Running", "conditions": conditions}
            await world.direct.update_status(PODS, found)

    async def evict() -> None:
        running = [
            each["metadata"]["name"]
            for each in (await world.direct.list(PODS)).items
            if (each.get("status") or {}).get("phase") == "Running"
        ]
        body = {"metadata": {"name": running[0]}}
        await world.direct.create(PODS, body, "ns", name=running[0], subresource="eviction")

    async with world.running(budgets.run, sets.run):
        await world.direct.create(NAMESPACES, {"metadata": {"name": "ns"}})
        await world.direct.create(ACCOUNTS, {"metadata": {"name": "default"}}, "ns")
        await world.direct.create(REPLICA_SETS, owner("web", replicas=3), "ns")
        spec = {"maxUnavailable": 1, "selector": {"matchLabels": LABELS}}
        await world.direct.create(
            DISRUPTION_BUDGETS, {"metadata": {"name": "b"}, "spec": spec}, "ns"
        )
        await asyncio.sleep(5)
        await make_ready()
        await asyncio.sleep(5)
        await evict()
        with pytest.raises(TooManyRequests):
            await evict()
        await asyncio.sleep(5)
        with pytest.raises(TooManyRequests):
            await evict()
        await make_ready()
        await asyncio.sleep(5)
        await evict()
