"""A policy says in the write that makes it what its expressions read in vain."""

from __future__ import annotations

from typing import Any

from skerry.api.objects import Object
from skerry.logic.machinery import crd
from skerry.logic.machinery.resource import Resource
from skerry.server.admission.operation import Operation, Verb
from skerry.server.admission.policy_status import PolicyStatus
from skerry.server.offload.offload import Offload
from tests.kit.machinery.objects import resource
from tests.kit.machinery.policies import policy
from tests.kit.server.calls import call_of
from tests.kit.server.objects import definition

KIND = resource("validatingadmissionpolicies", "admissionregistration.k8s.io")


def things() -> tuple[Resource, ...]:
    made = definition()
    crd.default_crd(made)
    return tuple(crd.resources_of(made))


async def admitted(
    obj: Object, old: Object | None = None, verb: Verb = "CREATE", **more: Any
) -> Any:
    call = call_of(KIND, cluster="root", types=things())
    await PolicyStatus(Offload()).admit(Operation(call, verb, obj, old, **more))
    return obj.get("status")


def warned(status: Object) -> list[str]:
    found = status["typeChecking"].get("expressionWarnings") or []
    return [each["fieldRef"] for each in found]


async def test_an_expression_that_reads_in_vain_is_named() -> None:
    made = policy("p", "object.data.size() < 9", "object.replicas > 1")
    made["metadata"]["generation"] = 3
    status = await admitted(made)
    assert status["observedGeneration"] == 3
    assert warned(status) == ["spec.validations[1].expression"]


async def test_types_that_are_defined_there_are_checked_too() -> None:
    rule = {"apiGroups": ["example.org"], "apiVersions": ["v1"], "operations": ["*"],
            "resources": ["things"]}  # fmt: skip
    made = policy("p", "object.spec.size > 1", "object.spec.weight > 1",
                  matchConstraints={"resourceRules": [rule]})  # fmt: skip
    assert warned(await admitted(made)) == ["spec.validations[1].expression"]


async def test_a_policy_whose_spec_stays_keeps_its_status() -> None:
    old = {**policy("p", "object.replicas > 1"), "status": {"observedGeneration": 1}}
    new = {**policy("p", "object.replicas > 1"), "status": {"observedGeneration": 1}}
    assert await admitted(new, old, "UPDATE") == {"observedGeneration": 1}
    changed = {**policy("p", "object.replicas > 2"), "status": {"observedGeneration": 1}}
    assert warned(await admitted(changed, old, "UPDATE"))


async def test_what_is_written_through_the_status_and_what_goes_is_left() -> None:
    assert await admitted(policy("p"), policy("p"), "UPDATE", subresource="status") is None
    assert await admitted(policy("p"), verb="DELETE") is None
