"""The controller on the real engine, in virtual time."""

from __future__ import annotations

import asyncio

from skerry.api.edge import NOT_ENFORCED
from skerry.api.kinds import GroupVersionResource
from skerry.controllers.workload import not_enforced
from skerry.logic.machinery.conditions import find_condition
from skerry.runtime.context import ControllerContext
from skerry.runtime.events import EventRecorder
from tests.kit.sim.engine import EngineWorld
from tests.kit.sim.faults import Rates
from tests.kit.sim.loop import virtual

EVENTS = GroupVersionResource("", "v1", "events")
POLICIES = GroupVersionResource("networking.k8s.io", "v1", "networkpolicies")
SCALERS = GroupVersionResource("autoscaling", "v2", "horizontalpodautoscalers")
BUDGETS = GroupVersionResource("policy", "v1", "poddisruptionbudgets")
CLASSES = GroupVersionResource("node.k8s.io", "v1", "runtimeclasses")


@virtual
async def test_inert_objects_are_marked_and_have_one_event_each() -> None:
    world = EngineWorld(1, Rates(0.0, 0.0, 0.0, 0.0, 0.0))
    recorder = EventRecorder(world.client, not_enforced.NAME)
    context = ControllerContext(world.client, world.factory, world.ids, recorder=recorder)
    controller = not_enforced.build(context)
    async with world.running(controller.run, recorder.run):
        created = world.direct.create
        await created(POLICIES, {"metadata": {"name": "p"}, "spec": {"podSelector": {}}}, "default")
        target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
        spec = {"scaleTargetRef": target, "maxReplicas": 3}
        await created(SCALERS, {"metadata": {"name": "h"}, "spec": spec}, "default")
        await created(CLASSES, {"metadata": {"name": "gvisor"}, "handler": "runsc"})
        await asyncio.sleep(30)

        policy = await world.direct.get(POLICIES, "p", "default")
        assert policy["metadata"]["annotations"][NOT_ENFORCED] == "traffic of pods is not filtered"
        found = find_condition(await world.direct.get(SCALERS, "h", "default"), "ScalingActive")
        assert found is not None
        assert (found["status"], found["reason"]) == ("False", "NotEnforced")

        events = (await world.direct.list(EVENTS)).items
        assert sorted((e["involvedObject"]["kind"], e["type"], e["reason"]) for e in events) == [
            ("HorizontalPodAutoscaler", "Warning", "NotEnforced"),
            ("NetworkPolicy", "Warning", "NotEnforced"),
            ("RuntimeClass", "Warning", "NotEnforced"),
        ]


@virtual
async def test_marks_of_an_earlier_version_come_off_what_is_acted_upon_now() -> None:
    world = EngineWorld(1, Rates(0.0, 0.0, 0.0, 0.0, 0.0))
    context = ControllerContext(world.client, world.factory, world.ids)
    metadata = {"name": "b", "annotations": {NOT_ENFORCED: "disruptions are not counted"}}
    body = {"metadata": metadata, "spec": {"minAvailable": 1}}
    dates = {"lastTransitionTime": "2026-01-01T00:00:00Z", "message": ""}
    kept = {"type": "Other", "status": "True", "reason": "Kept", **dates}
    marked = {"type": "DisruptionAllowed", "status": "False", "reason": "NotEnforced", **dates}
    async with world.running(not_enforced.build(context).run):
        await world.direct.create(BUDGETS, body, "default")
        await asyncio.sleep(30)
        made = await world.direct.get(BUDGETS, "b", "default")
        assert NOT_ENFORCED not in (made["metadata"].get("annotations") or {})
        await world.direct.update_status(
            BUDGETS, {**made, "status": {"conditions": [kept, marked]}}
        )
        await asyncio.sleep(30)
        found = await world.direct.get(BUDGETS, "b", "default")
        assert [each["type"] for each in found["status"]["conditions"]] == ["Other"]
