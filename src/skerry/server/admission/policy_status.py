"""The status of ValidatingAdmissionPolicies, written with the policy itself.

Kubernetes has a controller that checks types some moments later. Here a policy says at once what
its expressions read in vain, in every workspace and whether or not controllers run.
"""

from __future__ import annotations

from typing import ClassVar

import orjson

from skerry.api.objects import Object
from skerry.logic.machinery.admission.type_checking import MAX_KINDS, named_types
from skerry.server.admission.operation import Operation
from skerry.server.admission.policies import POLICIES
from skerry.server.offload.offload import Offload


class PolicyStatus:
    """Sets ``observedGeneration`` and ``typeChecking`` when a policy's spec is written."""

    TYPES: ClassVar = frozenset({POLICIES})

    def __init__(self, offload: Offload) -> None:
        self._offload = offload

    async def admit(self, operation: Operation) -> None:
        if operation.type != POLICIES or operation.verb == "DELETE" or operation.subresource:
            return
        policy, old = operation.obj, operation.old
        if old is not None and old.get("spec") == policy.get("spec") and old.get("status"):
            return
        found = await self._offload.check(
            operation.call, "policy-types", {"spec": policy.get("spec")}, _custom(operation)
        )
        policy["status"] = {
            "observedGeneration": policy["metadata"].get("generation", 1),
            "typeChecking": orjson.loads(found),
        }


def _custom(operation: Operation) -> Object:
    """Return kind and schema of the types a policy names that are not Kubernetes' own."""
    found: Object = {}
    for name in named_types(operation.obj.get("spec") or {}):
        resource = operation.call.types.find(*name)
        if resource is not None and resource.custom and len(found) < MAX_KINDS:
            schema = dict(resource.schema.raw)
            found["/".join(name)] = {"kind": resource.info.kind, "schema": schema}
    return found
