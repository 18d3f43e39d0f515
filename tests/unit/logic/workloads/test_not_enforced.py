"""Objects that nobody acts upon at an embedded edge say so, once."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.api.edge import NOT_ENFORCED
from skerry.api.kinds import GroupVersionResource
from skerry.logic.machinery.builtin import builtin_resources
from skerry.logic.machinery.conditions import find_condition
from skerry.logic.machinery.plan import Plan
from skerry.logic.workloads.not_enforced import FORMERLY, REASON, TABLE, Row, decide
from tests.kit.workloads import Objects

NOW, LATER = "2030-01-01T00:00:00Z", "2030-01-02T00:00:00Z"
FIELDS: dict[str, dict[str, Any]] = {
    "spec.type: LoadBalancer": {"type": "LoadBalancer"},
    "spec.sessionAffinity: ClientIP": {"sessionAffinity": "ClientIP"},
    "spec.externalIPs": {"externalIPs": ["192.0.2.1"]},
    "spec.service": {"service": {"name": "other"}},
}


def step(objects: Objects, row: Row, now: str = NOW) -> Plan:
    (found,) = objects.of(row.gvr.resource)
    plan = decide(row.gvr, found, now)
    objects.apply(plan)
    return plan


def name(row: Row) -> str:
    return f"{row.kind} {row.field}"


@pytest.mark.parametrize("row", TABLE, ids=name)
def test_an_object_says_once_what_has_no_effect(row: Row) -> None:
    objects = Objects()
    objects.put(row.gvr.resource, {"metadata": {"name": "x"}, "spec": FIELDS.get(row.field, {})})
    (event,) = step(objects, row).announcements
    assert (event.type, event.reason, event.message) == ("Warning", "NotEnforced", row.message)
    (found,) = objects.of(row.gvr.resource)
    assert found["metadata"]["annotations"] == {NOT_ENFORCED: row.message}
    if row.condition is not None:
        condition = find_condition(found, row.condition[0])
        assert condition is not None
        assert (condition["status"], condition["reason"]) == (row.condition[1], REASON)
    assert not step(objects, row, LATER), "nothing is left to say"


@pytest.mark.parametrize("row", TABLE, ids=name)
def test_the_table_names_kinds_that_are_served(row: Row) -> None:
    info = next(each.info for each in builtin_resources() if each.info.gvr == row.gvr)
    assert info.kind == row.kind
    subresources = {each.name for each in info.subresources}
    assert row.condition is None or "status" in subresources


def test_what_has_effect_says_nothing() -> None:
    service = next(row for row in TABLE if row.kind == "Service")
    objects = Objects()
    objects.put("services", {"metadata": {"name": "x"}, "spec": {"type": "ClusterIP"}})
    assert not step(objects, service)


def test_what_no_longer_asks_for_it_no_longer_says_so() -> None:
    service = next(row for row in TABLE if row.kind == "Service")
    objects = Objects()
    both = {"type": "LoadBalancer", "sessionAffinity": "ClientIP"}
    objects.put("services", {"metadata": {"name": "x"}, "spec": both})
    step(objects, service)
    (found,) = objects.of("services")
    assert "; " in found["metadata"]["annotations"][NOT_ENFORCED]
    found["spec"] = {"type": "ClusterIP"}
    assert not step(objects, service).announcements
    assert NOT_ENFORCED not in (found["metadata"].get("annotations") or {})


def test_what_the_server_makes_for_itself_and_what_goes_is_let_be() -> None:
    flow = next(row for row in TABLE if row.kind == "FlowSchema")
    made = {"apf.kubernetes.io/autoupdate-spec": "true"}
    objects = Objects()
    objects.put("flowschemas", {"metadata": {"name": "x", "annotations": made}})
    assert not step(objects, flow)
    policy = TABLE[0]
    objects.put(policy.gvr.resource, {"metadata": {"name": "x", "deletionTimestamp": NOW}})
    assert not step(objects, policy)


@pytest.mark.parametrize("gvr", FORMERLY, ids=lambda gvr: gvr.resource)
def test_what_is_acted_upon_by_now_loses_the_mark_of_earlier_versions(
    gvr: GroupVersionResource,
) -> None:
    notes = {NOT_ENFORCED: "webhooks are not called", "kept": "yes"}
    objects = Objects()
    objects.put(gvr.resource, {"metadata": {"name": "x", "annotations": notes}})
    (found,) = objects.of(gvr.resource)
    objects.apply(decide(gvr, found, NOW))
    (after,) = objects.of(gvr.resource)
    assert after["metadata"]["annotations"] == {"kept": "yes"}
    assert not decide(gvr, after, NOW)
