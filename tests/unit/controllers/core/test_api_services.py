"""Whether an aggregated server can be had, and why not, in kube-aggregator's words."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

from skerry.controllers.core.api_services import (
    API_SERVICES,
    PERIOD,
    SERVICES,
    Observed,
    build,
    decide,
    judged,
)
from skerry.logic.machinery.aggregation import AggregatedVersion, aggregated_version
from skerry.logic.machinery.conditions import find_condition
from skerry.logic.machinery.plan import Update
from skerry.runtime.context import ControllerContext
from tests.kit.sim.engine import EngineWorld
from tests.kit.sim.loop import virtual

NOW = datetime(2026, 1, 1, tzinfo=UTC)
API_SERVICE: Any = {
    "metadata": {"name": "v1.zoo.example.com"},
    "spec": {
        "group": "zoo.example.com",
        "version": "v1",
        "groupPriorityMinimum": 1,
        "versionPriority": 1,
        "insecureSkipTLSVerify": True,
        "service": {"name": "zoo", "namespace": "ns", "port": 443},
    },
}
SERVICE = {"spec": {"ports": [{"name": "https", "port": 443}]}}
PORTS = [{"name": "https", "port": 8443}]


def observed(**more: Any) -> Observed:
    return Observed(API_SERVICE, aggregated_version(API_SERVICE), **more)


@pytest.mark.parametrize(
    ("found", "reason", "message"),
    [
        (observed(), "ServiceNotFound", 'service/zoo in "ns" is not present'),
        (
            observed(service={"spec": {"ports": [{"port": 80}]}}),
            "ServicePortError",
            'service/zoo in "ns" is not listening on port 443',
        ),
        (
            observed(service=SERVICE),
            "EndpointsNotFound",
            'cannot find endpoints for service/zoo in "ns"',
        ),
        (
            observed(service=SERVICE, slices=({"ports": PORTS, "endpoints": []},)),
            "MissingEndpoints",
            'endpoints for service/zoo in "ns" have no addresses with port name "https"',
        ),
    ],
)
def test_what_is_missing_is_said(found: Observed, reason: str, message: str) -> None:
    assert judged(found) == (False, reason, message)


def test_a_server_that_answers_passes_and_one_served_here_always_does() -> None:
    piece = {"ports": PORTS, "endpoints": [{"addresses": ["10.0.0.1"]}]}
    found = observed(service=SERVICE, slices=(piece,))
    assert judged(found) == (True, "Passed", "all checks passed")
    plan = decide(found, NOW)
    (action,) = plan
    assert isinstance(action, Update)
    assert plan.requeue_after_seconds == PERIOD
    again = Observed(action.object, found.version, found.service, found.slices)
    assert not decide(again, NOW), "what was said is not written again"
    local = Observed({"metadata": {"name": "v1.apps"}, "spec": {"group": "apps"}})
    assert judged(local)[1] == "Local"
    assert decide(local, NOW).requeue_after_seconds is None


@virtual
async def test_a_server_is_asked_when_its_service_comes_and_again_and_again() -> None:
    world, asked = EngineWorld(1), list[AggregatedVersion]()

    async def probe(version: AggregatedVersion) -> str:
        asked.append(version)
        return "" if len(asked) > 1 else "no answer"

    controller = build(ControllerContext(world.client, world.factory, world.ids), probe)
    async with world.running(controller.run):
        world.faults.heal()
        await world.direct.create(API_SERVICES, API_SERVICE)
        await asyncio.sleep(5)

        async def reason() -> str:
            obj = await world.direct.get(API_SERVICES, "v1.zoo.example.com")
            return str((find_condition(obj, "Available") or {}).get("reason"))

        assert (await reason(), asked) == ("ServiceNotFound", [])
        body = {"metadata": {"name": "zoo"}, "spec": {"type": "ExternalName"}}
        body["spec"] |= {"externalName": "zoo.example.com"}
        namespace = {"metadata": {"name": "ns"}}
        await world.direct.call("POST", "/api/v1/namespaces", {}, namespace)
        await world.direct.create(SERVICES, body, "ns")
        await asyncio.sleep(5)
        assert await reason() == "FailedDiscoveryCheck"
        await asyncio.sleep(PERIOD)
        assert await reason() == "Passed"
